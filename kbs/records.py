"""Rows of the wiki's tables: the cost of an operation, advice, thresholds, and measurements. Each knows its line."""

from __future__ import annotations

from dataclasses import dataclass

from kbs.citation import Citation


@dataclass(frozen=True)
class CostRow:
    """One term of what a call of an operation must do: `count` × the product of `dims`."""

    operation: str
    cost: str
    """`read` or `write` (elements), `vector FLOP` or `tensor FLOP`."""
    count: str
    """A decimal number."""
    dims: tuple[str, ...]
    dtype: str
    """Fixed element type of the term; empty for the operation's own."""
    note: str
    citation: Citation


@dataclass(frozen=True)
class AdviceRow:
    """A technique worth trying against a bottleneck; the order on the page is the ranking."""

    technique: str
    bottleneck: str
    because: str
    source: str
    citation: Citation


@dataclass(frozen=True)
class ThresholdRow:
    """A value of a profile's metric from which on a symptom is named."""

    symptom: str
    metric: str
    test: str
    """`<`, `<=`, `>` or `>=`."""
    value: str
    unit: str
    source: str
    citation: Citation


@dataclass(frozen=True)
class MeasuredRow:
    """A published measurement."""

    operation: str
    gpu: str
    dtype: str
    shape: str
    metric: str
    value: str
    unit: str
    what: str
    source: str
    citation: Citation


TableRow = CostRow | AdviceRow | ThresholdRow | MeasuredRow
