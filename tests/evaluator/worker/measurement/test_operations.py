"""What a call really ran: operators that compute are counted with their bytes, views and new memory are not held
against anybody."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._C import _profiler as observer

from evaluator.correctness import library_use as library
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.measurement.operations import Operators, device_kernels
from tests.evaluator.workers import kernel, shaped, specs, values

X = torch.randn(8, 16)
W = torch.randn(4, 16)


def watched(call: Callable[[], Any]) -> Operators:
    """The watch on one call."""
    watch = Operators()
    with watch:
        call()
    return watch


def table(call: Callable[[], Any]) -> dict[str, tuple[int, int]]:
    """Operator → (calls, bytes) of one call."""
    watch = watched(call)
    assert not watch.blinded
    return {entry["name"]: (entry["calls"], entry["bytes"]) for entry in watch.table()}


def views() -> list[Any]:
    """Everything that gives memory another shape."""
    return [
        *(X.t(), X.T, X.mT, X.view(-1), X[0], X[:, 3:5], X[..., None], X.reshape(2, 4, 16), X.unsqueeze(0)),
        *(X.transpose(0, 1), X.permute(1, 0), X.detach(), X.split(2), X.chunk(2), X.unbind(0), X.select(0, 1)),
        *(X.narrow(0, 0, 2), X.as_strided((2, 2), (1, 1)), X.flatten(), X.view(torch.int32), X.movedim(0, 1)),
        *(X.unfold(0, 2, 1), X.swapaxes(0, 1), X.contiguous(), X.view_as(X), X.expand_as(X), X.unflatten(0, (2, 4))),
        *(X.squeeze(), X.diagonal(), X.expand(2, 8, 16), X.is_contiguous(), X.data_ptr()),
    ]


def moves() -> list[Any]:
    """Everything that makes memory, fills it, or copies it."""
    y = torch.empty_like(X)
    y.copy_(X).zero_().fill_(1.0)
    z = X.clone().unsqueeze_(0).squeeze_(0).transpose_(0, 1).t_()
    return [
        *(torch.zeros(3), torch.ones(3), torch.full((3,), 2.0), torch.empty(2, 3), torch.arange(4), torch.eye(2)),
        *(torch.zeros_like(X), torch.ones_like(X), torch.full_like(X, 2.0), torch.empty_strided((2, 2), (1, 2))),
        *(X.half(), X.to(torch.float64), X.t().contiguous(), X.new_empty(3), X.new_zeros(3), X.new_full((2,), 1.0)),
        *(X[0, 0].item(), torch.nn.Parameter(X), torch.scalar_tensor(1.0)),
        *(torch.empty_permuted((2, 3), (1, 0)), z.requires_grad_(False), z.resize_(3)),
    ]


def test_an_operator_is_counted_with_what_it_reads_and_writes() -> None:
    assert table(lambda: torch.mm(X, W.t())) == {"aten::mm": (1, 4 * (8 * 16 + 16 * 4 + 8 * 4))}
    assert table(lambda: [X.relu() for _ in range(3)]) == {"aten::relu": (3, 3 * 2 * X.nbytes)}
    assert table(lambda: torch.nn.functional.linear(X, W, torch.zeros(4)))["aten::linear"][0] == 1


def test_overloads_and_tensors_in_lists_are_counted_together() -> None:
    found = table(lambda: (torch.cat([X, X]), X + 1, X + X, X.add_(0)))
    assert found["aten::cat"] == (1, 4 * X.nbytes)
    number = 8
    assert found["aten::add"] == (2, 2 * X.nbytes + 3 * X.nbytes + number)
    assert found["aten::add_"] == (1, 2 * X.nbytes + number)


def test_views_are_not_counted() -> None:
    assert table(views) == {}


@pytest.mark.parametrize("call", [views, moves])
def test_what_computes_nothing_is_no_library_operation(call: Callable[[], None]) -> None:
    assert library.operations(watched(call).table(), 1) == []


def test_a_library_operation_is_in_the_table() -> None:
    calls: dict[str, Callable[[], Any]] = {
        "aten::matmul": lambda: X @ W.t(),
        "aten::softmax": lambda: X.softmax(-1),
        "aten::layer_norm": lambda: torch.nn.functional.layer_norm(X, (16,)),
        "aten::sum": lambda: X.sum(),
        "aten::conv1d": lambda: torch.nn.functional.conv1d(X[None], torch.ones(2, 8, 3)),
        "aten::gelu": lambda: torch.nn.functional.gelu(X),
        "aten::sort": lambda: X.sort(),
    }
    for name, call in calls.items():
        assert name in [operation.name for operation in library.operations(watched(call).table(), 10**6)]


def test_sparse_tensors_are_counted_too() -> None:
    """PyTorch has no `nbytes` for them; a candidate that uses them is no crash."""
    found = table(lambda: torch.sparse.mm(torch.eye(4).to_sparse(), torch.ones(4, 4)))
    assert sum(size for _, size in found.values()) > 0


def test_what_another_thread_runs_is_seen() -> None:
    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: X.softmax(-1))
        thread.start()
        thread.join()

    assert "aten::softmax" in table(in_a_thread)


def test_what_the_compiler_made_counts_as_all_of_the_problem() -> None:
    """Its kernels are no operators, and its region has no sizes."""

    def compiled() -> None:
        with torch.profiler.record_function("Torch-Compiled Region: 0/0"):
            X.clone()

    (operation,) = library.operations(watched(compiled).table(), 10**6)
    assert (operation.name, operation.calls, operation.share) == ("torch.compile", 1, 1.0)


@pytest.mark.parametrize("how", ["removed", "disabled", "started anew", "no records"])
def test_who_takes_the_observer_away_is_told(how: str, tmp_path: Path) -> None:
    def blinding() -> None:
        if how == "removed":
            observer._remove_execution_trace_observer()
        elif how == "disabled":
            observer._disable_execution_trace_observer()
        elif how == "started anew":
            observer._remove_execution_trace_observer()
            observer._add_execution_trace_observer(str(tmp_path / "other.json"))
            observer._enable_execution_trace_observer()
        else:
            torch.autograd._enable_record_function(False)
        X.softmax(-1)

    try:
        assert watched(blinding).blinded
    finally:
        torch.autograd._enable_record_function(True)
    assert table(lambda: X.relu()) == {"aten::relu": (1, 2 * X.nbytes)}, "and the next watch sees again"


def test_an_operator_of_the_candidates_own_is_looked_into() -> None:
    @torch.library.custom_op("of_a_candidate::wrapped", mutates_args=())
    def wrapped(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    @torch.library.custom_op("of_a_candidate::written", mutates_args={"y"})
    def written(x: torch.Tensor, y: torch.Tensor) -> None:
        y.zero_()

    y = torch.empty_like(X)
    assert table(lambda: written(X, y)) == {}
    assert not y.any()
    inside = table(lambda: wrapped(X))
    assert "of_a_candidate::wrapped" not in inside
    assert any("softmax" in name for name in inside)


def test_an_operator_that_was_added_to_pytorchs_has_the_bytes_of_what_it_calls() -> None:
    added = torch.library.Library("aten", "FRAGMENT")
    added.define("of_no_bytes(int slot) -> int")

    def inside(slot: int) -> int:
        X.clone().softmax(-1)
        return slot

    added.impl("of_no_bytes", inside, "CompositeExplicitAutograd")
    try:
        assert table(lambda: torch.ops.aten.of_no_bytes(0)) == {"aten::of_no_bytes": (1, 2 * X.nbytes)}
    finally:
        added._destroy()


def test_nothing_is_written_where_the_candidate_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Path] = []
    watched(lambda: seen.extend(tmp_path.iterdir()))
    assert seen == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.from_numpy(X.numpy() @ W.numpy().T),
        lambda: np.matmul(np.asarray(X), np.asarray(W).T),
        lambda: torch.as_tensor(np.matmul(torch._C.TensorBase.numpy(X), torch._C.TensorBase.numpy(W).T)),
        lambda: torch.tensor(np.cumsum(np.array(X.tolist()), -1).tolist()),
    ],
    ids=["numpy", "__array__", "the base's", "lists"],
)
def test_what_numpy_takes_and_gives_back_counts(call: Callable[[], Any]) -> None:
    found = table(call)
    assert found.keys() <= {"aten::resolve_neg", "aten::lift_fresh"}
    assert sum(size for _, size in found.values()) >= 2 * 8 * 4 * 4


def test_the_table_is_sorted() -> None:
    found = watched(lambda: (X.relu(), torch.mm(X, W.t()), X[:2].exp())).table()
    assert [entry["name"] for entry in found] == ["aten::relu", "aten::mm", "aten::exp"]


def test_an_error_in_the_call_passes_through_and_the_watch_ends() -> None:
    watch = Operators()
    with pytest.raises(RuntimeError, match="must match"), watch:
        X + W
    before = watch.table()
    X.relu()
    assert watch.table() == before


def test_watching_does_not_import_the_compiler(server: ForkServer) -> None:
    """torch._dynamo takes more than a second to import, which would be spent in each worker's first watched call."""
    text = "import sys\ndef run(x):\n    y = x.relu()\n    print('torch._dynamo' in sys.modules)\n    return y\n"
    with contextlib.closing(kernel(server, text)) as candidate:
        called = candidate.call(values(torch.ones(2)), shaped(specs(torch.ones(2)), [], []), watch=True)
        assert candidate.worker.output().split() == ["False"]
    assert [entry["name"] for entry in called.reply["operators"]] == ["aten::relu"]


@pytest.mark.processes
@pytest.mark.gpu
def test_device_kernels_are_named_with_their_time() -> None:
    x = torch.randn(512, 512, device="cuda")
    found = device_kernels(lambda: (x @ x).relu())
    assert found
    assert all(kernel["calls"] >= 1 and kernel["microseconds"] > 0 for kernel in found)
    assert all(kernel.library for kernel in library.device_kernels(found))
