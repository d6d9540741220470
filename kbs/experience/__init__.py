"""The experience log: what was tried on which kernel, and what came of it."""
