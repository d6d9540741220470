"""Source files of candidates and references, read as text and never executed."""
