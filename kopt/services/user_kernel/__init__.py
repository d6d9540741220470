"""Answers about the user's own kernel and profile."""
