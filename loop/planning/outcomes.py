"""Decides what came of a method: whether it is in the machine code, and whether it brought anything.

Of a version with one method the ratio to its parent is the method's; with several, an ablation gives one to each.
"""

from __future__ import annotations

from typing import Literal

from evaluator.receipt.verdict import Verdict
from kbs.common.json_model import FrozenModel
from loop.planning.decisions import Interval, words
from loop.tools import MachineNote

MethodState = Literal["effective", "ineffective", "implementation_failed", "unverifiable"]
_UNTOLD = (Verdict.NOT_SUPPORTED_HERE, Verdict.TASK_REFUSED)
"""Verdicts that say nothing of the candidate."""


class MethodOutcome(FrozenModel):
    """What came of one method of a version."""

    method: str
    found: MethodState
    """`effective`: its signature is in the machine code, and the time fell by more than noise. `ineffective`: the
    signature is there, and the time did not. `implementation_failed`: no right kernel has it. `unverifiable`: the
    machine code or the time cannot tell."""
    signature: str
    """What the machine code shows: `present n (…)`, `absent`, or `unverifiable: why`."""
    why: str
    ratio: Interval | None
    """Time without the method over time with it; None if it was not measured."""


def signature_of(method: str, note: MachineNote | None) -> str:
    """What machine code shows of a method: `present n (…)`, `absent`, or `unverifiable: why`."""
    if note is None:
        return "unverifiable: the machine code was not looked at"
    return note.methods.get(method, f"unverifiable: {note.why or 'it was not looked for'}")


def outcome(
    method: str, after: MachineNote | None, before: MachineNote | None, ratio: Interval | None, noise: float
) -> MethodOutcome:
    """The outcome of a method of a version that was accepted.

    `after` is the machine code with the method, `before` the parent's. `ratio` is the time without it over the time
    with it; its lower bound must lie above 1 + `noise`.
    """
    shown = signature_of(method, after)

    def found(state: MethodState, why: str) -> MethodOutcome:
        return MethodOutcome(method=method, found=state, signature=shown, why=why, ratio=ratio)

    if shown == "absent":
        return found("implementation_failed", "its signature is not in the machine code")
    if not shown.startswith("present"):
        return found("unverifiable", shown.partition(": ")[2])
    if before is not None and signature_of(method, before) == shown:
        return found("unverifiable", f"the machine code showed it before the change too: {shown}")
    if ratio is None:
        return found("unverifiable", "its signature is there, and no time was compared")
    if ratio[1] > 1 + noise:
        return found("effective", f"{words(ratio)}, with the lower bound above {1 + noise:.4g}")
    return found("ineffective", f"{words(ratio)}: the lower bound is not above {1 + noise:.4g}")


def not_accepted(method: str, verdict: Verdict, reason: str) -> MethodOutcome:
    """The outcome of a method in whose version no attempt was accepted; `verdict` is the last attempt's."""
    state: MethodState = "unverifiable" if verdict in _UNTOLD else "implementation_failed"
    why = f"no attempt was accepted; the last one: {verdict}: {reason}"
    none = "unverifiable: no version was accepted"
    return MethodOutcome(method=method, found=state, signature=none, why=why, ratio=None)
