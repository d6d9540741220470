"""What Triton's interpreter was lent: bfloat16 as PyTorch rounds it, autotuning by chance, kernels that are right."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evaluator.correctness.candidate import KernelProcess
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.loading.interpreter import narrowed, widened
from tests.evaluator.workers import bits, kernel, shaped, specs, values

HEAD = "import torch, triton\nimport triton.language as tl\n"
BITS = st.integers(0, 2**32 - 1) | st.sampled_from(
    [
        *(0x3F80_8000, 0x3F81_8000, 0x3F80_7FFF, 0x3F80_8001, 0xBF80_8000),  # ties, and what lies beside them
        *(0x7F7F_FFFF, 0x7F7F_7FFF, 0x7F7F_8000, 0xFF7F_FFFF, 0x7F80_0000, 0xFF80_0000),  # the largest, and infinity
        *(0x7FC0_0000, 0x7F80_0001, 0xFFFF_FFFF, 0xFF80_0001, 0x7FFF_8000),  # NaNs whose payload may be rounded away
        *(0, 0x8000_0000, 1, 0x8000, 0x8001, 0x0001_8000, 0x007F_FFFF, 0x0080_0000),  # zeros and subnormals
    ]
)


def bfloat16_bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 as PyTorch's bfloat16, as bits."""
    return torch.from_numpy(values.copy()).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


@settings(deadline=None, max_examples=300)
@given(st.lists(BITS, min_size=1, max_size=40))
@example([0x7F80_0001])
def test_rounding_is_pytorchs(patterns: list[int]) -> None:
    numbers = np.array(patterns, np.uint32).view(np.float32)
    found, expected = narrowed(numbers), bfloat16_bits(numbers)
    nan = np.isnan(numbers)
    assert found.dtype == np.uint16
    assert (found[~nan] == expected[~nan]).all()
    assert np.isnan(widened(found)[nan]).all()


def test_every_bfloat16_is_widened_as_pytorch_does_and_comes_back() -> None:
    every = np.arange(2**16, dtype=np.uint16)
    wide = widened(every)
    expected = torch.from_numpy(every.view(np.int16).copy()).view(torch.bfloat16).float().numpy()
    assert (wide.view(np.uint32) == expected.view(np.uint32)).all()
    numbers = ~np.isnan(wide)
    assert (narrowed(wide)[numbers] == every[numbers]).all()


@settings(deadline=None, max_examples=50)
@given(arrays.arrays(np.float32, arrays.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32)))
def test_the_shape_is_kept_in_any_layout(numbers: np.ndarray[Any, Any]) -> None:
    for laid in (numbers, numbers.T, numbers[::-1], np.asfortranarray(numbers)):
        assert narrowed(laid).shape == laid.shape
        assert (np.isnan(widened(narrowed(laid))) == np.isnan(laid)).all()


def run(server: ForkServer, text: str, *arguments: Any, out: torch.Tensor, number: int = 1) -> list[torch.Tensor]:
    """What `run` of a Triton source returns, in the interpreter: a number of tensors like `out`."""
    with contextlib.closing(kernel(server, HEAD + text)) as candidate:
        called = candidate.call(values(*arguments), shaped(specs(*[out] * number), [], []))
    assert [entry["dtype"] for entry in called.returned] == [str(out.dtype).removeprefix("torch.")] * number
    assert called.unwritten == [0] * number
    return called.outputs


ELEMENTWISE = """
@triton.jit
def kernel{n}(a, b, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x, z = tl.load(a + i, mask=i < n), tl.load(b + i, mask=i < n)
    tl.store(y + i, {expression}, mask=i < n)
def run{n}(a, b):
    y = torch.empty_like(a)
    kernel{n}[(1,)](a, b, y, a.numel(), B=128)
    return y
"""
REDUCTION = """
@triton.jit
def larger(p, q):
    return tl.where(p > q, p, q)
@triton.jit
def kernel{n}(a, y, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + tl.program_id(0) * N + i)
    tl.store(y + tl.program_id(0), {expression})
def run{n}(a):
    y = torch.empty(a.shape[0], dtype=a.dtype)
    kernel{n}[(a.shape[0],)](a, y, N=a.shape[1])
    return y
"""


def every(template: str, expressions: Iterable[str]) -> str:
    """A source with a kernel for each expression, whose `run` returns the results of all."""
    kernels = [template.format(n=n, expression=expression) for n, expression in enumerate(expressions)]
    together = ", ".join(f"run{n}(*arguments)" for n in range(len(kernels)))
    return "".join(kernels) + f"def run(*arguments):\n    return [{together}]\n"


@pytest.fixture(scope="module")
def pairs() -> tuple[torch.Tensor, torch.Tensor]:
    """Two hundred bfloat16 numbers of many magnitudes."""
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(100, generator=generator) * 10 ** torch.randn(100, generator=generator) for _ in range(2))
    return a.bfloat16(), b.bfloat16()


EXPRESSIONS = {
    "x + z": lambda x, z: x + z,
    "x - z": lambda x, z: x - z,
    "x * z": lambda x, z: x * z,
    "x / z": lambda x, z: (x.float() / z.float()).bfloat16(),
    "-x": lambda x, _: -x,
    "tl.abs(x)": lambda x, _: x.abs(),
    "tl.maximum(x, z)": torch.maximum,
    "tl.minimum(x, z)": torch.minimum,
    "tl.where(x < z, x, z)": torch.minimum,
    "tl.where(x >= z, x, 0.0)": lambda x, z: torch.where(x >= z, x, torch.zeros_like(x)),
    "tl.where((x == x) & (x != z), x, z)": lambda x, _: x,
    "tl.exp(-tl.abs(x).to(tl.float32)).to(tl.bfloat16)": lambda x, _: torch.exp(-x.float().abs()).bfloat16(),
    "(x.to(tl.float32) * 2.0 + z.to(tl.float32)).to(tl.bfloat16)": lambda x, z: (x.float() * 2 + z.float()).bfloat16(),
    "x * 0.5 + z": lambda x, z: x * 0.5 + z,
    "x.to(tl.int32).to(tl.bfloat16)": lambda x, _: x.to(torch.int32).bfloat16(),
    "x.to(tl.float16).to(tl.bfloat16)": lambda x, _: x.half().bfloat16(),
    "(x.to(tl.float64) / 3).to(tl.bfloat16)": lambda x, _: (x.double() / 3).bfloat16(),
    "(x > z).to(tl.bfloat16) + (x > z).to(tl.float32).to(tl.bfloat16)": lambda x, z: (x > z).bfloat16() * 2,
    "tl.where((x < z) | ~(x > 0.0), z, x)": lambda x, z: torch.where((x < z) | ~(x > 0), z, x),
    "tl.full((B,), 1.005, tl.bfloat16) + x": lambda x, _: torch.full_like(x, 1.005) + x,
    "tl.load(a + i, mask=i < n - 7, other=-2.5)": lambda x, _: torch.cat([x[:-7], torch.full_like(x[-7:], -2.5)]),
    "tl.clamp(x, -1.0, 1.0)": lambda x, _: x.clamp(-1, 1),
}


def test_bfloat16_arithmetic_is_pytorchs(server: ForkServer, pairs: tuple[torch.Tensor, torch.Tensor]) -> None:
    found = run(server, every(ELEMENTWISE, EXPRESSIONS), *pairs, out=pairs[0], number=len(EXPRESSIONS))
    right = [expected(*pairs) for expected in EXPRESSIONS.values()]
    assert [e for e, f, r in zip(EXPRESSIONS, bits(found), bits(right), strict=True) if f != r] == []


REDUCTIONS = {
    "tl.max(x, axis=0)": lambda x: x.amax(-1),
    "tl.min(x, axis=0)": lambda x: x.amin(-1),
    "tl.reduce(x, 0, larger)": lambda x: x.amax(-1),
    "tl.argmax(x, axis=0).to(tl.bfloat16)": lambda x: x.argmax(-1).bfloat16(),
    "tl.sum(x, axis=0)": lambda x: x.float().sum(-1).bfloat16(),
    "tl.sum(tl.reshape(x, (8, N // 8)))": lambda x: x.float().sum(-1).bfloat16(),
    "tl.sum((x > 0).to(tl.int32)).to(tl.bfloat16)": lambda x: (x > 0).sum(-1).bfloat16(),
    "tl.max(tl.cumsum(x, 0))": lambda x: x.float().cumsum(-1).amax(-1).bfloat16(),
}


def test_bfloat16_reductions_are_pytorchs(server: ForkServer) -> None:
    x = torch.randn(6, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    found = run(server, every(REDUCTION, REDUCTIONS), x, out=x[:, 0], number=len(REDUCTIONS))
    for (expression, expected), result in zip(REDUCTIONS.items(), found, strict=True):
        near = torch.allclose(result.float(), expected(x).float(), rtol=2**-7, atol=2**-12)
        assert near, expression


DOT = """
@triton.jit
def kernel(a, b, y, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    m, k, n = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    acc = tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]), acc)
    tl.store(y + m[:, None] * N + n[None, :], acc)
def run(a, b):
    y = torch.empty(a.shape[0], b.shape[1])
    kernel[(1,)](a, b, y, M=a.shape[0], K=a.shape[1], N=b.shape[1])
    return y
"""


DOT_DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", DOT_DTYPES)
def test_a_dot_product_is_right(server: ForkServer, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    a, b = torch.randn(16, 32, generator=generator).to(dtype), torch.randn(32, 16, generator=generator).to(dtype)
    (found,) = run(server, DOT, a, b, out=torch.empty(16, 16))
    torch.testing.assert_close(found, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_a_dot_product_of_the_smallest_float8_is_right(server: ForkServer) -> None:
    """Subnormal numbers of five exponent bits are normal nowhere below float16's own."""
    a, b = torch.full((16, 32), 2.0**-16).to(torch.float8_e5m2), torch.full((32, 16), 2.0**10).to(torch.float8_e5m2)
    (found,) = run(server, DOT, a, b, out=torch.empty(16, 16))
    assert (found == 0.5).all()


TUNED = """
@triton.autotune(
    configs=[triton.Config({"B": 16, "T": n}, num_warps=n, pre_hook=hook) for n in (1, 2, 4)], key=["n"]
)
@triton.jit
def kernel(x, y, n, B: tl.constexpr, T: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) + T, mask=i < n)
def run(x):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, y, x.numel())
    return y
"""


KEYED = (
    TUNED.partition("def run(x)")[0]
    + """
def run(x):
    y = torch.empty_like(x)
    for n in range(x.numel()):
        made = torch.zeros(n + 1)
        kernel[lambda meta: (triton.cdiv(n + 1, meta["B"]),)](torch.zeros(n + 1), made, n + 1)
        y[n] = made[0]
    return y
"""
)


def calls(candidate: KernelProcess, number: int) -> list[float]:
    """What the first element of each of some calls on zeros is."""
    x = torch.zeros(40)
    return [float(candidate.call(values(x), shaped(specs(x), [], [])).outputs[0][0]) for _ in range(number)]


def test_an_autotuner_keeps_the_config_that_it_drew(server: ForkServer) -> None:
    """As a tuner keeps the fastest; other processes draw others."""
    first = set()
    for _ in range(12):
        with contextlib.closing(kernel(server, HEAD + "hook = None\n" + TUNED)) as candidate:
            (one,) = set(calls(candidate, 3))
        first.add(one)
    assert first <= {1, 2, 4}
    assert len(first) > 1


def test_a_hook_of_a_config_runs_before_it_and_sees_the_arguments(server: ForkServer) -> None:
    hook = 'def hook(given):\n    print(sorted(given), given["T"], given["n"])\n    given["x"].fill_(10.0)\n'
    with contextlib.closing(kernel(server, HEAD + hook + TUNED)) as candidate:
        (one,) = set(calls(candidate, 2))
        said = candidate.worker.output().splitlines()
    assert [line.rpartition("] ")[2] for line in said] == [f"{one - 10:g} 40"] * 2
    assert all(name in said[0] for name in ("'x'", "'y'", "'B'"))


def test_each_key_of_an_autotuner_has_a_draw_of_its_own(server: ForkServer) -> None:
    with contextlib.closing(kernel(server, HEAD + "hook = None\n" + KEYED)) as candidate:
        x = torch.zeros(30)
        found = candidate.call(values(x), shaped(specs(x), [], [])).outputs[0]
    assert set(found.tolist()) <= {1, 2, 4}
    assert len(set(found.tolist())) > 1


HEURISTIC = """
@triton.autotune(configs=[triton.Config({"B": 8}), triton.Config({"B": 32})], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["B"] == 0})
@triton.jit
def kernel(x, y, n, B: tl.constexpr, EVEN: tl.constexpr):
    start = 0
    for block in range(0, tl.cdiv(n, B)):
        i = block * B + tl.arange(0, B)
        if EVEN:
            tl.store(y + i, tl.load(x + i) * 2)
        else:
            tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
def run(x):
    y = torch.empty(x.shape, device="cuda")
    kernel[(1,)](x, y, x.numel())
    torch.cuda.synchronize()
    return y
"""


def test_heuristics_loops_and_cuda_together(server: ForkServer) -> None:
    x = torch.arange(40.0)
    with contextlib.closing(kernel(server, HEAD + HEURISTIC, maps_cuda=True)) as candidate:
        for _ in range(3):
            called = candidate.call(values(x), shaped(specs(x), [], []))
            assert (called.unwritten, called.guards) == ([0], [])
            assert torch.equal(called.outputs[0], x * 2)
