"""Kernels and launchers as people write them for a GPU, in the completed interpreter; each is small and our own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch

from evaluator.sandbox.fork_server import ForkServer
from tests.evaluator.workers import kernel, shaped, specs, values

HEAD = "import torch, triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
HEAD += "HALF = tl.constexpr(0.5)\n"
BODY = """
@triton.jit
def kernel(x, y, n, p, flag, none, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
{lines}
    tl.store(y + i, v, mask=i < n)
def run(x):
    y = torch.zeros_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, y, x.numel(), 0.25, True, None, B=16)
    return y
"""
X = torch.linspace(-2, 2, 40)


def ran(server: ForkServer, source: str, x: torch.Tensor = X) -> torch.Tensor:
    """What `run` of a source returns for `x`."""
    with contextlib.closing(kernel(server, HEAD + source, maps_cuda=True)) as candidate:
        called = candidate.call(values(x), shaped(specs(x), [], []))
    assert (called.unwritten, called.guards) == ([0], [])
    return called.outputs[0]


LINES: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "a float has a type": ("v = v + p.to(tl.float32) * p.to(tl.float16)", lambda x: x + 0.0625),
    "a float is no wider than the block": (
        "v = (v.to(tl.float16) * p).to(tl.float32)",
        lambda x: (x.half() / 4).float(),
    ),
    "a truth value": ("if flag:\n        v = v * 2", lambda x: x * 2),
    "an absent argument": ("if none is None:\n        v = v + 1", lambda x: x + 1),
    "libdevice": ("v = libdevice.tanh(v) + libdevice.erf(v)", lambda x: x.tanh() + x.erf()),
    "libdevice of a scalar": ("v = v + libdevice.exp(p)", lambda x: x + torch.tensor(0.25).exp()),
    "libdevice by its long name": ("v = tl.extra.cuda.libdevice.fast_expf(v)", torch.exp),
    "libdevice of two": ("v = libdevice.fast_dividef(v, libdevice.pow(p, v))", lambda x: x / 0.25**x),
    "one line of PTX": (
        'v = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)',
        torch.tanh,
    ),
    "a counter with a type": ("for k in range(3):\n        v += (k * 2 + 1).to(tl.float32)", lambda x: x + 9),
    "loops with options": (
        "for k in tl.range(0, 4, 1, num_stages=3, flatten=True):\n        v += k.to(tl.float32)\n"
        "    for k in tl.static_range(2):\n        v += k",
        lambda x: x + 7,
    ),
    "words of logic on a block": (
        "v = tl.where(not (v < 0) and v < 1 or v > 1.5, v, 0.0)",
        lambda x: torch.where((x >= 0) & (x < 1) | (x > 1.5), x, torch.zeros(())),
    ),
    "the smaller of each element": ("v = min(max(v, p), 1.0) + min(n, 3)", lambda x: x.clamp(0.25, 1) + 3),
    "words of logic on scalars": ("if n > 1 and not (p > 1 or none is not None):\n        v = -v", torch.neg),
    "a constant of the file times a block": (
        "v = HALF * v - HALF + (HALF < v) * 2.0",
        lambda x: x / 2 - 0.5 + 2 * (x > 0.5),
    ),
    "a block times a constant of the file": ("v = v * HALF / (HALF / (v + 3))", lambda x: x / 2 / (0.5 / (x + 3))),
    "the type of a constant": ("v = v.to(v.dtype.value)", lambda x: x),
    "float8 and back": ("v = v.to(tl.float8e4nv).to(tl.float32)", lambda x: x.to(torch.float8_e4m3fn).float()),
    "float8 saturates": (
        "v = (v * 1000).to(tl.float8e4nv).to(tl.float32)",
        lambda x: (x * 1000).clamp(-448, 448).to(torch.float8_e4m3fn).float(),
    ),
    "hints": (
        "i = tl.multiple_of(i, 16)\n    tl.device_print('i', i)\n    tl.static_assert(B == 16)\n    tl.debug_barrier()",
        lambda x: x,
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_kernel_runs(server: ForkServer, name: str) -> None:
    lines, expected = LINES[name]
    found = ran(server, BODY.format(lines="    " + lines))
    torch.testing.assert_close(found, expected(X), rtol=1e-5, atol=1e-6)


NAMED = """
from __future__ import annotations
import torch, triton
from triton.language import arange, associative_scan, constexpr, load, store
from triton.language.extra.cuda.libdevice import rsqrt
from triton.language.math import exp2
@triton.jit
def plus(a, b):
    return a + b
@triton.jit
def kernel(x, y, N: constexpr):
    i = arange(0, N)
    store(y + i, exp2(associative_scan(load(x + i), 0, plus)) + rsqrt(load(x + i) + 3))
def run(x):
    y = torch.empty_like(x)
    kernel[[1]](x, y, N=x.numel())
    return y
"""


def test_functions_may_be_imported_by_name(server: ForkServer) -> None:
    x = torch.linspace(-1, 1, 32)
    with contextlib.closing(kernel(server, NAMED)) as candidate:
        (found,) = candidate.call(values(x), shaped(specs(x), [], [])).outputs
    torch.testing.assert_close(found, torch.exp2(x.cumsum(0)) + torch.rsqrt(x + 3), rtol=1e-5, atol=1e-6)


OCCUPANCY = """
ACTIVE = triton.runtime.driver.active
DEVICE = ACTIVE.get_active_torch_device()
TOLD = ACTIVE.utils.get_device_properties(ACTIVE.get_current_device())
@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
def run(x):
    y = torch.empty(x.shape, device=DEVICE)
    assert ACTIVE.get_current_target().backend == "cuda" and ACTIVE.get_current_stream(0) == 0
    assert torch.cuda.get_device_capability() == divmod(ACTIVE.get_current_target().arch, 10)
    assert torch.cuda.get_device_properties(0).multi_processor_count == TOLD["multiprocessor_count"]
    with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
        made = kernel.warmup(x, y, x.numel(), B=8, grid=(1,))
        made._init_handles()
        blocks = TOLD["max_num_regs"] // (made.n_regs * TOLD["warpSize"] * made.metadata.num_warps)
        blocks = min(blocks, TOLD["max_shared_mem"] // made.metadata.shared) * TOLD["multiprocessor_count"]
        made[(min(blocks, 3), 1, 1)](x, y, x.numel(), 8)
    assert [p.name for p in kernel.params] == ["x", "y", "n", "B"]
    assert triton.testing.do_bench(lambda: kernel[(1,)](x, y, x.numel(), B=8)) > 0
    return y
"""


def test_a_launcher_may_ask_the_driver(server: ForkServer) -> None:
    assert torch.equal(ran(server, OCCUPANCY), X * 2)


PRUNED = """
def fitting(configs, given, **options):
    return [one for one in configs if one.kwargs["B"] <= given["n"]]
@triton.autotune(
    configs=[triton.Config({"B": n}) for n in (8, 32, 64)], key=["n"], prune_configs_by={"early_config_prune": fitting}
)
@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 0 + B, mask=i < n)
def run(x):
    y = torch.empty_like(x)
    kernel[lambda given: (triton.cdiv(given["x"].numel(), given["B"]),)](x, y, x.numel())
    assert kernel.best_config.kwargs["B"] == y[0]
    return y
"""


def test_a_configuration_that_is_pruned_is_not_used(server: ForkServer) -> None:
    with contextlib.closing(kernel(server, HEAD + PRUNED)) as candidate:
        found = {float(candidate.call(values(X), shaped(specs(X), [], [])).outputs[0][0]) for _ in range(3)}
    assert found in ({8}, {32})


DESCRIPTORS = """
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def kernel(a, y, M, N, B: tl.constexpr):
    made = tl.make_tensor_descriptor(y, [M, N], [N, 1], [B, B])
    for k in range(0, tl.cdiv(N, B)):
        made.store([0, k * B], a.load([0, k * B]))
        made.atomic_add([0, k * B], a.load([0, k * B]))
def run(x):
    y = torch.zeros_like(x)
    kernel[(1,)](TensorDescriptor.from_tensor(x, [8, 8]), y, *x.shape, B=8)
    return y
"""


def test_descriptors_are_loaded_stored_and_added_to(server: ForkServer) -> None:
    x = torch.randn(6, 20, generator=torch.Generator().manual_seed(1))
    assert torch.equal(ran(server, DESCRIPTORS, x), x * 2)


ATOMICS = """
@triton.jit
def kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(y + i // 8, tl.load(x + i))
    if y.dtype.element_ty == tl.float32:
        tl.atomic_xchg(y + N - 1, tl.load(x))
def run(x):
    y = torch.zeros_like(x)
    kernel[(1,)](x, y, N=x.numel())
    return y
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_atomics_of_floats(server: ForkServer, dtype: torch.dtype) -> None:
    x = torch.arange(1, 33).remainder(5).to(dtype)
    expected = torch.zeros(32, dtype=dtype)
    expected[:4] = x.reshape(4, 8).sum(1)
    if dtype is torch.float32:  # Triton exchanges no other
        expected[-1] = x[0]
    assert torch.equal(ran(server, ATOMICS, x), expected)
