"""What inputs are drawn from."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evaluator.correctness.distributions import DISTRIBUTIONS, JITTER, Distribution, draw, jitter, must_be_exact

BY_NAME = {d.name: d for d in DISTRIBUTIONS}
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
DRAWN = [d for d in DISTRIBUTIONS if d.name != "given"]
LARGE = (64, 4096)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(name: str, *shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return draw(BY_NAME[name], torch.zeros(shape, dtype=dtype), seeded(seed))


def test_names_are_unique_and_the_given_one_is_first() -> None:
    assert DISTRIBUTIONS[0].name == "given"
    assert len(BY_NAME) == len(DISTRIBUTIONS)
    assert {d.name for d in DISTRIBUTIONS if not d.stretched} == {"given", "normal", "spikes"}


@pytest.mark.parametrize("distribution", DRAWN, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 1, 70)], ids=str)
def test_a_draw_has_the_given_shape_and_dtype(
    distribution: Distribution, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    given_tensor = torch.zeros(shape, dtype=dtype)
    first, again = (draw(distribution, given_tensor, seeded(3)) for _ in range(2))
    assert (first.shape, first.dtype, first.device) == (given_tensor.shape, dtype, given_tensor.device)
    assert torch.equal(first.to(torch.complex64), again.to(torch.complex64)), "the seed decides"
    if first.numel() > 100:
        other = draw(distribution, given_tensor, seeded(4))
        assert not torch.equal(first.to(torch.complex64), other.to(torch.complex64))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: d.name)
def test_indices_and_masks_stay(distribution: Distribution) -> None:
    for given_tensor in (torch.arange(5), torch.tensor([True, False]), torch.zeros(3, dtype=torch.uint8)):
        assert draw(distribution, given_tensor, seeded()) is given_tensor
        assert jitter(given_tensor, seeded()) is given_tensor


def test_the_given_tensor_stays() -> None:
    given_tensor = torch.rand(5)
    assert draw(BY_NAME["given"], given_tensor, seeded()) is given_tensor


@pytest.mark.parametrize("distribution", DRAWN, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_draw_overflows(distribution: Distribution, dtype: torch.dtype, seed: int) -> None:
    values = draw(distribution, torch.zeros(16, 512, dtype=dtype), seeded(seed)).double()
    assert bool(values.isfinite().all())
    largest = {"huge": (1e4, 1.01e6)}.get(distribution.name, (600, 6000))
    assert float(values.abs().max()) < largest[dtype != torch.float16] * 1.01


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_magnitudes(dtype: torch.dtype) -> None:
    large = 16 if dtype == torch.float16 else 64
    expected = {"normal": (0, 1), "small": (0, 1e-3), "large": (0, large), "offset": (10, 1), "binary": (0.5, 0.5)}
    for name, (mean, deviation) in expected.items():
        values = drawn(name, *LARGE, dtype=dtype).double()
        assert float(values.mean()) == pytest.approx(mean, abs=0.01 * deviation)
        assert float(values.std()) == pytest.approx(deviation, rel=0.01)
    huge = drawn("huge", *LARGE, dtype=dtype).double()
    low, high = (2, 4) if dtype == torch.float16 else (3, 6)
    assert float(huge.abs().log10().mean()) == pytest.approx((low + high) / 2, abs=0.01)
    positive = float((huge > 0).double().mean())
    one_sign = dtype in (torch.float16, torch.bfloat16)  # no sum of theirs is what is left of a cancellation
    assert positive in (0, 1) if one_sign else positive == pytest.approx(0.5, abs=0.01)
    assert set(drawn("binary", *LARGE, dtype=dtype).flatten().tolist()) == {0.0, 1.0}


def test_mixed_spans_six_decades_and_ends_high() -> None:
    values = drawn("mixed", *LARGE).abs()
    for decade in range(-3, 3):
        share = float(((values >= 10.0**decade) & (values < 10.0 ** (decade + 1))).float().mean())
        assert 0.1 < share < 0.22
    assert float(values[:, -64:].median()) > 100 * float(values[:, :-64].median())
    assert float(values[:, -41:].square().sum() / values.square().sum()) > 0.05, "1 % of a row counts"


@pytest.mark.parametrize("length", [128, 4096, 65536])
def test_few_spikes_outweigh_a_row(length: int) -> None:
    squares = drawn("spikes", 64, length).square().sort(-1, descending=True).values
    top = squares[:, : max(8, length // 1000)].sum(-1) / squares.sum(-1)
    assert float(top.median()) > 0.5


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64], ids=str)
def test_jitter_moves_a_little(dtype: torch.dtype) -> None:
    given_tensor = torch.randn(1000, generator=seeded()).to(dtype)
    moved = jitter(given_tensor, seeded(1))
    assert moved.dtype == dtype
    ratio = (moved.to(torch.complex128) / given_tensor.to(torch.complex128) - 1).abs()
    resolution = torch.finfo(dtype).eps
    assert float(ratio.max()) <= JITTER + resolution
    assert float((moved != given_tensor).double().mean()) > 0.7
    assert float(ratio.mean()) == pytest.approx(JITTER / 2, rel=0.1)


def test_jitter_keeps_what_is_not_finite_and_does_not_overflow() -> None:
    top = torch.finfo(torch.float16).max
    given_tensor = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0, *[top] * 50], dtype=torch.float16)
    moved = jitter(given_tensor, seeded())
    assert moved[0] == float("inf")
    assert moved[1] == float("-inf")
    assert bool(moved[2].isnan())
    assert moved[3] == 0
    assert bool(moved[4:].isfinite().all())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_of_bits_are_exact_and_means_are_not(dtype: torch.dtype) -> None:
    x = drawn("binary", 8, 200, dtype=dtype)
    reference = x.double().sum(-1)
    assert must_be_exact(reference, x.sum(-1), dtype)
    assert not must_be_exact(x.double().mean(-1), x.mean(-1), dtype)
    assert not must_be_exact(reference, x.sum(-1) + 1, dtype), "PyTorch's own result is not exact"


def test_sums_beyond_the_mantissa_are_not_exact() -> None:
    x = drawn("binary", 4, 2000, dtype=torch.bfloat16)
    reference = x.double().sum(-1)
    assert not must_be_exact(reference, x.sum(-1), torch.bfloat16)
    assert must_be_exact(reference, x.float().sum(-1), torch.float32)
    huge = torch.tensor([2.0**25], dtype=torch.float64)
    assert not must_be_exact(huge, huge.float(), torch.float32)
    assert not must_be_exact(huge, huge, torch.float64), "a kernel may add at fp32 and give fp64"


def test_what_else_must_be_exact() -> None:
    counts = torch.tensor([1, 2])
    assert must_be_exact(counts, counts, torch.int64)
    assert must_be_exact(counts > 1, counts > 1, torch.bool)
    for value in (float("nan"), float("inf")):
        odd = torch.tensor([value], dtype=torch.float64)
        assert not must_be_exact(odd, odd.float(), torch.float32)
    assert not must_be_exact(torch.zeros(0), torch.zeros(0), torch.float32)


@pytest.mark.gpu
def test_a_draw_lies_where_the_given_tensor_lies() -> None:
    for distribution in DRAWN:
        there = draw(distribution, torch.zeros(3, 70, device="cuda"), seeded())
        assert torch.equal(there.cpu(), draw(distribution, torch.zeros(3, 70), seeded()))
    assert jitter(torch.ones(5, device="cuda"), seeded()).device.type == "cuda"
