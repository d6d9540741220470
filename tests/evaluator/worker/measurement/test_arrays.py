"""Tensors that a candidate takes as arrays are counted by their bytes, in whatever words it asks; nothing else is."""

from __future__ import annotations

import contextlib

import pytest
import torch

from evaluator.sandbox.fork_server import ForkServer
from tests.evaluator.workers import kernel, shaped, specs, values

A, B = torch.randn(8, 16), torch.randn(16, 4)
TEXT = "import threading, types, torch\nimport numpy as np\nkept = types.SimpleNamespace()\ndef run(a, b):\n    {}\n"
PRODUCT = A @ B


def taken(server: ForkServer, body: str) -> tuple[bool, dict[str, tuple[int, int]]]:
    """(whether the result was right, what was counted besides PyTorch's operators)."""
    with contextlib.closing(kernel(server, TEXT.format(body.replace("\n", "\n    ")))) as one:
        called = one.call(values(A, B), shaped(specs(PRODUCT)), watch=True)
        found = {o["name"]: (o["calls"], o["bytes"]) for o in called.reply["operators"] if "::" not in o["name"]}
        return torch.allclose(called.outputs[0], PRODUCT, atol=1e-5), found


@pytest.mark.processes
@pytest.mark.parametrize(
    "body",
    [
        "return torch.from_numpy(a.numpy() @ b.numpy())",
        "return np.matmul(a, b)",
        "kept.a, kept.b = np.asarray(a), np.array(b)\nreturn torch.from_numpy(getattr(np, 'do' + 't')(kept.a, kept.b))",
        "return torch.as_tensor(np.from_dlpack(a) @ np.from_dlpack(b))",
        "def work(): kept.y = torch.from_numpy(np.einsum('ik,kj->ij', a, b))\n"
        "t = threading.Thread(target=work)\nt.start()\nt.join()\nreturn kept.y",
        "y = torch.empty(8, 4)\nnp.matmul(*map(torch.Tensor.numpy, (a, b)), out=y.numpy())\nreturn y",
    ],
)
def test_arrays_are_counted(server: ForkServer, body: str) -> None:
    right, found = taken(server, body)
    assert right
    assert sum(size for _, size in found.values()) >= 4 * (A.numel() + B.numel())


@pytest.mark.processes
def test_nothing_is_counted_where_no_array_is_made(server: ForkServer) -> None:
    assert taken(server, "return a @ b") == (True, {})
    small = "return a @ b * float(np.asarray(torch.ones(2)).mean())"
    assert taken(server, small) == (True, {"Tensor.numpy": (1, 8)})
