"""Understands questions: products, operations, sizes, and names given indirectly."""
