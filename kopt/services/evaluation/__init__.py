"""How good search, answers and citations are on a set of questions whose right answers are known."""
