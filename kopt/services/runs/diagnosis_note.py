"""A diagnosis as a run keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop.tools import DiagnosisNote, Named

if TYPE_CHECKING:
    from evaluator.profiling.profile import Chosen
    from kopt.services.diagnosis import Diagnosed


def diagnosis_note(name: str, chosen: Chosen, found: Diagnosed) -> DiagnosisNote:
    """In a run's words; its text is what `kopt diagnose` prints."""
    from evaluator.diagnosis.binding_resource import dominant_stall
    from kopt.cli.analysis.diagnose_text import lines
    from kopt.services.results.profiles import DiagnoseData

    data = DiagnoseData.of(name, chosen, found)
    bound = data.binding
    value = "" if bound is None else bound.arithmetic or f"{bound.value} {bound.unit}".strip()
    stall = dominant_stall(chosen.launch)
    return DiagnosisNote(
        bottleneck=data.bottleneck,
        resource="" if bound is None else f"{bound.name}, {value} ({bound.ncu})",
        dominant_stall="" if stall is None else stall.name,
        headroom=tuple(f"{one.against}: {' ; '.join(one.arithmetic)}" for one in data.headroom),
        symptoms=tuple(
            Named(
                id=one.symptom,
                name=one.name,
                text="\n".join(
                    f"{judgement.metric}: {judgement.arithmetic or f'{judgement.value:g} {judgement.unit}'.strip()},"
                    f" {judgement.test} {judgement.threshold} <- {judgement.rows[0].reference}"
                    for judgement in one.judgements
                    if judgement.holds
                ),
                techniques=tuple(f"{r.technique}: {r.because} <- {r.row.reference}" for r in one.remedies),
            )
            for one in data.symptoms
        ),
        text="\n".join(lines(data)) + "\n",
    )
