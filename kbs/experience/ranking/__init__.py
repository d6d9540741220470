"""Ranks past experiments by similarity, and methods by what they are expected to gain."""
