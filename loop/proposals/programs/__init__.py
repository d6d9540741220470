"""Kernels as programs: what of them does something, and what two of them have in common."""
