"""Whose fault a failure is: what the interpreter lacks is told apart from what is wrong in the kernel."""

from __future__ import annotations

import contextlib

import pytest
import torch

from evaluator.correctness.candidate import CandidateError, failed_at
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.loading.unsupported import unsupported
from tests.evaluator.workers import kernel, shaped, specs, values

SOURCE = """
import torch, triton
import triton.language as tl
from triton.language.extra import libdevice
@triton.jit
def helper(v):
    return {helper}
@triton.jit
def kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, {value})
def run(x):
    y = torch.empty_like(x)
    {host}
    kernel[(1,)](x, y{rest})
    return y
"""
ASM = 'tl.inline_asm_elementwise("shf.l.wrap.b32 $0, $1, $1, 7;", "=r,r", [v.to(tl.int32)], tl.int32, True, 1)'
LIMITS = {
    "assembly": {"value": ASM},
    "assembly in a helper": {"helper": ASM, "value": "helper(v)"},
    "a function of libdevice": {"value": "libdevice.add_ru(v, v)"},
    "an operation that the builder lacks": {
        "value": 'tl.dot_scaled(v[:, None] + v, v[:, None], "e4m3", v[:, None] + v, v[:, None], "e4m3")'
    },
    "a part of the compiled kernel": {"host": "kernel.device_caches"},
    "a part of the driver": {"host": "triton.runtime.driver.active.utils.fill_tma_descriptor"},
    "a graph": {"host": "torch.cuda.CUDAGraph()"},
    "a call into CUDA": {"host": "torch.cuda.memory_stats()\n    torch.cuda.init()"},
}
OWN = {
    "a name": ({"value": "nothing"}, "NameError"),
    "a name in a helper": ({"helper": "nothing", "value": "helper(v)"}, "NameError"),
    "a shape": ({"value": "v + tl.arange(0, 2 * N)"}, "incompatible dimensions"),
    "a type": ({"value": "v & 1"}, "IncompatibleType"),
    "a type of libdevice": ({"value": "libdevice.exp(v.to(tl.float16))"}, "KeyError"),
    "a product of rows": ({"value": "tl.dot(v, v)"}, "ranks"),
    "an index": ({"value": "tl.gather(v, i + N, 0)"}, "IndexError"),
    "an attribute": ({"value": "v.tanh_()"}, "no attribute 'tanh_'"),
    "a word too many": ({"value": "tl.exp(v, fast=True)"}, "fast"),
    "an argument": ({"rest": ""}, "missing 1 required positional argument"),
    "an error of its own": ({"host": 'raise NotImplementedError("not yet")'}, "not yet"),
    "an error of its own in a kernel": ({"helper": "v.missing.field", "value": "helper(v)"}, "missing"),
    "a host that is wrong": ({"host": "x.no_such_method()"}, "no_such_method"),
}


def raised(server: ForkServer, parts: dict[str, str]) -> CandidateError:
    """What a call of this kernel raises."""
    made = {"helper": "v", "value": "v", "host": "pass", "rest": ", N=16", **parts}
    x = torch.ones(16)
    with (
        contextlib.closing(kernel(server, SOURCE.format(**made), maps_cuda=True)) as candidate,
        pytest.raises(CandidateError) as found,
    ):
        candidate.call(values(x), shaped(specs(x), [], []))
    return found.value


@pytest.mark.parametrize("name", LIMITS)
def test_what_the_interpreter_cannot_run_is_no_fault(server: ForkServer, name: str) -> None:
    stage, words = failed_at(raised(server, LIMITS[name]))
    assert stage == "unsupported"
    assert words.startswith("Triton's interpreter cannot run it: ")


@pytest.mark.parametrize("name", OWN)
def test_a_mistake_stays_the_kernels(server: ForkServer, name: str) -> None:
    parts, said = OWN[name]
    stage, words = failed_at(raised(server, parts))
    assert stage == "call"
    assert said in words


def test_nothing_outside_triton_is_the_interpreters() -> None:
    for error in (NotImplementedError("x"), AttributeError("x"), TypeError("x"), RuntimeError("dummy base class")):
        with pytest.raises(type(error)) as found:
            raise error
        assert unsupported(found.value) == ""


def test_an_error_that_is_its_own_cause_ends() -> None:
    error = ValueError("x")
    error.__cause__ = error
    assert unsupported(error) == ""
