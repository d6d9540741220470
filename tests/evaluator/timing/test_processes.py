"""The processes that run candidate and baselines: started, loaded, given the reference's weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.reference import ReferenceProcess
from evaluator.receipt.findings import Findings
from evaluator.receipt.plan import BaselineChoice, SeedSchedule
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.worker_process import Worker
from evaluator.source.forms import Form, recognise
from evaluator.source.source_file import SourceFile
from evaluator.timing.processes import Starter, UnplacedError, check_parent_baseline
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import UsageError

SEEDS = SeedSchedule.given("contenders")
COUNTS = """
import os, torch
place = os.environ["TRITON_CACHE_DIR"]
os.makedirs(place, exist_ok=True)
earlier = len(os.listdir(place))
open(os.path.join(place, f"of {earlier}"), "w").close()
"""
"""Counts how many processes had these caches before."""
MODEL = """
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        return x * self.weight + earlier
"""
REFERENCE = COUNTS + MODEL + "def get_inputs():\n    return [torch.randn(4)]\ndef get_init_inputs():\n    return [4]\n"
CANDIDATE = COUNTS + MODEL.replace("Model", "ModelNew")


class Field:
    """A request with its reference's side done, and what starts processes for it."""

    def __init__(self, server: ForkServer, candidate: str, reference: str, **words: Any) -> None:
        self.request = Request(
            candidate=SourceFile(name="k.py", text=candidate),
            reference=SourceFile(name="r.py", text=reference),
            memory_limit=3 << 30,
            load_seconds=60,
            **words,
        )
        recognised = recognise(self.request.candidate, self.request.reference, inputs=None, entry=None, backend=None)
        assert recognised.form is Form.KERNELBENCH
        self.starter = Starter(self.request, recognised, server, server, SEEDS)
        files = messages.reference_files(self.request, recognised, {})
        self.reference = ReferenceProcess(
            server.spawn("reference", self.starter.limits, files), torch.device("cpu"), 60, 60
        )
        self.reference.load(messages.reference_message(self.request, recognised, {}))
        self.found = Findings()
        self.cases = Cases(SEEDS, self.reference, self.found, tolerance=None, own_reference=False, first_index=0)
        self.case: Case = self.cases.prepare(kernelbench=True, outputs=lambda named, _: list(named))
        self.started: list[KernelProcess] = [self.reference]  # type: ignore[list-item]  # it is closed like one

    def candidate(self) -> KernelProcess:
        """The candidate, loaded."""
        one = self.starter.spawn_candidate(0)
        self.started.append(one)
        self.starter.load_candidate(one, self.cases, {})
        return one

    def baseline(self, how: str) -> KernelProcess:
        """A baseline, loaded."""
        one = self.starter.start_baseline(how, self.cases, {}, 0)
        self.started.append(one)
        return one

    def result(self, one: KernelProcess) -> torch.Tensor:
        """Of one call on the first case."""
        (found,) = one.call(self.case.values, self.cases.shape).outputs
        return found

    def more(self, one: KernelProcess) -> float:
        """By how much every element of its result is more than the reference's: how many had its caches before."""
        (added,) = set((self.result(one) - self.case.native[0]).round(decimals=3).tolist())
        return float(added)


Make = Callable[..., Field]


@pytest.fixture
def make(server: ForkServer) -> Iterator[Make]:
    """Makes fields and ends their processes."""
    made: list[Field] = []

    def make(candidate: str = CANDIDATE, reference: str = REFERENCE, of: Any = server, **words: Any) -> Field:
        made.append(Field(of, candidate, reference, **words))
        return made[-1]

    yield make
    for field in made:
        for one in field.started:
            one.close()


# --- weights ----------------------------------------------------------------------------------------------------------


def test_candidate_and_baseline_have_the_references_weights(make: Make) -> None:
    field = make()
    (weight,) = field.cases.weights.tensors
    assert not torch.equal(weight, torch.ones(4))  # the parent drew it
    for one in (field.candidate(), field.baseline("eager")):
        assert torch.equal(field.result(one), field.case.native[0])
        assert torch.equal(field.result(one), field.case.values.tensors[0] * weight)
    assert field.starter.names == ["weight"]


def test_weights_go_by_the_candidates_own_names(make: Make) -> None:
    field = make(CANDIDATE.replace("self.weight", "self.gain"))
    assert torch.equal(field.result(field.candidate()), field.case.native[0])
    assert field.starter.names == ["gain"]


def test_a_candidate_without_a_place_for_the_weights(make: Make) -> None:
    field = make(CANDIDATE.replace("self.weight = torch.nn.Parameter(torch.ones(width))", "self.weight = 1.0"))
    with pytest.raises(UnplacedError, match=r"no place for the weights weight \(4,\)"):
        field.candidate()
    assert field.starter.names == []


def test_an_incumbent_is_loaded_like_a_candidate_with_a_compilers_folder_of_its_own(make: Make) -> None:
    theirs = SourceFile(
        name="other.py", text=CANDIDATE.replace("self.weight", "self.gain").replace("ModelNew", "Model")
    )
    field = make(incumbent=theirs)
    ours = field.candidate()
    other = field.baseline("incumbent")
    assert torch.equal(field.result(other), field.case.native[0])
    assert (field.more(ours), field.more(other), field.more(field.baseline("incumbent"))) == (0, 0, 1)
    assert field.starter.names == ["weight"]  # the candidate's own


def test_an_incumbent_without_a_place_for_the_weights_fails_as_a_baseline_does(make: Make) -> None:
    text = CANDIDATE.replace("self.weight = torch.nn.Parameter(torch.ones(width))", "self.weight = 1.0")
    field = make(incumbent=SourceFile(name="other.py", text=text))
    with pytest.raises(CandidateError, match="no place for the weights"):
        field.baseline("incumbent")


SETUP = "def setup(n):\n    return {}\ndef run_kernel(x, y, n):\n    pass\n"
SOLVE = 'extern "C" void solve(const float* x, float* y, int n) { }'


@pytest.mark.parametrize(
    ("incumbent", "code"),
    [(None, "incumbent_missing"), (("k.py", "x = 1\n"), "no_kernel"), (("k.cu", SOLVE), "incumbent_form")],
)
def test_what_is_no_incumbent(incumbent: tuple[str, str] | None, code: str) -> None:
    request = Request(
        candidate=SourceFile(name="k.py", text=SETUP),
        reference=SourceFile(name="r.py", text=SETUP + "def reference(x, y, n):\n    y.copy_(x)\n"),
        incumbent=None if incumbent is None else SourceFile(name=incumbent[0], text=incumbent[1]),
        baselines=(BaselineChoice(name="parent", how="incumbent"),),
    )
    with pytest.raises(UsageError) as raised:
        check_parent_baseline(request, request.recognised())
    assert raised.value.code == code


def test_no_weights_need_no_place(make: Make) -> None:
    reference = REFERENCE.replace("torch.nn.Parameter(torch.ones(width))", "2.0")
    field = make(CANDIDATE.replace("torch.nn.Parameter(torch.ones(width))", "2.0"), reference)
    for one in (field.candidate(), field.baseline("eager")):
        assert torch.equal(field.result(one), field.case.values.tensors[0] * 2)


# --- baselines --------------------------------------------------------------------------------------------------------


def test_a_library_is_called_with_the_inputs_and_has_no_weights(make: Make) -> None:
    field = make()
    one = field.baseline("torch:nn.functional.relu")
    assert torch.equal(field.result(one), field.case.values.tensors[0].relu())


class Recorded:
    """A fork server that remembers whom it started."""

    def __init__(self, server: ForkServer) -> None:
        self.server = server
        self.workers: list[Worker] = []
        self.names: list[str] = []

    def spawn(self, name: str, *words: Any, **more: Any) -> Worker:
        """Start and remember."""
        self.workers.append(self.server.spawn(name, *words, **more))
        self.names.append(name)
        return self.workers[-1]

    def cache_scope(self, name: str) -> Any:
        """The server's."""
        self.names.append(f"cache of {name}")
        return self.server.cache_scope(name)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no_such_library:f", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("torch:no_such", "MissingError: torch has no no_such"),
    ],
)
def test_a_baseline_that_does_not_start_leaves_no_process(make: Make, server: ForkServer, how: str, said: str) -> None:
    recorded = Recorded(server)
    field = make(of=recorded)
    with pytest.raises(CandidateError) as raised:
        field.baseline(how)
    assert (raised.value.stage, str(raised.value)) == ("load", said)
    assert recorded.names[-1] == "baseline"
    assert recorded.workers[-1].gone(10)


def test_baselines_come_from_their_own_server(make: Make, server: ForkServer) -> None:
    field = make()
    candidates, baselines = Recorded(server), Recorded(server)
    field.starter.server, field.starter.baselines = candidates, baselines  # type: ignore[assignment]  # they spawn
    field.candidate()
    field.baseline("eager")
    field.baseline("torch:nn.functional.relu")
    assert candidates.names == ["cache of candidate", "candidate"]
    assert baselines.names == [
        *("cache of eager", "baseline"),
        *("cache of torch:nn.functional.relu", "baseline"),
    ]
    assert [worker.name for worker in field.starter.workers] == ["candidate"]


# --- what processes share ---------------------------------------------------------------------------------------------


def test_caches_are_shared_by_processes_of_one_code_alone(make: Make) -> None:
    field = make()
    started = [field.candidate(), field.baseline("eager"), field.candidate(), field.baseline("eager")]
    assert [field.more(one) for one in started] == [0.0, 0.0, 1.0, 1.0]
    assert field.more(make().candidate()) == 0.0  # of another evaluation


def test_another_candidate_process_knows_nothing_of_the_code_when_it_starts(make: Make) -> None:
    field = make()
    one = field.starter.spawn_candidate(3)
    field.started.append(one)
    with pytest.raises(CandidateError):
        field.result(one)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_what_is_replaced_by_loading_is_held_against_the_candidate(make: Make) -> None:
    field = make(CANDIDATE + "torch.allclose = lambda *a, **k: True\n")
    field.candidate()
    (hazard,) = [h for h in field.found.hazards if h.id == "patched"]
    assert hazard.severity == "reject"
    assert "allclose was replaced" in hazard.evidence


def test_a_candidate_that_does_not_load(make: Make) -> None:
    with pytest.raises(CandidateError) as raised:
        make(CANDIDATE + "1 / 0\n").candidate()
    assert (raised.value.stage, raised.value.error["type"]) == ("load", "ZeroDivisionError")


def test_limits_are_those_of_the_request(make: Make, server: ForkServer) -> None:
    field = make(process_limit=7)
    assert field.starter.limits == Limits(memory=3 << 30, processes=7, file_size=8 << 30, limit_data=True)
    with contextlib.closing(field.candidate()) as one:
        assert one.worker.limits == field.starter.limits


def test_places_are_drawn_for_each_process(make: Make) -> None:
    field = make()
    two = [field.starter.spawn_candidate(n, places=2) for n in range(4)]
    field.started += two
    assert len({one.draw.randrange(1 << 30) for one in two}) == 4
    (single,) = [field.starter.spawn_candidate(1, places=1)]
    field.started.append(single)
    assert (two[0].places, single.places) == (2, 1)
