"""A diagnosis as lines of text, for a terminal and for the files of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from evaluator.diagnosis.bottleneck import Minor
from evaluator.diagnosis.symptoms import Finding
from evaluator.profiling.profile import Chosen
from kbs.experience.entry import Entry
from kbs.experience.log_evidence import record_evidence
from kbs.hardware.thresholds import Judgement, plain
from kopt.services.diagnosis import Diagnosed, Remedy

_DETAILED = 6
"""Symptoms that are shown in full; the others get one line each."""


def lines(report: str, chosen: Chosen, found: Diagnosed, past: Sequence[tuple[Entry, float]] = ()) -> Iterator[str]:
    """The whole diagnosis. `past`: similar records of the experience log, with their similarity."""
    made = found.diagnosis
    yield f"{made.kernel}: {made.bottleneck.value}{' (degraded: no counters)' if made.grade == 'degraded' else ''}"
    yield f"  {chosen.why} in {report}"
    yield from (f"  because {step}" for step in made.why)
    if made.binding is not None:
        counter = made.binding.counter
        value = made.binding.arithmetic or f"{_number(counter.value)} {counter.unit}".strip()
        yield f"  binding: {made.binding.name}, {value} ({counter.ncu})"
    yield from ("", "Headroom")
    if not made.headroom:
        yield "  N/A"
    for one in made.headroom:
        yield f"  {one.against}: {' ; '.join(one.arithmetic)}"
        yield f"      {one.where}"
    yield from ("", "Symptoms")
    if not made.symptoms:
        yield "  none of the wiki's thresholds is reached"
    for number, finding in enumerate(made.symptoms, 1):
        remedies = found.remedies.get(finding.symptom.id, ())
        yield from _symptom(f"  {number}. ", finding, remedies, detailed=number <= _DETAILED)
    if made.minor:
        yield from ("", "Present, but of little weight")
        for minor in made.minor:
            yield from _minor(minor)
    if made.disputed:
        yield from ("", "Named by another source only")
        for finding in made.disputed:
            yield from _symptom("  ", finding, (), detailed=False)
    if found.advice:
        yield from ("", f"What the wiki advises for {made.bottleneck.value} kernels")
        yield from (f"  {remedy_line(remedy)}" for remedy in found.advice)
    if past:
        yield from ("", "Similar past outcomes")
        for entry, similarity in past:
            yield f"  {record_evidence(entry.experiment).line}  (similarity {similarity:.2f})"
    if made.unjudged:
        yield from ("", f"Not judged: {len(made.unjudged)} thresholds; their metrics are not in the profile (--json)")
    yield from (f"note: {note}" for note in found.notes)


def remedy_line(remedy: Remedy) -> str:
    """A technique, why to try it, and the line that says so."""
    return f"{remedy.technique}: {remedy.because}  [{remedy.citation.reference}]"


def _symptom(head: str, finding: Finding, remedies: Sequence[Remedy], *, detailed: bool) -> Iterator[str]:
    symptom = finding.symptom
    disputed = ", judged differently by its sources" if finding.disputed else ""
    yield f"{head}{symptom.name} ({symptom.id}, {symptom.bottleneck}){disputed}"
    by_metric: dict[str, list[Judgement]] = {}
    for judgement in finding.judgements:
        by_metric.setdefault(judgement.row.metric, []).append(judgement)
    for metric, judgements in by_metric.items():
        if not any(judgement.holds for judgement in judgements):
            continue
        first = judgements[0]
        yield f"      {metric}: {first.arithmetic or f'{_number(first.value)} {first.unit}'.strip()}"
        yield from (f"        {'' if one.holds else 'not '}{_threshold(one)}" for one in judgements)
    if not detailed:
        return
    if finding.share is not None and finding.share.steps:
        yield f"      of the time, estimated: {' ; '.join(finding.share.steps)}"
    yield from (f"      try {remedy_line(remedy)}" for remedy in remedies)


def _minor(minor: Minor) -> Iterator[str]:
    symptom, share = minor.finding.symptom, minor.finding.share
    assert share is not None
    yield f"  {symptom.name} ({symptom.id})"
    yield f"      of the time, estimated: {' ; '.join(share.steps)}"
    yield f"        {_threshold(minor.by)}"


def _threshold(judgement: Judgement) -> str:
    row = judgement.row
    value = f"{row.value} {row.unit}".strip()
    return f"{row.test} {value}, by {row.source}  [{judgement.rows[0].citation.reference}]"


def _number(value: Decimal | None) -> str:
    """To the digits of a float: the value may be a quotient with many more."""
    return "N/A" if value is None else plain(Decimal(str(float(value))))
