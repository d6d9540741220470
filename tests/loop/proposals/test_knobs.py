"""What differs between two kernels, and which method changes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.proposals.change import compare
from loop.proposals.knobs import differing, folded_strings, spoken
from loop.proposals.method_kinds import needed, owned, signs

TRITON = '''import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def kernel(x, y, n, eps, B: tl.constexpr):
    """Rows."""
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        value = tl.load(x + at, mask=at < n)
        tl.store(y + at, tl.exp(value) * 0.5, mask=at < n)


def run(x):
    y = x.clone()
    kernel[(x.shape[0],)](x, y, x.shape[1], 1e-6, B=BLOCK, num_warps=4)
    return y
'''
CUDA = """#define TILE 128
__global__ void __launch_bounds__(256) scale(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
extern "C" void solve(float* x, int n) { scale<<<1, 256>>>(x, n); }
"""


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("num_warps=4", "num_warps=8", {"launch settings"}),
        ("num_warps=4", "num_warps=4, num_stages=3", {"pipeline stages"}),
        ("num_warps=4", "num_warps=2 + 2", set()),
        ("BLOCK = 1024", "BLOCK = 2048", {"tile sizes"}),
        ("BLOCK = 1024", "BLOCK = 1 << 10", set()),
        ("B=BLOCK", "B=triton.next_power_of_2(x.shape[1])", {"tile sizes"}),
        ("@triton.jit", "@triton.autotune(configs=[triton.Config({'B': 64})], key=['n'])\n@triton.jit", {"tile sizes"}),
        ("mask=at < n)\n", 'mask=at < n, eviction_policy="evict_first")\n', {"cache hints"}),
        ("1e-6", "1e-5", {"numbers of the formula"}),
        ("value) * 0.5", "value) * 0.25", {"numbers of the formula"}),
        ("tl.exp(value)", "tl.exp2(value * 1.44)", {"the code"}),
        ("range(0, n, B)", "tl.range(0, n, B, num_stages=2)", {"pipeline stages", "the code"}),
        ('"""Rows."""', '"""Fast rows."""  # very', set()),
    ],
)
def test_kinds_of_triton_are_told_apart(old: str, new: str, kinds: set[str]) -> None:
    assert old in TRITON
    assert {one.kind for one in differing(TRITON, TRITON.replace(old, new, 1), "python")} == kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ROWS", "tile sizes"),
        ("rows", "tile sizes"),
        ("chunk", "tile sizes"),
        ("us", "the code"),
        ("turns", "the code"),
    ],
)
def test_a_size_of_tiles_by_its_name(name: str, kind: str) -> None:
    text = TRITON.replace("def run(x):", f"def run(x):\n    {name} = 64").replace(
        "(x.shape[0],)", f"(x.shape[0] // {name},)"
    )
    assert {one.kind for one in differing(text, text.replace("= 64", "= 128"), "python")} == {kind}


TILES = """import triton
import triton.language as tl


@triton.jit
def kernel(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0)
    rm = i * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    row = tl.load(a + rm, mask=rm < M)
    tl.store(c + rn, tl.sum(row, 0), mask=rn < N)
"""


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("    i = tl.program_id(0)", "    i = tl.program_id(0) // 4", {"order of tiles", "the code"}),
        (
            "    i = tl.program_id(0)",
            "    i = tl.swizzle2d(tl.program_id(0), 0, 4, 4, 2)",
            {"order of tiles", "the code"},
        ),
        ("tl.program_id(1) * BN", "tl.program_id(0) * BN", {"order of tiles", "the code"}),
        ("    row = ", "    part = rm // 4\n    tl.store(c + part, rm, mask=rm < M)\n    row = ", {"the code"}),
        ("tl.sum(row, 0)", "tl.sum(row + row, 0)", {"the code"}),
        ("    rm = i * BM", "    rm = tl.program_id(0) * BM * 2", {"the code"}),
    ],
)
def test_the_order_of_tiles_is_told_apart_from_the_code(old: str, new: str, kinds: set[str]) -> None:
    assert old in TILES
    assert {one.kind for one in differing(TILES, TILES.replace(old, new), "python")} == kinds


def test_the_order_of_blocks_of_cuda_is_told_apart() -> None:
    tiled = CUDA.replace("int i = threadIdx.x;", "int b = blockIdx.x; int i = b * TILE + threadIdx.x;")
    other = tiled.replace("b * TILE", "(b % 4) * TILE")
    assert {one.kind for one in differing(tiled, other, "cuda")} == {"order of tiles", "the code"}


def test_a_new_kernel_brings_its_own_settings() -> None:
    other = TRITON.replace("kernel(", "fused(").replace("kernel[", "fused[").replace("num_warps=4", "num_warps=16")
    assert {one.kind for one in differing(TRITON, other, "python")} == {"the code"}


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("__launch_bounds__(256)", "__launch_bounds__(512)", {"launch settings"}),
        ("TILE 128", "TILE 64", {"tile sizes"}),
        ("x[i] *= 2", "x[i] += x[i]", {"the code"}),
    ],
)
def test_kinds_of_cuda_are_told_apart(old: str, new: str, kinds: set[str]) -> None:
    assert {one.kind for one in differing(CUDA, CUDA.replace(old, new, 1), "cuda")} == kinds


@pytest.mark.parametrize("bounds", ["void __launch_bounds__(SIDE * SIDE)", "__launch_bounds__(128, 2) void"])
def test_a_new_kernel_of_cuda_brings_its_own_settings(bounds: str) -> None:
    other = CUDA.replace("void __launch_bounds__(256) scale(", f"{bounds} tiled(")
    assert other != CUDA
    assert {one.kind for one in differing(CUDA, other, "cuda")} == {"the code"}
    again = other.replace("128, 2", "64, 2").replace("SIDE * SIDE", "SIDE")
    assert {one.kind for one in differing(other, again, "cuda")} == {"launch settings"}


@pytest.mark.parametrize(
    ("method", "may", "may_not"),
    [
        ("launch_config", "launch settings", "the code"),
        ("online_recomputation", "the code", "launch settings"),
        ("multi_stage_pipeline", "pipeline stages", "launch settings"),
        ("cache_modifier_hint", "cache hints", "the code"),
        ("mufu_ex2_softmax", "the code", "tile sizes"),
        ("no such method", "the code", "pipeline stages"),
    ],
)
def test_a_method_changes_what_is_its_own(method: str, may: str, may_not: str) -> None:
    own = owned((method,), "python")
    assert may in own
    assert may_not not in own
    assert needed((method,), "python") <= own


@pytest.mark.parametrize(
    ("name", "declared", "told"),
    [
        ("exp2", "online_recomputation", "mufu_ex2_softmax"),
        ("exp2", "mufu_ex2_softmax", ""),
        ("dot", "reduction", "tensor_core"),
        ("rsqrt", "reduction", "strength_reduce"),
        ("multiple_of", "coalesced_access", ""),
        ("exp2", "kernel_fusion", ""),
    ],
)
def test_a_sign_of_another_method_is_told(name: str, declared: str, told: str) -> None:
    found = list(signs("y = tl.exp(x)", f"y = tl.{name}(x)", (declared,)))
    assert found == ([(name, told)] if told else [])
    assert not list(signs(f"tl.{name}", f"y = tl.{name}(x)", (declared,)))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Load wide, and also raise num_warps to 8.", {"launch settings"}),
        ("One loop. While at it, each row gets twice the warps.", {"launch settings"}),
        ("Unroll, plus num_stages=3", {"pipeline stages"}),
        ("Load wide, and keep num_warps as it is.", set()),
        ("num_warps from 4 to 8", set()),
        ("Load wide and store wide.", set()),
    ],
)
def test_a_second_change_in_words_is_told(text: str, kinds: set[str]) -> None:
    assert {one.kind for one in spoken(text)} == kinds


def test_strings_that_are_put_together_are_read() -> None:
    assert folded_strings('t = getattr(tl, "float" + "16")') == ("float16",)
    assert folded_strings("no python") == ()


def test_arithmetic_of_constants_is_no_change() -> None:
    assert compare("x = 1024\n", "x = 1 << 10\n", "python", "python").same
    assert not compare("x = 1024\n", "x = 1 << 11\n", "python", "python").same


@given(st.text(max_size=80), st.sampled_from(["python", "cuda"]))
def test_any_text_is_compared(text: str, language: str) -> None:
    assert differing(text, text, language) == ()
    differing(TRITON if language == "python" else CUDA, text, language)
    list(spoken(text))


def test_the_code_that_differs_is_named_as_its_author_would() -> None:
    other = TRITON.replace("tl.exp(value)", "tl.exp2(value * 1.44)")
    [found] = differing(TRITON, other, "python")
    assert found.example == "function kernel"
    [found] = differing(f"{TRITON}\nwarm(1)\n", TRITON, "python")
    assert found.example == "warm(1)"
    [found] = differing(CUDA, CUDA.replace("x[i] *= 2", "x[i] += x[i]"), "cuda")
    assert found.example.startswith("+ = x [ i ] ;")
