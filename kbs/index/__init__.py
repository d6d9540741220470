"""The derived index: SQLite, words, vectors, and the search over them."""
