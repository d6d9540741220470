"""Compares the movements that a hypothesis expected with the figures of parent and version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evaluator.receipt import timing_text as words
from evaluator.receipt.verdict import Improvement
from loop.pages.artifacts import NOT_THERE, VersionFiles, is_time
from loop.proposals.proposal import Expected

PARENT = "parent"
"""Name of the baseline that is the parent's kernel."""


@dataclass(frozen=True)
class Movement:
    """One prediction and its outcome."""

    metric: str
    expected: str
    """Direction and size, in the proposer's words."""
    before: str
    """The parent's figure in its profile or receipt; N/A if it was not collected."""
    after: str
    outcome: Literal["as foretold", "the other way", "no change", "N/A"]

    @property
    def observed(self) -> str:
        """`62.1 % -> 80.4 %`"""
        return f"{self.before} -> {self.after}"


def movements(files: VersionFiles) -> tuple[Movement, ...]:
    """The movements that a version's hypothesis expected, in their order."""
    proposal = files.proposal
    return () if proposal is None else tuple(_movement(files, one) for one in proposal.hypothesis.expected)


def _movement(files: VersionFiles, expected: Expected) -> Movement:
    said = f"{expected.direction}: {expected.size}"
    if is_time(expected.metric):
        before, after = _parent_us(files), files.median_us
        shown = (words.duration(before), words.duration(after))
        if files.receipt and files.receipt.improvement is Improvement.SAME:
            return Movement(expected.metric, said, *shown, "no change")
    else:
        parent = files.parent
        before = parent.number_of(expected.metric) if parent else None
        after = files.number_of(expected.metric)
        shown = (
            (parent.metric(expected.metric) if parent else "") or NOT_THERE,
            files.metric(expected.metric) or NOT_THERE,
        )
    if before is None or after is None:
        return Movement(expected.metric, said, *shown, "N/A")
    if before == after:
        return Movement(expected.metric, said, *shown, "no change")
    agrees = (after > before) == (expected.direction == "up")
    return Movement(expected.metric, said, *shown, "as foretold" if agrees else "the other way")


def _parent_us(files: VersionFiles) -> float | None:
    """The parent's median time in the version's own evaluation."""
    timing = files.receipt.timing if files.receipt else None
    found = timing.workloads[0].baselines.get(PARENT) if timing else None
    return found.timed.summary.median_us if found and found.timed.summary else None
