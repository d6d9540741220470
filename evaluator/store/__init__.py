"""Receipts as files: sealed, stored, replayed, reported."""
