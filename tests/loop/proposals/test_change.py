"""When two texts of a kernel are one program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.proposals.change import compare, same_machine_code
from loop.tools import MachineNote

PYTHON = '''\
"""Softmax."""
import torch
import triton


@triton.jit
def _kernel(x, n, BLOCK: int = 128):
    """A row."""
    offset = x + n  # where it is
    for step in range(4):
        offset = offset + step
    return offset


def run(x):
    return _kernel(x, 3, BLOCK=64)
'''
CUDA = """\
// Softmax.
__global__ void f(float* x, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) { sum += x[i]; }
  x[0] = sum;
}
"""
SAME = {
    "itself": lambda text: text,
    "comments": lambda text: text.replace("# where it is", "# elsewhere"),
    "white space": lambda text: text.replace("x + n", "x  +   n").replace("\n\n\n", "\n\n"),
    "docstrings": lambda text: text.replace('"""A row."""', '"""Another row."""').replace('"""Softmax."""\n', ""),
    "names of locals": lambda text: text.replace("offset", "place").replace("step", "turn"),
    "brackets": lambda text: text.replace("return offset", "return (offset)"),
}
OTHER = {
    "a number": lambda text: text.replace("range(4)", "range(8)"),
    "a launch": lambda text: text.replace("BLOCK=64", "BLOCK=256"),
    "a parameter": lambda text: text.replace("(x, n, BLOCK", "(x, m, BLOCK").replace("x + n", "x + m"),
    "an operator": lambda text: text.replace("x + n", "x - n"),
    "another variable": lambda text: text.replace("return offset", "return step"),
    "the order of statements": lambda text: text.replace("import torch\nimport triton", "import triton\nimport torch"),
    "a decorator": lambda text: text.replace("@triton.jit", "@triton.autotune"),
    "a global": lambda text: text.replace("offset = x + n", "global offset\n    offset = x + n"),
}


@pytest.mark.parametrize(
    ("head", "same"),
    [
        ("for _ in range(1):", True), ("for _ in tl.static_range(1):", True), ("for _ in range(x, x + 1):", True),
        ("for _ in range(0, 4, 4):", True), ("for _ in (3,):", True), ("if BLOCK > 0:", True),
        ("for _ in range(2):", False), ("for _ in range(n):", False), ("if BLOCK > n:", False), ("if n > 0:", False),
    ],
)  # fmt: skip
def test_what_is_done_once_in_any_case_is_no_change(head: str, same: bool) -> None:
    before = PYTHON.replace("BLOCK: int = 128", "BLOCK: tl.constexpr").replace("_kernel(x, 3,", "_kernel[(1,)](x, 3,")
    after = before.replace("    offset = x + n  #", f"    offset = x + n\n    {head}\n        offset = offset * 2  #")
    plain = before.replace("    offset = x + n  #", "    offset = x + n\n    offset = offset * 2  #")
    assert compare(plain, after, "python", "python").same is same


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_run_is_no_change(name: str) -> None:
    found = compare(PYTHON, SAME[name](PYTHON), "python", "python")
    assert found.same
    assert found.why
    assert not found.parts


@pytest.mark.parametrize("name", OTHER)
def test_what_runs_is_a_change(name: str) -> None:
    after = OTHER[name](PYTHON)
    assert after != PYTHON
    found = compare(PYTHON, after, "python", "python")
    assert not found.same
    assert found.parts


def test_the_places_are_named() -> None:
    after = PYTHON.replace("range(4)", "range(8)").replace("BLOCK=64", "BLOCK=256") + "\nWIDTH = 3\nprint(WIDTH)\n"
    assert compare(PYTHON, after, "python", "python").parts == (
        "function _kernel",
        "function run",
        "value WIDTH (new)",
        "other statements (new)",
    )


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("// Softmax.", "/* Other. */", True),
        ("  float sum", "\tfloat   sum", True),
        ("sum", "total", True),
        ("int i = 0; i < n; ++i", "int k = 0; k < n; ++k", True),
        ("0.0f", "1.0f", False),
        ("float sum", "double sum", False),
        ("sum += x[i]", "sum += x[n]", False),
        ("__global__ void f", "__global__ void g", False),
    ],
)
def test_cuda_is_compared_by_its_tokens(old: str, new: str, same: bool) -> None:
    after = CUDA.replace(old, new)
    if old.startswith("int i"):
        after = after.replace("x[i]", "x[k]")
    assert after != CUDA
    assert compare(CUDA, after, "cuda", "cuda").same is same


def test_another_language_is_a_change() -> None:
    assert compare(PYTHON, PYTHON, "cuda", "python").parts == ("language python to cuda",)


def test_what_cannot_be_parsed_is_compared_by_its_words() -> None:
    assert compare("def (", "def  (", "python", "python").same
    assert not compare("def (", "def [", "python", "python").same


def test_machine_code_is_the_same_only_where_it_is_known() -> None:
    def note(**functions: str) -> MachineNote:
        return MachineNote(target="sm_90", functions=functions, why="")

    assert same_machine_code(note(a="1"), note(b="1"))
    assert not same_machine_code(note(a="1"), note(a="2"))
    assert not same_machine_code(note(), note())


@given(st.text(max_size=400), st.text(max_size=400), st.sampled_from(["python", "cuda"]))
@settings(max_examples=80, deadline=None)
def test_any_text_can_be_compared(before: str, after: str, language: str) -> None:
    assert compare(before, before, language, language).same
    assert isinstance(compare(before, after, language, language).same, bool)


@pytest.mark.slow
def test_many_statements_of_one_name_are_compared_soon() -> None:
    text = "x = 1\n" * 60_000
    began = time.monotonic()
    assert compare(text, text + "x = 2\n", "python", "python").parts == ("value x (new)",)
    assert time.monotonic() - began < 20, "longer than linear"
