"""The state of one version of a run: its attempts, what was measured of them, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluator.receipt.verdict import Verdict
from kbs.experience.experiment import NO_TRIAL, outcome_of
from loop.journal import events
from loop.journal.folder import MAIN

BEST = 2
"""So many candidates of an attempt are compared with the parent: those with the best signals."""
REFUSALS = 3
"""After this many refused answers in a row of a program or model, its version fails; an agent may continue."""


@dataclass
class Attempt:
    """One kernel that was tried for a version."""

    number: int
    submitted: events.Submitted | None
    """None for version 0, which nobody proposed."""
    measured: list[events.Measured] = field(default_factory=list)
    """What was measured of its candidates; empty for attempts of earlier versions of kopt."""
    evaluated: events.Evaluated | None = None

    @property
    def accepted(self) -> bool:
        """Whether the evaluator accepted it."""
        return self.evaluated is not None and self.evaluated.verdict is Verdict.ACCEPTED

    @property
    def candidates(self) -> tuple[str, ...]:
        """Their names, in the order in which they were handed in."""
        return (MAIN,) if self.submitted is None else self.submitted.branches

    @property
    def ablations(self) -> tuple[str, ...]:
        """The methods that the accepted kernel is also measured without."""
        return () if self.submitted is None else self.submitted.ablations

    def found(self, what: str, name: str) -> events.Measured | None:
        """What was measured of a candidate; None if it was not yet."""
        return next((one for one in self.measured if (one.what, one.name) == (what, name)), None)

    @property
    def signals(self) -> tuple[events.Measured, ...]:
        """Signals, the best first: accepted ones by their time, then as they were handed in."""
        signals = [found for name in self.candidates if (found := self.found("signal", name)) is not None]
        accepted = [one for one in signals if one.verdict is Verdict.ACCEPTED]
        timed = sorted(accepted, key=lambda one: float("inf") if one.median_us is None else one.median_us)
        return (*timed, *(one for one in signals if one not in accepted))

    @property
    def finalists(self) -> tuple[str, ...]:
        """The candidates that are compared with the parent: the best of those whose signal was accepted."""
        return tuple(one.name for one in self.signals if one.verdict is Verdict.ACCEPTED)[:BEST]

    def pending(self, what: str) -> tuple[str, ...]:
        """Candidates that are to be measured and were not yet."""
        wanted = {"signal": self.candidates, "verdict": self.finalists, "ablation": self.ablations}[what]
        return tuple(name for name in wanted if self.found(what, name) is None)


@dataclass
class VersionState:
    """The state of one version."""

    opened: events.Opened
    attempts: list[Attempt] = field(default_factory=list)
    refused: list[events.Refused] = field(default_factory=list)
    refused_in_row: int = 0
    """Since the version was opened, or since its last attempt that was evaluated."""
    taken_back: int = 0
    """Attempts that the evaluator could not take."""
    profiled: events.Profiled | None = None
    gated: events.Gated | None = None
    closed: events.Closed | None = None
    recorded: events.Recorded | None = None
    committed: events.Committed | None = None
    masked: bool = False

    @property
    def number(self) -> int:
        """K of vK."""
        return self.opened.version

    @property
    def parent(self) -> int | None:
        """The version that was changed, which a proposal may choose. None for version 0."""
        last = self.attempts[-1].submitted if self.attempts else None
        return self.opened.parent if last is None else last.parent

    @property
    def accepted(self) -> Attempt | None:
        """The attempt that was accepted: the last one, if any."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].accepted else None

    @property
    def result(self) -> events.Evaluated | None:
        """The result of the accepted attempt."""
        return self.accepted.evaluated if self.accepted else None

    @property
    def last_result(self) -> events.Evaluated | None:
        """The result of the last attempt, accepted or not."""
        return self.attempts[-1].evaluated if self.attempts else None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the last attempt declared."""
        last = self.attempts[-1].submitted if self.attempts else None
        return () if last is None else last.methods

    @property
    def judged(self) -> bool:
        """Whether the evaluator's verdict on its kernel speaks for or against its methods: it was wrong, did not run,
        or its time was compared. What the gate refused, and what nobody timed, does not."""
        last = self.last_result
        if self.closed is None or last is None or (self.gated is not None and not self.gated.passed):
            return False
        return outcome_of(last.verdict.value, last.improvement.value) not in NO_TRIAL

    @property
    def passed(self) -> bool:
        """Whether it was closed as passed: it can be a parent."""
        return self.closed is not None and self.closed.outcome == "passed"

    @property
    def kept(self) -> bool:
        """Whether it became the best version when it was closed."""
        return self.closed is not None and self.closed.kept

    @property
    def commit_name(self) -> str:
        """The name of its commit in `committed`."""
        return "baseline" if self.number == 0 else f"iter {self.number}"
