"""What a run will cost: the sum of its measurements, as they were recorded."""

from __future__ import annotations

from typing import Any

from loop.planning.cost import Cost, cost_of


def cost(**changes: Any) -> Cost:
    fields = {
        "device": "cuda:0", "grade": "full", "iterations": 3, "branches": 4, "several": False, "workloads": 0,
        "timing_seconds": 10.0,
    }  # fmt: skip
    return cost_of(**{**fields, **changes})


def test_versions_verdicts_and_profiles_add_up() -> None:
    # v0: 3 + 15 + 10 s, the end: 15 s, each of 3 versions: 4 x 3 + 2 x 15 + 10 s; to: 3 + 28 + 16, 28, 12 + 56 + 16
    assert cost().shown == f"{(28 + 15 + 3 * 52) / 60:.1f} to {(47 + 28 + 3 * 84) / 60:.1f} min"
    assert "4 signals of 3 s, 2 verdicts of 15 to 28 s, a profile of 10 to 16 s" in cost().assumed
    assert "as recorded for a softmax on an H200" in cost().assumed


def test_what_the_user_asks_for_counts() -> None:
    assert (
        cost(grade="degraded", iterations=1, branches=1).shown
        == f"{(3 * 2 + 15 * 3) / 60:.1f} to {(6 + 84) / 60:.1f} min"
    )
    assert "1 signal of 3 s, 4 verdicts" in cost(several=True).assumed
    assert "2 verdicts of 35 to 48 s" in cost(workloads=3).assumed
    assert "2 verdicts of 25 to 38 s" in cost(timing_seconds=20.0).assumed
    assert "." not in cost(iterations=50).shown


def test_on_the_cpu_nothing_is_known() -> None:
    assert cost(device="cpu") == Cost(
        "UNKNOWN", "on the CPU the time is that of Triton's interpreter, and no figure of it is recorded"
    )
