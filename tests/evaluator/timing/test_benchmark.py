"""How long a race goes on: whatever a machine without a GPU can say of it."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest

from evaluator.receipt.statistics import next_look
from evaluator.timing.benchmark import LEAST_BLOCKS, Benchmark


class Samples(Benchmark):
    """A race whose turns take 0.01 s each of a clock of its own, and whose interval is narrow from a block on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, narrow_from: int) -> None:
        self.draw = random.Random(1)
        self.sample_seconds = 0.0
        self.now, self.narrow_from = 0.0, narrow_from
        self.made: list[tuple[Any, int]] = []
        self.looks: list[int] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def _case(self) -> Any:
        return None

    def _sample(self, process: Any, case: Any, pair: int) -> None:
        assert case is None
        self.made.append((process, pair))
        self.now += 0.01

    def _settled(self, restarts: list[list[Any]]) -> bool:
        assert restarts == [["candidate", "eager"]]
        self.looks.append(self.made[-1][1] // 2 + 1)
        return self.looks[-1] >= self.narrow_from

    def benchmark(self, seconds: float) -> int:
        """Blocks that were made of one restart with one baseline."""
        self._blocks([["candidate", "eager"]], seconds)  # type: ignore[list-item]  # names do for racers
        return self.made[-1][1] // 2 + 1


def test_a_race_ends_at_the_first_look_at_a_narrow_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Samples(monkeypatch, narrow_from=7)
    assert benchmark.benchmark(1e9) == 8
    assert benchmark.looks == [4, 6, 8]
    assert benchmark.sample_seconds == pytest.approx(8 * 4 * 0.01)


def test_each_pair_is_made_forth_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Samples(monkeypatch, narrow_from=1)
    assert benchmark.benchmark(1e9) == LEAST_BLOCKS
    for block in (benchmark.made[n : n + 4] for n in range(0, len(benchmark.made), 4)):
        names, pairs = [name for name, _ in block], [pair for _, pair in block]
        assert names == names[::-1]
        assert len(set(names)) == 2
        assert pairs == [pairs[0], pairs[0], pairs[0] + 1, pairs[0] + 1]


def test_a_race_ends_when_its_time_is_over_and_not_before_the_least_number_of_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Samples(monkeypatch, narrow_from=10**9).benchmark(0.4001) == 11
    assert Samples(monkeypatch, narrow_from=10**9).benchmark(0.0) == LEAST_BLOCKS


def test_looks_become_rarer_so_that_they_take_no_more_than_a_part_of_the_time() -> None:
    """A look takes as long as there are turns; of n blocks all looks together look at no more than 12 n."""
    looks = [LEAST_BLOCKS]
    while looks[-1] < 10_000:
        looks.append(next_look(looks[-1]))
    assert all(2 <= later - earlier <= max(2, earlier // 10) for earlier, later in itertools.pairwise(looks))
    assert sum(looks) < 12 * looks[-1]
