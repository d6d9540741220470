"""Distinct bytes of strided tensors over one storage, against marking every byte."""

from __future__ import annotations

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.worker.counting import regions
from evaluator.worker.counting.regions import Region, distinct

Raw = tuple[int, tuple[int, ...], tuple[int, ...], int]
RAW = st.integers(1, 3).flatmap(
    lambda rank: st.tuples(
        st.integers(0, 12),
        st.tuples(*[st.integers(0, 5)] * rank),
        st.tuples(*[st.integers(0, 12)] * rank),
        st.sampled_from([1, 2, 4]),
    )
)


def marked(raw: Raw) -> set[int]:
    """Every byte of a strided tensor."""
    offset, shape, stride, itemsize = raw
    return {
        (offset + sum(n * step for n, step in zip(place, stride, strict=True))) * itemsize + byte
        for place in itertools.product(*map(range, shape))
        for byte in range(itemsize)
    }


def of(tensor: torch.Tensor) -> Region:
    """The region of a tensor."""
    return Region.of(int(tensor.storage_offset()), tensor.shape, tensor.stride(), tensor.element_size())


@given(st.lists(RAW, max_size=4))
def test_distinct_bytes_are_those_that_are_marked(raws: list[Raw]) -> None:
    assert distinct([Region.of(*raw) for raw in raws]) == (len(set().union(*map(marked, raws))), True)


@given(st.lists(RAW, min_size=1, max_size=4))
def test_without_marking_there_are_never_too_many(raws: list[Raw]) -> None:
    kept, regions.MASK_BYTES = regions.MASK_BYTES, 0
    try:
        size, exact = distinct([Region.of(*raw) for raw in raws])
    finally:
        regions.MASK_BYTES = kept
    true = len(set().union(*map(marked, raws)))
    assert size == true if exact else size <= true


def test_halves_of_a_large_tensor_are_counted_without_marking() -> None:
    whole = torch.empty(1 << 16, 1 << 14, device="meta")
    left, right = whole.chunk(2, dim=1)
    middle = whole[100:200, 5000:9000]
    half = math.prod(left.shape) * 4
    assert distinct([of(left)]) == (half, True)
    assert distinct([of(left), of(right)]) == (2 * half, True)
    assert distinct([of(left), of(middle)]) == (half + 100 * (9000 - 8192) * 4, True)
    assert distinct([of(left), of(whole[:10])]) == (half + 10 * 8192 * 4, True)
    assert distinct([of(whole.t()), of(left), of(whole[::2])]) == (2 * half, True)
    assert distinct([of(whole[:3].expand(3, 1 << 14)), of(whole[0].expand(9, -1))]) == (3 * (1 << 14) * 4, True)
