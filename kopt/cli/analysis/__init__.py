"""`kopt profile`, `diagnose` and `roofline`."""
