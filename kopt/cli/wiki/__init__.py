"""`kopt wiki` and `kopt ingest`."""
