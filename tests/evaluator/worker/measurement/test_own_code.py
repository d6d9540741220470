"""A call that launches no kernel of the candidate's own is told, whatever library did the work."""

from __future__ import annotations

import contextlib

import pytest
import torch

from evaluator.sandbox.fork_server import ForkServer
from tests.evaluator.workers import kernel, shaped, specs, values

X = torch.randn(4, 16)
TEXT = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at))

def run(x):
    {}
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "own"),
    [
        ("y = torch.empty_like(x); double[(4,)](x, y, BLOCK=16); return y", True),
        ("y = torch.empty_like(x); double[(0,)](x, y, BLOCK=16); return y.copy_(x + x)", False),
        ("return 2 * x", False),
        ("return torch.tensor([[2 * v for v in row] for row in x.tolist()])", False),
    ],
)
def test_own_kernels_are_told(server: ForkServer, body: str, own: bool) -> None:
    with contextlib.closing(kernel(server, TEXT.format(body))) as one:
        called = one.call(values(X), shaped(specs(X)))
        assert torch.equal(called.outputs[0], 2 * X)
        assert called.reply["own"] is own
