"""Benchmark candidates against baselines, and cross-check the times."""
