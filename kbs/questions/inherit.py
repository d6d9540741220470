"""What a follow-up ("and on A100?") takes from the question before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kbs.questions.forms import Form
from kbs.questions.question import Question

_ABOUT = {"operation": "operation", "dtype": "dtype", "languages": "language"}
"""Slots that say what a question is about → their names: each is taken where the follow-up leaves it open."""
_ASKED = {
    "metrics": "metric",
    "qualifiers": "qualifier",
    "symptoms": "symptom",
    "bottlenecks": "bottleneck",
    "techniques": "technique",
}
"""Slots that say what is asked: taken where the follow-up fills none of them."""
UNCUED = frozenset({Form.DEFINITION, Form.VALUE, Form.TOPIC})
"""Forms that a question may have without a word that asks for them."""


def inherit(question: Question, before: Question) -> tuple[Question, list[str]]:
    """The follow-up with the slots that it leaves open, and what was taken, in words: `operation softmax`."""
    made: dict[str, object] = {}
    taken: list[str] = []

    def take(slots: Mapping[str, str]) -> None:
        for slot, name in slots.items():
            value = getattr(before, slot)
            if value and not getattr(question, slot):
                made[slot] = value
                taken.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")

    if not (question.products or question.unknown_products or question.architectures):
        made["named"] = before.named
        take({"products": "GPU", "architectures": "architecture"})
    take(_ABOUT)
    same = made.get("operation", question.operation) == before.operation
    if sizes := {name: size for name, size in before.dims.items() if same and name not in question.dims}:
        made["dims"] = {**sizes, **question.dims}
        taken.append("sizes " + ", ".join(f"{name}={size}" for name, size in sizes.items()))
    asks = any(getattr(question, slot) for slot in _ASKED)
    if not asks:
        take(_ASKED)
    if not asks and question.form in UNCUED:
        several = len(made.get("named", question.named)) > 1  # type: ignore[arg-type]  # both are tuples
        made["form"] = before.form if several or before.form is not Form.COMPARISON else Form.VALUE
    return replace(question, **made, beside=f"{question.beside} {before.sought}".strip()), taken  # type: ignore[arg-type]  # its own fields
