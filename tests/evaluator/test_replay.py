"""What a replay finds that the original did not say."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.environment import WorkerEnvironment
from evaluator.findings import TaskCheck
from evaluator.hazards import Hazard, Severity
from evaluator.plan import SeedSchedule
from evaluator.replay import differences
from evaluator.verdict import Improvement, Verdict
from tests.evaluator.receipts import environment, plan, problem, receipt, trial

ORIGINAL = receipt()
TWO = (trial(), trial(index=1))
NOTE = ORIGINAL.hazards[0]


def found(**changes: Any) -> list[str]:
    """In what a replay with changes differs."""
    return differences(ORIGINAL, receipt(**changes))


def test_a_replay_that_confirms() -> None:
    assert differences(ORIGINAL, ORIGINAL) == []
    later = plan(created="2026-11-22T00:00:00Z", seed_origin="replayed")
    rows = tuple(
        row.model_copy(update={"seconds": 9.0, "max_ratio": 1.4, "bitwise": False, "index": row.index + 3})
        for row in ORIGINAL.correctness
    )
    assert found(plan=later, created="2026-11-22T00:00:01Z", seconds=9.0, correctness=rows) == []


def test_another_verdict_and_the_trial_that_made_it() -> None:
    again = found(
        verdict=Verdict.INCORRECT, correctness=(trial(passed=False), trial(index=1)), improvement=Improvement.UNSTABLE
    )
    assert again == [
        "result: the verdict was accepted and is incorrect",
        "result: the improvement was not_timed and is unstable",
        "result: output result on normal (n=64), repeat 0 was passed and is failed",
    ]


def test_the_order_of_trials_means_nothing() -> None:
    one, other = trial(), trial(distribution="small", index=1)
    first = receipt(correctness=(one, other))
    again = receipt(correctness=(trial(distribution="small", index=0), trial(index=1)))
    assert differences(first, again) == []


def test_trials_that_are_missing_or_new() -> None:
    assert found(correctness=(trial(),)) == [
        "result: output result on normal (n=64), repeat 0, call 2 of this kind passed, and was not made again"
    ]
    assert found(correctness=(*TWO, trial(index=2, output="second", dims={}))) == [
        "result: output second on normal, repeat 0 is new and passed"
    ]


def test_hazards() -> None:
    cheat = Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose")
    assert found(hazards=()) == ["result: the hazard fixed_inputs was not found again"]
    assert found(hazards=(NOTE, NOTE.model_copy(update={"evidence": "in other words"}))) == []
    assert found(verdict=Verdict.CHEATING, hazards=(NOTE, cheat)) == [
        "result: the verdict was accepted and is cheating",
        "result: the hazard patched is new",
    ]


def test_a_refused_task() -> None:
    check = TaskCheck(refused=True, reasons=("zeros pass",))
    assert found(verdict=Verdict.TASK_REFUSED, task_check=check) == [
        "result: the verdict was accepted and is task_refused"
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"device_name": "NVIDIA H100"}, "device was A processor and is NVIDIA H100"),
        ({"driver": "580"}, "driver was none and is 580"),
        ({"nvcc": "13.0"}, "nvcc was none and is 13.0"),
        ({"kopt": "0.2.0"}, "kopt was 0.1.0 and is 0.2.0"),
        *[
            (
                {"worker": ORIGINAL.environment.worker.model_copy(update={name.lower(): "9"})},
                f"{name} was {was} and is 9",
            )
            for name, was in (("torch", "2.13.0"), ("triton", "3.7.1"), ("python", "3.11.9"), ("CUDA", "none"))
        ],
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_environment_is_told_apart(changes: dict[str, Any], says: str) -> None:
    assert found(environment=environment(**changes)) == [f"environment: {says}"]


def test_what_cannot_change_a_result_is_not_told() -> None:
    worker = WorkerEnvironment(executable="/elsewhere/python3", python="3.11.9", torch="2.13.0", triton="3.7.1")
    assert found(environment=environment(worker=worker, variables={}, isolation=(), memory=1)) == []


def test_another_subject_is_no_replay() -> None:
    schedule = SeedSchedule.given("18")
    assert found(plan=plan(seed_commitment=schedule.commitment), seed=schedule.reveal()) == [
        f"subject: the seed was {ORIGINAL.seed[:16]} and is {schedule.reveal()[:16]}"
    ]
    other = problem(allow_library=False)
    assert found(problem=other) == [f"subject: the problem was {ORIGINAL.problem.hash[:16]} and is {other.hash[:16]}"]
    assert found(plan=plan(name="signal")) == ["subject: the plan's name was verdict and is signal"]
    assert found(plan=plan(device="cuda:1")) == ["subject: the device was cpu and is cuda"]
    assert differences(receipt(plan=plan(device="cuda:0")), receipt(plan=plan(device="cuda:1"))) == []
