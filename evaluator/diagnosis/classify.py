"""Classify a kernel's bottleneck, and record the steps that led to the class.

The branching is that of NVIDIA's rules (SpeedOfLight.py: low, small grid, high, the side that leads, balanced;
TheoreticalOccupancy.py and AchievedOccupancy.py for what keeps warps away); every number in it is a row of a wiki.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evaluator.diagnosis.binding_resource import busiest_pipe
from evaluator.diagnosis.derived import ONE, equation
from evaluator.diagnosis.symptoms import Finding, preferred
from evaluator.profiling.profile import Launch
from kbs.hardware.thresholds import Judgement, plain


class Bottleneck(StrEnum):
    """What a kernel spends its time on."""

    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    LATENCY = "latency-bound"
    OCCUPANCY = "occupancy-bound"
    LAUNCH = "launch-bound"
    MIXED = "mixed"
    UNKNOWN = "unknown"


ACHIEVED = "sm__warps_active"
"""Occupancy as it was."""
THEORETICAL = "sm__maximum_warps"
"""Occupancy as registers, shared memory and block size admit it."""
LEADS = {Bottleneck.MEMORY: "memory-leads", Bottleneck.COMPUTE: "compute-leads"}


@dataclass
class Decision:
    """The way to the class."""

    findings: Mapping[str, Finding]
    launch: Launch
    why: list[str] = field(default_factory=list)
    used: list[Judgement] = field(default_factory=list)
    short: bool = False
    """Launch-bound since the launch is short, and not since the grid is small."""

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
        starved = "low-issue-rate" not in self.findings or self._has("low-issue-rate")
        if starved and self._kept_away():
            return Bottleneck.OCCUPANCY
        return Bottleneck.LATENCY

    def _kept_away(self) -> bool:
        """Whether few warps are there since no more fit.

        Low achieved occupancy where more would fit is imbalance, a tail or waiting, and no limit of a resource; and a
        kernel of tensor cores does with few warps. Sources: NVIDIA's TheoreticalOccupancy.py and AchievedOccupancy.py,
        whose estimates are compared; the triage guide, 3.2.2, for tensor cores.
        """
        limited = self._has("low-occupancy", THEORETICAL)
        low = self.launch.value("achieved_occupancy") is None or self._has("low-occupancy", ACHIEVED)
        if not (limited and low):
            return False
        pipe = busiest_pipe(self.launch)
        if pipe is not None and pipe.metric.startswith("tensor_pipe"):
            self.why.append("the tensor pipe is the busiest pipe, and it does with few warps")
            return False
        fits, were = self.launch.value("theoretical_occupancy"), self.launch.value("achieved_occupancy")
        if not fits or were is None or were >= fits:
            return True
        by_limit, limit = equation(f"1 - {plain(fits)} %", ONE - fits / 100)
        otherwise, gap = equation(f"1 - {plain(were)} / {plain(fits)}", ONE - were / fits)
        if limit >= gap:
            return True
        self.why.append(f"but more warps are missing of those that fit ({otherwise}) than do not fit ({by_limit})")
        return False

    def _has(self, id: str, metric: str = "") -> bool:
        """Whether a symptom is there, by the preferred row of one metric if one is named; noted as a step if so."""
        finding = self.findings.get(id)
        if finding is None:
            return False
        mine = [j for j in preferred(finding.judgements) if j.holds]
        if metric:
            mine = [j for j in mine if j.row.metric.startswith(metric) and len(j.readings) == 1]
        elif not finding.present:
            mine = []
        if mine:
            self.used += mine
            self.why.append(f"{finding.symptom.name}: {'; '.join(judgement.said for judgement in mine)}")
        return bool(mine)
