"""A candidate's call, judged from memory: what it wrote, what it left, and what it may not touch."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.candidate import NAN, CandidateError, KernelProcess, fill
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.worker_process import WorkerLostError
from evaluator.worker.memory.tensors import DTYPES
from evaluator.worker.memory.values import flatten
from tests.evaluator.workers import bits, kernel, shaped, specs, values

Start = Callable[..., KernelProcess]
LOCAL = "candidate.run.<locals>.Tensor"
X = torch.tensor([1.0, -2.0, 3.0, 4.0])


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts candidates and ends them."""
    with contextlib.ExitStack() as stack:

        def start(body: str, arguments: str = "x", **words: Any) -> KernelProcess:
            lines = "".join(f"    {line}\n" for line in body.splitlines())
            text = f"import ctypes, os, torch\nkept = []\ndef run({arguments}):\n{lines}"
            return stack.enter_context(contextlib.closing(kernel(server, text, **words)))

        yield start


# --- the fill ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", list(NAN), ids=str)
def test_floats_are_filled_with_a_nan_that_no_arithmetic_makes(dtype: torch.dtype) -> None:
    tensor = torch.zeros(3, 4, dtype=dtype)
    fill(tensor, random.Random(1))
    assert bool(tensor.isnan().all())
    pattern = bits([tensor[:1, :1]])[0]
    assert bits([tensor])[0] == pattern * 12
    zero, infinity = torch.zeros(1, dtype=dtype), torch.full((1,), float("inf"), dtype=dtype)
    made = [zero / 0, infinity - infinity, infinity * 0, (zero - 1).sqrt(), -(zero / 0)]
    assert pattern not in bits(made)


@pytest.mark.parametrize("name", sorted(DTYPES))
@settings(deadline=None, max_examples=10)
@given(shape=st.lists(st.integers(0, 4), max_size=3), seed=st.integers(0, 1000))
def test_every_element_of_every_type_is_filled(name: str, shape: list[int], seed: int) -> None:
    tensor = torch.zeros(shape, dtype=DTYPES[name])
    fill(tensor, random.Random(seed))
    if DTYPES[name] is not torch.bool:
        assert tensor.numel() == 0 or all(any(e) for e in _elements(tensor))
    assert len({tuple(e) for e in _elements(tensor)}) <= 1


def _elements(tensor: torch.Tensor) -> list[list[int]]:
    size = max(1, tensor.element_size())
    flat = bits([tensor])[0]
    return [flat[n : n + size] for n in range(0, len(flat), size)]


@pytest.mark.parametrize("name", ["int64", "int8", "uint32", "bool", "float8_e4m3fn"])
def test_integers_are_filled_otherwise_each_time(name: str) -> None:
    draw, seen = random.Random(1), set()
    for _ in range(40):
        tensor = torch.zeros(2, dtype=DTYPES[name])
        fill(tensor, draw)
        seen.add(tuple(bits([tensor])[0]))
    assert len(seen) == 2 if name == "bool" else len(seen) > 10


def test_strided_memory_is_filled_without_its_gaps() -> None:
    base = torch.zeros(4, 8)
    fill(base[:, ::2], random.Random(1))
    assert bool(base[:, ::2].isnan().all())
    assert not bool(base[:, 1::2].any())


# --- a call -----------------------------------------------------------------------------------------------------------


def test_a_result_that_is_returned(start: Start) -> None:
    called = start("return x * 2").call(values(X), shaped(specs(X), [], []))
    assert torch.equal(called.outputs[0], X * 2)
    (entry,) = called.returned
    assert (entry["type"], entry["exact"], entry["shape"], entry["dtype"], entry["device"], entry["alias"]) == (
        "torch.Tensor",
        True,
        [4],
        "float32",
        "cpu",
        None,
    )
    assert (called.unwritten, called.guards, called.changed) == ([0], [], [])
    assert called.seconds >= 0


@pytest.mark.parametrize("plain", [False, True])
def test_a_plain_call_is_like_a_users(start: Start, plain: bool) -> None:
    body = "x += 1\nseen = (torch.is_grad_enabled(), x.storage_offset() == 0, x.untyped_storage().nbytes() == 16)\n"
    body += "return torch.tensor(list(map(float, seen)), requires_grad=torch.is_grad_enabled())"
    called = start(body).call(values(X), shaped(specs(torch.zeros(3)), [0], []), plain=plain)
    assert called.outputs[0].tolist() == [float(plain)] * 3
    assert torch.equal(called.outputs[1], X + 1)


def test_after_a_plain_call_gradients_are_off_again(start: Start) -> None:
    one = start("return x + torch.is_grad_enabled()")
    called = [one.call(values(X), shaped(specs(X), [], []), plain=plain) for plain in (True, False)]
    assert [torch.equal(c.outputs[0], X + 1) for c in called] == [True, False]


def test_a_row_of_calls_changes_nothing_but_the_candidate(start: Start) -> None:
    one = start("kept.append(float(x[0]))\nx += 1\nreturn x + len(kept)")
    shape = shaped(specs(X), [0], [])
    assert one.row(values(X), shape, 50, 5.0, state=False) == (50, "", False)
    called = one.call(values(X), shape)
    assert torch.equal(called.outputs[0], X + 1 + 51)
    seen = start("kept.append(float(x[0]))\nx += 1\nif len(kept) == 4: raise ValueError(kept)\nreturn x")
    assert seen.row(values(X), shape, 50, 5.0, state=False) == (3, "ValueError: [1.0, 1.0, 1.0, 1.0]", False)


@pytest.mark.parametrize(("size", "reused"), [(20, True), (60, False)])
def test_a_row_tells_whether_the_memory_of_its_first_result_comes_again(start: Start, size: int, reused: bool) -> None:
    one = start(f"kept.append(x + 1 if len(kept) < {size} else kept[len(kept) % {size}])\nreturn kept[-1]")
    assert one.row(values(X), shaped(specs(X)), 50, 5.0, state=False) == (50, "", reused)


def test_a_row_ends_in_time(start: Start) -> None:
    made, stopped, _ = start("import time\ntime.sleep(0.02)\nreturn x").row(
        values(X), shaped(specs(X)), 900, 0.2, state=False
    )
    assert 0 < made < 100
    assert not stopped
    endless = start("while kept is not x: pass").row(values(X), shaped(specs(X)), 900, 0.1, state=False)
    assert endless == (0, "TimeoutError: it did not end within 0.2 s", False)


def test_several_results_and_arguments_of_every_kind(start: Start) -> None:
    candidate = start("return [x + options['n'], {'k': (y.sum(), x > 0)}]", "x, y, options, name")
    y = torch.arange(6, dtype=torch.int64).reshape(2, 3)
    wanted = specs(X, y.sum(), X > 0)
    shape = shaped(wanted)
    shape.result = flatten([X, {"k": (y, X)}], [])
    called = candidate.call(values(X, y, {"n": 3, "dtype": torch.float16}, "text"), shape)
    assert [t.tolist() for t in called.outputs] == [[4.0, 1.0, 6.0, 7.0], 15, [True, False, True, True]]


def test_a_result_that_is_written(start: Start) -> None:
    candidate = start("y.copy_(x + y)", "x, y")
    called = candidate.call(values(x=X, y=torch.ones(4)), shaped([], [1], []))
    assert torch.equal(called.outputs[0], X + 1)
    assert (called.unwritten, called.changed, called.returned) == ([0], [], [])


def test_former_content_that_does_not_count_is_not_given(start: Start) -> None:
    body = "y.copy_(torch.where(y.isnan(), x, y))"
    called = start(body, "x, y").call(values(x=X, y=torch.ones(4)), shaped([], [1], [1]))
    assert torch.equal(called.outputs[0], X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_elements_that_are_not_written_are_counted(start: Start, dtype: torch.dtype) -> None:
    candidate = start("y[:7] = x.mean()", "x, y")
    called = candidate.call(values(x=X.to(dtype), y=torch.zeros(10, dtype=dtype)), shaped([], [1], [1]))
    assert called.unwritten == [3]


def test_a_result_that_is_not_returned_is_unwritten(start: Start) -> None:
    called = start("return x[:2]").call(values(X), shaped(specs(X), [], []))
    assert called.unwritten == [4]
    assert called.returned[0]["shape"] == [2]
    called = start("pass").call(values(X), shaped(specs(X), [], []))
    assert (called.unwritten, called.returned[0]["type"]) == ([4], "builtins.NoneType")


def test_a_written_nan_is_not_taken_for_the_fill(start: Start) -> None:
    called = start("return x / 0 * 0").call(values(X), shaped(specs(X), [], []))
    assert bool(called.outputs[0].isnan().all())
    assert called.unwritten == [0]


WRITE = "ctypes.memset({tensor}.data_ptr() + {offset}, 0, {size})\nreturn x * 1"


@pytest.mark.parametrize(("offset", "size"), [(-1, 1), (16, 1), (16 + 4095, 1), (-4096, 4096)])
def test_memory_beside_an_argument_is_guarded(start: Start, offset: int, size: int) -> None:
    called = start(WRITE.format(tensor="x", offset=offset, size=size)).call(values(X), shaped(specs(X), [], []))
    assert (called.guards, called.changed) == (["0"], [])


def test_guards_are_named_after_their_tensor(start: Start) -> None:
    for body in ("ctypes.memset(y.data_ptr() + 16, 0, 4)", "torch.as_strided(y, (5,), (1,))[4] = 7.0"):
        called = start(body + "\ny.copy_(x)", "x, y").call(values(x=X, y=X), shaped([], [1], [1]))
        assert called.guards == ["y"]


@pytest.mark.parametrize("body", ["x.add_(1)\nreturn x * 1", "x[1] = 0.0\nreturn x * 1", "x.neg_()\nreturn x * 1"])
def test_an_input_that_is_changed_is_named(start: Start, body: str) -> None:
    assert start(body, "x, n").call(values(X, 3), shaped(specs(X), [], [])).changed == ["0"]


def test_minus_zero_for_zero_is_a_change(start: Start) -> None:
    called = start("x.neg_()\nreturn x * 1", "y, x").call(values(y=X, x=torch.zeros(2)), shaped(specs(X[:2]), [], []))
    assert called.changed == ["x"]


def test_a_change_that_is_undone_is_none(start: Start) -> None:
    called = start("y = x.clone()\nx.zero_()\nx.copy_(y)\nreturn y").call(values(X), shaped(specs(X), [], []))
    assert called.changed == []


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_type_goes_there_and_back(start: Start, name: str) -> None:
    x = torch.randint(0, 2, (2, 3)).to(DTYPES[name])
    called = start("return x.clone()").call(values(x), shaped(specs(x), [], []))
    assert bits(called.outputs) == bits([x])
    assert (called.changed, called.guards) == ([], [])


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (1, 1)])
def test_small_tensors(start: Start, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    called = start("return x + 1").call(values(x), shaped(specs(x), [], []))
    assert called.outputs[0].tolist() == (x + 1).tolist()
    assert (called.changed, called.guards, called.unwritten) == ([], [], [0])


@pytest.mark.parametrize(
    ("body", "entry", "unwritten"),
    [
        ("return x", {"alias": 0}, 0),
        ("return x[1:]", {"alias": 0, "shape": [3]}, 4),
        ("return x.clone()", {"alias": None}, 0),
        ("return torch.nn.Parameter(x * 1)", {"exact": True, "type": "torch.nn.parameter.Parameter"}, 0),
        ("return x.double()", {"dtype": "float64"}, 4),
        ("return [1.0]", {"exact": False, "type": "builtins.float"}, 4),
        ("return [1.0, 2.0]", {"exact": False, "type": "builtins.list"}, 4),
        ("return (x * 1,)", {"exact": True}, 0),
        ("class Tensor(torch.Tensor): pass\nreturn x.as_subclass(Tensor)", {"exact": False, "type": LOCAL}, 4),
        ("return x.expand(2, 4)", {"stride": [0, 1]}, 4),
        ("return x.to_sparse()", {"stride": None, "alias": None}, 4),
        ("return x.to('meta')", {"device": "meta", "alias": None}, 4),
        ("return {'a': x.half(), 'b': x}", {"exact": False, "type": "builtins.dict"}, 4),
    ],
)
def test_what_is_returned_is_described(start: Start, body: str, entry: dict[str, Any], unwritten: int) -> None:
    called = start(body).call(values(X), shaped(specs(X), [], []))
    assert called.returned[0] | entry == called.returned[0]
    assert called.unwritten == [unwritten]


def test_a_number_stands_for_a_tensor_of_no_dimensions(start: Start) -> None:
    called = start("return float(x.sum())").call(values(X), shaped(specs(X.sum()), [], []))
    assert called.outputs[0].item() == 6.0
    assert called.returned[0]["exact"]


def test_calls_lie_in_two_places_drawn_at_random(start: Start) -> None:
    """A result that is remembered by address is wrong half of the time."""
    candidate = start("kept.append(x.data_ptr())\nreturn x + len(set(kept))")
    calls = [candidate.call(values(X), shaped(specs(X), [], [])) for _ in range(12)]
    assert {float(c.outputs[0][0]) for c in calls} == {2.0, 3.0}
    assert {c.moved for c in calls} == {True, False}
    assert calls[0].moved
    others = start("return x", seed=2)
    assert [c.moved for c in calls] != [others.call(values(X), shaped(specs(X), [], [])).moved for _ in range(12)]


def test_a_result_by_address_is_wrong_in_the_other_place(start: Start) -> None:
    remembered = "for k, y in kept:\n    if k == x.data_ptr(): return y.clone()\n"
    candidate = start(remembered + "kept.append((x.data_ptr(), x * 2))\nreturn x * 2")
    wrong = 0
    for n in range(8):
        x = torch.full((4,), float(n))
        wrong += not torch.equal(candidate.call(values(x), shaped(specs(x), [], [])).outputs[0], x * 2)
    assert wrong >= 5


def test_other_shapes_and_layouts_follow_in_one_process(start: Start) -> None:
    candidate = start("return x.t().contiguous() if x.dim() == 2 else x * 1")
    for shape in ((2, 3), (4,), (2, 3), (5, 1)):
        x = torch.randn(shape)
        expected = x.t().contiguous() if x.dim() == 2 else x
        assert torch.equal(candidate.call(values(x), shaped(specs(expected), [], [])).outputs[0], expected)
    x = torch.randn(3, 4)
    candidate = start("assert not x.is_contiguous()\nreturn x + torch.tensor(x.stride()).sum()")
    called = candidate.call(values(x), shaped(specs(x), [], []), strides=[[1, 3]])
    assert torch.equal(called.outputs[0], x + 4)
    assert called.changed == []


def test_results_survive_the_next_call(start: Start) -> None:
    candidate = start("return x * 2")
    first = candidate.call(values(X), shaped(specs(X), [], []))
    for _ in range(4):
        candidate.call(values(-X), shaped(specs(X), [], []))
    assert torch.equal(first.outputs[0], X * 2)


@pytest.mark.parametrize(
    ("body", "kind"), [("raise ValueError('no')", "ValueError"), ("exit(3)", "SystemExit"), ("x[9]", "IndexError")]
)
def test_what_it_raises_is_told_in_its_words(start: Start, body: str, kind: str) -> None:
    with pytest.raises(CandidateError, match=kind) as raised:
        start(body).call(values(X), shaped(specs(X), [], []))
    assert (raised.value.stage, raised.value.error["type"]) == ("call", kind)
    assert "candidate.py" in raised.value.error["traceback"]


LATE = """
class Late({kind}):
    def __iter__(self):
        y.neg_()
        return super().__iter__()
    __getitem__ = __len__ = keys = items = values = lambda self, *key: [y.neg_(), {kind}.__iter__(self)][1]
y = x * 2
return {made}
"""


@pytest.mark.parametrize(
    ("result", "body", "said"),
    [
        ([X, X], LATE.format(kind="list", made="Late([y, y])"), "is a Late, the reference returns 2 values"),
        ([X, X], LATE.format(kind="tuple", made="Late((y, y))"), "is a Late, the reference returns 2 values"),
        ({"a": X, "b": X}, LATE.format(kind="dict", made="Late(a=y, b=y)"), "is a Late, the reference returns a dict"),
        ({"a": X, "b": X}, "return {'b': x, 'c': x}", "is a dict of 2, the reference returns a dict with a, b"),
        ({"a": X, "b": X}, "return {1: x, 'a': x}", "the reference returns a dict with a, b"),
        ([X, X], "return [x] * 3000", "is a list of 3000, the reference returns 2 values"),
        ([X, (X, X)], "return [x, x]", "the result[1] is a Tensor, the reference returns 2 values"),
        ({"a": [X, X]}, "return {'a': [x]}", "the result['a'] is a list of 1, the reference returns 2 values"),
    ],
)
def test_a_result_that_is_built_otherwise_is_not_looked_at(start: Start, result: Any, body: str, said: str) -> None:
    shape = shaped(specs(X, X))
    shape.result = flatten(result, [])
    called = start(body).call(values(X), shape)
    assert said in called.reply["misbuilt"]
    assert (called.returned, called.unwritten) == ([], [4, 4])


@pytest.mark.parametrize(
    ("result", "body"),
    [
        ({"a": X, "b": X}, "return {'b': x * 3, 'a': x * 2}"),
        ([X, X], "return x * 2, x * 3"),
        ((X, X), "return [x * 2, x * 3]"),
        ((X, None, X), "return x * 2, 'anything', x * 3"),
        ((X, X), "return torch.return_types.max((x * 2, x * 3))"),
    ],
)
def test_a_result_that_is_built_alike(start: Start, result: Any, body: str) -> None:
    shape = shaped(specs(X, X))
    shape.result = flatten(result, [])
    called = start(body).call(values(X), shape)
    assert [t.tolist() for t in called.outputs] == [(X * 2).tolist(), (X * 3).tolist()]


def test_patched_methods_of_what_is_returned_do_not_run(start: Start) -> None:
    body = """
y = x * 2
torch.Tensor.stride = torch.Tensor.data_ptr = torch.Tensor.shape = lambda self, *n: torch._C.TensorBase.fill_(y, 9)
return y, x * 3
"""
    called = start(body).call(values(X), shaped(specs(X, X)))
    assert called.outputs[0].tolist() == (X * 2).tolist()


@pytest.mark.processes
def test_modules_of_the_evaluator_are_out_of_reach_by_name(start: Start) -> None:
    """What is imported is another module: to replace a function of it changes nothing of what judges the call."""
    body = """
import importlib, sys
kept.append(sorted(name for name in sys.modules if name.startswith("evaluator")))
name = ".".join(["evaluator", "worker", "memory", "state"])
module = importlib.import_module(name)
module.deliver = module.results = None
return x * 0 + len(kept[0])
"""
    one = start(body.strip())
    for many in (0, None):
        called = one.call(values(X), shaped(returned=specs(X)))
        assert called.returned[0]["exact"]
        assert many is None or called.outputs[0].tolist() == [many] * 4


def test_a_candidate_that_does_not_load_is_told(server: ForkServer) -> None:
    for text, compile in (
        ("import nowhere_at_all\n", True),
        ("def run(:\n", True),
        ("1 / 0\n", False),
        ("x = 1\n", True),
    ):
        with pytest.raises(CandidateError) as raised:
            kernel(server, text)
        assert raised.value.stage == "load"
        assert raised.value.error["compile"] is compile


def test_a_candidate_that_ends_is_lost(start: Start) -> None:
    with pytest.raises(WorkerLostError) as lost:
        start("os._exit(0)").call(values(X), shaped(specs(X), [], []))
    assert lost.value.kind == "crashed"
    with pytest.raises(WorkerLostError) as lost:
        start("while True: pass", seconds=0.3).call(values(X), shaped(specs(X), [], []))
    assert lost.value.kind == "timeout"


def test_a_model_is_built_with_the_references_weights(server: ForkServer) -> None:
    text = (
        "import torch\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, scale, n):\n        super().__init__()\n"
        "        self.scale = scale\n        self.w = torch.nn.Parameter(torch.zeros(n))\n"
        "    def forward(self, x):\n        return x * self.w + self.scale\n"
    )
    with contextlib.closing(kernel(server, text, form="kernelbench", entry="")) as candidate:
        own = candidate.build(values(torch.full((4,), 10.0), 4), 1)
        assert [(spec["name"], spec["shape"], spec["dtype"]) for spec in own] == [("w", [4], "float32")]
        candidate.set_weights(values(torch.full((4,), 3.0)), ["w"])
        called = candidate.call(values(X), shaped(specs(X), [], []))
    assert torch.equal(called.outputs[0], X * 3 + 10)


def test_findings_come_with_each_reply(start: Start) -> None:
    called = start("import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
                   "torch.allclose = None\nreturn x * 1").call(values(X), shaped(specs(X), [], []))  # fmt: skip
    assert called.reply["threads"] == 1
    assert called.reply["patched"] == ["torch.allclose"]
