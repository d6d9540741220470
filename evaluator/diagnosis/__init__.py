"""Diagnose what limits a kernel, from its profile."""
