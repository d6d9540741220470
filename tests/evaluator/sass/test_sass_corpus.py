"""Signatures of the bundled wiki against real machine code: kernels that have a method, and kernels that have not."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.sass.compile import machine_code
from evaluator.sass.sass import Function, MethodVerdict, judge
from evaluator.sass.tools import Target, find_tool
from evaluator.sass.triton_types import read_kernel_types
from evaluator.source.source_file import read_source
from loop.planning.methods import Methods, read_methods
from wiki.library import Wikis, bundled_wiki

FILES = Path(__file__).parents[1] / "sass"
TARGETS = (80, 90, 100, 120)
_HALF, _FLOAT = "*fp16:16", "*fp32:16"
# What the parameters are, by the end of a kernel's name; the rest copy floats.
_TYPES = {
    "tensor_core__dot": f"{_HALF}, {_HALF}, {_FLOAT}, i32:16, 64",
    "packed_half": f"{_HALF}, {_HALF}, i32, 1024",
    "fp32_dot": f"{_FLOAT}, {_FLOAT}, {_FLOAT}, 32",
    "unaligned": "*fp32, *fp32, 1024",
    "pipelined": f"{_HALF}, {_HALF}, {_FLOAT}, i32:16, 64",
    "ldmatrix_stmatrix__dot": f"{_HALF}, {_HALF}, {_HALF}, i32:16, 64",
    "has__tma_descriptor__copy": f"{_HALF}, {_HALF}, i32:16, 64",
    "inline": "*i32:16, *i32:16",
    "prefetch": "*i32:16, *i32:16",
    "specialized": f"{_HALF}, {_HALF}, {_FLOAT}, i32:16, 64",
    "large_tile": f"{_FLOAT}, {_FLOAT}, {_FLOAT}, 64",
}
_SINCE_HOPPER = ("tma_", "setmaxnreg")
_PLAIN_COPY = "has__vectorized_access__copy"
_LACKED = ("async_copy", "warp_shuffle", "ldmatrix_stmatrix", "tma_descriptor", "setmaxnreg", "register_spill")
"""What the plain copy lacks: one kernel that is compiled once, not one a method."""
_NAME = re.compile(r"(?P<expected>has|lacks|unclear)__(?P<method>\w+?)__(?P<what>\w+)")
_VERDICTS = {"has": "present", "lacks": "absent", "unclear": "unverifiable"}

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None or find_tool("cuobjdump", passed_environment(())) is None,
    reason="needs nvcc and cuobjdump",
)


@pytest.fixture(scope="module")
def methods() -> Methods:
    return read_methods(Wikis([bundled_wiki()]))


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer("cuda", "", passed_environment(())) as started:
        yield started


def _can_have(target: int, method: str) -> bool:
    return target >= 90 or not method.startswith(_SINCE_HOPPER)


def _request(name: str) -> Request:
    return Request(candidate=read_source(FILES / name, "candidate"), environment=passed_environment(()))


def _asked(target: int) -> list[str]:
    """Signatures of the Triton kernels that the target can run."""
    names = re.findall(r"^def (\w+)\(", (FILES / "kernels.py").read_text("utf-8"), re.MULTILINE)
    words = []
    for name in names:
        method = _NAME.fullmatch(name)["method"]  # type: ignore[index]  # every name has this form
        if not _can_have(target, method):
            continue
        types = next((t for end, t in _TYPES.items() if name.endswith(end)), f"{_FLOAT}, {_FLOAT}, 1024")
        words.append(f"{name}: {types}")
    return words


def _check(functions: tuple[Function, ...], methods: Methods, target: int) -> dict[str, set[str]]:
    """What is wrong; methods that were seen present and absent."""
    wrong: list[str] = []
    seen: dict[str, set[str]] = {"present": set(), "absent": set()}
    for function in functions:
        match = _NAME.fullmatch(function.name)
        assert match is not None, function.name
        expected = {match["method"]: _VERDICTS[match["expected"]]}
        if function.name == _PLAIN_COPY:
            expected |= {method: "absent" for method in _LACKED if _can_have(target, method)}
        for method, wanted in expected.items():
            verdict = judge(method, methods.signatures, target, function)
            if verdict.verdict != wanted:
                wrong.append(f"{function.name}: {verdict.text}; {function.opcodes}")
            seen.setdefault(verdict.verdict, set()).add(method)
    assert not wrong, "\n".join(wrong)
    return seen


def _needless(functions: tuple[Function, ...], methods: Methods, target: int) -> list[str]:
    """Opcodes of the signatures without which every kernel that has the method is still seen to have it."""
    found = []
    for row in methods.signatures:
        having = [f for f in functions if f.name.startswith(f"has__{row.method}__")]
        for opcode in row.opcodes:
            if target in row.targets and not opcode.compiler_count:
                without = replace(row, opcodes=tuple(other for other in row.opcodes if other != opcode))
                if all(judge(row.method, [without], target, f).verdict == "present" for f in having):
                    found.append(f"{row.method}: {opcode.text}")
    return found


@needs_triton
@pytest.mark.parametrize("target", TARGETS)
def test_triton_kernels_show_what_they_have_and_nothing_else(server: ForkServer, methods: Methods, target: int) -> None:
    kernels = [read_kernel_types(text, num_warps=1 if "large_tile" in text else 4) for text in _asked(target)]
    made = machine_code(server, _request("kernels.py"), Target(target), kernels)
    assert not made.compile_error
    assert {f.name for f in made.functions} == {k.kernel for k in kernels}
    seen = _check(made.functions, methods, target)
    wanted = {row.method for row in methods.signatures if _can_have(target, row.method)}
    assert seen["present"] == wanted
    assert seen["absent"] == wanted


@needs_nvcc
@pytest.mark.parametrize("target", TARGETS)
def test_cuda_kernels_show_what_they_have_and_nothing_else(server: ForkServer, methods: Methods, target: int) -> None:
    made = machine_code(server, _request("kernels.cu"), Target(target))
    assert not made.compile_error
    seen = _check(made.functions, methods, target)
    wanted = {row.method for row in methods.signatures if _can_have(target, row.method)}
    assert seen["present"] == wanted
    assert seen["absent"] == wanted
    assert seen["unverifiable"] == {"vectorized_access", "warp_shuffle"}
    assert _needless(made.functions, methods, target) == []


@needs_triton
def test_a_search_for_mma_would_be_wrong(server: ForkServer, methods: Methods) -> None:
    kernels = [read_kernel_types(t) for t in _asked(80) if "packed_half" in t]
    (function,) = machine_code(server, _request("kernels.py"), Target(80), kernels).functions
    assert function.opcodes["HFMA2.MMA"] > 0
    assert judge("tensor_core", methods.signatures, 80, function).verdict == "absent"


@needs_triton
def test_a_method_without_a_signature_for_the_target_is_unverifiable(server: ForkServer, methods: Methods) -> None:
    kernels = [read_kernel_types(t) for t in _asked(80) if "sum" in t]
    (function,) = machine_code(server, _request("kernels.py"), Target(80), kernels).functions
    verdict: MethodVerdict = judge("tma_descriptor", methods.signatures, 80, function)
    assert verdict.text.startswith("unverifiable: no signature for sm_80 is known, only for sm_90")
