"""Slices that were never computed, within a declared tolerance; and honest errors, which are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evaluator.correctness import slices
from evaluator.correctness.slices import wholly_wrong, wrong_by_itself
from evaluator.correctness.tolerance import compare

Make = Callable[[], tuple[Tensor, Tensor]]


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax_head() -> tuple[Tensor, Tensor]:
    """The first 128 of 4,096 columns computed."""
    right = drawn(8, 4096).softmax(-1)
    return right.float().clone().index_fill_(1, torch.arange(128, 4096), 0.0), right


def heads() -> tuple[Tensor, Tensor]:
    """Two of four heads, with rows of 32."""
    right = drawn(2, 4, 16, 32) * 1e-3
    got = right.float()
    got[:, 2:] = 0
    return got, right


def column() -> tuple[Tensor, Tensor]:
    right = drawn(256, 65) * 1e-3
    got = right.float()
    got[:, 64] = 0
    return got, right


def last_row() -> tuple[Tensor, Tensor]:
    """Another row's values, as far off as zero is."""
    right = drawn(33, 256) * 1e-3
    got = right.float()
    got[32] = got[31]
    return got, right


def negative() -> tuple[Tensor, Tensor]:
    """A sign that is wrong for a whole batch."""
    right = drawn(3, 64, 8) * 1e-3
    got = right.float()
    got[1] *= -1
    return got, right


@pytest.mark.parametrize(
    ("make", "dimension"), [(softmax_head, 1), (heads, 1), (column, 1), (last_row, 0), (negative, 0)]
)
def test_a_slice_that_was_never_computed_is_found(make: Make, dimension: int) -> None:
    got, right = make()
    found = wholly_wrong(got, right)
    assert found is not None
    assert found.dimension == dimension
    judged = compare(got, right, right.float(), stretched=False, exact=False, declared=(1e-2, 1e-2))
    assert not judged.passed
    assert judged.detail.endswith("within the declared tolerance")
    assert f"of dimension {dimension} are wrong together" in judged.detail


def rounded() -> tuple[Tensor, Tensor]:
    right = drawn(64, 64)
    return right.to(torch.bfloat16), right


def noisy() -> tuple[Tensor, Tensor]:
    """A tenth off, each element by itself."""
    right = drawn(64, 300)
    return (right * (1 + 0.1 * drawn(64, 300, seed=2))).float(), right


def cancelled() -> tuple[Tensor, Tensor]:
    """A column of sums that cancel: nothing but rounding is left of it."""
    right = drawn(256, 65)
    right[:, 7] *= 1e-9
    got = right.float()
    got[:, 7] = 0
    return got, right


def few() -> tuple[Tensor, Tensor]:
    """Rows of four small numbers, of which one is far off as a whole."""
    right = drawn(512, 4)
    right[5] = 0.3 * right[5].sign()
    got = right.float()
    got[5] *= 0.4
    return got, right


def with_nan() -> tuple[Tensor, Tensor]:
    right = drawn(16, 64)
    right[3] = torch.nan
    right[4, :] = torch.inf
    return right.float(), right


@pytest.mark.parametrize("make", [rounded, noisy, cancelled, few, with_nan])
def test_honest_errors_are_let_be(make: Make) -> None:
    assert wholly_wrong(*make()) is None


def test_what_pytorch_gets_wrong_too_is_no_fault() -> None:
    got, right = column()
    native = right.float()
    native[:, 64] *= 0.3
    assert wholly_wrong(got, right, native) is None
    assert wholly_wrong(got, right, right.float()) is not None


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 1)])
def test_shapes_without_slices(shape: tuple[int, ...]) -> None:
    assert wholly_wrong(torch.ones(shape), torch.ones(shape, dtype=torch.float64)) is None


def test_complex_numbers_are_held_as_pairs() -> None:
    right = torch.complex(drawn(32, 40), drawn(32, 40, seed=2)) * 1e-3
    got = right.to(torch.complex64)
    assert compare(got, right, None, stretched=False, exact=False, declared=(1e-2, 0.0)).passed
    got[:, 3] = 0
    assert not compare(got, right, None, stretched=False, exact=False, declared=(1e-2, 0.0)).passed


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 99), st.integers(1, 50))
def test_pieces_change_nothing(shape: list[int], seed: int, piece: int) -> None:
    right = drawn(*shape, seed=seed)
    got = right.float() * (drawn(*shape, seed=seed + 1) > -0.5)
    whole = wholly_wrong(got, right)
    kept, slices._PIECE = slices._PIECE, piece
    try:
        assert str(wholly_wrong(got, right)) == str(whole)
    finally:
        slices._PIECE = kept


# --- short dimensions, each index by its own measure ------------------------------------------------------------------


def columns(*scales: float, seed: int = 1) -> Tensor:
    """500 rows, each column of another magnitude."""
    return drawn(500, len(scales), seed=seed) * torch.tensor(scales, dtype=torch.float64)


def kept(got: Tensor, right: Tensor, native: Tensor, *, stretched: bool = False) -> bool:
    return compare(got, right, native, stretched=stretched, exact=False, declared=None).passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("stretched", [False, True])
def test_a_small_column_does_not_hide_beside_a_large_one(dtype: torch.dtype, stretched: bool) -> None:
    right = columns(1e4, 1.0, 100.0) if dtype != torch.float32 else columns(1e8, 1.0, 100.0)
    native = right.to(dtype)
    assert kept(native, right, native, stretched=stretched)
    wrong = native.clone()
    wrong[:, 1] = 0
    assert not kept(wrong, right, native, stretched=stretched)
    found = wrong_by_itself(wrong, right, native, stretched=stretched)
    assert found is not None
    assert (found.dimension, found.index) == (1, 1)
    along = wrong_by_itself(wrong.T.contiguous(), right.T, native.T, stretched=stretched)
    assert along is not None
    assert (along.dimension, along.index) == (0, 1)


def test_what_pytorch_loses_too_may_be_lost() -> None:
    right = columns(1e8, 1.0)
    native = right.float()
    native[:, 1] += 0.1 * drawn(500, seed=2).float()
    wrong = native.clone()
    wrong[:, 1] = 0
    assert wrong_by_itself(wrong, right, native, stretched=False) is None


@pytest.mark.parametrize("residue", [0.0, 1e-16, 1e-42])
def test_a_column_of_nothing_but_rounding_is_held_against_nobody(residue: float) -> None:
    """Where a difference is 0, or what float64 leaves of one, an honest kernel leaves its own rounding."""
    right = columns(1.0, residue)
    native = right.float()
    native[:, 1] = 0
    honest = native.clone()
    honest[:, 1] = 1e-8 if residue < 1e-40 or residue == 1e-16 else 0
    assert wrong_by_itself(honest, right, native, stretched=False) is None


def test_rounding_of_every_type_is_none_by_itself() -> None:
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn):
        right = columns(100.0, 0.1, 1.0)
        native = right.to(dtype)
        honest = (right * (1 + 4 * torch.finfo(dtype).eps * drawn(500, 3, seed=3))).to(dtype)
        assert wrong_by_itself(honest, right, native, stretched=False) is None, dtype


def test_a_few_elements_say_nothing_by_themselves() -> None:
    right = drawn(30, 2) * torch.tensor([1e8, 1.0])
    wrong = right.float()
    wrong[:, 1] = 0
    assert wrong_by_itself(wrong, right, right.float(), stretched=False) is None
