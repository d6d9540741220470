"""The derived index: SQLite, full text, vectors, and the search over them."""
