"""Proposers of the next version: a program or a language model that kopt asks; agents submit theirs."""
