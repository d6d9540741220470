"""Long kernels called without a pause: how many calls, what is made of their walls, and what a race does with it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.correctness.candidate import CandidateError
from evaluator.correctness.cases import Case, Cases
from evaluator.receipt.plan import BaselineChoice, TimingPlan
from evaluator.receipt.timing import Row
from evaluator.timing import back_to_back
from evaluator.timing.back_to_back import HALF_US, LEAST_US, MOST_CALLS, Rows, calls_in_half, row, together
from evaluator.timing.benchmark import Benchmark
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.timing.results import Results
from evaluator.timing.timed_process import TimedProcess, WrongResultError
from kbs.common.errors import KoptError
from tests.evaluator import receipts
from tests.evaluator.timed_processes import Nvml, clock, process

GB = 10**9


# --- how many calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "bytes_per_call", "free", "calls"),
    [
        (1000.0, 10**8, 120 * GB, 64),
        (2000.0, 4 * 10**8, 120 * GB, 32),
        (2001.0, 4 * 10**8, 120 * GB, 32),
        (70_000.0, 10**8, 120 * GB, 1),
        (500.0, 1, 120 * GB, 64),  # 32 ms of the 64 wanted
        (400.0, 1, 120 * GB, 0),
        (0.0, 1, 120 * GB, 0),
        (5e-324, 1, 120 * GB, 0),
        (2000.0, 4 * 10**8, 48 * GB, 20),  # a third of what is free, for both halves
        (2000.0, 4 * 10**8, 30 * GB, 0),
        (2000.0, 0, 0, 0),
    ],
)
def test_calls_by_hand(claim: float, bytes_per_call: int, free: int, calls: int) -> None:
    assert calls_in_half(claim, bytes_per_call, free) == calls


@given(st.floats(0.0, 1e7), st.integers(0, 10**11), st.integers(0, 2 * 10**11))
def test_a_half_is_long_enough_and_both_fit(claim: float, bytes_per_call: int, free: int) -> None:
    calls = calls_in_half(claim, bytes_per_call, free)
    assert 0 <= calls <= MOST_CALLS
    assert 2 * calls * bytes_per_call <= free / 3
    if calls:
        assert calls * claim >= LEAST_US
        assert (calls - 1) * claim < HALF_US


# --- what is made of walls --------------------------------------------------------------------------------------------


def rowed(monkeypatch: pytest.MonkeyPatch, found: CrossCheck, one: TimedProcess) -> tuple[Row, dict[str, Any]]:
    """A row of which these were the walls, and what was asked for."""
    asked: dict[str, Any] = {}

    def cross_check(*words: Any, **named: Any) -> CrossCheck:
        asked.update(named, calls=words[4])
        return found

    monkeypatch.setattr(back_to_back, "cross_check", cross_check)
    return row(one, cast(Cases, None), cast(Iterator[Any], None), 32, random.Random(1)), asked


@pytest.mark.parametrize("name", ["candidate", "eager"])
def test_a_row_by_hand(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    walls = CrossCheck(32, (70_000.0, 64_500.0, 64_000.0), (900.0, 500.0, 700.0), before_us=(62_000.0,) * 3)
    found, asked = rowed(monkeypatch, walls, process(name, (1797.0, 1800.0, 1790.0)))
    assert (found.name, found.calls, found.per_call_us, found.alone_us) == (name, 32, 2000.0, 1797.0)
    assert asked == {"calls": 32, "before": 32, "blamed": name == "candidate"}


def test_a_kernel_that_rests_in_the_first_half_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is high again when the second half begins: that one alone would say 1.8 ms."""
    walls = CrossCheck(32, (58_100.0,) * 3, (500.0,) * 3, before_us=(128_500.0, 132_000.0, 128_500.0))
    found, _ = rowed(monkeypatch, walls, process())
    assert found.per_call_us == 4000.0


def test_memory_that_is_made_for_the_first_results_is_no_part_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    walls = CrossCheck(32, (64_500.0,) * 3, (500.0,) * 3, before_us=(90_000.0, 62_000.0, 62_000.0))
    assert rowed(monkeypatch, walls, process())[0].per_call_us == 2000.0


def test_a_row_tells_of_the_clock_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    one = process()
    one.clock = DeviceClock(0, nvml=(nvml := Nvml(1980)))
    one.clock.sample()
    nvml.clocks, nvml.reasons = [1395], [0x004]
    found, _ = rowed(monkeypatch, CrossCheck(32, (64_000.0,), (500.0,), before_us=(64_000.0,)), one)
    assert (found.min_mhz, found.throttled) == (1395, ("power cap",))


def test_an_empty_turn_that_took_longer_leaves_no_time_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = rowed(monkeypatch, CrossCheck(32, (400.0,), (500.0,), before_us=(400.0,)), process())
    assert found.per_call_us == 0
    assert together(found, receipts.row("eager")).ratio is None


def test_both_rows_have_a_ratio() -> None:
    found = together(receipts.row(per_call_us=2000.0), receipts.row("eager", per_call_us=1500.0))
    assert found.ratio == 0.75
    assert together(receipts.row(), None).ratio is None


def test_the_cross_check_of_a_short_kernel_is_its_row() -> None:
    rows = Given()
    rows.add(process(us=(50.0,) * 4), CrossCheck(80, (4900.0, 4500.0, 4100.0), (500.0,), captured=True))
    assert rows.found is not None
    assert rows.found.candidate == Row(name="candidate", calls=80, captured=True, per_call_us=50.0, alone_us=50.0)
    rows.call_baseline(LONG[1:], 2)
    assert rows.asked == []
    rows.add_baseline(process("eager", (90.0,) * 4), CrossCheck(80, (9500.0,), (500.0,), uncaptured="it raised"))
    assert rows.found.baseline is None
    assert rows.notes == ["eager could not be called as the candidate was: it raised"]
    rows.add_baseline(process("eager", (90.0,) * 4), CrossCheck(80, (9700.0,), (500.0,), captured=True))
    assert rows.found.ratio == 2.3


def test_a_long_kernels_row_stays() -> None:
    benchmark = Given(candidate=OWN, eager=EAGER)
    benchmark.both(*LONG)
    benchmark.add(LONG[0], CrossCheck(4, (4900.0,), (500.0,), captured=True))
    benchmark.add_baseline(LONG[1], CrossCheck(4, (4900.0,), (500.0,), captured=True))
    assert benchmark.found == together(OWN, EAGER)


# --- in a race --------------------------------------------------------------------------------------------------------


class Given(Rows):
    """Rows that are given: a row, an error, or None for no room, by name."""

    def __init__(self, **rows: Row | Exception | None) -> None:
        self.rows, self.asked = rows, list[str]()
        self.notes, self.found = [], None

    def _row(self, process: TimedProcess, places: int) -> Row | None:
        assert places == 2
        self.asked.append(process.name)
        found = self.rows[process.name]
        if isinstance(found, Exception):
            raise found
        return found

    def both(self, *processes: TimedProcess) -> None:
        """The candidate's row, then the first baseline's."""
        self.call(processes[0], 2)
        self.call_baseline(processes[1:], 2)


OWN, EAGER = receipts.row(), receipts.row("eager")
LONG = [process(us=(1500.0,) * 4), process("eager", (20.0,) * 4), process("compile", (1500.0,) * 4)]


def test_the_candidate_and_its_first_baseline_are_called_without_a_pause() -> None:
    benchmark = Given(candidate=OWN, eager=EAGER)
    benchmark.both(*LONG)
    assert benchmark.asked == ["candidate", "eager"]
    assert benchmark.found == together(OWN, EAGER)
    assert benchmark.notes == []


class Wave(Benchmark):
    """One wave, of which the order is noted."""

    def __init__(self) -> None:
        self.rows = given = Given(candidate=OWN, eager=EAGER, compile=receipts.row("compile"))
        self.asked = given.asked
        self.stand_in, self.places, self.notes = "", 2, list[str]()
        baselines = BaselineChoice(name="eager", how="eager"), BaselineChoice(name="compile", how="compile")
        self.plan = TimingPlan(restarts=2, seconds=1.0, baselines=baselines)
        self.results = Results({}, self.plan, clock(1980), 1)

    def _start_baseline(self, choice: BaselineChoice, restarts: Sequence[int]) -> list[TimedProcess]:
        return [process(choice.name, restart=n) for n in restarts]

    def _start_candidates(self, restarts: Sequence[int]) -> list[TimedProcess]:
        return [process(us=(1500.0,) * 4, restart=n) for n in restarts]

    def _alone(self, by_restart: dict[int, list[TimedProcess]]) -> None:
        del by_restart
        self.asked.append("alone")

    def _blocks(self, restarts: list[list[TimedProcess]], seconds: float) -> None:
        del restarts, seconds
        self.asked.append("blocks")

    def _cross_check(self, process: TimedProcess) -> None:
        del process
        self.asked.append("cross_check")

    def _end(self, processes: Sequence[TimedProcess]) -> None:
        self.asked.append("end " + " ".join(sorted({one.name for one in processes})))


def test_a_baseline_is_called_without_a_pause_when_no_candidate_is_about() -> None:
    """A candidate that is still there could slow it, and a baseline that fails so has all its times."""
    benchmark = Wave()
    benchmark._batch([0, 1], checked_restart=1)
    order = ["alone", "blocks", "candidate", "cross_check", "end candidate", "alone", "eager"]
    assert benchmark.asked == [*order, "end candidate compile eager"]
    assert benchmark.rows.found == together(OWN, EAGER)


def test_another_wave_has_no_rows() -> None:
    benchmark = Wave()
    benchmark._batch([0, 1], checked_restart=2)
    assert benchmark.asked == ["alone", "blocks", "end candidate", "alone", "end candidate compile eager"]


def test_a_baseline_that_dropped_out_is_passed_over() -> None:
    benchmark = Wave()
    benchmark.results.failed["eager"] = "it raised"
    benchmark._batch([0, 1], checked_restart=1)
    assert benchmark.rows.found == together(OWN, receipts.row("compile"))


def test_a_short_candidate_is_not_called_so() -> None:
    benchmark = Given()
    benchmark.both(process(us=(999.0,) * 4), *LONG[1:])
    assert (benchmark.asked, benchmark.found, benchmark.notes) == ([], None, [])


def test_where_there_is_no_room_it_is_said() -> None:
    benchmark = Given(candidate=None, eager=EAGER)
    benchmark.both(*LONG)
    assert benchmark.asked == ["candidate"]
    assert benchmark.found is None
    assert benchmark.notes == [
        "not called without a pause: the device's memory has no room for so many calls' arguments"
    ]


@pytest.mark.parametrize("rows", [{"eager": None}, {}])
def test_a_candidate_without_a_baselines_row_has_its_own(rows: dict[str, Any]) -> None:
    benchmark = Given(candidate=OWN, **rows)
    benchmark.both(*(LONG if rows else LONG[:1]))
    assert benchmark.found == together(OWN, None)
    assert benchmark.notes == []


def test_a_baseline_that_fails_without_a_pause_is_no_fault_of_the_candidates() -> None:
    benchmark = Given(candidate=OWN, eager=WrongResultError("result of one call of many:\n it is outside"))
    benchmark.both(*LONG)
    assert benchmark.found == together(OWN, None)
    assert benchmark.notes == ["eager was not timed without a pause: result of one call of many: it is outside"]


@pytest.mark.parametrize(
    "error", [WrongResultError("wrong"), CandidateError("cross_check", {"type": "RuntimeError", "message": "once"})]
)
def test_a_candidate_that_fails_without_a_pause_has_failed(error: Exception) -> None:
    with pytest.raises(type(error)):
        Given(candidate=error).both(*LONG)


def roomy(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Rows:
    """Rows on a device with room for one, which fails."""

    def row(*_: Any) -> Row:
        raise error

    monkeypatch.setattr(back_to_back, "traffic", lambda *_: (10**8, 10**8))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (120 * GB, 140 * GB))
    monkeypatch.setattr(back_to_back, "row", row)
    return Rows(cast(Cases, None), torch.device("cuda:0"), itertools.repeat(cast(Case, None)), random.Random(1))


@pytest.mark.parametrize(
    "error",
    [
        KoptError("0.1 GB for a tensor cannot be had", code="out_of_memory", hint="Free it."),
        torch.OutOfMemoryError("in the parent"),
    ],
)
def test_memory_that_is_gone_in_a_row_costs_no_times(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert roomy(monkeypatch, error)._row(LONG[0], 2) is None


def test_another_error_in_a_row_is_no_lack_of_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = roomy(monkeypatch, KoptError("the reference failed", code="reference_failed", hint="Mend it."))
    with pytest.raises(KoptError, match="the reference failed"):
        rows._row(LONG[0], 2)


def test_large_problems_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert roomy(monkeypatch, AssertionError("it was called"))._row(LONG[0], 1) is None


# --- in turns ---------------------------------------------------------------------------------------------------------


class Turns(Wave):
    """A problem of which one process at a time fits; `fails` names a baseline that fails in its second restart."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.fails = fails
        self.draw, self.numbers = random.Random(3), itertools.count(1000)
        self.cases = cast(Any, SimpleNamespace(another=lambda number: number))
        self.sampled: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.running: list[str] = []

    def _start_baseline(self, choice: BaselineChoice, restarts: Sequence[int]) -> list[TimedProcess]:
        return [self._runs(one) for one in super()._start_baseline(choice, restarts)]

    def _start_candidates(self, restarts: Sequence[int]) -> list[TimedProcess]:
        return [self._runs(one) for one in super()._start_candidates(restarts)]

    def _runs(self, one: TimedProcess) -> TimedProcess:
        self.running.append(one.name)
        assert len(self.running) == 1
        return one

    def _sample(self, process: TimedProcess, case: Any, pair: int) -> None:
        if process.name == self.fails and process.restart == 1:
            self._drop(process.name, RuntimeError("no memory"))
        self.sampled.setdefault((process.name, process.restart), []).append((pair, case))

    def _cross_check_baseline(self, baselines: Sequence[TimedProcess]) -> None:
        self.asked.append("cross_check " + baselines[0].name)

    def _end(self, processes: Sequence[TimedProcess]) -> None:
        self.running.remove(processes[0].name)
        super()._end(processes)


def test_what_does_not_fit_side_by_side_takes_turns() -> None:
    """One process at a time, all of a restart on inputs of the same numbers; the candidate first where it is
    checked."""
    benchmark = Turns()
    benchmark._in_turns([0, 1, 2], checked_restart=1)
    ended = [words.removeprefix("end ") for words in benchmark.asked if words.startswith("end")]
    assert sorted(ended[:3]) == sorted(ended[6:]) == ["candidate", "compile", "eager"]
    assert [words for words in benchmark.asked if not words.startswith("end")] == ["cross_check", "cross_check eager"]
    assert ended[3:6] == ["candidate", "eager", "compile"]
    assert [[one.name for one in group] for group in benchmark.results.restarts] == [
        ["candidate", "eager", "compile"]
    ] * 3
    for restart in range(3):
        drawn = {tuple(benchmark.sampled[name, restart]) for name in ("candidate", "eager", "compile")}
        assert drawn == {tuple((pair, 1000 + 8 * restart + pair) for pair in range(8))}
    assert benchmark.places == 1
    assert "took turns" in benchmark.notes[0]


def test_a_baseline_that_fails_in_its_turn_drops_out() -> None:
    benchmark = Turns(fails="eager")
    benchmark._in_turns([0, 1], checked_restart=0)
    assert [[one.name for one in group] for group in benchmark.results.restarts] == [["candidate", "compile"]] * 2
    assert benchmark.results.failed == {"eager": "no memory"}
