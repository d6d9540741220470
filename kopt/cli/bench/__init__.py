"""`kopt bench`."""
