"""What the numbers of a text may rest on: sources, and what a run and its kernels choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypedDict

from evaluator.profiling.profile import Launch
from loop.gate.numbers.figures import Figures


@dataclass(frozen=True)
class Given:
    """Figures of one source."""

    figures: Figures
    product: str = ""
    """The GPU that they are of; empty for measurements, and for lines that name none."""
    said: str = ""
    """The cited lines, which may say under which conditions they hold; empty for measurements."""
    claimed: bool = False
    """Whether the text itself states the figure beside its citation."""


class OfVersion(TypedDict):
    """The fields of `Sources` that a version's own measurements take."""

    launches: Sequence[Launch]
    measured: Sequence[Figures]


@dataclass(frozen=True)
class Sources:
    """What the numbers of a text may rest on."""

    launches: Sequence[Launch]
    """Profiles whose metrics may be quoted, the parent's first."""
    measured: Sequence[Figures]
    cited: Sequence[Given]
    gains: Sequence[Figures]
    """Where ratios may be from: receipts and the lines that this text cites."""
    computed: Figures
    """Results of the text's own arithmetic."""
    elsewhere: Figures
    """Results of arithmetic that other texts of the proposal show: of hardware they say nothing."""
    equations: Sequence[str]
    """Arithmetic of the text that is right: a number in it needs a source, and is no value of the metric beside it."""
    product: str
    """The run's GPU."""
    words: Set[str]
    """Identifiers of kernel and reference: digits in them are names."""
    others: Figures = field(default_factory=Figures)
    """What receipts measured of other programs than the run's kernels."""
    logged: Figures = field(default_factory=Figures)
    """What the records of the experience log say that a query of the version found."""
    versions: Mapping[int, OfVersion] = field(default_factory=dict)
    """What the measurements of one version alone say, for sentences that say so of it."""

    def in_equation(self, at: int, text: str) -> bool:
        """Whether a place of a sentence lies in arithmetic that is shown and right."""
        for equation in self.equations:
            start = text.find(equation)
            if 0 <= start <= at < start + len(equation):
                return True
        return False


@dataclass(frozen=True)
class Chosen:
    """Numbers that are no claims: sizes of the run and constants of its kernels."""

    exactly: frozenset[Decimal]
    combined: frozenset[Decimal] = field(default_factory=frozenset)
    """Products and quotients of two of them."""

    @staticmethod
    def of(sizes: Set[Decimal], constants: Set[Decimal]) -> Chosen:
        """Also what follows from them in one step."""
        base = sorted(one for one in (*sizes, *constants, Decimal(32)) if one == one.to_integral() and 1 < one < 10**12)
        few = base[:150]
        made = {a * b for a in few for b in few} | {a / b for a in few for b in few if a % b == 0}
        made |= {size * width for size in made | set(base) for width in map(Decimal, (2, 4, 8))}
        return Chosen(frozenset(sizes | constants), frozenset(made))

    def has(self, value: Decimal) -> bool:
        """Whether a value is one of them or follows from two."""
        return value in self.exactly or value in self.combined or -value in self.exactly
