"""Kernels compiled for a GPU that need not be present: machine code, and how they fill an SM."""
