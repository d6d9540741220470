"""Weights: constants drawn anew so that nobody can assume them, and found again under a candidate's own names."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.reference import Values
from evaluator.correctness.weights import matched, randomized, signed

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def fresh(tensor: torch.Tensor, seed: int = 1) -> torch.Tensor:
    """One weight, drawn anew where it is a constant."""
    (found,) = randomized(Values({}, [], [tensor]), torch.Generator().manual_seed(seed)).tensors
    assert (found.shape, found.dtype) == (tensor.shape, tensor.dtype)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None, max_examples=25)
@given(value=st.floats(0.01, 100), seed=st.integers(0, 2**32))
def test_a_positive_scale_stays_positive_and_varies(dtype: torch.dtype, value: float, seed: int) -> None:
    """A running variance, or a scale under a logarithm."""
    scale = torch.full((64,), value, dtype=torch.float64).to(dtype)
    found = fresh(scale, seed).double()
    base = float(scale[0].double())
    assert bool((found > 0).all())
    assert bool((found >= 0.49 * base).all())
    assert bool((found <= 1.51 * base).all() if dtype.itemsize > 1 else (found <= 1.6 * base).all())
    assert len(found.unique()) > 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_shift_of_zeros_becomes_small_numbers_of_both_signs(dtype: torch.dtype) -> None:
    found = fresh(torch.zeros(256, dtype=torch.float64).to(dtype)).double()
    assert bool((found.abs() <= 0.5).all())
    assert float(found.min()) < -0.3
    assert float(found.max()) > 0.3
    assert abs(float(found.mean())) < 0.1


def test_a_negative_constant_stays_negative() -> None:
    assert bool((fresh(torch.full((64,), -3.0)) < 0).all())


def test_every_element_is_drawn_for_itself_and_every_seed_draws_others() -> None:
    ones = torch.ones(4, 8)
    assert len(fresh(ones).unique()) == 32
    assert torch.equal(fresh(ones, 3), fresh(ones, 3))
    assert not torch.equal(fresh(ones, 3), fresh(ones, 4))


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_change_kind_by_kind_and_magnitudes_stay(dtype: torch.dtype) -> None:
    names = ["a.weight", "a.bias", "a.running_var", "b.weight", "b.drawn"]
    made = [torch.ones(64), torch.zeros(64), torch.ones(64), torch.full((8, 8), -2.0), torch.randn(64)]
    constructed = Values({}, [{"name": name} for name in names], [t.to(dtype) for t in made])
    generator = torch.Generator().manual_seed(1)
    now = randomized(constructed, generator)
    groups = list(signed(constructed, now, generator))
    assert [sorted(group) for group in groups] == [[0, 3], [2]]
    for n, other in (pair for group in groups for pair in group.items()):
        assert other.dtype == dtype
        assert torch.equal(other.double().abs(), now.tensors[n].double().abs())
        assert 16 < int((other.double() < 0).sum()) < 48


def test_one_number_alone_is_a_constant() -> None:
    assert float(fresh(torch.tensor(2.0))) != 2.0
    assert float(fresh(torch.tensor([0.0]))) != 0.0


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(16),
        torch.tensor([1.0, 1.0, 1.0, 1.0000001]),
        torch.tensor([0.0, -float("inf")]),
        torch.full((4,), -float("inf")),
        torch.full((4,), float("nan")),
        torch.full((8,), 65504.0, dtype=torch.float16),
        torch.tensor(0, dtype=torch.int64),
        torch.ones(4, dtype=torch.int32),
        torch.ones(4, dtype=torch.bool),
        torch.zeros(0),
        torch.ones(3, dtype=torch.complex64),
    ],
    ids=lambda t: f"{t.dtype}{list(t.shape)}",
)
def test_what_is_drawn_no_number_or_infinite_stays(tensor: torch.Tensor) -> None:
    """A mask of −inf may not become NaN, nor a large half overflow."""
    assert fresh(tensor) is tensor


def test_the_weights_given_are_not_changed() -> None:
    ones = torch.ones(4)
    fresh(ones)
    assert bool((ones == 1).all())


# --- names ------------------------------------------------------------------------------------------------------------


def spec(name: str, *shape: int, dtype: str = "float32") -> dict[str, Any]:
    """A weight as a worker tells it."""
    return {"name": name, "shape": list(shape), "dtype": dtype, "stride": None}


LINEAR = [spec("weight", 4, 3), spec("bias", 4)]


def test_by_name_in_any_order_and_among_others() -> None:
    assert matched(LINEAR, [spec("other", 9), spec("bias", 4), spec("weight", 4, 3)]) == ["weight", "bias"]


def test_by_order_where_names_differ() -> None:
    own = [spec("linear.weight", 4, 3), spec("linear.bias", 4)]
    assert matched(LINEAR, own) == ["linear.weight", "linear.bias"]


@pytest.mark.parametrize(
    "own",
    [
        [spec("table", 9), spec("w", 4, 3), spec("b", 4)],
        [spec("w", 4, 3), spec("table", 4, 3, 2), spec("b", 4)],
        [spec("w", 4, 3), spec("b", 4), spec("steps", dtype="int64")],
        [spec("table", 4), spec("w", 4, 3), spec("b", 4)],
        [spec("w", 4, 3), spec("b", 4), spec("table", 4, 3)],
        [spec("w", 4, 3), spec("table", 4, dtype="float64"), spec("b", 4)],
    ],
)
def test_what_a_candidate_has_besides_is_passed_over(own: list[dict[str, Any]]) -> None:
    """A table that it computes itself, for example; where it could stand for no weight, or for one in no order."""
    assert matched(LINEAR, own) == ["w", "b"]


@pytest.mark.parametrize(
    "own",
    [
        [spec("w", 4, 3), spec("table", 4), spec("b", 4)],
        [spec("w", 4, 3), spec("b", 4), spec("table", 4)],
        [spec("table", 4, 3), spec("w", 4, 3), spec("b", 4)],
        [spec("w", 4, 3), spec("b", 4), spec("v", 4, 3), spec("c", 4)],
    ],
)
def test_which_of_two_is_meant_is_not_guessed(own: list[dict[str, Any]]) -> None:
    assert matched(LINEAR, own) == "the candidate has no place for the weights weight (4, 3), bias (4,)"


def test_order_counts_only_where_all_shapes_follow_one_another() -> None:
    for own in (
        [spec("b", 4), spec("w", 4, 3)],
        [spec("w", 4, 3)],
        [spec("b", 4), spec("more", 1), spec("w", 4, 3)],
        [spec("w", 4, 3), spec("b", 4, dtype="float16")],
        [],
    ):
        assert matched(LINEAR, own) == "the candidate has no place for the weights weight (4, 3), bias (4,)"


def test_only_what_is_missing_is_named_and_not_without_end() -> None:
    assert matched(LINEAR, [spec("weight", 3, 4), spec("bias", 4)]) == (
        "the candidate has no place for the weights weight (4, 3)"
    )
    many = matched([spec(f"layer{n}", 2) for n in range(100)], [])
    assert isinstance(many, str)
    assert many.count("layer") == 5


def test_a_name_counts_before_the_order() -> None:
    """Two weights of one shape that a candidate keeps the other way round."""
    two = [spec("gate", 4), spec("up", 4)]
    assert matched(two, [spec("up", 4), spec("gate", 4)]) == ["gate", "up"]


def test_a_reference_without_weights_asks_for_none() -> None:
    assert matched([], [spec("cache", 3)]) == []


SHAPES = st.lists(st.lists(st.integers(1, 2), max_size=1), max_size=5)


@given(SHAPES, SHAPES)
def test_renamed_weights_are_found_exactly_where_one_choice_fits(
    shapes: list[list[int]], others: list[list[int]]
) -> None:
    """Against all choices of as many of the candidate's, in its order."""
    own = [spec(f"v{n}", *shape) for n, shape in enumerate(others)]
    fits = [c for c in itertools.combinations(own, len(shapes)) if [s["shape"] for s in c] == shapes]
    found = matched([spec(f"w{n}", *shape) for n, shape in enumerate(shapes)], own)
    assert found == [s["name"] for s in fits[0]] if len(fits) == 1 or not shapes else isinstance(found, str)


@given(st.lists(st.lists(st.integers(1, 3), max_size=2), max_size=5), st.randoms(use_true_random=False))
def test_a_match_has_the_right_shapes(shapes: list[list[int]], random: Any) -> None:
    reference = [spec(f"w{n}", *shape) for n, shape in enumerate(shapes)]
    own = [spec(random.choice([f"w{n}", f"v{n}"]), *shape) for n, shape in enumerate(shapes)]
    if random.random() < 0.5:
        random.shuffle(own)
    found = matched(reference, own)
    if isinstance(found, str):
        assert [s["shape"] for s in own] != shapes
        return
    by_name = {s["name"]: s["shape"] for s in own}
    assert [by_name[name] for name in found] == shapes
    assert len(set(found)) == len(shapes)
