"""The fork server and the life of a worker."""
