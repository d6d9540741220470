"""Answers: evidence is gathered, sums are done, and every claim is checked before it is said."""
