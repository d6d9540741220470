"""Tensors over shared bytes, held against PyTorch's own views."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.worker.memory.tensors import DTYPES, NAMES, extent, map_host, own, span, spec_of, view

SHAPES = st.lists(st.integers(0, 5), max_size=4)
BASE = torch.arange(64 * 1024, dtype=torch.int64).view(torch.uint8)


@st.composite
def strided(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A shape with strides that may overlap, leave gaps, or stand still."""
    shape = draw(SHAPES)
    return shape, [draw(st.integers(0, 7)) for _ in shape]


def named(name: str) -> torch.dtype:
    """The element type of a name."""
    found: torch.dtype = getattr(torch, name)
    return found


def bits(tensor: torch.Tensor) -> bytes:
    """The bytes of its elements in order."""
    return bytes(tensor.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8).tolist())


@settings(deadline=None)
@given(laid=strided())
def test_a_copy_of_its_own_has_the_strides_and_numbers(laid: tuple[list[int], list[int]]) -> None:
    shape, stride = laid
    tensor = view(BASE, 64, {"shape": shape, "dtype": "int64", "stride": stride})
    copy = own(tensor)
    assert (copy.storage_offset(), copy.stride()) == (0, tensor.stride())
    assert torch.equal(copy, tensor)
    span(copy).fill_(-1)
    assert not bool((tensor == -1).any())
    assert bool((copy == -1).all())


@settings(deadline=None)
@given(name=st.sampled_from(sorted(DTYPES)), shape=SHAPES, offset=st.integers(0, 8))
def test_a_contiguous_view_is_torchs(name: str, shape: list[int], offset: int) -> None:
    dtype = named(name)
    found = view(BASE, offset * 16, {"shape": shape, "dtype": name})
    count = torch.Size(shape).numel()
    expected = BASE[offset * 16 :][: count * dtype.itemsize].view(dtype).reshape(shape)
    assert (list(found.shape), found.dtype, found.is_contiguous()) == (shape, dtype, True)
    assert bits(found) == bits(expected)


@settings(deadline=None)
@given(name=st.sampled_from(sorted(DTYPES)), layout=strided(), offset=st.integers(0, 8))
def test_a_strided_view_is_torchs(name: str, layout: tuple[list[int], list[int]], offset: int) -> None:
    shape, stride = layout
    dtype = named(name)
    found = view(BASE, offset * 16, {"shape": shape, "dtype": name, "stride": stride})
    expected = torch.as_strided(BASE.view(dtype), shape, stride, offset * 16 // dtype.itemsize)
    assert (list(found.shape), list(found.stride())) == (shape, stride)
    assert bits(found) == bits(expected)


@settings(deadline=None)
@given(strided())
def test_the_extent_ends_at_the_last_element(layout: tuple[list[int], list[int]]) -> None:
    """Exactly so much memory that PyTorch takes it, and not one element less."""
    shape, stride = layout
    count = extent(shape, stride)
    storage = torch.zeros(count).untyped_storage()
    storage.resize_(count * 4)
    torch.empty(0).set_(storage, 0, shape, stride)
    if count:
        fixed = torch.frombuffer(bytearray(4 * count), dtype=torch.float32)
        assert fixed.as_strided(shape, stride).numel() == torch.Size(shape).numel()
        with pytest.raises(RuntimeError, match="out of bounds"):
            fixed[: count - 1].clone().as_strided(shape, stride)
    else:
        assert torch.Size(shape).numel() == 0


@given(SHAPES)
def test_the_extent_of_a_contiguous_tensor_is_its_size(shape: list[int]) -> None:
    tensor = torch.empty(shape)
    assert extent(shape, None) == tensor.numel()
    assert extent(shape, list(tensor.stride())) == tensor.numel()


@settings(deadline=None)
@given(name=st.sampled_from(sorted(DTYPES)), layout=strided())
def test_a_spec_describes_its_tensor(name: str, layout: tuple[list[int], list[int]]) -> None:
    shape, stride = layout
    tensor = torch.as_strided(BASE.view(named(name)), shape, stride)
    spec = spec_of(tensor)
    assert spec == {"shape": shape, "dtype": name, "stride": stride}
    assert bits(view(BASE, 0, spec)) == bits(tensor)


def test_every_name_is_torchs_and_comes_back() -> None:
    for name, dtype in DTYPES.items():
        assert str(dtype) == f"torch.{name}"
        assert NAMES[dtype] == name


def test_a_type_that_cannot_cross_has_its_name_and_a_sparse_tensor_no_stride() -> None:
    assert spec_of(torch.zeros(2, dtype=torch.float8_e4m3fnuz))["dtype"] == "float8_e4m3fnuz"
    assert spec_of(torch.eye(2).to_sparse())["stride"] is None


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_what_one_side_writes_the_other_reads(name: str) -> None:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, 8192)
    ours, theirs = map_host(os.dup(descriptor), 8192).base, map_host(os.dup(descriptor), 8192).base
    os.close(descriptor)
    spec = {"shape": [3, 5], "dtype": name}
    written = torch.randint(0, 2, (3, 5)).to(named(name))
    view(ours, 4096, spec).copy_(written)
    assert bits(view(theirs, 4096, spec)) == bits(written)
    assert not bool(theirs[:4096].any())


def test_mapping_closes_the_descriptor() -> None:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, 4096)
    map_host(descriptor, 4096)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
