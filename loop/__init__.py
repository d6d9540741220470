"""Gated optimization runs (see docs/architecture.md). Nothing of it is released yet."""
