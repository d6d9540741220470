"""Parse source files of candidates and references. They are read as text and never executed."""
