"""Rows of wiki tables with their lines: operation costs, advice, thresholds, measurements, signatures, instructions."""

from __future__ import annotations

from dataclasses import dataclass

from kbs.evidence.citation import Citation
from kbs.evidence.opcodes import Pattern


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


@dataclass(frozen=True)
class SignatureRow:
    """How machine code shows that a kernel uses a method, on some compilation targets."""

    method: str
    targets: tuple[int, ...]
    """Numbers of the targets that it holds for: 90 for sm_90 and sm_90a. On any other nothing is said."""
    opcodes: tuple[Pattern, ...]
    """Instructions of any of these families count, or, where they name them, counts of the compiler's."""
    least: int
    """How many there must be in the kernel's function."""
    unclear: tuple[Pattern, ...]
    """Opcodes that may or may not be the method: where nothing else is found, they leave it open."""
    source: str
    citation: Citation


@dataclass(frozen=True)
class InstructionRow:
    """An instruction that a good kernel of an operation shows on some compilation targets."""

    method: str
    """The method whose page states it."""
    operations: tuple[str, ...]
    """Ids of the vocabulary; empty: every operation that multiplies no matrices."""
    dtypes: tuple[str, ...]
    """Element types, ids of the vocabulary; empty: any."""
    targets: tuple[int, ...]
    """As in a signature."""
    instruction: str
    """What it is called in PTX: `wgmma`."""
    opcodes: tuple[Pattern, ...]
    """The machine code that it becomes, any of these families."""
    source: str
    citation: Citation


@dataclass(frozen=True)
class MethodRow:
    """A method from which a run chooses, and by what it is chosen."""

    method: str
    title: str
    axis: str | None
    """`compute`, `memory`, `latency` or `any`; None where the page does not say."""
    priority: int | None
    """1 to 5; 1 is tried first among the methods of an axis."""
    architectures: tuple[str, ...]
    languages: tuple[str, ...]
    features: tuple[str, ...]
    triggers: tuple[str, ...]
    conflicts: tuple[str, ...]
    complements: tuple[str, ...]
    line: int
    """Its line on the page; 1 for a page of its own."""
    defect: bool = False


TableRow = CostRow | AdviceRow | ThresholdRow | MeasuredRow
