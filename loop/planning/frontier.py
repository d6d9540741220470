"""The frontier of an attempt: every candidate with its signal, its verdict, and what came of it."""

from __future__ import annotations

from typing import Literal

from evaluator.receipt.verdict import Verdict
from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import Sha256
from kbs.common.json_model import FrozenModel
from loop.journal.events import Interval, Measured
from loop.journal.version_state import BEST, Attempt
from loop.planning.decisions import words

NAME = "frontier.json"


class Candidate(FrozenModel):
    """One candidate of an attempt."""

    name: str
    """`main` is the proposal's own kernel."""
    outcome: Literal["champion", "compared", "ranked", "rejected", "open"]
    """`champion`: the attempt stands for it. `compared`: with the parent, and not chosen. `ranked`: its signal was not
    among the best. `rejected`: not accepted, or the evaluator could not take it. `open`: not measured yet."""
    why: str
    signal_us: float | None
    """Median time of its signal; None where none was taken."""
    signal: Sha256 | None
    """Id of the signal's receipt."""
    ratio: Interval | None
    """Time of its parent over its own, by its verdict: median, lower and upper bound."""
    verdict: Sha256 | None
    """Id of the verdict's receipt; None where it was not compared with the parent."""


def frontier(attempt: Attempt, champion: str | None = None) -> tuple[Candidate, ...]:
    """The candidates of an attempt: the champion first, then by their signals. `champion`: None for the one that the
    attempt stands for."""
    if champion is None and attempt.evaluated is not None:
        champion = attempt.evaluated.branch
    order = [one.name for one in attempt.signals]
    names = [*order, *(name for name in attempt.candidates if name not in order)]
    return tuple(_candidate(attempt, name, champion) for name in sorted(names, key=lambda name: name != champion))


def document(version: int, attempt: Attempt, champion: str) -> dict[str, bytes]:
    """frontier.json by its name."""
    listed = [one.model_dump(mode="json") for one in frontier(attempt, champion)]
    return {NAME: canonical.dumps({"version": version, "attempt": attempt.number, "candidates": listed})}


def _candidate(attempt: Attempt, name: str, champion: str | None) -> Candidate:
    signal, verdict = attempt.found("signal", name), attempt.found("verdict", name)
    outcome, why = _outcome(attempt, name, champion)
    return Candidate(
        name=name,
        outcome=outcome,
        why=why,
        signal_us=signal.median_us if signal else None,
        signal=signal.receipt if signal else None,
        ratio=verdict.ratio if verdict else None,
        verdict=verdict.receipt if verdict else None,
    )


def _outcome(
    attempt: Attempt, name: str, champion: str | None
) -> tuple[Literal["champion", "compared", "ranked", "rejected", "open"], str]:
    signal, verdict = attempt.found("signal", name), attempt.found("verdict", name)
    for found in (signal, verdict):
        if found is not None and found.verdict is not Verdict.ACCEPTED:
            return "rejected", f"its {found.what} says {_said(found)}"
    shown = "right, and not timed" if verdict is None or verdict.ratio is None else words(verdict.ratio)
    if name == champion:
        return "champion", f"{shown} of the parent's speed" if verdict and verdict.ratio else shown
    if verdict is not None:
        return "compared", f"{shown}, and not better than {champion}" if champion else shown
    if signal is not None and name not in attempt.finalists:
        place = [one.name for one in attempt.signals].index(name) + 1
        return "ranked", f"its signal is number {place}, and the best {BEST} are compared with the parent"
    return "open", "it is not measured yet"


def _said(found: Measured) -> str:
    return f"{found.verdict}: {found.reason}" if found.verdict is not None else f"it cannot be run: {found.reason}"
