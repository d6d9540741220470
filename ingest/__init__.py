"""Reads wikis into passages, specs and records of the knowledge base."""
