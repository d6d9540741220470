"""Names of values that kopt computes from a profile, so that threshold rows can be about them.

Each begins with `kopt__`, which no metric of a profiler does. How they are computed: `evaluator/diagnosis/derived.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
