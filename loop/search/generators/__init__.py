"""Families of kernels for a problem, each with its space: a file for each class of operation."""
