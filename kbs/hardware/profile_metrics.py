"""Names of profile metrics: those that Nsight Compute counts, and those that kopt computes from them.

A counted metric has an id of ours and all names that Nsight Compute has had for it; `kbs/data/profile_metrics.toml` is
read here only. A computed one begins with `kopt__`, which no profiler metric does, so that threshold rows can use it;
`evaluator/diagnosis/derived.py` computes them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

STALLS = "warp stalls"
"""The group of what a warp does between two of its instructions."""
NO_STALLS = ("stall_selected", "stall_not_selected")
"""Of that group, what is not a stall: the warp issued, or it could have."""


@dataclass(frozen=True)
class ProfileMetric:
    """One thing that a profile counts."""

    id: str
    name: str
    group: str
    ncu: tuple[str, ...]
    """Names of several versions and architectures that mean the same in the same unit, the preferred one first."""
    meaning: str
    unit: str = ""
    """us, B, B/s, Hz, %, or empty for counts and for rates per cycle or per instruction."""
    label: str = ""
    """What the details page of Nsight Compute calls it; empty if no section prints it."""


class ProfileMetrics:
    """All of them, and how to find one."""

    def __init__(self, data: Mapping[str, Mapping[str, object]]) -> None:
        self.all: dict[str, ProfileMetric] = {}
        for id, fields in data.items():
            values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
            self.all[id] = ProfileMetric(id=id, **values)
        self.by_ncu = {name: metric for metric in self.all.values() for name in metric.ncu}
        self.by_label: dict[str, list[ProfileMetric]] = {}
        for metric in self.all.values():
            if metric.label:
                self.by_label.setdefault(metric.label, []).append(metric)

    def groups(self) -> dict[str, list[ProfileMetric]]:
        """Metrics by group, in the order of the file."""
        found: dict[str, list[ProfileMetric]] = {}
        for metric in self.all.values():
            found.setdefault(metric.group, []).append(metric)
        return found

    def names_for(self, ncu: str) -> tuple[str, ...]:
        """The names under which a profile may state what `ncu` states; `ncu` itself first."""
        metric = self.by_ncu.get(ncu)
        return tuple(dict.fromkeys((ncu, *(metric.ncu if metric else ()))))


@cache
def profile_metrics() -> ProfileMetrics:
    """The bundled names, read once."""
    text = (resources.files("kbs") / "data" / "profile_metrics.toml").read_text("utf-8")
    return ProfileMetrics(tomllib.loads(text))


# --- computed metrics -------------------------------------------------------------------------------------------------

DRAM_BYTES = "kopt__dram_bytes"
COMPULSORY_BYTES = "kopt__compulsory_bytes"
L1_SECTORS = "kopt__l1_sectors"
ATOMIC_SECTORS = "kopt__atomic_sectors"
TAIL_BOUND = "kopt__tail_bound"
TIME_SHARE = "kopt__time_share"


@dataclass(frozen=True)
class DerivedMetric:
    """One of them."""

    name: str
    """In words."""
    meaning: str
    without: str = ""
    """What to say where it is not known; empty for `the profile has no …`."""


DERIVED: Mapping[str, DerivedMetric] = {
    DRAM_BYTES: DerivedMetric("DRAM bytes", "Bytes read from and written to device memory."),
    COMPULSORY_BYTES: DerivedMetric(
        "bytes that must move",
        "Bytes that the problem has to read and write, by its reference or as declared.",
        "the bytes that must move are not known: give --ref and --dims, or --bytes",
    ),
    L1_SECTORS: DerivedMetric(
        "sectors in L1", "Sectors of all loads, stores and atomics on global and local memory that reached L1."
    ),
    ATOMIC_SECTORS: DerivedMetric("sectors of atomics", "Sectors of atomics on global memory, with a result or none."),
    TAIL_BOUND: DerivedMetric(
        "the last wave's part at most",
        "1 / (1 + whole waves) where a partial wave follows at least a whole one, else 0.",
    ),
    TIME_SHARE: DerivedMetric(
        "share of the time", "What a symptom costs of the launch's time, estimated; of each symptom another value."
    ),
}
