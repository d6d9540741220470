"""Records for tests of the log."""

from __future__ import annotations

from typing import Any

from kbs.common.ulid import new_ulid
from kbs.experience.experiment import Experiment


def experiment(**changes: Any) -> Experiment:
    """A reported success, with changes."""
    fields = {
        "id": new_ulid(),
        "time": "2026-11-21T14:25:35Z",
        "kernel": "softmax.py",
        "op": "softmax",
        "backend": "triton",
        "gpu": "h200-sxm",
        "dims": {"M": 4096, "N": 8192},
        "dtype": "bf16",
        "bottleneck_before": "memory-bound",
        "methods": ("vectorized_access",),
        "optimization": "Load 16 bytes a thread.",
        "outcome": "success",
        "speedup": {"median": 1.25},
        "provenance": "reported",
    }
    return Experiment.model_validate({**fields, **changes})


def measured(receipt: str, **changes: Any) -> Experiment:
    """A measured success; `receipt` is a hexadecimal digit."""
    ratio = {"median": 1.25, "low": 1.2, "high": 1.3}
    return experiment(**{"receipt": receipt * 64, "provenance": "measured", "speedup": ratio, **changes})
