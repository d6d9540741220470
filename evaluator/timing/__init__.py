"""How fast a candidate is, and whether its times can be believed."""
