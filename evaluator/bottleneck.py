"""What bounds a kernel: its class, the resource that binds, the headroom, and the symptoms, the weightiest first.

Thresholds come as rows with their citations, in the order in which they are preferred: the first row of a metric
decides, and rows of other sources that judge otherwise are kept beside it. The branching is that of NVIDIA's rules
(SpeedOfLight.py: low, small grid, high, the side that leads, balanced); every number in it is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from evaluator.headroom import Headroom, headroom
from evaluator.profile import Launch
from evaluator.resources import Binding, binding, reading_of
from kbs.records import ThresholdRow
from kbs.thresholds import Judgement, Reading, Unjudged, judge_all, names_of
from kbs.vocabulary import Symptom


class Bottleneck(StrEnum):
    """What a kernel spends its time on."""

    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    LATENCY = "latency-bound"
    OCCUPANCY = "occupancy-bound"
    LAUNCH = "launch-bound"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One symptom, and what every source says of it."""

    symptom: Symptom
    present: bool
    """Whether the preferred rows say that it is there."""
    judgements: tuple[Judgement, ...]
    """Of all metrics and sources; per metric the preferred one first."""
    weight: Decimal
    """How far the value lies beyond the preferred threshold, as a ratio; 0 where it does not."""

    @property
    def disputed(self) -> bool:
        """Whether two sources judge one metric differently; for a symptom that needs all of them, the symptom.

        A source that has several thresholds for a metric, for degrees of it, judges by the one that is reached first.
        """
        judged: dict[tuple[str, str], bool] = {}
        for judgement in self.judgements:
            key = judgement.row.metric, judgement.source
            judged[key] = judged.get(key, False) or judgement.holds
        said: dict[str, set[bool]] = {}
        if self.symptom.every:
            for source in {source for _, source in judged}:
                said.setdefault("", set()).add(all(holds for (_, by), holds in judged.items() if by == source))
        else:
            for (metric, _), holds in judged.items():
                said.setdefault(metric, set()).add(holds)
        return any(len(verdicts) > 1 for verdicts in said.values())


@dataclass(frozen=True)
class Diagnosis:
    """What is to be said of one launch."""

    kernel: str
    grade: str
    """`full` with counters, `degraded` without."""
    bottleneck: Bottleneck
    why: tuple[str, ...]
    """The steps that led to the class."""
    decided_by: tuple[Judgement, ...]
    """The judgements that those steps rest on."""
    binding: Binding | None
    """None where the profile does not say it."""
    headroom: tuple[Headroom, ...]
    symptoms: tuple[Finding, ...]
    """That are there, the weightiest first."""
    disputed: tuple[Finding, ...]
    """That the preferred source denies and another one states."""
    unjudged: tuple[Unjudged, ...]
    """Rows for which the profile has no value."""


@dataclass(frozen=True)
class Ceilings:
    """Rates to hold the launch against, each with where it is from. Empty where none are known."""

    measured: tuple[tuple[str, Decimal], ...] = ()
    """Name of a measured figure such as `copy 512 MiB`, and its bytes a second."""
    measured_where: str = ""
    """Device, driver and time of the measurement."""
    peak: Decimal | None = None
    """Cited peak memory bandwidth in bytes a second."""
    peak_citation: str = ""


NO_CEILINGS = Ceilings()


def launch_readings(launch: Launch) -> Callable[[str], Reading | None]:
    """A launch as the values that thresholds ask for."""
    return lambda ncu: reading_of(launch.counter(ncu))


def diagnose(
    launch: Launch,
    rows: Mapping[str, Sequence[ThresholdRow]],
    symptoms: Mapping[str, Symptom],
    ceilings: Ceilings = NO_CEILINGS,
    *,
    grade: str = "full",
) -> Diagnosis:
    """Diagnose a launch. `rows` has the threshold rows of each symptom, the preferred ones first."""
    readings = launch_readings(launch)
    findings: dict[str, Finding] = {}
    unjudged: list[Unjudged] = []
    for id, of_symptom in rows.items():
        judged, missing = judge_all(of_symptom, readings)
        unjudged += missing
        found = _finding(symptoms[id], judged, of_symptom)
        if found is not None:
            findings[id] = found
    decision = _Decision(findings)
    bottleneck = decision.classify()
    shown = [finding for finding in findings.values() if not finding.symptom.comparison]
    present = [finding for finding in shown if finding.present]
    return Diagnosis(
        kernel=launch.kernel,
        grade=grade,
        bottleneck=bottleneck,
        why=tuple(decision.why),
        decided_by=tuple(decision.used),
        binding=binding(launch, bottleneck.value, decision.short),
        headroom=headroom(launch, ceilings.measured, ceilings.measured_where, ceilings.peak, ceilings.peak_citation),
        symptoms=tuple(sorted(present, key=lambda finding: _rank(finding, bottleneck))),
        disputed=tuple(f for f in shown if not f.present and f.disputed),
        unjudged=tuple(unjudged),
    )


def _preferred(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The first judgement of each metric."""
    first: dict[str, Judgement] = {}
    for judgement in judgements:
        first.setdefault(judgement.row.metric, judgement)
    return list(first.values())


def _finding(symptom: Symptom, judged: Mapping[str, list[Judgement]], rows: Sequence[ThresholdRow]) -> Finding | None:
    """What the judgements come to; None where nothing could be judged, or not all that must be."""
    if not judged:
        return None
    metrics = {row.metric for row in rows if names_of(row)}
    first = [found[0] for found in judged.values()]
    if symptom.every:
        if set(judged) != metrics and all(judgement.holds for judgement in first):
            return None
        present = all(judgement.holds for judgement in first)
    else:
        present = any(judgement.holds for judgement in first)
    weight = max((_excess(judgement) for judgement in first if judgement.holds), default=Decimal(0))
    return Finding(symptom, present, tuple(j for found in judged.values() for j in found), weight)


def _excess(judgement: Judgement) -> Decimal:
    """How many times beyond the threshold the value lies; 1 at the threshold, and where that is zero."""
    if not judgement.holds:
        return Decimal(0)
    value, threshold = judgement.value, judgement.threshold
    if threshold == 0 or value == 0:
        return Decimal(1) if threshold == 0 else Decimal(10**6)
    return abs(value / threshold) if judgement.row.test.startswith(">") else abs(threshold / value)


def _rank(finding: Finding, bottleneck: Bottleneck) -> tuple[bool, bool, bool, Decimal, str]:
    """Defects first, then what speaks for the class, and of both what says why before what says only that."""
    symptom = finding.symptom
    other = symptom.bottleneck != bottleneck.value
    return (not symptom.defect, other, symptom.general, -finding.weight, symptom.id)


@dataclass
class _Decision:
    """The way to the class."""

    findings: Mapping[str, Finding]
    why: list[str] = field(default_factory=list)
    used: list[Judgement] = field(default_factory=list)
    short: bool = False
    """Launch-bound since the launch is short, and not since the grid is small."""

    def _has(self, id: str, metric: str = "") -> bool:
        """Whether a symptom is there, by the preferred row of one metric if one is named; noted as a step if so."""
        finding = self.findings.get(id)
        if finding is None:
            return False
        if metric:
            mine = [j for j in _preferred(finding.judgements) if j.row.metric.startswith(metric) and j.holds]
        else:
            mine = [j for j in _preferred(finding.judgements) if j.holds] if finding.present else []
        if mine:
            self.used += mine
            self.why.append(f"{finding.symptom.name}: {'; '.join(judgement.said for judgement in mine)}")
        return bool(mine)

    def classify(self) -> Bottleneck:
        """The class, with its steps noted."""
        if self._has("low-throughput"):
            return self._both_low()
        memory, compute = self._has("high-memory-throughput"), self._has("high-compute-throughput")
        leads_memory, leads_compute = self._has("memory-leads"), self._has("compute-leads")
        if memory and compute and not (leads_memory or leads_compute):
            return Bottleneck.MIXED
        if leads_memory or (memory and not compute):
            return Bottleneck.MEMORY
        if leads_compute or (compute and not memory):
            return Bottleneck.COMPUTE
        if "memory-leads" in self.findings and "compute-leads" in self.findings:
            self.why.append("neither throughput leads the other")
            return Bottleneck.MIXED
        if self._short():
            return Bottleneck.LAUNCH
        self.why.append("the profile does not have the throughputs of compute and of memory")
        return Bottleneck.UNKNOWN

    def _short(self) -> bool:
        self.short = self._has("launch-overhead")
        return self.short

    def _both_low(self) -> Bottleneck:
        if self._has("small-grid") or self._short():
            return Bottleneck.LAUNCH
        starved = self._has("low-issue-rate")
        if starved and self._has("low-occupancy", ACHIEVED):
            return Bottleneck.OCCUPANCY
        return Bottleneck.LATENCY


ACHIEVED = "sm__warps_active"
"""Occupancy as it was: that little would fit says nothing where what fits is enough."""
