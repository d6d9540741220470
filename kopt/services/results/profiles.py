"""The JSON of `kopt profile` and `kopt diagnose`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.json_model import JsonModel

if TYPE_CHECKING:
    from evaluator.diagnosis.bottleneck import Minor
    from evaluator.diagnosis.symptoms import Finding
    from evaluator.profiling.profile import Chosen, Launch, Profile
    from kbs.experience.entry import Entry
    from kbs.hardware.thresholds import Judgement
    from kopt.services.diagnosis import Diagnosed, Remedy


class MetricData(JsonModel):
    """One metric of a profile."""

    id: str
    name: str
    group: str
    value: float | None
    """In `unit`; null where the report does not have it."""
    unit: str
    """us, B, B/s, Hz, %, or empty for counts and ratios."""
    ncu: str
    """Nsight Compute's name of it, as the report has it where it has it."""
    written: str
    """The value with its unit as the report writes it; empty where it does not."""


class LaunchData(JsonModel):
    """One launch of a report."""

    number: int
    """Its place, from 1."""
    kernel: str
    duration_us: float | None


class ComputedData(JsonModel):
    """What follows from two metrics."""

    name: str
    arithmetic: str
    """Written out; N/A where a metric is missing."""


class ProfileData(JsonModel):
    """`kopt profile`"""

    report: str
    page: str
    """`raw` or `details`."""
    launches: list[LaunchData]
    launch: int
    """Number of the launch that the rest is about."""
    why: str
    """Why that one."""
    kernel: str
    device: str
    compute_capability: str
    metrics: list[MetricData]
    computed: list[ComputedData]
    unread: list[str]
    """Metrics whose unit is not known."""
    files: list[str]
    """What was written."""

    @classmethod
    def of(cls, profile: Profile, chosen: Chosen, files: Sequence[Path]) -> ProfileData:
        """From the internal form."""
        from evaluator.diagnosis.report import computed

        launch = chosen.launch
        return cls(
            report=profile.name,
            page=profile.page,
            launches=[
                LaunchData(number=one.number, kernel=one.kernel, duration_us=_float(one.value("duration")))
                for one in profile.launches
            ],
            launch=launch.number,
            why=chosen.why,
            kernel=launch.kernel,
            device=launch.device,
            compute_capability=launch.capability,
            metrics=_metrics(launch),
            computed=[ComputedData(name=name, arithmetic=text) for name, text in computed(launch)],
            unread=list(launch.unread),
            files=[str(file) for file in files],
        )


class RowData(JsonModel):
    """A line of a wiki page."""

    reference: str
    """`gpu-wiki/profiling/speed-of-light.md:L53`"""
    quote: str


class JudgementData(JsonModel):
    """One threshold held against the profile."""

    metric: str
    """Nsight Compute's names, as the wiki's row has them."""
    value: float
    unit: str
    test: str
    threshold: str
    """As the row has it, with its unit."""
    holds: bool
    """Whether that source says that the symptom is there."""
    source: str
    """The row's source and the place in it."""
    arithmetic: str
    """How the value was computed; empty where it stands in the profile."""
    rows: list[RowData]

    @classmethod
    def of(cls, judgement: Judgement) -> JudgementData:
        """From the internal form."""
        row = judgement.row
        return cls(
            metric=row.metric,
            value=float(judgement.value),
            unit=judgement.unit,
            test=row.test,
            threshold=f"{row.value} {row.unit}".strip(),
            holds=judgement.holds,
            source=row.source,
            arithmetic=judgement.arithmetic,
            rows=[RowData(reference=r.citation.reference, quote=r.citation.quote) for r in judgement.rows],
        )


class RemedyData(JsonModel):
    """Something to try."""

    technique: str
    because: str
    row: RowData

    @classmethod
    def of(cls, remedy: Remedy) -> RemedyData:
        """From the internal form."""
        row = RowData(reference=remedy.citation.reference, quote=remedy.citation.quote)
        return cls(technique=remedy.technique, because=remedy.because, row=row)


class SymptomData(JsonModel):
    """A symptom, and what each source says of it."""

    symptom: str
    name: str
    bottleneck: str
    """The class that it speaks for."""
    share: float | None
    """What it costs of the launch's time, 0 to 1, estimated; null where the profile does not say it."""
    share_arithmetic: list[str]
    """How that was estimated; empty where it is a value of the profile."""
    disputed: bool
    """Sources judge one of its metrics differently."""
    judgements: list[JudgementData]
    """The preferred source of each metric first."""
    remedies: list[RemedyData]

    @classmethod
    def of(cls, finding: Finding, remedies: Sequence[Remedy]) -> SymptomData:
        """From the internal form."""
        return cls(
            symptom=finding.symptom.id,
            name=finding.symptom.name,
            bottleneck=finding.symptom.bottleneck,
            share=None if finding.share is None else float(finding.share.value),
            share_arithmetic=[] if finding.share is None else list(finding.share.steps),
            disputed=finding.disputed,
            judgements=[JudgementData.of(judgement) for judgement in finding.judgements],
            remedies=[RemedyData.of(remedy) for remedy in remedies],
        )


class MinorData(JsonModel):
    """A defect that is there and costs too little to be named."""

    symptom: str
    name: str
    share: float
    """What it costs of the launch's time, 0 to 1."""
    share_arithmetic: list[str]
    by: JudgementData
    """The row that says that this is too little."""

    @classmethod
    def of(cls, minor: Minor) -> MinorData:
        """From the internal form."""
        share, symptom = minor.finding.share, minor.finding.symptom
        assert share is not None
        return cls(
            symptom=symptom.id,
            name=symptom.name,
            share=float(share.value),
            share_arithmetic=list(share.steps),
            by=JudgementData.of(minor.by),
        )


class BindingData(JsonModel):
    """The resource that binds."""

    metric: str
    name: str
    value: float | None
    unit: str
    ncu: str
    arithmetic: str
    among: list[str]
    """What it was compared with."""


class HeadroomData(JsonModel):
    """The launch's bytes or operations a second against a rate of the device."""

    against: str
    share: float
    arithmetic: list[str]
    where: str
    """Device and time of a measurement, or the citation of a spec."""


class PastOutcomeData(JsonModel):
    """A past experiment in similar circumstances."""

    reference: str
    """`log/<id>`"""
    line: str
    """What was tried and what came of it, as a citation line."""
    outcome: str
    speedup: float | None
    """Time before over time after; null where no time was compared."""
    similarity: float
    """From 0 to 1."""

    @classmethod
    def of(cls, entry: Entry, similarity: float) -> PastOutcomeData:
        """From the internal form."""
        from kbs.experience.log_evidence import record_evidence

        one = entry.experiment
        return cls(
            reference=one.reference,
            line=record_evidence(one).line,
            outcome=one.outcome.value,
            speedup=one.speedup.median if one.speedup else None,
            similarity=round(similarity, 4),
        )


class DiagnoseData(JsonModel):
    """`kopt diagnose`"""

    report: str
    launch: int
    why_launch: str
    kernel: str
    grade: str
    """`full`, or `degraded`: without counters."""
    gpu: str
    """Product that the headroom is about; empty where it is not known."""
    bottleneck: str
    why: list[str]
    """The steps to the class."""
    decided_by: list[JudgementData]
    binding: BindingData | None
    headroom: list[HeadroomData]
    symptoms: list[SymptomData]
    """The weightiest first."""
    minor: list[MinorData]
    """Defects that are there, and cost too little to be named."""
    disputed: list[SymptomData]
    """That the preferred source denies and another states."""
    unjudged: list[str]
    """Threshold rows for which the profile has no value, and why."""
    advice: list[RemedyData]
    """What the wiki advises for the class."""
    past: list[PastOutcomeData]
    """Similar past outcomes of the experience log, the most similar first."""
    notes: list[str]

    @classmethod
    def of(
        cls, report: str, chosen: Chosen, found: Diagnosed, past: Sequence[tuple[Entry, float]] = ()
    ) -> DiagnoseData:
        """From the internal form, and records of the log with their similarity."""
        made = found.diagnosis
        bound = made.binding
        return cls(
            report=report,
            launch=chosen.launch.number,
            why_launch=chosen.why,
            kernel=made.kernel,
            grade=made.grade,
            gpu=found.gpu,
            bottleneck=made.bottleneck.value,
            why=list(made.why),
            decided_by=[JudgementData.of(judgement) for judgement in made.decided_by],
            binding=BindingData(
                metric=bound.metric,
                name=bound.name,
                value=_float(bound.counter.value),
                unit=bound.counter.unit,
                ncu=bound.counter.ncu,
                arithmetic=bound.arithmetic,
                among=list(bound.among),
            )
            if bound
            else None,
            headroom=[
                HeadroomData(against=h.against, share=float(h.share), arithmetic=list(h.arithmetic), where=h.where)
                for h in made.headroom
            ],
            symptoms=[SymptomData.of(one, found.remedies.get(one.symptom.id, ())) for one in made.symptoms],
            minor=[MinorData.of(one) for one in made.minor],
            disputed=[SymptomData.of(one, found.remedies.get(one.symptom.id, ())) for one in made.disputed],
            unjudged=[f"{one.row.symptom}: {one.why} ({one.row.citation.reference})" for one in made.unjudged],
            advice=[RemedyData.of(remedy) for remedy in found.advice],
            past=[PastOutcomeData.of(entry, similarity) for entry, similarity in past],
            notes=list(found.notes),
        )


def _metrics(launch: Launch) -> list[MetricData]:
    from kbs.hardware.profile_metrics import profile_metrics

    made = []
    for metric in profile_metrics().all.values():
        counter = launch.metric(metric.id)
        made.append(
            MetricData(
                id=metric.id,
                name=metric.name,
                group=metric.group,
                value=_float(counter.value) if counter else None,
                unit=metric.unit,
                ncu=counter.ncu if counter else metric.ncu[0],
                written=counter.shown if counter else "",
            )
        )
    return made


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))
