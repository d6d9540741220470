"""A profile: kernel launches with the counters that NVIDIA Nsight Compute collected, by our names.

A value that the report lacks is None, never zero. Every value keeps the report's own text, unit and metric name,
so that its source can be shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from evaluator.profiling.ncu_csv import LAUNCH_COLUMNS, LaunchRows, NcuTable, read_table
from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kbs.evidence.quantities import parse_profiler_unit
from kbs.hardware.profile_metrics import ProfileMetric, profile_metrics

DEVICE_NAME = "device__attribute_display_name"
_LISTED = 12
"""Kernels that an error names."""


@dataclass(frozen=True)
class Counter:
    """One value of one launch."""

    ncu: str
    """The name that the report has for it."""
    written: str
    """The value as the report writes it."""
    written_unit: str
    """Its unit there; empty for none."""
    amount: Decimal | None
    """What is written, as a number; None for a text and for what was not collected."""
    value: Decimal | None
    """The amount in `unit`; None where the unit is not known or does not fit the metric."""
    unit: str
    """us, B, B/s, Hz, %, or empty for counts and ratios."""

    @property
    def shown(self) -> str:
        """As the report writes it, with its unit; in the marks of the report's locale only where it is no number."""
        said = self.written if self.amount is None else f"{self.amount:f}"
        return f"{said} {self.written_unit}".strip()


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel."""

    number: int
    """Its place in the report, from 1."""
    id: str
    """The report's own number of it."""
    kernel: str
    """The kernel's name as the report has it, with parameters where it has them."""
    head: Mapping[str, str]
    """What else the report says of the launch: Block Size, Grid Size, Stream, CC …"""
    counters: Mapping[str, Counter]
    """By Nsight Compute's name; what the details page has only a label for stands under our preferred name."""
    unread: tuple[str, ...] = ()
    """Metrics of our vocabulary whose unit is not known or does not fit: the report's name and unit."""
    needed: tuple[int, int] | None = None
    """Of a receipt in place of a profile: the bytes that the problem reads and writes. Its bandwidth is made of needed
    bytes, and no counter says which were moved. None for a profile."""

    @property
    def function(self) -> str:
        """The kernel's name without return type, template arguments, namespace and parameters."""
        return function_name(self.kernel)

    def counter(self, ncu: str) -> Counter | None:
        """What the report states under a name of Nsight Compute, or under another name for the same; None for nothing.

        Only what has a number counts.
        """
        for name in profile_metrics().names_for(ncu):
            found = self.counters.get(name)
            if found is not None and found.value is not None:
                return found
        return None

    def metric(self, id: str) -> Counter | None:
        """What it states for one of our metrics; None where it does not."""
        return self.counter(profile_metrics().all[id].ncu[0])

    def value(self, id: str) -> Decimal | None:
        """The value of one of our metrics, in the unit of the vocabulary."""
        found = self.metric(id)
        return found.value if found else None

    @property
    def duration_us(self) -> Decimal | None:
        """Its time; None where the report does not have it."""
        return self.value("duration")

    @property
    def dram_bytes(self) -> Decimal | None:
        """Read from and written to device memory; None where they were not counted."""
        read, written = self.value("dram_bytes_read"), self.value("dram_bytes_written")
        return None if read is None or written is None else read + written

    @property
    def device(self) -> str:
        """The GPU's name; empty where the report does not have it."""
        found = self.counters.get(DEVICE_NAME)
        return found.written.strip() if found else ""

    @property
    def capability(self) -> str:
        """The compute capability, such as 9.0; empty where the report does not have it."""
        return self.head.get("CC", "").strip()


@dataclass(frozen=True)
class Chosen:
    """The launch that is spoken of, and why it is that one."""

    launch: Launch
    why: str


@dataclass(frozen=True)
class Profile:
    """A report, read."""

    name: str
    """Of the file."""
    page: str
    """`raw` or `details`: the latter has fewer metrics, rounded."""
    launches: tuple[Launch, ...]
    """At least one."""

    def choose(self, wanted: str = "") -> Chosen:
        """The launch that `wanted` names: its place in the report, or a kernel; without it the slowest.

        Raises `UsageError`: `launch_unknown`, `report_of_another_kernel`, `launch_needed` where no times stand.
        """
        number = launch_number(wanted)
        if number is not None:
            if not 1 <= number <= len(self.launches):
                raise UsageError(
                    f"{self.name} has {len(self.launches)} launches, and no number {number}",
                    code="launch_unknown",
                    hint="Launches are counted from 1, in the order of the report.",
                )
            return Chosen(self.launches[number - 1], f"launch {number}, as asked for")
        among = self._of_kernel(wanted) if wanted else list(self.launches)
        asked = f" of {visible(wanted)}" if wanted else ""
        if len(among) == 1:
            return Chosen(among[0], f"the only launch{asked}")
        times = [launch.value("duration") for launch in among]
        if any(time is None for time in times):
            raise UsageError(
                f"{self.name} has {len(among)} launches{asked}, and not all of them have a duration",
                code="launch_needed",
                hint=f"Choose one with --launch N, counted from 1: {self._listed()}.",
            )
        slowest = max(among, key=lambda launch: launch.value("duration") or Decimal(0))
        return Chosen(slowest, f"the slowest of {len(among)} launches{asked}")

    def _of_kernel(self, wanted: str) -> list[Launch]:
        for matches in (
            [launch for launch in self.launches if launch.kernel == wanted],
            [launch for launch in self.launches if launch.function == wanted],
            [launch for launch in self.launches if wanted in launch.kernel],
        ):
            if matches:
                return matches
        raise UsageError(
            f"{self.name} has no launch of {visible(wanted)}",
            code="report_of_another_kernel",
            hint=f"It has: {self._listed()}. Choose one with --launch, or profile the right kernel.",
        )

    def _listed(self) -> str:
        names = [f"{launch.number} {visible(launch.function)}" for launch in self.launches[:_LISTED]]
        more = len(self.launches) - _LISTED
        return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def launch_number(wanted: str) -> int | None:
    """The number that `--launch` is, else None: it is a kernel's name."""
    return int(wanted) if re.fullmatch(r"\d{1,9}", wanted) else None


def function_name(kernel: str) -> str:
    """`void ns::softmax<float, 4>(float *, int)` is `softmax`."""
    depth, plain = 0, []
    for at, character in enumerate(kernel.strip()):
        if character in "(<":
            if character == "(" and depth == 0 and not kernel.startswith("(anonymous namespace)", at):
                break
            depth += 1
        elif character in ")>":
            depth = max(0, depth - 1)
        elif depth == 0:
            plain.append(character)
    words = "".join(plain).strip().split()
    return words[-1].rsplit("::", 1)[-1] if words else kernel.strip()


def read_profile(data: bytes, name: str) -> Profile:
    """Read the CSV of a report. Raises what `evaluator.profiling.ncu_csv.read_table` raises."""
    table = read_table(data, name)
    return Profile(
        name, table.page, tuple(_launch(number, rows, table) for number, rows in enumerate(table.launches, 1))
    )


def _launch(number: int, rows: LaunchRows, table: NcuTable) -> Launch:
    known = profile_metrics()
    counters: dict[str, Counter] = {}
    unread: list[str] = []
    for cell in rows.cells:
        unit = parse_profiler_unit(cell.unit)
        metric = known.by_ncu.get(cell.name)
        name = cell.name
        if metric is None and table.page == "details":
            metric = _labelled(cell.name, unit.dimension if unit else "")
            name = metric.ncu[0] if metric else cell.name
        number_read = table.form.parse(cell.text)
        fits = unit is not None and (metric is None or unit.dimension == metric.unit)
        if number_read is not None and not fits and metric is not None:
            unread.append(f"{cell.name} ({cell.unit or 'no unit'})")
        value = number_read * unit.scale if number_read is not None and unit is not None and fits else None
        counter = Counter(
            *(cell.name, cell.text.strip(), cell.unit.strip()), number_read, value, unit.dimension if unit else ""
        )
        kept = counters.get(name)
        if kept is None or (kept.value is None and value is not None):
            counters[name] = counter
    head = {column: rows.head[column] for column in LAUNCH_COLUMNS if column in rows.head}
    return Launch(number, rows.head.get("ID", ""), rows.head["Kernel Name"].strip(), head, counters, tuple(unread))


def _labelled(label: str, dimension: str) -> ProfileMetric | None:
    """The metric that the details page prints under a label; two share one where their units tell them apart."""
    found = [metric for metric in profile_metrics().by_label.get(label, ()) if metric.unit == dimension]
    return found[0] if len(found) == 1 else None
