"""Sums about GPUs: occupancy, roofline, profile metrics and thresholds."""
