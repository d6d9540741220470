"""The user's files about one kernel: its source, and the profile or receipt of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from evaluator.diagnosis.from_receipt import launch_of
from evaluator.external.record import ExternalReceipt
from evaluator.profiling.ncu_report import RAW, report_csv
from evaluator.profiling.profile import Chosen, Counter, Profile, read_profile
from evaluator.receipt.receipt import Receipt
from evaluator.source.kernel_names import defined_kernels, is_of
from evaluator.store.store import parse
from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kbs.evidence.file_evidence import FileEvidence

if TYPE_CHECKING:
    from pathlib import Path

    from evaluator.profiling.profile import Launch
    from evaluator.source.source_file import SourceFile

FIELDS = {
    "gpu__time_duration.sum": ("candidate.summary.median_us", "us"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("of_peak", ""),
    "dram__bytes.sum.per_second": ("gb_per_s", "GB/s"),
}
"""Fields of a receipt's workload, and their unit, by the name of Nsight Compute for what they state."""
_PLACE = re.compile(r"(?P<name>.+)\[(?P<launch>\d{1,9})\]")


@dataclass(frozen=True)
class Report:
    """A profile or a receipt, read."""

    kind: Literal["profile", "receipt"]
    name: str
    """Of the file."""
    hash: str
    """SHA-256 of the file's bytes; of a receipt, its id."""
    profile: Profile | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True)
class Measured:
    """The launch that an answer is about."""

    path: Path
    report: Report
    chosen: Chosen
    grade: Literal["full", "degraded"]
    workload: int = 0
    """Of a receipt: the place of the workload, from 0."""
    doubts: tuple[str, ...] = ()
    """What a reader must know of whether it is the kernel's."""

    @property
    def launch(self) -> Launch:
        """It."""
        return self.chosen.launch

    @property
    def dims(self) -> dict[str, int]:
        """Sizes that it was measured at; a profile of Nsight Compute does not have them."""
        receipt = self.report.receipt
        if receipt is None or receipt.timing is None:
            return {}
        return dict(receipt.timing.workloads[self.workload].dims)

    def evidence_of(self, counter: Counter) -> FileEvidence:
        """One of its values as evidence."""
        key = next(name for name, one in self.launch.counters.items() if one is counter)
        if self.report.kind == "profile":
            place, name, states = f"{key}[{self.launch.number}]", key, counter.shown
        else:
            field_, unit = FIELDS[key]
            place, name = f"timing.workloads[{self.workload}].{field_}", field_.rpartition(".")[2]
            states = f"{_at(self.report, place)} {unit}".strip()
        return FileEvidence(
            self.report.kind, self.report.name, self.report.hash, place, name, states, counter.value,
            counter.unit, key,
        )  # fmt: skip

    def stated(self, *metrics: str) -> tuple[FileEvidence, ...]:
        """Those of our metrics that it has."""
        found = (self.launch.metric(id) for id in metrics)
        return tuple(self.evidence_of(counter) for counter in found if counter is not None)


@dataclass(frozen=True)
class KernelFile:
    """The kernel's source."""

    source: SourceFile
    kernels: dict[str, int] = field(default_factory=dict)
    """Name → line of the GPU kernels that it defines."""

    @classmethod
    def of(cls, source: SourceFile) -> KernelFile:
        """From its text. UsageError `syntax_error`."""
        return cls(source, defined_kernels(source))

    def evidence_of(self, name: str) -> FileEvidence:
        """A kernel that it defines, as evidence."""
        line = self.kernels[name]
        text = self.source.text.splitlines()[line - 1].strip()
        return FileEvidence("source", self.source.name, self.source.hash, f"L{line}", name, text)


def read_report(path: Path) -> Report:
    """A .ncu-rep, its CSV, a folder of `kopt profile`, or a receipt. UsageError: what reading it raises, and
    `external_receipt`."""
    data, name = report_csv(path)
    if data.lstrip()[:1] != b"{":
        return Report("profile", name, file_hash(path), read_profile(data, name))
    receipt = parse(data)
    if isinstance(receipt, ExternalReceipt):
        raise UsageError(
            f"{name} records what a command printed, and has neither counters nor times that kopt took",
            code="external_receipt",
            hint="Profile the kernel with ncu, or check it with `kopt bench`.",
        )
    return Report("receipt", name, receipt.id, receipt=receipt)


def file_hash(path: Path) -> str:
    """SHA-256 of the file that a path means, as it is now."""
    return hashlib.sha256((path / RAW if path.is_dir() else path).read_bytes()).hexdigest()


def choose(
    path: Path, wanted: str, kernel: KernelFile | None, reference: SourceFile | None, dims: dict[str, int]
) -> Measured:
    """What was measured of the kernel.

    UsageError: `profile_of_another`, `profile_of_other_sizes`, `launch_unknown` for one of a receipt; what
    `read_report` and `Profile.choose` raise.
    """
    report = read_report(path)
    if report.receipt is not None:
        if wanted:
            raise UsageError(
                f"{report.name} is a receipt, which has no launches to choose from",
                code="launch_unknown",
                hint="Leave --launch out; --dims says which of its workloads is meant.",
            )
        return _workload(path, report, report.receipt, kernel, reference, dims)
    assert report.profile is not None
    return _launch(path, report, report.profile, wanted, kernel)


def _launch(path: Path, report: Report, profile: Profile, wanted: str, kernel: KernelFile | None) -> Measured:
    if kernel is None:
        return Measured(path, report, profile.choose(wanted), "full")
    functions = dict.fromkeys(launch.function for launch in profile.launches)
    owned = {function: is_of(function, kernel.source, kernel.kernels) for function in functions}
    mine = tuple(launch for launch in profile.launches if owned[launch.function])
    if mine and not wanted:
        others = len(profile.launches) - len(mine)
        chosen = Profile(profile.name, profile.page, mine).choose()
        if others:
            why = f"{chosen.why} of a kernel of {kernel.source.name}; {others} of other kernels left out"
            chosen = Chosen(chosen.launch, why)
        return Measured(path, report, chosen, "full")
    chosen = profile.choose(wanted)
    function, name = visible(chosen.launch.function), kernel.source.name
    if owned[chosen.launch.function] is False:
        known = ", ".join(kernel.kernels) or "none"
        profiled = f"{report.name} is a profile of {', '.join(map(visible, functions))}; {name} defines {known}"
        chosen_one = f"{report.name}: {function} is not a kernel of {name}, which defines {known}"
        raise UsageError(
            chosen_one if wanted else profiled,
            code="profile_of_another",
            hint="Give the report of this kernel, or the file of the kernel that was profiled.",
        )
    doubt = () if owned[chosen.launch.function] else (
        f"Whether {function} is a kernel of {name} cannot be told from its text: it is taken for one.",
    )  # fmt: skip
    return Measured(path, report, chosen, "full", doubts=doubt)


def _workload(
    path: Path,
    report: Report,
    receipt: Receipt,
    kernel: KernelFile | None,
    reference: SourceFile | None,
    dims: dict[str, int],
) -> Measured:
    theirs = receipt.problem.reference
    for what, ours, hashed in (
        ("kernel", kernel.source if kernel else None, receipt.candidate.hash),
        ("reference", reference, theirs.hash if theirs else None),
    ):
        if ours is not None and ours.hash != hashed:
            raise UsageError(
                f"the receipt {report.name} is of another {what} than {ours.name}",
                code="profile_of_another",
                hint=f"It is of {receipt.candidate.name}; give that, or measure this one with `kopt bench`.",
            )
    workloads = receipt.timing.workloads if receipt.timing else ()
    place = 0
    if dims and workloads:
        fitting = [n for n, workload in enumerate(workloads) if workload.dims == dims]
        if not fitting:
            known = "; ".join(", ".join(f"{k}={v}" for k, v in w.dims.items()) or "none" for w in workloads)
            raise UsageError(
                f"the receipt {report.name} has no times at these sizes",
                code="profile_of_other_sizes",
                hint=f"It was measured with the --dims: {known}.",
            )
        place = fitting[0]
    launch = launch_of(receipt, place)
    which = "the receipt's only workload" if len(workloads) == 1 else f"workload {place + 1} of {len(workloads)}"
    accepted = receipt.verdict.value == "accepted"
    doubts = () if accepted else (f"The receipt's verdict is {receipt.verdict.value}: {receipt.reason}",)
    return Measured(path, report, Chosen(launch, which), "degraded", place, doubts)


# --- looking things up again ------------------------------------------------------------------------------------------


def counter_at(report: Report, place: str) -> Counter | str:
    """The value of a profile at `metric[launch]`, or why there is none."""
    match = _PLACE.fullmatch(place)
    if match is None or report.profile is None:
        return f"{place} is not a metric of a launch, such as gpu__time_duration.sum[1]"
    launches = report.profile.launches
    number = int(match["launch"])
    if not 1 <= number <= len(launches):
        return f"{report.name} has {len(launches)} launches, and no number {number}"
    found = launches[number - 1].counters.get(match["name"])
    return found if found is not None else f"launch {number} of {report.name} has no {match['name']}"


def field_at(report: Report, place: str) -> Decimal | str:
    """The number of a receipt in a field, or why there is none."""
    found = _at(report, place)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return f"the receipt {report.name} has no number in {place}"
    return Decimal(repr(found))


def unit_of_field(place: str) -> str:
    """The unit that a field of a receipt has, by its name."""
    name = place.rpartition(".")[2]
    return "us" if name.endswith("_us") else "GB/s" if name == "gb_per_s" else ""


def _at(report: Report, place: str) -> Any:
    assert report.receipt is not None
    value: Any = report.receipt.model_dump(mode="json")
    for part in re.findall(r"[^.\[\]]+", place):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
