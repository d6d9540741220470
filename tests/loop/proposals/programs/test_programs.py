"""What of a CUDA program does something, which shape a change has, and which sums cancel."""

from __future__ import annotations

import pytest

from evaluator.source.cpp_tokens import lex
from loop.proposals.change import compare
from loop.proposals.programs.cancelling import cancelling
from loop.proposals.programs.cuda_essence import live
from loop.proposals.programs.shape import another, splits_a_sum

CUDA = """#include <cuda_runtime.h>
constexpr int BLOCK = 256;
__global__ void row_sum(const float* x, float* y, int cols) {
    __shared__ float part[BLOCK];
    float acc = 0.0f;
    for (int i = threadIdx.x; i < cols; i += BLOCK) acc += x[i];
    part[threadIdx.x] = acc;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
extern "C" void solve(const float* x, float* y, int n) { row_sum<<<n, BLOCK>>>(x, y, n); }
"""
TRITON = """import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        total += tl.exp(tl.load(x + start + i, mask=start + i < n))
    whole = tl.sum(total, axis=0)
    for start in range(0, n, B):
        v = tl.load(x + start + i, mask=start + i < n)
        tl.store(y + start + i, tl.exp(v) / whole, mask=start + i < n)


def run(x, y, n):
    kernel[(1,)](x, y, n, B=256)
"""
RECIPROCAL = TRITON.replace("whole = tl.sum", "whole = 1.0 / tl.sum").replace("/ whole", "* whole")
ONE_LOOP = TRITON.replace("    for start in range(0, n, B):\n        v =", "    for start in range(0, B):\n        v =")


def spelled(text: str) -> list[str]:
    return [token.text for token in live(lex(text).tokens)]


def test_a_program_without_dead_code_stays() -> None:
    assert spelled(CUDA) == [token.text for token in lex(CUDA).tokens]


@pytest.mark.parametrize(
    "dead",
    [
        "float more = 0.0f;\n    if (cols < 0) more = x[0];", "int k = 3; int j = k + 1;", "if (false) { acc = 2; }",
        "float t = expf(acc); t += 1;", "while (0) acc += 1;", "if (cols > 3) { }",
    ],
)  # fmt: skip
def test_what_nobody_reads_or_reaches_is_no_change(dead: str) -> None:
    other = CUDA.replace("    part[threadIdx.x]", f"    {dead}\n    part[threadIdx.x]", 1)
    assert compare(CUDA, other, "cuda", "cuda").same


@pytest.mark.parametrize(
    "unused",
    ["#define FOO 3\n", "static __device__ float f(float a) { return a; }\n", "constexpr int Q = 7;\n"],
)
def test_what_nothing_names_is_no_change(unused: str) -> None:
    assert compare(CUDA, CUDA.replace("constexpr", f"{unused}constexpr", 1), "cuda", "cuda").same


@pytest.mark.parametrize(
    "alive",
    [
        "acc *= 2;",
        "if (cols < 0) acc = x[0];",
        "y[1] = acc;",
        "atomicAdd(y, acc);",
        "float t = acc++;",
        "int q = 3; y[q] = 0;",
    ],
)
def test_what_does_something_is_a_change(alive: str) -> None:
    other = CUDA.replace("    part[threadIdx.x]", f"    {alive}\n    part[threadIdx.x]", 1)
    assert not compare(CUDA, other, "cuda", "cuda").same


@pytest.mark.parametrize("text", ["}", "{", "if (", "for (;;", "}}}}", "{" * 3000, "a = {1, 2", "do { } while (0);"])
def test_any_text_is_read(text: str) -> None:
    assert isinstance(spelled(text), list)


@pytest.mark.parametrize(
    ("after", "method", "fits"),
    [
        (RECIPROCAL, "online_recomputation", False), (RECIPROCAL, "strength_reduce", True),
        (RECIPROCAL, "persistent_kernel", False), (ONE_LOOP, "online_recomputation", True),
        (ONE_LOOP, "loop_unroll", True),
    ],
)  # fmt: skip
def test_arithmetic_alone_is_no_other_method(after: str, method: str, fits: bool) -> None:
    assert (another((method,), TRITON, after, "python", {"the code"}) == "") is fits


def test_arithmetic_alone_is_told_in_cuda() -> None:
    after = CUDA.replace("acc += x[i]", "acc += x[i] * 0.5f")
    assert another(("split_k",), CUDA, after, "cuda", {"the code"})
    assert not another(("strength_reduce",), CUDA, after, "cuda", {"the code"})


@pytest.mark.parametrize(
    ("lines", "cancels"),
    [
        ("s = v * 8193.0\n    v = s - (s - v)", True), ("v = (v + 4096.0) - 4096.0", True),
        ("t = v + 4096.0\n    v = t - 4096.0", True), ("v = v * 8193.0 - v * 8192.0", True),
        ("t = a + v\n    c = (t - a) - v", False), ("v = v * 2.0 - a", False), ("v = v - a", False),
        ("j = (n + 8) - 8", False),
    ],
)  # fmt: skip
def test_a_sum_from_which_a_term_falls_out_is_told(lines: str, cancels: bool) -> None:
    text = f"@triton.jit\ndef k(x, a, n):\n    v = tl.load(x)\n    {lines}\n    tl.store(x, v)\n"
    assert bool(list(cancelling(text, "python"))) is cancels


def test_a_term_that_cancels_in_cuda_is_told() -> None:
    assert list(cancelling("v = s - ( s - v ) ;", "cuda"))
    assert list(cancelling("float t = s - v ; v = s - t ;", "cuda"))
    assert list(cancelling("v = ( v + 4096.0f ) - 4096.0f ;", "cuda"))
    assert not list(cancelling("v = s - ( t - v ) ;", "cuda"))


SECOND = """

@triton.jit
def gather(p, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(p + i, mask=i < n) + tl.load(p + n + i, mask=i < n), mask=i < n)
"""


@pytest.mark.parametrize(
    ("launches", "buffer"),
    [
        (
            "    part = torch.empty(2, n)\n    kernel[(2,)](x, part, n, B=256)\n    gather[(1,)](part, y, n, B=256)\n",
            "part",
        ),
        ("    part = x.new_zeros(2, n)\n    kernel[(2,)](x, part, n, B=256)\n    y.copy_(part.sum(0))\n", "part"),
        ("    part = torch.empty(2, n)\n    kernel[(2,)](x, part, n, B=256)\n", ""),
        ("    kernel[(2,)](x, y, n, B=256)\n    gather[(1,)](x, y, n, B=256)\n", ""),
    ],
)
def test_partial_results_that_are_added_later_are_a_split(launches: str, buffer: str) -> None:
    head, run = TRITON.split("def run")
    after = head + SECOND.lstrip() + "\n\ndef run" + run.replace("    kernel[(1,)](x, y, n, B=256)\n", launches)
    assert splits_a_sum(TRITON, after, "python") == buffer
    assert splits_a_sum(after, after, "python") == ""


def test_a_split_of_a_sum_is_told_in_cuda() -> None:
    after = CUDA.replace(
        "row_sum<<<n, BLOCK>>>(x, y, n);",
        """float* part; cudaMalloc(&part, 4 * n);
    row_sum<<<n, BLOCK>>>(x, part, n); add<<<1, BLOCK>>>(part, y, n);""",
    )
    assert splits_a_sum(CUDA, after, "cuda") == "part"
    assert splits_a_sum(CUDA, CUDA, "cuda") == ""


PADDED = """constexpr int CHUNK = 8;
constexpr int ROW = 64;
__global__ void turn(const float* x, float* y, int n) {
    __shared__ float tile[ROW * ROW];
    tile[threadIdx.y * ROW + threadIdx.x] = x[threadIdx.y * n + threadIdx.x] * 0.5f;
    __syncthreads();
    y[threadIdx.x * n + threadIdx.y] = tile[threadIdx.x * ROW + threadIdx.y];
}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ROW = 64", "ROW = 64 + CHUNK", ""),
        (
            "CHUNK = 8;\nconstexpr int ROW = 64",
            "CHUNK = 8;\nconstexpr int PAD = CHUNK;\nconstexpr int ROW = 64 + PAD",
            "",
        ),
        ("* 0.5f", "/ 2.0f", "only arithmetic on values differs"),
        ("CHUNK = 8", "CHUNK = 16", "only arithmetic on values differs"),
    ],
)
def test_a_longer_row_in_shared_memory_is_another_access(old: str, new: str, said: str) -> None:
    """Where the constant of the row's length changes; a constant that no access has changes none."""
    assert old in PADDED
    assert another(["bank_conflict"], PADDED, PADDED.replace(old, new), "cuda", {"the code"}) == said


def test_constants_that_grow_without_end_are_read() -> None:
    many = "".join(f"constexpr int C{n} = C{n - 1} * C{n - 1};\n" for n in range(1, 60))
    text = f"constexpr int C0 = 1;\n{many}{PADDED}".replace("[threadIdx.y * n", "[C59 + threadIdx.y * n")
    assert another(["bank_conflict"], text, text, "cuda", {"the code"}) == "only arithmetic on values differs"
