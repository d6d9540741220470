"""Hazards found in a text."""
