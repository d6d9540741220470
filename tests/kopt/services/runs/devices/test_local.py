"""The GPUs of one machine: each has a process, tasks go to whichever is free, and an ended process is started again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from evaluator.sandbox import devices as present
from kbs.common.errors import KoptError, NoGpuError, UsageError
from kopt.services.runs.devices import local
from kopt.services.runs.devices.choice import ALONE, Choice
from kopt.services.runs.devices.local import LocalDevices
from kopt.services.runs.devices.spread import spread
from kopt.services.runs.devices.task import Found, Task, carry_out
from tests.kopt.services.runs.devices import stub


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalDevices]:
    """Two devices whose processes do not measure."""
    monkeypatch.setattr(local, "_WORKER", "tests.kopt.services.runs.devices.stub")
    made = LocalDevices(("cuda:0", "cuda:1"))
    yield made
    made.close()


@pytest.mark.processes
def test_each_task_is_done_once_though_a_process_was_killed(two: LocalDevices, tmp_path: Path) -> None:
    tasks = [stub.task(us=10), stub.task(us=20, kill=tmp_path / "once"), stub.task(us=30), stub.task(unfit=1)]
    found = dict(spread(lambda: two.width, two.submit, tasks))
    assert {place: one.us for place, one in found.items()} == {0: 10.0, 1: 20.0, 2: 30.0, 3: None}
    failure = found[3].failure
    assert failure is not None
    assert failure.error().code == "no_kernel"
    assert (tmp_path / "once").exists()
    with pytest.raises(KoptError, match="ended 2 times") as caught:
        list(spread(lambda: two.width, two.submit, [stub.task(us=1, deadly=1)]))
    assert caught.value.code == "device_lost"


def test_a_task_is_taken_when_a_device_is_free_for_it() -> None:
    taken, waiting = list[float](), list[Future[Found]]()

    def tasks() -> Iterator[Task]:
        for us in (1.0, 2.0, 3.0, 4.0, 5.0):
            taken.append(us)
            yield stub.task(us=us)

    def submit(task: Task) -> Future[Found]:
        waiting.append(Future())
        if len(waiting) > 1:
            waiting[-2].set_result(Found.model_validate_json(stub.answer(task.model_dump_json())))
        if len(taken) == 5:
            waiting[-1].set_result(Found(us=0.0, seconds=0.0))
        return waiting[-1]

    steps = [(place, len(taken)) for place, _ in spread(lambda: 2, submit, tasks())]
    assert [place for place, _ in steps] == [0, 1, 2, 3, 4]
    assert [count for _, count in steps[:3]] == [2, 3, 4], "two are under way, and no third is taken before one is done"


@pytest.mark.slow
@pytest.mark.processes
def test_the_evaluator_carries_out_what_travels_as_text() -> None:
    """Also a file of inputs, which is no text."""
    plain = stub.task(us=1)
    empty = carry_out(
        plain.model_copy(update={"request": plain.request.model_copy(update={"device": "cpu"})}).model_dump_json()
    )
    failure = Found.model_validate_json(empty).failure
    assert failure is not None
    assert failure.kind == "usage", "there is no kernel in it"


@pytest.fixture
def three_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two alike, and another."""
    names = {"cuda:0": "NVIDIA H200", "cuda:1": "NVIDIA H200", "cuda:2": "NVIDIA A100"}
    monkeypatch.setattr(present, "device_name", lambda device: names.get(device, ""))


@pytest.mark.usefixtures("three_gpus")
def test_devices_are_those_that_are_named_and_like_the_runs_own() -> None:
    assert Choice("0,1").local("cuda") == ("cuda:0", "cuda:1")
    assert Choice("0,1").local("cuda:1") == ("cuda:1", "cuda:0"), "the run's own first"
    Choice("0,1").check("cuda:0", "agent")
    ALONE.check("cpu", "agent")


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize(
    ("choice", "device", "proposer", "code"),
    [
        (Choice("all"), "cuda:0", "search", "mixed_hardware"),
        (Choice("0,7"), "cuda:0", "search", "no_gpu"),
        (Choice("two"), "cuda:0", "search", "devices_invalid"),
        (Choice("all"), "cpu", "search", "options_do_not_fit"),
        (Choice("all", "tcp://h:1"), "cuda:0", "search", "options_do_not_fit"),
        (Choice(scheduler="tcp://h:1"), "cuda:0", "agent", "options_do_not_fit"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    choice: Choice, device: str, proposer: str, code: str
) -> None:
    with pytest.raises((UsageError, NoGpuError)) as caught:
        choice.check(device, proposer)
    assert caught.value.code == code
    assert caught.value.hint
