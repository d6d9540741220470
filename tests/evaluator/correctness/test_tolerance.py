"""The rule that decides whether an output is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from evaluator.correctness.row_errors import Rows
from evaluator.correctness.tolerance import Comparison, compare, kappa, looser

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
SHAPES = [(), (1,), (7,), (64,), (300,), (5, 63), (5, 64), (3, 4, 65), (2, 0, 3), (100, 2), (1, 200)]


def ours(
    got: Tensor, reference: Tensor, native: Tensor | None = None, *, stretched: bool = False, piece: int = 0
) -> Comparison:
    return compare(got, reference, native, stretched=stretched, exact=False, declared=None, piece=piece)


def declared(got: Tensor, reference: Tensor, atol: float, rtol: float) -> Comparison:
    return compare(got, reference, None, stretched=False, exact=False, declared=(atol, rtol))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def noisy(reference: Tensor, dtype: torch.dtype, units: float, seed: int = 1) -> Tensor:
    """The oracle with errors of about so many units of u."""
    noise = units * torch.finfo(dtype).eps / 2 * normal(*reference.shape, seed=seed)
    return (reference * (1 + noise)).to(dtype)


def by_hand(got: Tensor, reference: Tensor, native: Tensor) -> tuple[float, float]:
    """The two ratios, written down once more with NumPy, row by row."""
    info = torch.finfo(got.dtype)
    length = got.shape[-1] if got.dim() and got.shape[-1] >= 64 else got.numel()
    star = reference.to(got.dtype).double().reshape(-1, length).numpy()
    error = got.double().reshape(-1, length).numpy() - star
    own = native.double().reshape(-1, length).numpy() - star
    rms, peak = 0.0, 0.0
    for e, p, y in zip(error, own, star, strict=True):
        unit, tiny = info.eps / 2, info.smallest_normal
        allowance = max(np.sqrt(np.mean(p * p)), unit * max(np.sqrt(np.mean(y * y)), tiny))
        rms = max(rms, float(np.sqrt(np.mean(e * e)) / allowance))
        peak = max(peak, float(np.abs(e).max() / max(np.abs(p).max(), unit * max(np.abs(y).max(), tiny))))
    return rms, peak


@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from([s for s in SHAPES if 0 not in s]),
    dtype=st.sampled_from(FLOATS),
    units=st.floats(0.1, 1e5),
    native=st.floats(0, 100),
    seed=st.integers(0, 1000),
)
def test_ratios_are_those_of_the_formula(
    shape: tuple[int, ...], dtype: torch.dtype, units: float, native: float, seed: int
) -> None:
    reference = normal(*shape, seed=seed)
    got, own = noisy(reference, dtype, units, seed + 1), noisy(reference, dtype, native, seed + 2)
    found = ours(got, reference, own)
    rms, peak = by_hand(got, reference, own)
    assert found.rms_ratio == pytest.approx(rms, rel=1e-5)
    assert found.max_ratio == pytest.approx(peak, rel=1e-5)
    assert found.kappa == kappa(dtype, stretched=False, reference=torch.float64)
    assert found.passed == (found.rms_ratio <= found.kappa and found.max_ratio <= 4 * found.kappa)
    assert found.passed == (found.detail == "")


@settings(max_examples=40, deadline=None)
@given(power=st.integers(-30, 30), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
def test_scaling_by_a_power_of_two_changes_nothing(power: int, dtype: torch.dtype) -> None:
    reference = normal(4, 100)
    got, native = noisy(reference, dtype, 30), noisy(reference, dtype, 2, seed=2)
    scale = 2.0**power
    plain, scaled = ours(got, reference, native), ours(got * scale, reference * scale, native * scale)
    assert (scaled.rms_ratio, scaled.max_ratio) == (plain.rms_ratio, plain.max_ratio)
    assert (scaled.passed, scaled.worst) == (plain.passed, plain.worst)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from(FLOATS),
    piece=st.integers(1, 500),
    odd=st.sampled_from([None, math.nan, math.inf]),
)
def test_pieces_compare_like_the_whole(
    shape: tuple[int, ...], dtype: torch.dtype, piece: int, odd: float | None
) -> None:
    reference = normal(*shape)
    if odd is not None and reference.numel() > 3:
        reference.view(-1)[3] = odd
    got, native = noisy(reference, dtype, 30), noisy(reference, dtype, 2, seed=2)
    whole, parts = ours(got, reference, native), ours(got, reference, native, piece=piece)
    assert parts.rms_ratio == pytest.approx(whole.rms_ratio, rel=1e-9)
    assert parts.max_ratio == pytest.approx(whole.max_ratio, rel=1e-9)
    assert (parts.worst, parts.passed, parts.rule) == (whole.worst, whole.passed, whole.rule)


@settings(max_examples=100, deadline=None)
@given(shape=st.sampled_from([s for s in SHAPES if 0 not in s]), piece=st.integers(1, 500))
def test_pieces_cover_everything_once(shape: tuple[int, ...], piece: int) -> None:
    tensor = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    rows = Rows(tensor, tensor, None, pairs=False, piece=piece)
    seen: list[float] = []
    for cut, first, _ in rows.cuts():
        part = rows.got[cut].flatten().tolist()
        assert part[0] == first
        assert len(part) <= piece
        seen += part
    assert seen == tensor.flatten().tolist()


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(6)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    reference = normal(6, 80) * torch.logspace(-3, 3, 6, dtype=torch.float64)[:, None]
    got, native = noisy(reference, torch.float32, 400), noisy(reference, torch.float32, 2, seed=2)
    plain, permuted = ours(got, reference, native), ours(got[order], reference[order], native[order])
    assert (permuted.rms_ratio, permuted.max_ratio) == (plain.rms_ratio, plain.max_ratio)
    assert order[permuted.worst // 80] == plain.worst // 80


@settings(max_examples=100, deadline=None)
@given(
    dtype=st.sampled_from(FLOATS),
    shape=st.sampled_from([s for s in SHAPES if math.prod(s) > 1]),
    place=st.integers(0, 10**6),
    stretched=st.booleans(),
)
def test_one_wrong_element_is_found(dtype: torch.dtype, shape: tuple[int, ...], place: int, stretched: bool) -> None:
    reference = normal(*shape)
    got, native = noisy(reference, dtype, 0.3), noisy(reference, dtype, 0.3, seed=2)
    assert ours(got, reference, native, stretched=stretched).passed
    at = place % reference.numel()
    got.view(-1)[at] += 0.25 * max(1.0, float(reference.abs().max()))
    found = ours(got, reference, native, stretched=stretched)
    assert not found.passed
    assert found.worst == at
    assert found.got == float(got.view(-1)[at])
    assert found.expected == float(reference.to(dtype).view(-1)[at])
    assert f"element {at} is" in found.detail


@pytest.mark.parametrize("piece", [0, 64 * 300])
@pytest.mark.parametrize(
    ("rows", "off", "share", "passes"),
    [(4096, 4, 1.9, True), (4096, 5, 1.1, False), (4096, 1, 2.1, False), (900, 1, 1.1, False), (900, 1, 0.9, True)],
)
def test_one_row_in_a_thousand_may_need_twice_the_constant(
    rows: int, off: int, share: float, passes: bool, piece: int
) -> None:
    """`share` of κ is what some rows are off by."""
    reference = torch.ones(rows, 64, dtype=torch.float64)
    got = reference.float()
    units = share * kappa(torch.float32, stretched=False)
    got[torch.arange(off) * (rows // off)] += units * 2**-24
    found = ours(got, reference, piece=piece)
    assert found.passed == passes
    assert found.rms_ratio == pytest.approx(units if off > rows // 1000 else units / 2, rel=0.01)


def test_a_small_row_is_not_hidden_by_a_large_one() -> None:
    reference = torch.stack([normal(128) * 1e6, normal(128, seed=1) * 1e-6])
    got = reference.float()
    got[1] *= 1.001
    assert not ours(got, reference).passed
    assert ours(got, reference).worst >= 128
    assert ours(got[:, :60], reference[:, :60]).passed, "rows shorter than 64 are no rows of their own"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("right", "got", "passes"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, -math.inf, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, math.nan, False),
        (math.inf, -math.inf, False),
        (math.inf, 1.0, False),
        (1.0, math.inf, False),
    ],
)
def test_nan_and_infinity_stand_where_the_oracle_has_them(
    dtype: torch.dtype, right: float, got: float, passes: bool
) -> None:
    reference = normal(3, 100)
    reference[1, 7] = right
    result = reference.to(dtype, copy=True)
    result[1, 7] = got
    for native in (None, reference.to(dtype)):
        assert ours(result, reference, native).passed == passes
        by_declared = compare(result, reference, native, stretched=False, exact=False, declared=(1e9, 1.0))
        assert by_declared.passed == passes
        equal = compare(result, reference, native, stretched=False, exact=True, declared=None)
        assert equal.passed == passes
        if not passes:
            assert {ours(result, reference, native).worst, by_declared.worst, equal.worst} == {107}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("right", "got", "passes"),
    [
        (math.inf, math.nan, True),
        (math.inf, -math.inf, True),
        (-math.inf, math.nan, True),
        (0.01, math.nan, True),
        (0.01, math.inf, True),
        (0.0001, math.nan, False),
        (math.nan, math.inf, False),
        (math.inf, 1.0, False),
    ],
)
def test_where_the_oracle_overflows_so_may_a_step_before(
    dtype: torch.dtype, right: float, got: float, passes: bool
) -> None:
    top = torch.finfo(dtype).max
    reference = normal(3, 100)
    reference[1, 7] = right * top if math.isfinite(right) else right
    for beyond in (1.5 * top, -4.0 * top):
        reference[2, 9] = beyond
        result = reference.to(dtype, copy=True)
        result[1, 7] = got
        assert ours(result, reference, reference.to(dtype)).passed == passes
        assert compare(result, reference, None, stretched=False, exact=False, declared=(1.0, 1.0)).passed == passes
    if math.isinf(right):  # nothing overflows: the problem means the infinity
        reference[2, 9] = 1.0
        assert not ours(result, reference).passed


def test_an_error_beside_a_nan_is_still_found() -> None:
    reference = normal(3, 100)
    reference[0, 0] = math.nan
    got = reference.float()
    got[2, 5] += 1
    found = ours(got, reference, reference.float())
    assert (found.passed, found.worst) == (False, 205)


@pytest.mark.parametrize(
    ("right", "got", "passes"),
    [
        (65510.0, math.inf, True),  # within 2u of overflow: rounds to 65504
        (65530.0, 65504.0, True),  # rounds to infinity
        (65530.0, math.inf, True),
        (65510.0, -math.inf, False),
        (65510.0, math.nan, False),
        (70000.0, 65504.0, False),
        (65000.0, math.inf, False),
        (-65530.0, -65504.0, True),
    ],
)
def test_infinity_at_the_edge_of_fp16(right: float, got: float, passes: bool) -> None:
    reference = normal(100)
    reference[3] = right
    result = reference.to(torch.float16)
    result[3] = got
    assert ours(result, reference).passed == passes


def test_a_result_that_pytorch_itself_overflows_on_is_measured_without_it() -> None:
    reference, native = normal(100), normal(100).float()
    native[4] = math.inf
    assert ours(reference.float(), reference, native).passed
    assert not ours(native, reference, native).passed
    assert not ours(noisy(reference, torch.float32, 1e4), reference, native).passed


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.uint64, torch.bool], ids=str)
def test_integers_and_bools_are_equal(dtype: torch.dtype) -> None:
    reference = torch.arange(100).remainder(2).to(dtype)
    got = reference.clone()
    assert compare(got, reference, reference, stretched=False, exact=False, declared=None).passed
    assert compare(got, reference.double(), None, stretched=False, exact=False, declared=None).passed
    got[42] = 1
    found = compare(got, reference, reference, stretched=True, exact=False, declared=None)
    assert (found.passed, found.exact, found.worst, found.expected, found.got) == (False, True, 42, 0, 1)
    assert (found.rms_ratio, found.max_ratio, math.isnan(found.kappa)) == (math.inf, math.inf, True)


def test_large_integers_differ_by_one() -> None:
    reference = torch.full((5,), 2**60)
    got = reference.clone()
    got[2] += 1
    found = ours(got, reference)
    assert (found.passed, found.worst) == (False, 2)
    assert f"{2**60 + 1}" in found.detail


def test_exact_asks_for_equality_by_value() -> None:
    reference = torch.tensor([0.0, 1.0, math.nan, 3.0], dtype=torch.float64)

    def equal(*values: float) -> bool:
        got = torch.tensor(values, dtype=torch.float32)
        return compare(got, reference, None, stretched=False, exact=True, declared=(1.0, 1.0)).passed

    assert equal(-0.0, 1.0, math.nan, 3.0)
    assert not equal(0.0, 1.0 + 2**-23, math.nan, 3.0)
    assert not equal(0.0, 1.0, 2.0, 3.0)


def test_a_declared_tolerance_takes_the_place_of_the_rule() -> None:
    reference = torch.tensor([0.0, 100.0], dtype=torch.float64)
    inside, outside = torch.tensor([0.5, 110.5]), torch.tensor([0.5, 110.75])
    assert declared(inside, reference, 0.5, 0.1).passed
    found = declared(outside, reference, 0.5, 0.1)
    assert (found.passed, found.worst, math.isnan(found.kappa)) == (False, 1, True)
    assert found.rms_ratio > 1e4, "our ratio is told beside it"
    assert not declared(outside, reference, 0.0, 0.0).passed
    assert declared(reference.float(), reference, 0.0, 0.0).passed
    assert declared(torch.tensor([1, 2]), torch.tensor([2, 2]), 1.0, 0.0).passed
    assert not declared(torch.tensor([0, 2]), torch.tensor([2, 2]), 1.0, 0.0).passed
    assert not declared(torch.tensor([True]), torch.tensor([False]), 1.0, 0.0).passed


@settings(max_examples=50, deadline=None)
@given(atol=st.floats(0, 1e-2), rtol=st.floats(0, 1e-2), units=st.floats(0.1, 1e6))
def test_a_stricter_declared_tolerance_lets_nothing_more_through(atol: float, rtol: float, units: float) -> None:
    reference = normal(4, 100)
    native, got = noisy(reference, torch.float32, 1), noisy(reference, torch.float32, units, seed=3)
    by_declared = compare(got, reference, native, stretched=False, exact=False, declared=(atol, rtol))
    if by_declared.passed and not ours(got, reference, native).passed:
        assert looser((atol, rtol), reference, native)


def test_which_declared_tolerance_is_looser() -> None:
    reference = normal(4, 100)
    native = reference.float()
    assert looser((1e-2, 1e-2), reference, native)
    assert looser((1e-4, 0.0), reference, native)
    assert not looser((1e-7, 1e-6), reference, native)
    assert not looser((1e-4, 0.0), reference, native, stretched=True)
    counts = torch.tensor([1, 2])
    assert not looser((0.5, 0.0), counts, counts)
    assert looser((1.0, 0.0), counts, counts)
    assert not looser((1.0, 1.0), counts > 1, counts > 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64], ids=str)
def test_empty_tensors_pass(dtype: torch.dtype) -> None:
    empty = torch.zeros((0, 5), dtype=dtype)
    found = ours(empty, empty, empty)
    assert (found.passed, found.worst, math.isnan(found.expected)) == (True, -1, True)


def test_complex_numbers_are_compared_as_pairs() -> None:
    reference = torch.complex(normal(3, 100), normal(3, 100, seed=1))
    native = reference.to(torch.complex64)
    assert ours(native.clone(), reference, native).passed
    assert ours(native.conj(), reference.conj(), None).passed
    got = native.clone()
    got[2, 9] += 1e-2j
    found = ours(got, reference, native)
    assert (found.passed, found.worst) == (False, 209)
    assert found.got - found.expected == pytest.approx(1e-2, rel=1e-3)
    single = ours(native[0, 0], reference[0, 0], None)
    assert (single.passed, single.worst) == (True, 0)


def test_an_oracle_of_the_same_dtype_doubles_the_constant() -> None:
    plain = kappa(torch.float32, stretched=False)
    assert kappa(torch.float32, stretched=False, reference=torch.float32) == 2 * plain
    assert kappa(torch.float64, stretched=True) == 2 * kappa(torch.float32, stretched=True)
    original = normal(100).float()
    assert ours(original, original).kappa == 2 * plain


def test_numbers_below_the_normal_range_may_be_off_by_a_step() -> None:
    step = 2.0**-24
    reference = (torch.arange(1, 200, dtype=torch.float64) + 0.3) * step
    got = (reference.to(torch.float16).double() + step * torch.arange(199).remainder(2)).to(torch.float16)
    assert ours(got, reference, reference.to(torch.float16)).passed
    assert not ours(got * 0, reference, reference.to(torch.float16)).passed


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_that_do_not_fit_in_fp64(scale: float) -> None:
    reference = normal(3, 100)
    plain, scaled = ours(reference * (1 + 1e-14), reference), ours(reference * (1 + 1e-14) * scale, reference * scale)
    assert scaled.rms_ratio == pytest.approx(plain.rms_ratio, rel=0.05)
    assert not ours(reference * scale * 1.01, reference * scale).passed
    assert not ours(-reference * 1.7e308, reference.clamp(-1, 1) * 1.7e308).passed


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_eight_bit_floats(dtype: torch.dtype) -> None:
    reference = normal(3, 100)
    assert ours(reference.to(dtype), reference, reference.to(dtype)).passed
    assert not ours((reference * 1.5).to(dtype), reference, reference.to(dtype)).passed


def test_tensors_that_do_not_belong_together() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) on cpu against \(3,\)"):
        ours(torch.zeros(3), torch.zeros(2))


def test_a_comparison_survives_json() -> None:
    reference = normal(100)
    got = reference.float()
    got[0] = math.nan
    for found in (ours(got, reference), compare(got, reference, None, stretched=False, exact=True, declared=None)):
        again = Comparison.model_validate_json(found.model_dump_json())
        assert repr(again) == repr(found)


def rounded_to_ten_bits(x: Tensor) -> Tensor:
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("length", [96, 2048])
def test_a_matmul_at_tf32_or_bf16_is_rejected(length: int) -> None:
    a, b = normal(16, length).float(), normal(length, 64, seed=1).float()
    reference, native = a.double() @ b.double(), a @ b
    assert not ours(rounded_to_ten_bits(a) @ rounded_to_ten_bits(b), reference, native).passed
    assert not ours(a.bfloat16().float() @ b.bfloat16().float(), reference, native).passed
    tiles = sum(a[:, k : k + 16] @ b[k : k + 16] for k in range(0, length, 16))
    assert isinstance(tiles, Tensor)
    assert ours(tiles, reference, native).passed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_16_bit_matmul_with_an_fp32_accumulator_is_accepted(dtype: torch.dtype) -> None:
    a, b = normal(16, 2048).to(dtype), normal(2048, 64, seed=1).to(dtype)
    reference, native = a.double() @ b.double(), a @ b
    assert ours((a.float() @ b.float()).to(dtype), reference, native).passed
    total = torch.zeros(16, 64, dtype=dtype)
    for k in range(2048):
        total = total + a[:, k : k + 1] * b[k]
    assert not ours(total, reference, native).passed


def test_honest_softmax_and_layer_norm_are_accepted() -> None:
    x = normal(8, 4096).float()
    reference, native = torch.softmax(x.double(), -1), torch.softmax(x, -1)
    scaled = x * math.log2(math.e)
    powers = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
    sums = torch.from_numpy(np.add.accumulate(powers.numpy(), axis=-1))[:, -1:]
    assert ours(powers / sums, reference, native).passed
    assert not ours(powers / powers[:, :-41].sum(-1, keepdim=True), reference, native).passed
    for offset, stretched in ((0, False), (10, True)):
        moved = x + offset
        mean, square = moved.mean(-1, keepdim=True), (moved * moved).mean(-1, keepdim=True)
        one_pass = (moved - mean) * torch.rsqrt(square - mean * mean + 1e-5)
        reference, native = functional.layer_norm(moved.double(), (4096,)), functional.layer_norm(moved, (4096,))
        assert ours(one_pass, reference, native, stretched=stretched).passed
        assert not ours(one_pass * 1.001, reference, native, stretched=stretched).passed


@pytest.mark.gpu
def test_a_gpu_compares_like_the_cpu() -> None:
    reference = normal(70, 1000)
    reference[3, 3] = math.nan
    got, native = noisy(reference, torch.float32, 500), noisy(reference, torch.float32, 2, seed=2)
    here = ours(got, reference, native)
    there = ours(got.cuda(), reference.cuda(), native.cuda())
    assert there.rms_ratio == pytest.approx(here.rms_ratio, rel=1e-9)
    assert (there.passed, there.worst, there.max_ratio) == (here.passed, here.worst, here.max_ratio)
