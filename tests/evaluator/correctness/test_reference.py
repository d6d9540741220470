"""The reference in its worker: its inputs, its results at each precision, and a name for everything that goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.correctness import reference as module
from evaluator.correctness.reference import ReferenceProcess, blamed
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.memory.tensors import DTYPES
from kbs.common.errors import ExitCode, KoptError, UsageError
from tests.evaluator.workers import bits, reference_process, values

Start = Callable[..., ReferenceProcess]
X = torch.tensor([1.0, -2.0, 3.0])
INPUTS = "def get_inputs():\n    return {}\n"


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts oracles and ends them."""
    with contextlib.ExitStack() as stack:

        def start(text: str, **words: Any) -> ReferenceProcess:
            return stack.enter_context(contextlib.closing(reference_process(server, "import torch\n" + text, **words)))

        yield start


def reference(start: Start, body: str, arguments: str = "x", **words: Any) -> ReferenceProcess:
    """A function `reference` with that body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return start(f"def reference({arguments}):\n{lines}", **words)


# --- inputs -----------------------------------------------------------------------------------------------------------


def inputs(start: Start, made: str, **words: Any) -> Any:
    """The inputs that a `get_inputs` with this result gives for seeds 1, 1 and 2."""
    files = {"in.py": ("import torch\n" + INPUTS.format(made)).encode()}
    made_by = start("def reference(*x): pass\n", files=files, inputs="in.py", **words)
    return [made_by.inputs(seed)[0] for seed in (1, 1, 2)]


def test_inputs_are_those_of_their_seed(start: Start) -> None:
    one, again, other = inputs(start, "[torch.randn(3, 4), {'n': 3, 'deep': (torch.rand(2), 'text')}]")
    assert one.tree == {
        "list": [
            {"tensor": 0},
            {"dict": [["n", {"scalar": 3}], ["deep", {"tuple": [{"tensor": 1}, {"scalar": "text"}]}]]},
        ]
    }
    assert [spec["name"] for spec in one.specs] == ["0", "1.deep[0]"]
    assert bits(one.tensors) == bits(again.tensors)
    assert all(not torch.equal(a, b) for a, b in zip(one.tensors, other.tensors, strict=True))


def test_every_type_and_layout_arrives(start: Start) -> None:
    made = ", ".join(f"torch.randint(0, 2, (2, 3)).to(torch.{name})" for name in sorted(DTYPES))
    (one, _, _) = inputs(start, f"[{made}, torch.zeros(0, 3), torch.tensor(2.5), torch.arange(6.).view(2, 3).t()]")
    assert [t.dtype for t in one.tensors[:-3]] == [DTYPES[name] for name in sorted(DTYPES)]
    assert [t.tolist() for t in one.tensors[-2:]] == [2.5, [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]]
    assert one.tensors[-3].shape == (0, 3)


def test_setup_says_which_are_outputs(start: Start) -> None:
    text = (
        "def setup(n):\n    return {'inputs': {'x': torch.ones(n), 'y': torch.empty(n)}, 'outputs': ['y']}\n"
        "def reference(x, y):\n    y.copy_(x * 2)\n"
    )
    made_by = start(text, form="setup", inputs="reference.py", dims={"n": 4})
    found, outputs = made_by.inputs(1)
    assert outputs == ["y"]
    result = made_by.run(found, "native", [1], mutations=True)
    assert (result.tensors[0].tolist(), result.mutated) == ([2.0] * 4, [1])


def test_memory_is_used_again_from_run_to_run(start: Start) -> None:
    """A worker keeps what it has mapped: memory of its own for each of thirty calls would add up to gigabytes."""
    made_by = reference(start, "return x * 2, x + 1")
    for n in range(12):
        result = made_by.run(values(X + n), "native")
        assert torch.equal(result.tensors[0], (X + n) * 2)
    assert Path(f"/proc/{made_by.worker.pid}/maps").read_text().count("memfd:kopt") == 3


def test_results_stay_when_the_memory_is_used_again(start: Start) -> None:
    made_by = reference(start, "return x * 2")
    first = made_by.run(values(X), "native").tensors[0]
    made_by.run(values(-X), "native")
    assert torch.equal(first, X * 2)
    assert made_by.run(values(torch.ones(5)), "native").tensors[0].tolist() == [2.0] * 5


def mapped(made_by: ReferenceProcess) -> int:
    """Buffers that the oracle's process has mapped."""
    return Path(f"/proc/{made_by.worker.pid}/maps").read_text().count("memfd:kopt")


@pytest.mark.parametrize("keeps", [False, True])
def test_large_memory_is_given_back_on_both_sides(start: Start, monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    made_by = reference(start, "return x * 2, x + 1")
    monkeypatch.setattr(module, "LARGE", 3 * 8192)  # two buffers of three pages each are less
    made_by.run(values(X), "native")
    assert (mapped(made_by), len(made_by.lent["resultsnative"])) == (3, 2)
    monkeypatch.setattr(module, "LARGE", 8192)
    made_by.keeps = keeps
    lent = made_by.lent["resultsnative"]
    for n in range(3):
        found = made_by.run(values(X + n), "native")
        assert [t.tolist() for t in found.tensors] == [((X + n) * 2).tolist(), (X + n + 1).tolist()]
        assert mapped(made_by) == (3 if keeps else 1)
        assert [shared.buffer.descriptor == -1 for shared in lent] == [not keeps] * 2
    assert ("resultsnative" in made_by.lent) is keeps
    assert "inputs" in made_by.lent  # what is lent for the arguments stays


RUNS_OUT = """
import torch
tries = 0
def reference(x):
    global tries
    tries += 1
    if tries in FAILS:
        raise ERROR
    return x * tries
"""


def test_a_reference_that_ran_out_of_memory_is_run_once_more(start: Start) -> None:
    error = "torch.OutOfMemoryError('CUDA out of memory.')"
    made_by = start(RUNS_OUT.replace("ERROR", error).replace("FAILS", "(1, 3, 4)"))
    assert made_by.run(values(X), "native").tensors[0].tolist() == (X * 2).tolist()
    with pytest.raises(KoptError) as raised:
        made_by.run(values(X), "native")
    assert raised.value.code == "out_of_memory"
    assert made_by.run(values(X), "native").tensors[0].tolist() == (X * 5).tolist()


def test_any_other_failure_is_told_at_once(start: Start) -> None:
    made_by = start(RUNS_OUT.replace("ERROR", "RuntimeError('of another kind')").replace("FAILS", "(1,)"))
    with pytest.raises(UsageError, match="of another kind"):
        made_by.run(values(X), "native")
    assert made_by.run(values(X), "native").tensors[0].tolist() == (X * 2).tolist()


def test_results_that_could_not_be_copied_are_fetched_once_more(start: Start) -> None:
    """Nothing of them is lost by the first try."""
    text = (
        "import torch\ncopy, tries = torch.Tensor.copy_, []\n"
        "def copy_(self, *words):\n"
        "    tries.append(1)\n"
        "    if len(tries) == 2: raise torch.OutOfMemoryError('CUDA out of memory.')\n"
        "    return copy(self, *words)\n"
        "torch.Tensor.copy_ = copy_\n"
        "def reference(x): return x * 2, x + 1\n"
    )
    found = start(text).run(values(X), "native")
    assert [t.tolist() for t in found.tensors] == [(X * 2).tolist(), (X + 1).tolist()]


# --- runs -------------------------------------------------------------------------------------------------------------


def test_precisions(start: Start) -> None:
    made_by = reference(start, "return x / 3, n + 1", "x, n")
    arguments = values(X, torch.tensor([1, 2]))
    for precision, dtype in (("double", torch.float64), ("native", torch.float32), ("lower", torch.bfloat16)):
        result = made_by.run(arguments, precision)
        assert [t.dtype for t in result.tensors] == [dtype, torch.int64]
        assert torch.equal(result.tensors[0], X.to(dtype) / 3)


def test_complex_numbers_are_doubled_and_not_lowered(start: Start) -> None:
    made_by = reference(start, "return x * 2")
    z = torch.tensor([1 + 2j])
    found = {p: made_by.run(values(z), p).tensors[0].dtype for p in ("double", "native", "lower")}
    assert found == {"double": torch.complex128, "native": torch.complex64, "lower": torch.complex64}


def test_a_double_run_leaves_the_inputs_alone(start: Start) -> None:
    made_by = reference(start, "x.add_(1)\nreturn x * 1")
    arguments = values(X.clone())
    for precision in ("double", "native", "native"):
        assert torch.equal(made_by.run(arguments, precision).tensors[0].float(), X + 1)
    assert torch.equal(arguments.tensors[0], X)


@pytest.mark.parametrize(
    "x",
    [X, torch.tensor(1.5), torch.tensor(3), torch.ones(0), torch.ones(1, 1), torch.tensor([1j, 2])],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)
def test_arguments_that_are_written_are_told(start: Start, x: torch.Tensor) -> None:
    """Of no dimensions too, and NaN that stays NaN is no change."""
    made_by = reference(start, "y.fill_(3)\nreturn x + 0", "x, y, z")
    result = made_by.run(values(x, torch.zeros(2), torch.tensor([float("nan")])), "native", mutations=True)
    assert result.mutated == [1]
    assert bits(result.tensors) == bits([x + 0])


def test_results_and_what_they_share(start: Start) -> None:
    made_by = reference(start, "return {'a': x[1:], 'b': [y, (x + y, 2.5, True)]}", "x, y")
    result = made_by.run(values(X, X + 1), "native", [0])
    assert [spec["alias"] for spec in result.specs] == [0, 1, None, None, None, None]
    assert [t.tolist() for t in result.tensors[2:]] == [(2 * X + 1).tolist(), 2.5, True, X.tolist()]


def test_a_model_and_its_weights(start: Start) -> None:
    text = (
        "class Model(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.norm = torch.nn.BatchNorm1d(n)\n    def forward(self, x):\n        return self.norm(x)\n"
        "def get_init_inputs():\n    return [N]\ndef get_inputs():\n    return [torch.randn(2, N)]\nN = 5\n"
    )
    made_by = start(text, form="kernelbench", entry="", dims={"N": 3})
    init, weights = made_by.build(1)
    assert init.tree == {"list": [{"scalar": 3}]}
    names = ["norm.weight", "norm.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert [spec["name"] for spec in weights.specs] == names
    assert [t.tolist() for t in weights.tensors] == [[1.0] * 3, [0.0] * 3, [0.0] * 3, [1.0] * 3, 0]
    made_by.set_weights(weights.with_tensors([weights.tensors[0] * 2, weights.tensors[1] + 1, *weights.tensors[2:]]))
    x = torch.randn(4, 3)
    expected = torch.nn.functional.batch_norm(x, None, None, torch.full((3,), 2.0), torch.ones(3), training=True)
    torch.testing.assert_close(made_by.run(values(x), "native").tensors[0], expected)
    assert made_by.run(values(x), "double").tensors[0].dtype == torch.float64


# --- what goes wrong --------------------------------------------------------------------------------------------------


def failure(work: Callable[[], object]) -> KoptError:
    """The error that some work raises; it has a hint."""
    with pytest.raises(KoptError) as raised:
        work()
    assert raised.value.hint
    assert raised.value.message
    return raised.value


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import nowhere_at_all\n", "missing_import", "nowhere_at_all"),
        ("from torch import nowhere_at_all\n", "missing_import", "nowhere_at_all"),
        ("x = 1 / 0\n", "reference_failed", "ZeroDivisionError"),
        ("x = 1\n", "reference_failed", "has no reference"),
        ("exit(0)\n", "reference_failed", "SystemExit"),
        ("import os\nos._exit(0)\n", "reference_failed", "did not come to an end"),
    ],
)
def test_a_reference_that_does_not_load(start: Start, text: str, code: str, said: str) -> None:
    error = failure(lambda: start(text))
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return x @ x.t().relu(1)", "reference_failed", "TypeError"),
        ("raise ValueError('my own words')", "reference_failed", "my own words"),
        ("return torch.ones(1 << 45)", "out_of_memory", "memory"),
        ("raise MemoryError", "out_of_memory", "memory"),
        ("raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 20 GiB')", "out_of_memory", "20 GiB"),
        ("return object()", "value_unsupported", "object"),
        ("return {1: x}", "value_unsupported", "key 1"),
        ("return x.to_sparse()", "value_unsupported", "layout torch.sparse_coo"),
        ("return x.to(torch.float8_e4m3fnuz)", "value_unsupported", "float8_e4m3fnuz"),
        ("import os\nos.abort()", "reference_failed", "ended by SIG"),
    ],
)
def test_a_reference_that_does_not_run(start: Start, body: str, code: str, said: str) -> None:
    error = failure(lambda: reference(start, body).run(values(X), "native"))
    assert error.code == code
    assert said in error.message


def test_a_reference_without_end(start: Start) -> None:
    made_by = reference(start, "while True: pass")
    made_by.call_seconds = 0.3
    error = failure(lambda: made_by.run(values(X), "native"))
    assert (error.code, "0.3 s" in error.message, "--timeout" in error.hint) == ("reference_failed", True, True)


@pytest.mark.parametrize(
    ("made", "code", "said"),
    [
        ("[torch.ones(-1)]", "dims_do_not_fit", "cannot be made"),
        ("torch.ones(2, 2)", "dims_do_not_fit", "must return a list, not a Tensor"),
        ("[object()]", "value_unsupported", "object"),
        ("[torch.eye(2).to_sparse()]", "value_unsupported", "layout torch.sparse_coo"),
        ("[torch.zeros(0)] * 2000", "value_unsupported", "more than 1000 tensors"),
        ("[torch.ones(1 << 45)]", "out_of_memory", "memory"),
        ("[list(range(100_000))]", "value_unsupported", "more to tell than a message holds"),
        ("[10 ** 10_000]", "value_unsupported", "more to tell than a message holds"),
    ],
)
def test_inputs_that_cannot_be_made(start: Start, made: str, code: str, said: str) -> None:
    error = failure(lambda: inputs(start, made))
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("dims", "setup", "said"),
    [
        ({"q": 3}, "def setup(n=1): return {'inputs': {'x': n}}", "unexpected keyword argument 'q'"),
        ({}, "def setup(n): return {'inputs': {'x': n}}", "missing 1 required positional argument: 'n'"),
        ({"n": 3}, "def setup(n): return torch.ones(2, 3) @ torch.ones(n + 1, 2)", "shapes cannot be multiplied"),
        ({}, "def setup(): return 3", "setup must return"),
        ({}, "def setup(): return {'inputs': {}, 'outputs': ['y']}", "not among its inputs"),
    ],
)
def test_dims_and_setups_that_do_not_fit(start: Start, dims: dict[str, int], setup: str, said: str) -> None:
    text = f"{setup}\ndef reference(**kw): pass\n"
    error = failure(lambda: start(text, form="setup", inputs="reference.py", dims=dims).inputs(1))
    assert error.code == "dims_do_not_fit"
    assert said in error.message
    assert "--dims" in error.hint


@pytest.mark.parametrize("content", [b"", b"[[3", b'[["Q"]]'])
def test_a_damaged_file_of_inputs(start: Start, content: bytes) -> None:
    made_by = reference(start, "return x", files={"in.json": content}, inputs="in.json")
    error = failure(lambda: made_by.inputs(1))
    assert error.code == "inputs_invalid"


def test_wrong_init_inputs(start: Start) -> None:
    text = "class Model(torch.nn.Module):\n    def __init__(self, a, b): super().__init__()\n"
    more = "def get_init_inputs():\n    return [1]\n"
    error = failure(lambda: start(text + more, form="kernelbench", entry="").build(1))
    assert (error.code, "'b'" in error.message) == ("reference_failed", True)
    wrong = "def get_init_inputs(n):\n    return [n]\n"
    error = failure(lambda: start(text + wrong, form="kernelbench", entry="").build(1))
    assert error.code == "dims_do_not_fit"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to "
         "allocate 70368744177664 bytes. Error code 12 (Cannot allocate memory)", "out_of_memory"),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", "out_of_memory"),
        ("MemoryError: ", "out_of_memory"),
        ("OSError: [Errno 12] Cannot allocate memory", "out_of_memory"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "reference_failed"),
    ],
)  # fmt: skip
def test_words_of_full_memory(said: str, code: str) -> None:
    kind, _, message = said.partition(": ")
    error = blamed("reference", {"type": kind, "message": message, "traceback": "a\n b\n"})
    assert error.code == code
    assert error.exit_code == (ExitCode.FAILURE if code == "out_of_memory" else ExitCode.USAGE)
    assert isinstance(error, UsageError) is (code != "out_of_memory")


def test_closing_ends_the_worker_and_gives_back_its_memory(server: ForkServer) -> None:
    made_by = reference_process(server, "def reference(x): return x\n")
    made_by.run(values(X), "native")
    lent = [shared for tensors in made_by.lent.values() for shared in tensors]
    made_by.close()
    assert all(shared.buffer.descriptor == -1 for shared in lent)
    assert made_by.worker.gone()
    assert not Path(f"/proc/{made_by.worker.pid}").exists()


@pytest.mark.parametrize(("body", "reused"), [("return kept.mul_(0).add_(x)", True), ("return x * 1", False)])
def test_a_reference_that_returns_the_same_memory_twice_is_told(start: Start, body: str, reused: bool) -> None:
    one = start(f"kept = torch.zeros(3)\ndef reference(x):\n    {body}\n")
    runs = [one.run(values(X), "native", mutations=mutations) for mutations in (True, False)]
    assert [run.reused for run in runs] == [False, reused]
