"""Answers questions: gathers evidence, does the arithmetic, and checks every claim before it is shown."""
