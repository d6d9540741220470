"""What `kopt.bench`, `kopt.diagnose` and `kopt.recommend` return."""

from __future__ import annotations

from collections.abc import Iterator

from kopt.python.results.display import Block, Items, Paragraph, Table
from kopt.python.results.result import Result
from kopt.services.results.bench import BenchData
from kopt.services.results.experiments import RecommendData
from kopt.services.results.profiles import DiagnoseData, JudgementData


class Benchmark(Result, BenchData):
    """The verdict on a kernel, its times, and the receipt's file."""

    _function = "bench"

    def _blocks(self) -> Iterator[Block]:
        yield Paragraph(f"{self.verdict}, {self.improvement}: {self.reason}", strong=True)
        if self.timing is not None:
            rows = [self.timing.candidate, *self.timing.baselines.values()]
            yield Table(
                ("kernel", "median us", "95% interval us", "samples"),
                [
                    (one.name, _us(one.median_us), f"{_us(one.ci_low_us)} to {_us(one.ci_high_us)}", str(one.n))
                    for one in rows
                ],
            )
            ratio = self.timing.ratio
            if ratio is not None:
                ends = f"[{ratio.ci_low:.3g}x, {ratio.ci_high:.3g}x]"
                yield Paragraph(f"{ratio.median:.3g}x {ends} against {self.timing.against}, over all workloads")
        if self.hazards:
            yield Table(
                ("hazard", "severity", "evidence", "line"),
                [(one.id, one.severity.value, one.evidence, str(one.line or "")) for one in self.hazards],
            )
        if self.not_checked:
            yield Paragraph("Not checked")
            yield Items([self._in_python(one) for one in self.not_checked])
        yield Paragraph(f"receipt: {self.receipt}")


class Diagnosis(Result, DiagnoseData):
    """What bounds a kernel, and the symptoms that its profile shows."""

    _function = "diagnose"

    def _blocks(self) -> Iterator[Block]:
        degraded = " (degraded: no counters)" if self.grade == "degraded" else ""
        yield Paragraph(f"{self.kernel}: {self.bottleneck}{degraded}", strong=True)
        yield Items([f"{self.why_launch} in {self.report}", *(f"because {step}" for step in self.why)])
        if self.headroom:
            yield Table(
                ("headroom against", "share", "where"),
                [(one.against, f"{float(one.share):.1%}", one.where) for one in self.headroom],
            )
        if self.symptoms:
            yield Table(
                ("symptom", "share of the time", "threshold", "try"),
                [
                    (
                        one.name,
                        "" if one.share is None else f"{one.share:.0%}",
                        "; ".join(_threshold(judged) for judged in one.judgements if judged.holds),
                        "; ".join(f"{tried.technique} [{tried.row.reference}]" for tried in one.remedies),
                    )
                    for one in self.symptoms
                ],
            )
        if self.advice:
            yield Items([f"{one.technique}: {one.because} [{one.row.reference}]" for one in self.advice])
        if self.past:
            yield Paragraph("Similar past outcomes")
            yield Items([one.line for one in self.past])
        if self.notes:
            yield Items([self._in_python(one) for one in self.notes])


class Recommendations(Result, RecommendData):
    """Methods that helped in similar experiments, and those that failed."""

    _function = "recommend"

    def _blocks(self) -> Iterator[Block]:
        said = f"nothing is recommended: {self.why}" if self.why else f"{len(self.recommended)} methods to try"
        yield Paragraph(said, strong=True)
        if self.recommended:
            yield Table(
                ("method", "expected", "helped in", "records"),
                [
                    (
                        one.method,
                        f"{one.speedup:.3g}x",
                        f"{one.successes} of {one.successes + one.others}",
                        ", ".join(record.reference for record in one.records),
                    )
                    for one in self.recommended
                ],
            )
        if self.failures:
            yield Table(
                ("known failure", "failed in", "helped in"),
                [(one.method, str(one.failures), str(one.successes)) for one in self.failures],
            )
        if self.nearest:
            yield Paragraph("Also tried on such kernels")
            yield Items([f"{one.reference}: {one.outcome}" for one in self.nearest])


def _us(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.4g}"


def _threshold(one: JudgementData) -> str:
    return f"{one.metric} {one.test} {one.threshold}, by {one.source}"
