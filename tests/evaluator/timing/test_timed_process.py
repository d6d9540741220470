"""One kernel's process in a race: its spin, its late turns, and each result held against the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.candidate import Called, CandidateError, KernelProcess, SampleOptions
from evaluator.correctness.cases import GIVEN, Case, Cases
from evaluator.correctness.reference import Values
from evaluator.receipt.findings import Findings
from evaluator.sandbox.replies import Reply
from evaluator.scan.hazards import Severity
from evaluator.timing.timed_process import WARM_SAMPLES, TimedProcess, WrongResultError, _Measured
from tests.evaluator.timed_processes import clock
from tests.evaluator.workers import shaped, specs, values

X = torch.tensor([1.0, -2.0, 3.0, 4.0])


@pytest.fixture(autouse=True, scope="module")
def device() -> Iterator[None]:
    """A GPU whose driver says that its L2 cache has 50 MiB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=50 << 20))
        yield


RETURNED = {"type": "torch.Tensor", "exact": True, **specs(X)[0], "stride": [1], "device": "cpu"}


@dataclass
class Reference:
    """As much of an oracle as a comparison needs."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def cases() -> Cases:
    """A problem whose result is twice its input."""
    made = Cases.__new__(Cases)
    made.moves = []
    made.reference = cast(Any, Reference())
    made.found = Findings()
    made.tolerance, made.own_reference = None, False
    made.shape = shaped(specs(X))
    made.shape.names = ["result"]
    return made


def case() -> Case:
    return Case(GIVEN, values(X), [(X * 2).double()], [X * 2], [False])


@dataclass
class Asked:
    """One call that a kernel was asked for."""

    sample: SampleOptions
    seconds: float | None
    given: Values


class Scripted:
    """A kernel whose turns are written down beforehand; the last goes on for good."""

    device = torch.device("cuda:0")
    load_seconds = 300.0
    call_seconds = 60.0

    def __init__(self, *samples: dict[str, Any]) -> None:
        self.samples = list(samples) or [{}]
        self.asked: list[Asked] = []
        self.clocks: list[tuple[str, float, dict[str, Any]]] = []

    def ask(self, op: str, seconds: float, **fields: Any) -> dict[str, Any]:
        self.clocks.append((op, seconds, fields))
        return {"times": [1.5, 1.25], "flush_bytes": 1, "l2_bytes": 1 << 40}

    def call(self, given: Values, *_: Any, sample: SampleOptions, seconds: float | None) -> Called:
        self.asked.append(Asked(sample, seconds, given))
        now = dict(self.samples.pop(0) if len(self.samples) > 1 else self.samples[0])
        if "raises" in now:
            raise now["raises"]
        called: dict[str, Any] = {
            name: now.pop(name) for name in ("outputs", "returned", "unwritten", "guards", "changed") if name in now
        }
        reply = {name: now.pop(name) for name in ("patched", "threads") if name in now}
        measured: dict[str, Any] = {"us": 100.0, "enqueue_us": 20.0, "late": False, **now}
        claim = Reply.model_validate({"ok": True, "sample": measured, **reply}).model_dump()
        fields: dict[str, Any] = {
            "outputs": [X * 2], "returned": [RETURNED], "unwritten": [0], "guards": [], "changed": [], "moved": True,
            "seconds": 0.001, "reply": claim,
        }  # fmt: skip
        return Called(**{**fields, **called})

    @property
    def spins(self) -> list[float]:
        return [asked.sample.spin_us for asked in self.asked]


def process(*samples: dict[str, Any], name: str = "candidate") -> tuple[TimedProcess, Scripted]:
    """A timed process of such a kernel."""
    scripted = Scripted(*samples)
    return TimedProcess(name, 2, cast(KernelProcess, scripted), cases(), clock(1980), {"n": 4}), scripted


def warmed(one: TimedProcess) -> None:
    """The first call, and the rest of the warm-up."""
    one.first_call(case())
    one.warm(case())


# --- warming up -------------------------------------------------------------------------------------------------------


def test_warming_up_makes_the_clock_and_takes_five_turns_that_do_not_count() -> None:
    one, scripted = process()
    warmed(one)
    assert scripted.clocks == [("clock", 60.0, {"flush_bytes": 100 << 20})]
    assert one.empty_us == [1.5, 1.25]
    assert len(scripted.asked) == 1 + WARM_SAMPLES == 5
    assert [asked.seconds for asked in scripted.asked] == [300.0, None, None, None, None]
    assert one.samples.us == []
    assert one.first_call_seconds > 0


def test_the_cache_is_as_large_as_the_driver_says_and_not_the_candidate() -> None:
    one, _ = process()
    warmed(one)
    assert (one.l2_bytes, one.flush_bytes) == (50 << 20, 100 << 20)


def test_the_spin_follows_what_the_host_needs() -> None:
    """2.5 times the host's time and 60 us; the first call compiles, and says nothing."""
    one, scripted = process({"enqueue_us": 9e6}, {"enqueue_us": 20.0}, {"enqueue_us": 40.0})
    warmed(one)
    assert scripted.spins == [1000.0, 1000.0, 110.0, 160.0, 160.0]
    assert (one.spin_us, one.waits) == (160.0, False)


@pytest.mark.parametrize(("enqueue", "spin"), [(0.0, 60.0), (1e9, 50_000.0)])
def test_the_spin_has_bounds(enqueue: float, spin: float) -> None:
    one, _ = process({"enqueue_us": enqueue})
    warmed(one)
    assert one.spin_us == spin


def test_a_late_host_gets_a_spin_of_twice_the_length() -> None:
    one, scripted = process({}, {"late": True}, {"late": True}, {"late": False, "enqueue_us": 100.0})
    warmed(one)
    assert scripted.spins == [1000.0, 1000.0, 2000.0, 4000.0, 310.0]
    assert not one.waits


def test_a_late_host_whose_time_is_known_gets_that() -> None:
    one, scripted = process({}, {"late": True, "enqueue_us": 4000.0}, {})
    warmed(one)
    assert scripted.spins[2] == 10_060.0


def test_a_call_that_is_late_whatever_the_spin_waits_by_itself() -> None:
    one, scripted = process({"late": True})
    warmed(one)
    assert (one.waits, one.spin_us) == (True, 60.0)
    one.sample(case(), 0)
    one.sample(case(), 1)
    assert scripted.spins[-2:] == [60.0, 60.0]
    assert one.samples.late == [False, False]  # its time is what it is


def test_three_late_turns_are_not_enough() -> None:
    one, _ = process({}, {"late": True}, {"late": True}, {"late": True}, {})
    warmed(one)
    assert not one.waits


def test_a_warm_turn_in_time_ends_a_row_of_late_ones() -> None:
    one, _ = process({}, {"late": True}, {"late": True}, {}, {"late": True})
    warmed(one)
    for pair, waits in enumerate((False, False, True)):
        one.sample(case(), pair)
        assert one.waits is waits


# --- turns that count -------------------------------------------------------------------------------------------------


def test_turns_are_kept_in_their_order() -> None:
    one, _ = process({"us": 100.0, "enqueue_us": 11.0}, {"us": 300.0, "enqueue_us": 12.0, "late": True}, {"us": 101.0})
    for pair in (4, 5, 6):
        one.sample(case(), pair)
    assert one.samples.us == [100.0, 300.0, 101.0]
    assert one.samples.pair == [4, 5, 6]
    assert one.samples.enqueue_us == [11.0, 12.0, 20.0]
    assert one.samples.late == [False, True, False]
    assert one.samples.clock_mhz == [1980] * 3
    assert len(one.clock.megahertz) == 4  # the test's own, and one a turn


def test_a_turn_that_came_late_lengthens_the_spin_and_one_in_time_leaves_it() -> None:
    one, scripted = process({}, {"late": True}, {"enqueue_us": 1.0}, {})
    for pair in range(4):
        one.sample(case(), pair)
    assert scripted.spins == [1000.0, 1000.0, 2000.0, 2000.0]


def test_late_turns_between_others_do_not_add_up() -> None:
    one, _ = process(*[{"late": bool(n % 4)} for n in range(1, 12)], {})
    for pair in range(12):
        one.sample(case(), pair)
    assert not one.waits
    for pair in range(12, 15):
        one._keep(pair, _Measured(1.0, 1.0, True, 0))
    assert not one.waits
    one._keep(15, _Measured(1.0, 1.0, True, 0))
    assert one.waits


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), min_size=1, max_size=30))
def test_the_spin_stays_within_its_bounds(samples: list[tuple[float, bool]]) -> None:
    one, _ = process(*[{"enqueue_us": enqueue, "late": late} for enqueue, late in samples])
    for pair in range(len(samples)):
        one.sample(case(), pair)
        assert 60.0 <= one.spin_us <= 50_000.0
    assert len(one.samples.us) == len(one.samples.late) == len(samples)


def test_turns_alone_are_kept_apart() -> None:
    one, _ = process({"us": 150.0}, {"us": 151.0}, name="eager")
    one.sample_alone(case())
    one.sample_alone(case())
    assert (one.alone, one.samples.us) == ([150.0, 151.0], [])


# --- wrong results ----------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"outputs": [X * 2.1]}, "of "),
    ({"unwritten": [3]}, "3 elements were never written"),
    ({"guards": ["0"]}, "memory beside 0 was written"),
    ({"changed": ["0"]}, "the input 0 was changed"),
    ({"returned": []}, "not all results were returned"),
    ({"returned": [{**RETURNED, "alias": 0}]}, "the result lies in the memory of an input"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_a_wrong_result_of_the_candidate_stands_in_the_table(wrong: dict[str, Any], said: str) -> None:
    one, _ = process({}, wrong)
    one.sample(case(), 0)
    with pytest.raises(WrongResultError, match="result of a timed turn: ") as raised:
        one.sample(case(), 1)
    assert said in str(raised.value)
    (trial,) = one.cases.found.trials
    assert (trial.passed, trial.distribution, trial.output, trial.dims) == (
        False,
        "given, timed turn",
        "result",
        {"n": 4},
    )
    assert trial.detail
    assert trial.memory == "new"
    assert one.samples.us == [100.0]  # the wrong one has no time


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_a_wrong_result_of_a_baseline_is_not_the_candidates(wrong: dict[str, Any], said: str) -> None:
    one, _ = process(wrong, name="eager")
    with pytest.raises(WrongResultError) as raised:
        one.sample(case(), 1)
    assert said in str(raised.value)
    assert (one.cases.found.trials, one.cases.found.hazards) == ([], [])


@pytest.mark.parametrize("how", ["first_call", "warm", "sample", "sample_alone"])
def test_every_turn_is_judged(how: str) -> None:
    one, _ = process({"outputs": [X]})
    with pytest.raises(WrongResultError):
        one.sample(case(), 1) if how == "sample" else getattr(one, how)(case())
    assert len(one.cases.found.trials) == 1


def test_wrong_trials_are_numbered_on() -> None:
    one, _ = process({"outputs": [X]})
    for _ in range(2):
        with pytest.raises(WrongResultError):
            one.sample(case(), 1)
    assert [trial.index for trial in one.cases.found.trials] == [0, 1]


@pytest.mark.parametrize("name", ["candidate", "eager"])
def test_what_a_turn_leaves_behind_is_held_against_the_candidate_alone(name: str) -> None:
    one, _ = process({"patched": ["torch.allclose"], "threads": 2}, name=name)
    one.sample(case(), 0)
    found = [(hazard.id, hazard.severity) for hazard in one.cases.found.hazards]
    expected = [("patched", Severity.REJECT), ("threads_left", Severity.NOTE)]
    assert found == (expected if name == "candidate" else [])


def test_an_answer_without_a_time() -> None:
    one, scripted = process()
    answer = scripted.call(values(X), sample=SampleOptions(1.0), seconds=None)
    answer.reply["sample"] = None
    scripted.call = lambda *_, **__: answer  # type: ignore[method-assign]  # an answer that has no time
    with pytest.raises(WrongResultError, match="no time"):
        one.sample(case(), 0)


def test_what_a_kernel_raises_goes_on() -> None:
    error = CandidateError("sample", {"type": "ValueError", "message": "no", "traceback": ""})
    one, _ = process({"raises": error})
    with pytest.raises(CandidateError):
        one.sample(case(), 0)
    assert one.samples.us == []
