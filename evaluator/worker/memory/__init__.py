"""Tensors and values that cross between processes."""
