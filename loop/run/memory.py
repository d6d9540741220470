"""memory.json: what was tried as one version, and the outcome."""

from __future__ import annotations

from typing import Literal

from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import Sha256
from kbs.common.json_model import FrozenModel
from loop.journal.events import Closed
from loop.journal.state import RunState
from loop.journal.version_state import VersionState
from loop.planning.outcomes import MethodOutcome
from loop.proposals.proposal import Expected, Proposal

NAME = "memory.json"


class Tried(FrozenModel):
    """One attempt at a version."""

    attempt: int
    methods: tuple[str, ...]
    verdict: str
    improvement: str
    reason: str
    receipt: Sha256


class Memory(FrozenModel):
    """What was tried as one version, and what came of it. Masking it later is an event of the journal, not an edit."""

    schema_version: Literal[1] = 1
    run: str
    version: int
    parent: int | None
    methods: tuple[str, ...]
    single_change: str
    """In the proposer's words; empty for version 0."""
    expected: tuple[Expected, ...]
    """What the proposer foretold."""
    evidence: tuple[str, ...]
    """The lines that it cited."""
    bottleneck_before: str
    """Of the parent; empty for version 0."""
    bottleneck: str
    """Empty where it was not profiled."""
    attempts: tuple[Tried, ...]
    refused: tuple[tuple[str, ...], ...]
    """Rules that each refused submission broke."""
    gate: tuple[str, ...]
    """Rules that the version as a whole broke."""
    outcome: Literal["passed", "failed"]
    kept: bool
    why: str
    ratio: tuple[float, float, float] | None
    """Time of its parent over its own: median, lower and upper bound."""
    median_us: float | None
    outcomes: tuple[MethodOutcome, ...] = ()
    """What came of each method; empty if nothing ran, or kopt's own gate rejected the version."""
    masked: Literal[False] = False

    def document(self) -> bytes:
        """The file."""
        return canonical.dumps(self.model_dump(mode="json"))


def remember(
    run: str,
    state: RunState,
    version: VersionState,
    proposal: Proposal | None,
    closing: Closed,
    outcomes: tuple[MethodOutcome, ...],
) -> Memory:
    """The memory of a version that is being closed."""
    evaluated = [(attempt, attempt.evaluated) for attempt in version.attempts if attempt.evaluated is not None]
    last = version.result
    parent = state.versions[version.parent].profiled if version.parent is not None else None
    return Memory(
        run=run,
        version=version.number,
        parent=version.parent,
        methods=version.methods,
        single_change=proposal.hypothesis.single_change if proposal else "",
        expected=proposal.hypothesis.expected if proposal else (),
        evidence=tuple(one.reference for one in proposal.evidence.selected) if proposal else (),
        bottleneck_before=parent.bottleneck if parent else "",
        bottleneck=version.profiled.bottleneck if version.profiled else "",
        attempts=tuple(
            Tried(
                attempt=attempt.number,
                methods=attempt.submitted.methods if attempt.submitted else (),
                verdict=found.verdict.value,
                improvement=found.improvement.value,
                reason=found.reason,
                receipt=found.receipt,
            )
            for attempt, found in evaluated
        ),
        refused=tuple(one.rules for one in version.refused),
        gate=version.gated.rules if version.gated else (),
        outcome=closing.outcome,
        kept=closing.kept,
        why=closing.why,
        ratio=last.ratio if last else None,
        median_us=last.median_us if last else None,
        outcomes=outcomes,
    )
