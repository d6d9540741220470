"""What a replay finds that the original did not say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.receipt.environment import WorkerEnvironment
from evaluator.receipt.findings import TaskCheck
from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.scan.hazards import Hazard, Severity
from evaluator.store.replay import differences
from tests.evaluator.receipts import (
    baseline,
    environment,
    failed_baseline,
    plan,
    problem,
    ratio,
    receipt,
    timed_receipt,
    timing,
    trial,
    workload_timing,
)

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
    again = found(verdict=Verdict.INCORRECT, correctness=(trial(passed=False), trial(index=1)))
    assert again == [
        "result: the verdict was accepted and is incorrect",
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
    new = trial(index=2, output="second", dims={})
    assert found(correctness=(*TWO, new)) == []
    failed = found(verdict=Verdict.INCORRECT, correctness=(*TWO, new.model_copy(update={"passed": False})))
    assert failed[-1] == "result: output second on normal, repeat 0 is new and failed"


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


# --- times ------------------------------------------------------------------------------------------------------------


def measured(*medians: float, improvement: Improvement = Improvement.FASTER, **changes: Any) -> Receipt:
    """A receipt with these ratios to eager, one a workload."""
    workloads = [
        workload_timing(dims={"n": 64 + n}, baselines={"eager": baseline("eager", median, **changes)})
        for n, median in enumerate(medians)
    ]
    return timed_receipt(timing(*workloads), improvement=improvement)


def test_ratios_that_a_replay_confirms() -> None:
    """Intervals of half a per cent to each side, and one per cent between them for the next session."""
    original = measured(1.5)
    for median in (1.5, 1.505, 1.495, 1.52, 1.48):
        assert differences(original, measured(median)) == []
        assert differences(measured(median), original) == []


def test_ratios_that_it_does_not() -> None:
    was, now = "1.500 (1.494 to 1.506)", "1.400 (1.394 to 1.406)"
    assert differences(measured(1.5), measured(1.4)) == [
        f"result: the ratio to eager (n=64) was {was} and is {now}",
    ]
    assert differences(measured(1.4), measured(1.5)) == [
        f"result: the ratio to eager (n=64) was {now} and is {was}",
    ]


def test_noise_keeps_ratios_together() -> None:
    """What one process of the baseline is from another by itself proves nothing."""
    noisy = measured(1.4, ratio=ratio(1.4, noise=0.08))
    assert differences(measured(1.5), noisy) == []
    assert differences(noisy, measured(1.5)) == []


def test_every_workload_and_their_mean_are_compared() -> None:
    again = differences(measured(1.5, 1.2), measured(1.5, 1.3))
    assert [text.partition(" was ")[0] for text in again] == [
        "result: the ratio to eager (n=65)",
        "result: the ratio to eager over all workloads",
    ]


def test_a_baseline_that_is_not_measured_again() -> None:
    lost = workload_timing(baselines={"eager": baseline(), "compile": failed_baseline("compile", "it crashed")})
    assert differences(timed_receipt(), timed_receipt(timing(lost))) == [
        "result: the ratio to compile (n=64) was 1.005 (1.001 to 1.009), and was not measured again"
    ]
    assert differences(timed_receipt(timing(lost)), timed_receipt()) == []


def test_an_improvement_that_changes() -> None:
    assert differences(measured(1.5), measured(1.5, improvement=Improvement.UNSTABLE)) == [
        "result: the improvement was faster and is unstable"
    ]


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_ratios_differ_alike_from_both_sides(one: float, other: float) -> None:
    first, second = (measured(median, improvement=Improvement.UNSTABLE) for median in (one, other))
    assert bool(differences(first, second)) == bool(differences(second, first))
    far = max(one, other) * 0.99 > min(one, other) * 1.02
    near = max(one, other) * 0.996 <= min(one, other) * 1.004
    assert not far or differences(first, second)
    assert not near or not differences(first, second)
