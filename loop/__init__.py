"""Gated optimization runs: see docs/architecture.md and docs/loop.md."""
