"""Checks claims about the user's own kernel: figures against files, arithmetic, and thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from kbs.answers.model import Claim, Step
from kbs.evidence.arithmetic import equation_holds, quantities
from kbs.evidence.checking import plain_text
from kbs.evidence.file_evidence import EvidenceCheck
from kbs.hardware.profile_metrics import DERIVED, profile_metrics
from kbs.hardware.thresholds import Judgement, Reading, judge

CONSTANTS = frozenset({Decimal("0.9"), Decimal(1)})
"""Numbers of a sum that are in no file: the part of a ceiling that is aimed at, and a whole."""


def why_not_user_kernel(claim: Claim, evidence: EvidenceCheck) -> str:
    """Why a claim about the user's kernel must not be made; "" where it may. Its citations are checked elsewhere.

    Every item must be in its file as it is now; every step must be right, and each number in it be in an
    item, in a cited line or in an earlier step; every threshold is compared with the evidence once more.
    """
    if not claim.evidence:
        return "it names nothing in a file"
    for item in claim.evidence:
        why = evidence.why_not(item)
        if why:
            return why
    known = [q for text in _texts(claim) for q, _ in quantities(text)]
    for step in claim.derivation:
        if equation_holds(step.shown) is not True:
            return f"the arithmetic is wrong: {step.shown}"
        stray = _stray(step, known)
        if stray is not None:
            return f"nothing states the {stray:f} in {step.shown}"
        known += [step.value, *(value for value, _ in quantities(step.shown))]
    readings = _Readings(claim)
    wrong = next((judgement for judgement in claim.judgements if not readings.bears(judgement)), None)
    return f"the files do not bear this out: {wrong.said}" if wrong is not None else ""


def _texts(claim: Claim) -> Iterable[str]:
    for item in claim.evidence:
        yield from item.texts
    for citation in claim.citations:
        yield plain_text(citation.quote).replace(" | ", " ")


def _stray(step: Step, known: list[Decimal]) -> Decimal | None:
    """A number of a step's left side that nothing states, to the last place in which it is written; the whole part of
    one that is stated counts as stated."""
    left, _, _ = step.shown.partition(" = ")
    for value, half in quantities(left):
        if value not in CONSTANTS and not any(abs(value - one) <= half or value == int(one) for one in known):
            return value
    return None


class _Readings:
    """A claim's evidence, and what its steps compute of them, as the thresholds ask for them."""

    def __init__(self, claim: Claim) -> None:
        self._by_name = {
            item.metric: Reading(item.metric, item.value, item.unit, item.states)
            for item in claim.evidence
            if item.value is not None and item.metric
        }
        shown = {step.shown for step in claim.derivation}
        for judgement in claim.judgements:
            for reading in judgement.readings:
                if reading.name in DERIVED and self._computed(reading, shown):
                    self._by_name[reading.name] = reading

    def _computed(self, reading: Reading, shown: set[str]) -> bool:
        """Whether the claim's steps, which were checked, come to what was computed."""
        if not reading.steps:
            return any(reading.value == known.value for known in self._by_name.values())
        right = quantities(reading.steps[-1].rpartition(" = ")[2])
        return set(reading.steps) <= shown and bool(right) and right[0][0] == reading.value

    def __call__(self, ncu: str) -> Reading | None:
        names = profile_metrics().names_for(ncu)
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def bears(self, judgement: Judgement) -> bool:
        """Whether every row, compared with the evidence, says the same."""
        for row in judgement.rows:
            again = judge(row, self)
            if not isinstance(again, Judgement) or (again.holds, again.value) != (judgement.holds, judgement.value):
                return False
        return True
