"""GPU calculations: occupancy, roofline, profile metrics and thresholds."""
