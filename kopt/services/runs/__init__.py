"""Runs: planned, found, driven, turned into wiki proposals."""
