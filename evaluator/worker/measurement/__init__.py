"""Time, and what really ran."""
