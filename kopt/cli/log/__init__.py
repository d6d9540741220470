"""`kopt log`."""
