"""Plots, drawn with matplotlib where it is installed."""
