"""Solvers: each answers one kind of question from the slots that it needs, and says which words it accounts for."""
