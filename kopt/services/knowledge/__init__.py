"""Answers, searches, specs and citations out of the wikis."""
