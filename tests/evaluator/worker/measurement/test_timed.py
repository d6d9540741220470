"""Audit turns, and the timed part of a worker where there is no GPU."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.shared_buffers import SharedRow, SharedTensor, shared_row, shared_tensor
from tests.evaluator.workers import LIMITS, kernel, values

CPU = torch.device("cpu")
Start = Callable[..., KernelProcess]
COUNTS = """
import torch
calls = 0
def run(x):
    global calls
    calls += 1
    return x * 2 + calls
"""


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts candidates and ends them."""
    with contextlib.ExitStack() as stack:
        yield lambda text: stack.enter_context(contextlib.closing(kernel(server, text)))


def lend(*tensors: torch.Tensor) -> list[SharedTensor]:
    """Shared copies."""
    lent = [shared_tensor({"shape": list(t.shape), "dtype": str(t.dtype)[6:]}, CPU) for t in tensors]
    for shared, tensor in zip(lent, tensors, strict=True):
        shared.tensor.copy_(tensor)
    return lent


def row(tensors: list[torch.Tensor]) -> SharedRow:
    """Copies of tensors of one kind in one buffer."""
    made = shared_row(
        {"shape": list(tensors[0].shape), "dtype": str(tensors[0].dtype)[6:]}, len(tensors), CPU, random.Random(4)
    )
    for place, tensor in zip(made.tensors, tensors, strict=True):
        place.copy_(tensor)
    return made


def audit(
    one: KernelProcess, inputs: list[torch.Tensor], *, empty: bool = False, before: int = 0
) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """(the answer, what lies in the memory of the results) of one call for each of `inputs`, some in a turn before."""
    arguments, results = row(inputs), row([torch.full((4,), -7.0) for _ in inputs])
    words = {
        "tree": values(inputs[0]).tree,
        "result": {"tensor": 0},
        "sets": [arguments.message()],
        "returns": [results.message()],
        "count": len(inputs),
    }
    one.ask("lend", 30, [arguments, results], empty=empty, capture=False, **words)
    if before:
        one.ask("cross_check", 30, calls=before)
    reply = one.ask("cross_check", 30, calls=len(inputs) - before)
    return reply, [t.clone() for t in results.tensors]


INPUTS = [torch.arange(4.0) + 10 * n for n in range(5)]


def test_one_call_for_each_set_in_order(start: Start) -> None:
    reply, found = audit(start(COUNTS), INPUTS)
    assert [t.tolist() for t in found] == [(x * 2 + n).tolist() for n, x in enumerate(INPUTS, 1)]
    assert reply["seconds"] > 0


@pytest.mark.parametrize("before", [1, 3, 5])
def test_calls_in_two_turns_are_made_once_each_in_order(start: Start, before: int) -> None:
    _, found = audit(start(COUNTS), INPUTS, before=before)
    assert [t.tolist() for t in found] == [(x * 2 + n).tolist() for n, x in enumerate(INPUTS, 1)]


def test_what_was_lent_is_for_one_audit(start: Start) -> None:
    one = start(COUNTS)
    audit(one, INPUTS)
    one.ask("cross_check", 30, calls=1)
    assert audit(one, INPUTS[:1])[1][0].tolist() == (INPUTS[0] * 2 + 6).tolist()  # its sixth call


@pytest.mark.parametrize(
    "body",
    [
        "x[:2]",
        "x.double()",
        "x.to_sparse()",
        "x.to('meta')",
        "'text'",
        "1.0",
        "None",
        "[]",
        "type('Sub', (torch.Tensor,), {})(x)",
    ],
)
def test_what_does_not_fit_is_not_delivered(start: Start, body: str) -> None:
    _, found = audit(start(f"import torch\ndef run(x):\n    return {body}\n"), INPUTS[:2])
    assert [t.tolist() for t in found] == [[-7.0] * 4] * 2


def test_an_empty_audit_calls_nothing_and_writes_zeros(start: Start) -> None:
    one = start(COUNTS)
    _, blank = audit(one, INPUTS, empty=True)
    assert [t.tolist() for t in blank] == [[0.0] * 4] * 5
    _, found = audit(one, INPUTS[:1])
    assert found[0].tolist() == (INPUTS[0] * 2 + 1).tolist()  # its first call


def test_a_call_that_fails_in_an_audit(start: Start) -> None:
    with pytest.raises(CandidateError) as raised:
        audit(start("def run(x):\n    raise RuntimeError('not twice')\n"), INPUTS)
    assert (raised.value.stage, str(raised.value)) == ("cross_check", "RuntimeError: not twice")


def test_no_turn_without_a_clock(start: Start) -> None:
    one, (x,) = start(COUNTS), lend(INPUTS[0])
    for op, more in (("sample", {"tree": values(INPUTS[0]).tree, "tensors": [x.message], "returns": []}), ("rate", {})):
        with pytest.raises(CandidateError) as raised:
            one.ask(op, 30, [x], spin_us=1.0, kind="launch", samples=1, **more)
        assert "the clock was not made" in str(raised.value)
    assert audit(one, INPUTS[:1])[0]["ok"]


@pytest.mark.parametrize(
    ("op", "words"), [("device", {"device": "cpu"}), ("device", {"device": "cuda:0"}), ("clock", {"flush_bytes": 0})]
)
def test_a_worker_of_the_cpu_has_no_clock_and_says_so(server: ForkServer, op: str, words: dict[str, Any]) -> None:
    with server.spawn("ceilings", LIMITS, {}) as worker:
        reply = worker.request(op, 30, **words)
        assert (reply["ok"], bool(reply["error"]["message"])) == (False, True)
        assert worker.request("map", 10)["ok"]


@pytest.mark.gpu
def test_a_worker_that_loads_nothing_has_a_device_and_rates() -> None:
    with ForkServer("cuda") as server, server.spawn("ceilings", LIMITS, {}) as worker:
        assert worker.request("device", 60, device="cuda:0")["ok"]
        reply = worker.request("clock", 60, flush_bytes=0)
        assert len(reply["times"]) == 20
        assert reply["flush_bytes"] >= 2 * reply["l2_bytes"] > 0
        assert len(worker.request("rate", 60, kind="launch", samples=4)["times"]) == 4
