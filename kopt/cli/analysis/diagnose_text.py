"""A diagnosis on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from kbs.common.visible_text import visible
from kbs.hardware.thresholds import plain

if TYPE_CHECKING:
    from rich.console import Console

    from kopt.services.results.profiles import DiagnoseData, JudgementData, MinorData, SymptomData

_LISTED = 6
"""Symptoms that are shown with all that is said of them; the rest in one line each."""


def show(console: Console, data: DiagnoseData) -> None:
    """Print it."""
    for line in lines(data):
        console.print(visible(line), markup=False)


def lines(data: DiagnoseData) -> Iterator[str]:
    """All of it."""
    yield f"{data.kernel}: {data.bottleneck}{' (degraded: no counters)' if data.grade == 'degraded' else ''}"
    yield f"  {data.why_launch} in {data.report}"
    yield from (f"  because {step}" for step in data.why)
    bound = data.binding
    if bound is not None:
        value = bound.arithmetic or f"{_plain(bound.value)} {bound.unit}".strip()
        yield f"  binding: {bound.name}, {value} ({bound.ncu})"
    yield from ("", "Headroom")
    if not data.headroom:
        yield "  N/A"
    for one in data.headroom:
        yield f"  {one.against}: {' ; '.join(one.arithmetic)}"
        yield f"      {one.where}"
    yield from ("", "Symptoms")
    if not data.symptoms:
        yield "  none of the wiki's thresholds is reached"
    for number, symptom in enumerate(data.symptoms, 1):
        yield from _symptom(f"  {number}. ", symptom, whole=number <= _LISTED)
    if data.minor:
        yield from ("", "There, and of little weight")
        for minor in data.minor:
            yield from _minor(minor)
    if data.disputed:
        yield from ("", "Named by another source only")
        for symptom in data.disputed:
            yield from _symptom("  ", symptom, whole=False)
    if data.advice:
        yield from ("", f"What the wiki advises for {data.bottleneck} kernels")
        for remedy in data.advice:
            yield f"  {remedy.technique}: {remedy.because}  [{remedy.row.reference}]"
    if data.past:
        yield from ("", "Similar past outcomes")
        for past in data.past:
            yield f"  {past.line}  (similarity {past.similarity:.2f})"
    if data.unjudged:
        yield from (
            "",
            f"Not judged: {len(data.unjudged)} thresholds; their metrics are not in the profile (--json)",
        )
    yield from (f"note: {note}" for note in data.notes)


def _symptom(head: str, symptom: SymptomData, *, whole: bool) -> Iterator[str]:
    disputed = ", judged differently by its sources" if symptom.disputed else ""
    yield f"{head}{symptom.name} ({symptom.symptom}, {symptom.bottleneck}){disputed}"
    by_metric: dict[str, list[JudgementData]] = {}
    for judgement in symptom.judgements:
        by_metric.setdefault(judgement.metric, []).append(judgement)
    for metric, judgements in by_metric.items():
        if not any(judgement.holds for judgement in judgements):
            continue
        value = judgements[0].arithmetic or f"{_plain(judgements[0].value)} {judgements[0].unit}".strip()
        yield f"      {metric}: {value}"
        for judgement in judgements:
            said = "" if judgement.holds else "not "
            where = judgement.rows[0].reference
            yield f"        {said}{judgement.test} {judgement.threshold}, by {judgement.source}  [{where}]"
    if symptom.share_arithmetic and whole:
        yield f"      of the time, estimated: {' ; '.join(symptom.share_arithmetic)}"
    if whole:
        for remedy in symptom.remedies:
            yield f"      try {remedy.technique}: {remedy.because}  [{remedy.row.reference}]"


def _minor(minor: MinorData) -> Iterator[str]:
    yield f"  {minor.name} ({minor.symptom})"
    yield f"      of the time, estimated: {' ; '.join(minor.share_arithmetic)}"
    yield f"        {minor.by.test} {minor.by.threshold}, by {minor.by.source}  [{minor.by.rows[0].reference}]"


def _plain(value: float | None) -> str:
    return "N/A" if value is None else plain(Decimal(str(value)))
