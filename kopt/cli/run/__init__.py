"""`kopt run`."""
