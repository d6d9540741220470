"""Measures a candidate kernel (see docs/architecture.md). Nothing of it is released yet."""
