"""Audit turns: several calls at once, of which one's result is known, and memory that nobody keeps."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.reference import ReferenceProcess
from evaluator.receipt.findings import Findings
from evaluator.receipt.plan import SeedSchedule
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.shared_buffers import shared_row
from evaluator.sandbox.worker_process import WorkerLostError
from evaluator.timing import cross_check as module
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.cross_check import JUDGED, SAMPLES, cross_check
from evaluator.timing.timed_process import WrongResultError
from tests.evaluator.workers import kernel, reference_process

FUNCTION = "import torch\ndef reference(x, y):\n    return x * 2 + y\n"
INPUTS = "import torch\ndef get_inputs():\n    return [torch.randn(4, 3), torch.arange(3)]\n"
SETUP = """
import torch
def setup():
    return {"inputs": {"x": torch.randn(5), "n": 3, "y": torch.zeros(5)}, "outputs": ["y"]}
def reference(x, n, y):
    y.copy_(x * n)
"""
Start = Callable[..., tuple[KernelProcess, Cases]]


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts a candidate and the oracle of its problem."""
    with contextlib.ExitStack() as stack:

        def cases(made_by: ReferenceProcess) -> Cases:
            seeds = SeedSchedule.given("audit")
            made = Cases(seeds, made_by, Findings(), tolerance=None, own_reference=False, first_index=0)
            made.prepare(kernelbench=False, outputs=lambda named, written: list(named) or list(written))
            return made

        def start(body: str, form: str = "function") -> tuple[KernelProcess, Cases]:
            lines = "".join(f"    {line}\n" for line in body.splitlines())
            if form == "function":
                text = f"import os, torch\ncalls = []\ndef run(x, y):\n{lines}"
                made_by = reference_process(server, FUNCTION, files={"in.py": INPUTS.encode()}, inputs="in.py")
                one = kernel(server, text)
            else:
                text = f"import os, torch\ncalls = []\ndef run_kernel(x, n, y):\n{lines}"
                made_by = reference_process(server, SETUP, form="setup", inputs="reference.py")
                one = kernel(server, text, form="setup", entry="run_kernel")
            stack.enter_context(contextlib.closing(made_by))
            return stack.enter_context(contextlib.closing(one)), cases(made_by)

        yield start


def checked(one: KernelProcess, cases: Cases, calls: int = 5, seed: int = 1) -> CrossCheck:
    """Audit turns on fresh cases."""
    fresh = (cases.another(n) for n in itertools.count(1000))
    return cross_check(one, cases, {"n": 4}, fresh, calls, random.Random(seed))


# --- what comes of it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "form"), [("return x * 2 + y", "function"), ("y.copy_(x * n)", "setup")])
def test_a_right_candidate_has_walls(start: Start, body: str, form: str) -> None:
    one, cases = start(body, form)
    found = checked(one, cases)
    assert (found.calls, len(found.walls_us), len(found.empty_us), found.why) == (5, SAMPLES, SAMPLES, "")
    assert min(*found.walls_us, *found.empty_us) > 0
    assert cases.found.trials == []


def test_the_walls_are_those_of_all_calls(start: Start) -> None:
    """A call that sleeps for 20 ms, four of them: only the candidate's side takes so long."""
    one, cases = start("import time\ntime.sleep(0.02)\nreturn x * 2 + y")
    found = checked(one, cases, calls=4)
    assert min(found.walls_us) >= 80_000
    assert min(found.empty_us) < 60_000


def test_each_call_has_inputs_of_its_own_and_each_turn_others(start: Start) -> None:
    body = "calls.append(x.clone())\nassert all(not torch.equal(x, c) for c in calls[:-1])\nreturn x * 2 + y"
    one, cases = start(body)
    checked(one, cases, calls=6)


def test_there_are_as_many_calls_as_were_asked_for(start: Start) -> None:
    one, cases = start("calls.append(1)\nassert len(calls) <= 21\nreturn x * 2 + y")
    checked(one, cases, calls=7)
    with pytest.raises(CandidateError):
        checked(one, cases, calls=2)


@pytest.mark.parametrize("form", ["function", "setup"])
def test_blank_results_hold_no_right_numbers(start: Start, form: str) -> None:
    """What is left over from an earlier call, or from the reference, would pass: nothing written is wrong."""
    one, cases = start("return None" if form == "function" else "pass", form)
    with pytest.raises(WrongResultError, match="of one call of many"):
        checked(one, cases)


# --- wrong results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("return x * 2.01 + y", "function"),
        ("return (x * 2 + y)[:, :2]", "function"),
        ("return (x * 2 + y).double()", "function"),
        ("calls.append(x * 2 + y)\nreturn calls[0]", "function"),
        ("y[:4] = (x * n)[:4]", "setup"),
        ("y.copy_(x * n + 0.5)", "setup"),
    ],
)
def test_a_wrong_result_of_the_known_call_is_caught(start: Start, body: str, form: str) -> None:
    one, cases = start(body, form)
    with pytest.raises(WrongResultError, match="of one call of many"):
        checked(one, cases, calls=4)
    (trial,) = cases.found.trials
    assert (trial.passed, trial.distribution, trial.dims) == (False, "given, one call of many", {"n": 4})
    assert trial.output == ("result" if form == "function" else "y")
    assert trial.detail


def test_nobody_knows_which_calls_are_looked_at(start: Start) -> None:
    """Wrong in one of sixteen calls, always the same one: found in half of the runs, of which each looks at twelve."""
    caught = 0
    for seed in range(8):
        one, cases = start("calls.append(1)\nreturn x * 2 + y + (len(calls) % 16 == 1)")
        try:
            checked(one, cases, calls=16, seed=seed)
        except WrongResultError:
            caught += 1
        one.close()
    assert 2 <= caught < 8


def test_a_large_problem_has_one_known_call(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, cases = start("return x * 2 + y")
    near, made = cases.near, list[Case]()
    monkeypatch.setattr(cases, "near", lambda case: made.append(case) or near(case))
    checked(one, cases, calls=6)
    assert len(made) == JUDGED * SAMPLES
    monkeypatch.setattr(module, "LARGE_ROW", 1)
    checked(one, cases, calls=6)
    assert len(made) == (JUDGED + 1) * SAMPLES


def test_results_are_taken_before_the_next_call(start: Start) -> None:
    """The last call computes all results of the row, as one batch: too late."""
    one, cases = start("""calls.append((x, y, torch.zeros(4, 3)))
if len(calls) % 5 == 0:
    for a, b, made in calls[-5:]:
        made.copy_(a * 2 + b)
return calls[-1][2]""")
    with pytest.raises(WrongResultError):
        checked(one, cases)


def test_the_known_place_is_drawn(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, cases = start("return x * 2 + y")
    seen: list[int] = []

    def noted(sets: Any, results: Any, case: Case, cases: Cases, known: dict[int, Case], draw: random.Random) -> None:
        filled(sets, results, case, cases, known, draw)
        given = case.values.tensors[0]
        for number, (x, y) in enumerate(sets):
            assert torch.equal(y, case.values.tensors[1])
            assert not torch.equal(x, given), "no call has the inputs that the others were made from"
            assert torch.allclose(x, given, rtol=2**-6 + 1e-6, atol=0)
            assert number not in known or torch.equal(x, known[number].values.tensors[0])
        assert all(bool(place[0].isnan().all()) for place in results)
        assert len(known) == JUDGED
        seen.append(min(known))

    filled = module.fill_sets
    monkeypatch.setattr(module, "fill_sets", noted)
    for seed in range(3):
        checked(one, cases, calls=8, seed=seed)
    assert len(seen) == 9
    assert len(set(seen)) >= 3


def test_what_the_empty_turn_left_is_taken_away(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes zeros, which a candidate that writes nothing would be given credit for where they are right."""
    one, cases = start("return x * 2 + y")
    seen: list[bool] = []

    lent: list[Any] = []

    def noted_lend(asked: Any, rows: Any, message: dict[str, Any]) -> Any:
        lent[:] = rows[-1].tensors
        return lend(asked, rows, message)

    def noted_wall(asked: Any, calls: int) -> float:
        if asked is one:
            seen.extend(bool(t.isnan().all()) for t in lent)
        return wall(asked, calls)

    lend, wall = module.lend, module.time_calls
    monkeypatch.setattr(module, "lend", noted_lend)
    monkeypatch.setattr(module, "time_calls", noted_wall)
    checked(one, cases, calls=4)
    assert seen == [True] * 4 * SAMPLES


def test_calls_that_come_before_have_walls_of_their_own(start: Start) -> None:
    """Five calls of 40 ms before two: the walls are those of two, and of five."""
    one, cases = start(
        "import time\ntime.sleep(0.04)\ncalls.append(x.clone())\nassert len(calls) <= 21\nreturn x * 2 + y"
    )
    fresh = (cases.another(n) for n in itertools.count(1000))
    found = cross_check(one, cases, {"n": 4}, fresh, 2, random.Random(1), before=5)
    assert (found.calls, len(found.walls_us)) == (2, SAMPLES)
    assert 80_000 <= min(found.walls_us) < 160_000
    assert len(found.before_us) == SAMPLES
    assert min(found.before_us) >= 200_000
    with pytest.raises(CandidateError):  # there were 21
        checked(one, cases, calls=2)


def test_a_wrong_result_of_a_call_that_comes_before_is_caught(start: Start) -> None:
    one, cases = start("calls.append(1)\nreturn x * 2 + y if len(calls) % 8 == 0 else x")
    fresh = (cases.another(n) for n in itertools.count(1000))
    with pytest.raises(WrongResultError, match="of one call of many"):
        cross_check(one, cases, {"n": 4}, fresh, 1, random.Random(1), before=7)


def test_a_wrong_result_of_a_baseline_is_no_trial_of_the_candidates(start: Start) -> None:
    one, cases = start("return x")
    fresh = (cases.another(n) for n in itertools.count(1000))
    with pytest.raises(WrongResultError, match="of one call of many"):
        cross_check(one, cases, {"n": 4}, fresh, 3, random.Random(1), blamed=False)
    assert cases.found.trials == []


def test_what_is_handed_over_is_no_part_of_a_wall(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, cases = start("return x * 2 + y")
    asked, ask = [], one.ask

    def slow(op: str, *words: Any, **named: Any) -> dict[str, Any]:
        asked.append(op)
        if op == "lend":
            time.sleep(0.3)
        return ask(op, *words, **named)

    monkeypatch.setattr(one, "ask", slow)
    assert max(checked(one, cases).walls_us) < 250_000
    assert asked == ["lend", "cross_check"] * SAMPLES


HOOKED = """
if not hasattr(torch, "made"):
    torch.made = {{}}

    def work(x, y):
        time.sleep(0.02)
        return x * 2 + y

    def hooked(self, *words, old=getattr(torch.Tensor, {name!r}), seen=[]):
        found = old(self, *words)
        seen.append(found)
        if len(seen) > 1 and [tuple(t.shape) for t in seen[-2:]] == [(4, 3), (3,)]:
            torch.made[seen[-2].data_ptr()] = work(*seen[-2:])
        return found

    torch.work = work
    setattr(torch.Tensor, {name!r}, hooked)
found = torch.made.pop(x.data_ptr(), None)
return torch.work(x, y) if found is None else found
"""


@pytest.mark.parametrize("name", ["view", "as_strided"])
def test_nothing_is_computed_while_arguments_are_handed_over(start: Start, name: str) -> None:
    """A candidate that replaces what the worker makes arguments with does not run before the turn begins."""
    one, cases = start("import time\n" + HOOKED.format(name=name))
    found = checked(one, cases, calls=4)
    assert min(found.walls_us) >= 80_000


def test_arguments_are_filled_in_after_they_were_handed_over(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else might run in the candidate's process by then finds nothing of use."""
    one, cases = start("return x * 2 + y")
    done: list[str] = []
    lend, wall, filled = module.lend, module.time_calls, module.fill_sets

    def noted(said: str, function: Any) -> Any:
        def called(*words: Any) -> Any:
            done.append(said + ("" if said == "fill" else " of the candidate" * (words[0] is one)))
            return function(*words)

        return called

    monkeypatch.setattr(module, "lend", noted("lend", lend))
    monkeypatch.setattr(module, "time_calls", noted("wall", wall))
    monkeypatch.setattr(module, "fill_sets", noted("fill", filled))
    checked(one, cases)
    assert done == ["lend", "wall", "lend of the candidate", "fill", "wall of the candidate"] * SAMPLES


# --- memory -----------------------------------------------------------------------------------------------------------


def mapped(of: KernelProcess | ReferenceProcess) -> int:
    """Buffers that a process has mapped."""
    of.ask("map", 30)  # it lets go of what it shall forget before it answers
    return Path(f"/proc/{of.worker.pid}/maps").read_text().count("memfd")


@pytest.mark.parametrize("body", ["return x * 2 + y", "return x"])
def test_memory_is_forgotten_on_both_sides(start: Start, body: str) -> None:
    """Also where the result was wrong."""
    one, cases = start(body)
    cases.another(999)
    before = mapped(one), mapped(cases.reference)
    lent = one.worker.lent_bytes, cases.reference.worker.lent_bytes
    with contextlib.suppress(WrongResultError):
        checked(one, cases, calls=12)
    assert (one.worker.lent_bytes, cases.reference.worker.lent_bytes) == lent
    assert (mapped(one), mapped(cases.reference)) == before


def test_memory_of_this_process_is_closed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, cases = start("return x * 2 + y")
    made = []

    def noted(spec: dict[str, Any], count: int, device: torch.device, draw: random.Random) -> Any:
        made.append(shared_row(spec, count, device, draw))
        return made[-1]

    monkeypatch.setattr(module, "shared_row", noted)
    checked(one, cases, calls=3)
    assert len(made) == 2 + 1
    assert all(row.buffer.descriptor == -1 for row in made)


def test_many_calls_need_one_message(start: Start) -> None:
    """A row of them is one buffer, however many there are."""
    one, cases = start("return x * 2 + y")
    assert checked(one, cases, calls=1024).calls == 1024


# --- a candidate that fails -------------------------------------------------------------------------------------------


def test_what_it_raises_goes_on(start: Start) -> None:
    one, cases = start("raise ValueError('only now')")
    with pytest.raises(CandidateError, match="only now"):
        checked(one, cases)
    assert mapped(cases.reference) < 20


def test_a_candidate_that_ends_is_lost_and_the_reference_is_not(start: Start) -> None:
    one, cases = start("os._exit(0)")
    with pytest.raises(WorkerLostError):
        checked(one, cases)
    assert cases.another(2000).native
