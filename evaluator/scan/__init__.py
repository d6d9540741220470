"""Scan a candidate's text for hazards."""
