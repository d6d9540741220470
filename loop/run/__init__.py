"""Driving a run from step to step."""
