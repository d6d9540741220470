"""Names of what a profile counts: one of ours for each, with the names that Nsight Compute has had for it.

The data file `kbs/data/profile_metrics.toml` is read here and nowhere else.
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
"""Of that group, what is no stall: the warp issued, or it could have."""


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
    """What the details page of Nsight Compute calls it; empty where no section prints it."""


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
