"""Variations: the given inputs with one thing changed, to find what a candidate ignores, remembers or assumes."""
