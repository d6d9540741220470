"""Verdict and improvement, in their order, and what a receipt does not say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from evaluator.conclusion import improvement, not_checked, verdict
from evaluator.receipt.findings import Findings, SanitizerRun, TaskCheck
from evaluator.receipt.plan import SeedOrigin
from evaluator.receipt.timing import Timing
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.request import Request
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.scan.hazards import Hazard, Severity
from evaluator.source.forms import Backend, Form, Recognised
from evaluator.source.source_file import SourceFile
from evaluator.worker.process.isolation import Layer
from tests.evaluator import receipts
from tests.evaluator.receipts import baseline, trial, workload_timing

REJECTED = Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose was replaced")
NOTED = Hazard(id="fixed_inputs", severity=Severity.NOTE, evidence="one set")
REFUSED = TaskCheck(refused=True, reasons=("zeros pass", "the input passes"))
LOST = WorkerLostError("crashed", "it was ended by SIGSEGV")
FAILED = SanitizerRun(tool="racecheck", status="failed", detail="a hazard at line 3")
PASSED = SanitizerRun(tool="memcheck", status="passed")


def concluded(
    found: Findings | None = None,
    task: TaskCheck | None = None,
    sanitizers: tuple[SanitizerRun, ...] = (),
    lost: WorkerLostError | None = None,
    unplaced: str = "",
) -> tuple[Verdict, str]:
    """The verdict on what was right in two calls, unless `found` says otherwise."""
    findings = Findings(trials=[trial(), trial(output="second"), trial(index=1)]) if found is None else found
    return verdict(findings, task, sanitizers, lost, unplaced)


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_what_is_right_is_accepted() -> None:
    found = Findings(trials=[trial(), trial(output="second"), trial(index=1)], hazards=[NOTED])
    said = concluded(found, TaskCheck(refused=False), (PASSED, SanitizerRun(tool="initcheck", status="not run")))
    assert said == (Verdict.ACCEPTED, "right in all 2 calls, and nothing speaks against it")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"at_this_size_only": True}, "at this size only"),
        ({"only_with": ["mask"]}, "with this value of mask only"),
        ({"hazards": [NOTED.model_copy(update={"id": "weights_cached"})]}, "with its first weights only"),
        ({"at_this_size_only": True, "only_with": ["n", "p"]}, "at this size only and with this value of n and p only"),
    ],
)
def test_for_what_alone_it_is_right_stands_in_the_first_line(changes: dict[str, Any], where: str) -> None:
    found = Findings(trials=[trial()], **changes)
    assert concluded(found)[1] == f"right in all 1 calls {where}, and nothing speaks against it"


@pytest.mark.parametrize(("line", "where"), [(0, ""), (12, " (line 12)")])
def test_a_hazard_that_rejects(line: int, where: str) -> None:
    hazard = REJECTED.model_copy(update={"line": line})
    found = Findings(trials=[trial()], hazards=[NOTED, hazard, REJECTED.model_copy(update={"id": "threads_left"})])
    assert concluded(found) == (Verdict.CHEATING, f"patched: torch.allclose was replaced{where}")


def test_a_task_that_was_refused() -> None:
    said = concluded(task=REFUSED)
    assert said == (Verdict.TASK_REFUSED, "the problem is passed without solving it: zeros pass; the input passes")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("timeout", Verdict.TIMEOUT), ("crashed", Verdict.CRASHED), ("memory", Verdict.CRASHED)],
)
def test_a_process_that_ended(kind: Any, expected: Verdict) -> None:
    assert concluded(lost=WorkerLostError(kind, "its end")) == (expected, "its end")


@pytest.mark.parametrize(
    ("stage", "expected"), [("compile", Verdict.COMPILE_ERROR), ("load", Verdict.CRASHED), ("call", Verdict.CRASHED)]
)
def test_a_failure(stage: str, expected: Verdict) -> None:
    assert concluded(Findings(failure=(stage, "its words"))) == (expected, "its words")


def test_weights_without_a_place() -> None:
    assert concluded(unplaced="there is no place for fc.weight") == (
        Verdict.INCORRECT,
        "there is no place for fc.weight",
    )


@pytest.mark.parametrize(
    ("detail", "said"),
    [("3 elements were never written", "3 elements were never written"), ("", "2.5 where 0.25 is right")],
)
def test_the_first_trial_that_failed_is_told(detail: str, said: str) -> None:
    wrong = trial(index=1, passed=False, output="y", distribution="small", detail=detail, got=2.5, expected=0.25)
    found = Findings(trials=[trial(), wrong, trial(index=2, passed=False, detail="another")])
    assert concluded(found) == (Verdict.INCORRECT, f"y on small inputs: {said}")


def test_a_sanitizer_that_failed() -> None:
    assert concluded(sanitizers=(PASSED, FAILED)) == (Verdict.INCORRECT, "racecheck: a hazard at line 3")


def test_what_the_interpreter_cannot_run_is_not_supported_unless_it_was_wrong_before() -> None:
    found = Findings(trials=[trial()], failure=("unsupported", "no assembly"))
    assert concluded(found) == (Verdict.NOT_SUPPORTED_HERE, "no assembly")
    found.trials.append(trial(passed=False, detail="wrong"))
    assert concluded(found)[0] is Verdict.INCORRECT
    found.hazards.append(REJECTED)
    assert concluded(found)[0] is Verdict.CHEATING


def test_the_order_of_verdicts() -> None:
    """Everything at once, and one thing after the other taken away."""
    found = Findings(trials=[trial(passed=False, detail="wrong")], hazards=[REJECTED], failure=("compile", "no"))
    state: dict[str, Any] = {
        "found": found, "task": REFUSED, "lost": LOST, "unplaced": "no place", "sanitizers": (FAILED,),
    }  # fmt: skip
    seen = []
    for change in ("hazards", "task", "lost", "failure", "unplaced", "trials", "sanitizers", ""):
        seen.append(concluded(**state))
        if change in ("hazards", "trials"):
            setattr(found, change, [] if change == "hazards" else [trial()])
        elif change == "failure":
            found.failure = None
        elif change:
            state[change] = () if change == "sanitizers" else "" if change == "unplaced" else None
    assert [one.value for one, _ in seen] == [
        "cheating", "task_refused", "crashed", "compile_error", "incorrect", "incorrect", "incorrect", "accepted",
    ]  # fmt: skip
    assert [words for _, words in seen[4:7]] == [
        "no place",
        "result on normal inputs: wrong",
        "racecheck: a hazard at line 3",
    ]


# --- improvements -----------------------------------------------------------------------------------------------------


def timing(*found: Improvement, median: float = 1.3125, **changes: Any) -> Timing:
    """One workload for each."""
    every = [
        workload_timing(dims={"n": n}, improvement=one, baselines={"eager": baseline(median=median)})
        for n, one in enumerate(found)
    ]
    return receipts.timing(*every, **changes)


F, S, U, N = Improvement.FASTER, Improvement.SAME, Improvement.UNSTABLE, Improvement.SLOWER


def test_without_times_nothing_was_timed() -> None:
    assert improvement(Verdict.ACCEPTED, None) is Improvement.NOT_TIMED
    assert improvement(Verdict.INCORRECT, None) is Improvement.NOT_TIMED


@pytest.mark.parametrize("found", [one for one in Verdict if one is not Verdict.ACCEPTED])
def test_what_is_not_accepted_is_not_faster(found: Verdict) -> None:
    assert improvement(found, timing(F)) is U


@pytest.mark.parametrize(
    ("each", "said"), [((F, F), F), ((F, S), F), ((S, S), S), ((F, N), N), ((F, U), U), ((N, U), N), ((F,), F)]
)
def test_over_all_workloads(each: tuple[Improvement, ...], said: Improvement) -> None:
    assert improvement(Verdict.ACCEPTED, timing(*each)) is said


def test_faster_on_one_and_not_on_average_is_the_same() -> None:
    """The interval of the mean reaches down to 1."""
    reaches = receipts.ratio(1.3125, ci_low=1.0)
    assert improvement(Verdict.ACCEPTED, timing(F, S, ratio=reaches)) is S
    assert improvement(Verdict.ACCEPTED, timing(F, S, ratio=receipts.ratio(1.3125, ci_low=1.001))) is F
    assert improvement(Verdict.ACCEPTED, timing(N, S, ratio=reaches)) is N


@pytest.mark.parametrize(
    ("each", "said"),
    [((F,), Improvement.NOT_COMPARED), ((N,), Improvement.NOT_COMPARED), ((F, U), U),
     ((Improvement.NOT_COMPARED,), Improvement.NOT_COMPARED)],
)  # fmt: skip
def test_without_a_ratio_nothing_is_compared(each: tuple[Improvement, ...], said: Improvement) -> None:
    assert improvement(Verdict.ACCEPTED, timing(*each, ratio=None, against="")) is said


# --- what is not said -------------------------------------------------------------------------------------------------

ALONE = receipts.timing(workload_timing(baselines={}, against=""))


@dataclass
class Isolated:
    """A worker with layers of isolation."""

    layers: list[Layer] = field(default_factory=list)


def said(
    times: Timing | str = "",
    workloads: int = 2,
    origin: SeedOrigin = "secret",
    workers: tuple[Isolated, ...] = (),
    sanitizers: tuple[SanitizerRun, ...] = (PASSED,),
    oracle: Any = "reference",
    backend: Backend = Backend.CUDA,
    **asked: Any,
) -> list[str]:
    """The sentences, for a request of which everything was checked but what is given."""
    fields: dict[str, Any] = {"device": "cuda:0", "vary": ("n",)}
    request = Request(candidate=SourceFile(name="kernel.py", text="x"), **{**fields, **asked})
    recognised = Recognised(
        form=Form.FUNCTION, backend=backend, entry="run", oracle=oracle, reference_entry="reference", setup_from="none"
    )
    dims = [{"n": n} for n in range(workloads)]
    return list(not_checked(request, recognised, origin, dims, times, sanitizers, cast(list[Worker], workers)))


def test_where_everything_was_looked_at_there_is_nothing_to_say() -> None:
    assert said(receipts.timing()) == []


def test_the_cpu_times_nothing() -> None:
    assert said(device="cpu") == ["speed: nothing is timed on the CPU"]
    assert said(device="cpu", sanitizers=(), backend=Backend.TRITON) == [
        "speed: nothing is timed on the CPU",
        "the compiled kernel: Triton's interpreter ran it, with neither its compiler nor a GPU",
    ]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("", "speed: what is not accepted is not timed"),
        ("there is too little memory", "speed: there is too little memory"),
        (ALONE, "speed against anything: there is no baseline with times"),
    ],
)
def test_why_there_is_no_speed(times: Timing | str, words: str) -> None:
    assert said(times) == [words]


def test_a_signal_compares_nothing() -> None:
    times = receipts.timing(workload_timing(baselines={}, against=""), plan="signal")
    words = "speed against anything: a signal times the kernel alone, in one process, and accepts nothing"
    assert said(times, plan="signal") == [words]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sanitizers": ()}, "races and memory errors by compute-sanitizer: --sanitize asks for them"),
        ({"vary": (), "workloads": 1}, "other sizes: --vary and --workloads ask for them"),
        ({"oracle": "original kernel"}, "the kernel's meaning: there is no reference, so it is its own oracle"),
        ({"origin": "given"}, "secrecy of the inputs: their seed was given"),
        ({"origin": "replayed"}, "secrecy of the inputs: their seed was given"),
    ],
)
def test_what_else_was_not_checked(changes: dict[str, Any], words: str) -> None:
    assert said(receipts.timing(), **changes) == [words]


@pytest.mark.parametrize("changes", [{"vary": ("n",), "workloads": 1}, {"vary": (), "workloads": 2}])
def test_other_sizes_were_tried(changes: dict[str, Any]) -> None:
    assert said(receipts.timing(), **changes) == []


def test_layers_that_are_not_in_force() -> None:
    layers = [Layer("landlock", False, "no"), Layer("network", True, ""), Layer("user", False, "no")]
    assert said(receipts.timing(), workers=(Isolated(layers), Isolated([Layer("late", False, "")]))) == [
        "isolation: not in force were landlock, user"
    ]
    assert said(receipts.timing(), workers=(Isolated([Layer("network", True, "")]),)) == []
