"""Times that no device of a kind can reach: what counts is what the results depend on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.cases import GIVEN, Case, Cases
from evaluator.correctness.reference import Shape, Values
from evaluator.receipt.timing import CitedPeak, Physics
from evaluator.timing.speed_of_light import PLACES, check, least_part, traffic
from kbs.common.errors import UsageError
from tests.evaluator.workers import shaped, values

PEAK = CitedPeak(product="a GPU", gb_per_s=1000.0, citation="a page")
"""1000 bytes a nanosecond: a microsecond for 10⁶ bytes."""
Work = Callable[..., torch.Tensor]


@dataclass
class Ran:
    """What an oracle gives."""

    tensors: list[torch.Tensor]


@dataclass
class Reference:
    """An oracle in this process."""

    work: Work
    runs: list[tuple[str, list[int]]] = field(default_factory=list)

    def run(self, given: Values, precision: str, written: list[int]) -> Ran:
        self.runs.append((precision, written))
        return Ran([self.work(*given.tensors)])


@dataclass
class Problem:
    """As much of `Cases` as physics need."""

    reference: Reference
    shape: Shape
    weights: Values


def problem(
    work: Work, *tensors: torch.Tensor, filled: tuple[int, ...] = (), weights: tuple[torch.Tensor, ...] = ()
) -> tuple[Cases, Case, Reference]:
    """A function of some tensors, one case of it, and the oracle that knows how often it was run."""
    reference = Reference(work)
    shape = shaped((), (), filled)
    made = Problem(reference, shape, Values({}, [], list(weights)))
    native = [work(*tensors)]
    return cast(Any, made), Case(GIVEN, values(*tensors), native, native, [False]), reference


def held(
    work: Work, *tensors: torch.Tensor, us: float, l2_bytes: int = 0, seed: int = 1, **more: Any
) -> tuple[Physics, Reference]:
    """What is said of a time."""
    cases, case, reference = problem(work, *tensors, **more)
    return check(cases, case, PEAK, l2_bytes, us, random.Random(seed)), reference


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


DENSE = noise(250_000)
"""10⁶ bytes, a microsecond."""


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_traffic_is_inputs_weights_and_results() -> None:
    x, y, w = torch.zeros(100), torch.zeros(40), torch.zeros(7, dtype=torch.float16)
    cases, case, _ = problem(lambda *_: torch.zeros(3), x, y, filled=(1,), weights=(w,))
    assert traffic(cases, case) == (400 + 14, 12)


def test_without_a_peak_nothing_is_checked() -> None:
    cases, case, reference = problem(lambda x: x * 2, DENSE)
    found = check(cases, case, None, 0, 0.0, random.Random(1))
    assert (found.status, found.peak, found.least_us) == ("not checked", None, None)
    assert found.detail == "no cited peak bandwidth is known for this device"
    assert reference.runs == []


# --- possible ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("us", [2.0, 1.961, 50.0])
def test_a_time_above_the_least_is_possible_without_a_look(us: float) -> None:
    """1.96 us are 98 % of what 2·10⁶ bytes need."""
    found, reference = held(lambda x: x * 2, DENSE, us=us)
    assert (found.status, found.bytes, found.detail) == ("possible", 2_000_000, "")
    assert (found.least_us, found.fastest_us, found.peak) == (2.0, us, PEAK)
    assert reference.runs == []


def test_what_the_cache_may_hold_is_not_counted() -> None:
    found, _ = held(lambda x: x * 2, DENSE, us=0.99, l2_bytes=1_000_000)
    assert (found.status, found.least_us, found.l2_bytes, found.bytes) == ("possible", 1.0, 1_000_000, 2_000_000)
    found, _ = held(lambda x: x * 2, DENSE, us=0.0, l2_bytes=3_000_000)
    assert (found.status, found.least_us) == ("possible", 0.0)


# --- impossible -------------------------------------------------------------------------------------------------------


def test_a_dense_problem_in_too_little_time() -> None:
    found, reference = held(lambda x: x * 2, DENSE, us=1.0)
    assert found.status == "impossible"
    assert reference.runs == [("native", [])] * PLACES
    assert found.bytes == 1_000_000 + int(1_000_000 * least_part(PLACES, PLACES))
    assert found.least_us == found.bytes / 1e6
    assert found.detail == f"1.00 us are fewer than {found.bytes} bytes need at 1000 GB/s: {found.least_us:.2f} us"


def test_results_alone_make_a_time_impossible() -> None:
    found, reference = held(lambda _: torch.ones(250_000), torch.tensor(3), us=0.97)
    assert (found.status, found.bytes, reference.runs) == ("impossible", 1_000_000, [])


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.view(500, 500).sum(1),
        lambda x: x.view(500, 500).softmax(1),
        lambda x: x.relu(),
        lambda x: x.half() + 1,
        lambda x: x.cumsum(0),
        lambda x: x.view(500, 500) @ x.view(500, 500),
    ],
)
def test_dependence_is_seen_through_many_operations(work: Work) -> None:
    found, _ = held(work, DENSE, us=0.4)
    assert found.status == "impossible"


# --- what is not needed -----------------------------------------------------------------------------------------------

TABLE = noise(100_000, 32)
"""Rows of 128 bytes, 12.8·10⁶ bytes in all."""


@pytest.mark.parametrize("seed", range(4))
def test_a_gather_reads_few_rows_of_its_table(seed: int) -> None:
    """An embedding of 2000 tokens: a kernel at the peak needs half a microsecond, the whole table 12.8. Read rows lie
    everywhere: no part of the table of some hundred rows is without one."""
    tokens = torch.randint(0, len(TABLE), (2000,), generator=torch.Generator().manual_seed(seed))
    found, _ = held(lambda table, tokens: table[tokens], TABLE, tokens, us=0.52, seed=seed)
    assert found.status == "possible"
    assert found.bytes < 2000 * 128 * 3


@pytest.mark.parametrize("part", [0.5, 0.8, 0.9])
def test_a_part_that_is_masked_out_is_not_counted(part: float) -> None:
    """The kernel reads what counts, and no more, at the peak: never is it called impossible."""
    rows = int(1000 * part)
    x = noise(1000, 250)
    for seed in range(6):
        honest = (rows * 1000 + rows * 4) / 1e6
        found, _ = held(lambda x: x[:rows].sum(1), x, us=honest, seed=seed)
        assert found.status == "possible"


def test_an_input_that_is_never_read() -> None:
    unused = noise(250_000, seed=2)
    found, _ = held(lambda x, _: x * 2, DENSE, unused, us=1.97)
    assert (found.status, found.bytes) == ("possible", 1_000_000 + int(1_000_000 * least_part(PLACES, PLACES)))


def test_zero_times_a_changed_input_is_zero() -> None:
    """Minus zero in the reference's result is no reason to read what a mask takes away."""
    mask = torch.zeros(250_000)
    found, _ = held(lambda x, mask: x * mask, DENSE, mask, us=2.5)
    changed = 1_000_000 * least_part(PLACES, PLACES)
    assert (found.status, found.bytes) == ("possible", 1_000_000 + int(changed))


def test_results_that_are_not_numbers_depend_on_nothing() -> None:
    found, _ = held(lambda x: (x * float("nan")).sum().reshape(1), DENSE, us=0.1)
    assert (found.status, found.bytes) == ("possible", 4)


def test_weights_whole_numbers_and_blank_results_count_nothing_then() -> None:
    index = torch.arange(250_000)
    blank = torch.zeros(250_000)
    found, reference = held(lambda *_: torch.ones(10), index, blank, us=0.5, filled=(1,), weights=(DENSE, DENSE))
    assert (found.status, found.bytes, reference.runs) == ("possible", 40, [])


def test_a_reference_that_takes_no_other_inputs_says_nothing() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        if not torch.equal(x, DENSE):
            raise UsageError("it is not triangular", code="reference_failed", hint="none")
        return x.sum().reshape(1)

    found, _ = held(work, DENSE, us=0.1)
    assert (found.status, found.bytes) == ("possible", 4)


def test_inputs_are_left_as_they_were() -> None:
    x = noise(500, 20).t()
    before = x.clone()
    cases, case, _ = problem(lambda x: x * 2, x)
    check(cases, case, PEAK, 0, 0.0, random.Random(1))
    assert torch.equal(case.values.tensors[0], before)


@pytest.mark.parametrize("x", [torch.zeros(0), torch.tensor(2.0), torch.ones(3, dtype=torch.float64), noise(9).half()])
def test_small_inputs(x: torch.Tensor) -> None:
    found, _ = held(lambda x: x + 1, x, us=0.0)
    assert found.status == ("impossible" if x.numel() else "possible")
    assert found.bytes == x.nbytes + int(x.nbytes * least_part(PLACES, PLACES))


# --- the part that counts ---------------------------------------------------------------------------------------------


def test_the_least_part_by_hand() -> None:
    """All of n: the n-th root of one in ten thousand; one of n: what is hit at all so rarely."""
    assert least_part(64, 64) == pytest.approx(1e-4 ** (1 / 64))
    assert least_part(1, 64) == pytest.approx(1 - (1 - 1e-4) ** (1 / 64))
    assert least_part(0, 64) == 0.0
    assert least_part(1, 1) == pytest.approx(1e-4)


@settings(deadline=None)
@given(st.integers(1, 64), st.data())
def test_the_least_part_lies_below_what_was_seen(tried: int, data: Any) -> None:
    changed = data.draw(st.integers(1, tried))
    assert least_part(changed - 1, tried) < least_part(changed, tried) <= changed / tried


def test_the_least_part_is_hardly_ever_too_large() -> None:
    draw = random.Random(3)
    wrong = 0
    for _ in range(300):
        part = draw.random()
        wrong += least_part(sum(draw.random() < part for _ in range(PLACES)), PLACES) > part
    assert wrong <= 1
