"""Experiments as text for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from kbs.common.visible_text import visible
from kbs.experience.entry import SHIPPED_WITH_KOPT, Entry
from kbs.experience.experiment import UNMAPPED, Experiment, Speedup
from kbs.experience.ranking.trials import labels

if TYPE_CHECKING:
    from kbs.experience.ranking.recommend import Advice, Similar
    from kbs.experience.stats import Effect
    from kopt.services.results.experiments import ImportData

_WIDTH = 76
_SHOWN = 20
"""Problems of an import that are printed."""


def counted(experiments: int) -> str:
    """`1 experiment`, `12 experiments`."""
    return f"{experiments} experiment{'' if experiments == 1 else 's'}"


def entry_line(entry: Entry) -> str:
    """One line: id, day, where, what, what came of it."""
    one = entry.experiment
    where = " ".join(part for part in (one.op or one.kernel, one.gpu, one.dtype, dims_text(one)) if part)
    effect = f" {speedup_text(one.speedup)}" if one.speedup else ""
    mark = ("  (masked)" if entry.masked else "") + (f"  ({SHIPPED_WITH_KOPT})" if entry.shipped else "")
    what = ", ".join(labels(one))
    what = what if len(what) <= _WIDTH else f"{what[: _WIDTH - 1]}…"
    return visible(f"{one.reference}  {one.time[:10]}  {one.outcome}{effect}  {where}: {what}{mark}")


def entry_lines(entry: Entry) -> Iterable[str]:
    """All that a record says, a field a line."""
    one = entry.experiment
    said = SHIPPED_WITH_KOPT if entry.shipped else f"masked: {visible(entry.why)}" if entry.masked else ""
    yield visible(one.reference) + (f"  {said}" if said else "")
    also = [id for id in entry.ids if id != one.id]
    rows: list[tuple[str, str]] = [
        ("also", ", ".join(also)),
        ("time", one.time),
        ("run", f"{one.run}, iteration {one.iteration}" if one.run else ""),
        ("kernel", " ".join(part for part in (one.kernel, one.op and f"({one.op})", one.backend) if part)),
        ("GPU", f"{one.gpu} (compute capability {one.capability})" if one.capability else one.gpu),
        ("workload", " ".join(part for part in (dims_text(one), one.dtype) if part)),
        ("bottleneck", " → ".join(part for part in (one.bottleneck_before, one.bottleneck_after) if part)),
        ("stall", one.dominant_stall),
        ("changed", one.optimization),
        ("methods", ", ".join(one.methods)),
        ("parameters", ", ".join(f"{name}={value}" for name, value in one.parameters.items())),
        ("hypothesis", one.hypothesis),
        *(("expected", f"{move.metric} {move.direction} {move.size}".strip()) for move in one.expected),
        ("observed", one.observed),
        ("outcome", one.outcome.value),
        ("speedup", speedup_text(one.speedup) if one.speedup else ""),
        *(
            ("without it", f"{part.method}: {part.found} {speedup_text(part.speedup)}".strip())
            for part in one.attribution
        ),
        *(("metric", line) for line in _metrics(one)),
        *(("evidence", reference) for reference in one.evidence),
        ("lesson", one.lesson),
        (
            "rests on",
            f"receipt {one.receipt}" + (f", {one.source} of kopt's repository" if entry.shipped else "")
            if one.receipt
            else f"a report{f' ({one.source})' if one.source else ''}",
        ),
    ]
    for name, text in rows:
        if text:
            yield f"  {name:<11} {visible(text)}"


def _metrics(one: Experiment) -> Iterable[str]:
    for name in dict.fromkeys((*one.metrics_before, *one.metrics_after)):
        yield f"{name} {one.metrics_before.get(name, '?')} → {one.metrics_after.get(name, '?')}"


def dims_text(one: Experiment) -> str:
    """`M=4096,N=8192`"""
    return ",".join(f"{name}={size}" for name, size in one.dims.items())


def speedup_text(speedup: Speedup | None) -> str:
    """`1.31x [1.30x, 1.32x]`; without an interval where none was reported."""
    if speedup is None:
        return ""
    ends = f" [{speedup.low:.3g}x, {speedup.high:.3g}x]" if speedup.low is not None else ""
    return f"{speedup.median:.3g}x{ends}"


def effect_lines(rows: Sequence[Effect]) -> Iterable[str]:
    """A table: name, experiments, successes with their interval, median speedup with its interval, outcomes."""
    width = max([len(_name(row)) for row in rows], default=0)
    for row in rows:
        share = "not known"
        if row.success is not None:
            share = f"{row.success:4.0%} [{row.success_low:.0%}, {row.success_high:.0%}]"
        effect = "no speedup" if row.median is None else f"{row.median:.3g}x"
        ends = "" if row.low is None or row.high is None else f" [{row.low:.3g}x, {row.high:.3g}x]"
        counts = ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items() if count)
        yield visible(f"  {_name(row):<{width}}  {row.experiments:>6}  success {share}  {effect}{ends}  ({counts})")


def _name(row: Effect) -> str:
    return row.name[:60] or "(none named)"


def import_lines(data: ImportData) -> Iterable[str]:
    """What could not be read, then what became of the records."""
    yield from data.problems[:_SHOWN]
    if len(data.problems) > _SHOWN:
        yield f"... {len(data.problems) - _SHOWN} more; --json lists all"
    counts = data.counts
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.outcomes.items())
    if unmapped := counts.methods.get(UNMAPPED):
        yield f"{unmapped} name no known method: `kopt log list --method {UNMAPPED}`"
    yield (
        f"{counts.records} records read: {counts.added} added, {counts.there} were there already, "
        f"{counts.left_out} left out{f'; {outcomes}' if outcomes else ''}"
    )


def recommend_lines(advice: Advice, explain: bool) -> Iterable[str]:
    """Methods to try with the records that they rest on, then known failures."""
    if advice.why:
        yield visible(f"nothing is recommended: {advice.why}")
    for place, one in enumerate(advice.recommended, start=1):
        yield visible(
            f"{place}. {one.method}: {one.speedup:.3g}x expected of an attempt; "
            f"it helped in {one.successes} of {one.successes + one.others} similar records"
        )
        if explain:
            parts = ", ".join(f"{name} {value:+.3f}" for name, value in one.factors.items())
            yield visible(f"   brings to the logarithm of it: {parts}") if parts else "   no factor was weighed"
        yield from _records((*one.records, *one.failed), explain, advice.shipped)
    for failure in advice.failures:
        yield visible(
            f"known failure: {failure.method} failed in {failure.failures} similar records and helped in "
            f"{failure.successes}"
        )
        yield from _records(failure.records, explain, advice.shipped)
    if advice.nearest:
        yield "also tried on such kernels:" if advice.recommended or advice.failures else "tried on such kernels:"
        yield from _records(advice.nearest, explain, advice.shipped)


def _records(records: Sequence[Similar], explain: bool, shipped: Collection[str]) -> Iterable[str]:
    for one in records:
        effect = "" if one.speedup is None else f" {one.speedup:.3g}x"
        factors = ", ".join(f"{name} {value:.2f}" for name, value in one.factors.items()) if explain else ""
        origin = f"  ({SHIPPED_WITH_KOPT})" if one.reference in shipped else ""
        yield (
            visible(f"   {one.reference}  {one.outcome}{effect}, similarity {one.similarity:.2f}")
            + (f" = {factors}" if factors else "")
            + origin
        )
