"""Rules on hardware pages."""
