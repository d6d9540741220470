"""Methods of higher priority are skipped with a reason."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


def _none(context: GateContext) -> str:
    if context.parent is None:
        return "version 0 was proposed by nobody"
    if context.launch(context.parent) is None:
        return f"v{context.parent} has no profile that would call for one method before another"
    found = any(method.priority is not None for method in context.methods.all)
    return "" if found else "no method page of this run's wikis states a priority"


@rule(
    "skipped-priority",
    "Methods that the profile calls for, and that come first on their axis, are tried or skipped with a reason.",
    "proposal",
    lapses=_none,
)
def skipped_priority(context: GateContext) -> Iterator[Broken]:
    """Method pages say for which symptoms a method helps and which of an axis are tried first, 1 before 5. One that
    comes before the declared one, and that a symptom of the parent's diagnosis calls for, stands under `skipped`
    with a reason. None is needed for what this GPU or language does not have, HINTS.md forbids, or a version of
    this run tried."""
    proposal = context.proposal
    diagnosis = context.diagnosis(context.parent) if context.parent is not None else None
    if proposal is None or diagnosis is None:
        return
    symptoms = {symptom.id for symptom in diagnosis.symptoms}
    product = context.terms.products.get(context.record.gpu)
    architecture = product.architecture if product else ""
    tried = {name for state in context.state.versions[: context.version] for name in state.methods}
    excused = {*tried, *proposal.methods, *(s.method for s in proposal.skipped), *context.hints.values("forbid")}
    language = context.record.problem.backend or ("cuda" if proposal.language == "cuda" else "triton")
    for name in proposal.methods:
        method = context.methods.by_id.get(name)
        for other in context.methods.above(method, architecture, language, symptoms) if method else ():
            if other.id not in excused:
                called = ", ".join(sorted(symptoms & set(other.triggers)))
                message = f"{other.id} comes before {name} on its axis, and the profile calls for it: {called}"
                mend = f"Try {other.id} first, or list it under `skipped` with the reason ({other.page})."
                yield Broken(file=f"{context.proposal_file}#skipped", line=0, message=message, mend=mend)
