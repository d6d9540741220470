"""The budget of methods: gaps in time, shared in proportion, with shown arithmetic."""

from __future__ import annotations

import pytest

from loop.planning.budget import budget_of, shared
from loop.tools import Targets


def targets(bytes_us: float | None, operations_us: float | None) -> Targets:
    return Targets(
        specs=(), lines=(), bytes=1_000_000, operations=1, bound="memory", floor_us=None, target_us=None, gaps=(),
        bytes_us=bytes_us, operations_us=operations_us,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("time", "bytes_us", "operations_us", "moved", "gaps", "methods"),
    [
        # It moves three times the bytes: the memory gap is as large as what is above the floor.
        (300.0, 100.0, 10.0, 3_000_000, (200.0, 0.0, 200.0), (2, 0, 1)),
        # It moves no byte too many, and waits.
        (300.0, 100.0, 10.0, 1_000_000, (0.0, 0.0, 200.0), (0, 0, 2)),
        # Bound by its operations, and near their time: the gap of compute stays, because bytes alone need less.
        (110.0, 20.0, 100.0, 1_000_000, (0.0, 80.0, 10.0), (0, 2, 1)),
        # All of it: 3 x 100 : 50 : 50.
        (250.0, 100.0, 150.0, 1_500_000, (50.0, 50.0, 100.0), (1, 1, 1)),
        # Below 5 % of the time nothing is done.
        (104.0, 100.0, 10.0, 1_030_000, (3.0, 0.0, 4.0), (0, 0, 0)),
        # Without counters memory has at most the gap of latency, and they share.
        (300.0, 100.0, 10.0, None, (None, 0.0, 200.0), (2, 0, 1)),
    ],
)
def test_gaps_in_time_and_their_share(
    time: float, bytes_us: float, operations_us: float, moved: int | None, gaps: tuple[float | None, ...],
    methods: tuple[int, ...],
) -> None:  # fmt: skip
    found = budget_of(3, time, targets(bytes_us, operations_us), moved)
    assert tuple(one.gap_us and pytest.approx(one.gap_us) for one in found.axes) == gaps
    assert tuple(one.methods for one in found.axes) == methods
    assert found.most == sum(methods)


def test_the_arithmetic_is_shown() -> None:
    lines = budget_of(0, 300.0, targets(100.0, 10.0), 3_000_000).lines()
    assert lines == [
        "memory: (3,000,000 B - 1,000,000 B) at the cited bandwidth = 200.0 µs: at most 2 methods",
        "compute: max(0, 10.00 µs - 100.0 µs) = 0 µs, below 5% of 300.0 µs: at most 0 methods",
        "latency: 300.0 µs - max(10.00 µs, 100.0 µs) = 200.0 µs: at most 1 method",
        "all axes together: at most 3 methods",
    ]


def test_what_is_not_known_limits_no_axis_below_two() -> None:
    for found in (budget_of(0, None, targets(1.0, 1.0), None), budget_of(0, 9.0, targets(None, 1.0), None)):
        assert [one.methods for one in found.axes] == [2, 2, 2]
        assert found.most == 3
        assert "not known" in found.lines()[0]


def test_no_axis_gets_more_than_two() -> None:
    assert shared({"memory": 97.0, "compute": 2.0, "latency": 1.0}) == {"memory": 2, "compute": 1, "latency": 0}
    assert shared({"memory": 1.0, "compute": 0.0, "latency": 0.0}) == {"memory": 2, "compute": 0, "latency": 0}
    assert shared({"memory": 0.0, "compute": 0.0, "latency": 0.0}) == {"memory": 0, "compute": 0, "latency": 0}
