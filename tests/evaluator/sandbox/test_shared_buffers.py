"""Memory that is lent: where a tensor lies in it, what surrounds it, and what a borrower cannot do to it."""

from __future__ import annotations

import fcntl
import gc
import itertools
import mmap
import os
import random
import resource
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.candidate import same_bits
from evaluator.sandbox.shared_buffers import (
    GUARD,
    Buffer,
    SharedTensor,
    device_buffer,
    extent_bytes,
    host_buffer,
    laid_out,
    shared_row,
    shared_tensor,
)
from evaluator.worker.memory import cuda_driver
from evaluator.worker.memory.tensors import DTYPES, spec_of
from kbs.common.errors import KoptError

CPU = torch.device("cpu")
MADE = torch.empty(6, 5, 4)
SPECS = st.fixed_dictionaries(
    {"dtype": st.sampled_from(sorted(DTYPES)), "shape": st.lists(st.integers(0, 6), max_size=3)},
)


@pytest.fixture
def buffer() -> Iterator[Buffer]:
    """Ten thousand bytes."""
    made = host_buffer(10_000)
    yield made
    made.close()


def test_a_buffer_is_as_large_as_asked_and_zero(buffer: Buffer) -> None:
    assert (buffer.kind, buffer.size, buffer.base.numel(), buffer.base.dtype) == ("host", 10_000, 10_000, torch.uint8)
    assert not bool(buffer.base.any())
    assert os.fstat(buffer.descriptor).st_size == 10_000


@pytest.mark.parametrize("size", [0, 1, 4095])
def test_no_buffer_is_smaller_than_a_page(size: int) -> None:
    made = host_buffer(size)
    assert made.size == mmap.PAGESIZE
    made.close()


def test_every_buffer_has_its_own_number_and_memory() -> None:
    several = [host_buffer(4096) for _ in range(4)]
    assert len({b.id for b in several}) == 4
    several[0].base.fill_(7)
    assert not any(bool(b.base.any()) for b in several[1:])
    for made in several:
        made.close()


def test_its_size_is_sealed(buffer: Buffer) -> None:
    """Whoever shrinks memory that another has mapped ends the other by SIGBUS."""
    for size in (0, 9_999, 10_001, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(buffer.descriptor, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(buffer.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    seals = fcntl.fcntl(buffer.descriptor, fcntl.F_GET_SEALS)
    assert seals == fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    os.pwrite(buffer.descriptor, b"x", 9_999)
    assert buffer.base[9_999] == ord("x")


def test_it_is_not_inherited_by_programs(buffer: Buffer) -> None:
    assert not os.get_inheritable(buffer.descriptor)


def test_closing_gives_back_the_descriptor_once() -> None:
    made = host_buffer(4096)
    number = made.descriptor
    made.close()
    assert made.descriptor == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    other = os.open(os.devnull, os.O_RDONLY)
    if other != number:
        os.dup2(other, number)
        os.close(other)
    made.close()  # the number is somebody else's now
    os.fstat(number)
    os.close(number)


def test_more_buffers_than_a_process_may_usually_open() -> None:
    """A model of a thousand weights; 1024 open files are the usual limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"no more than {hard} files can be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        several = [host_buffer(4096) for _ in range(300)]
        assert len({made.descriptor for made in several}) == 300
        for made in several:
            made.close()
        del several, made
        gc.collect()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_device_has_room_for_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of 128 calls with six tensors each, beside all that is open anyway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"no more than {hard} files can be opened here")
    seen: list[int] = []

    def allocate(*_: int) -> tuple[int, int, int]:
        seen.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        raise cuda_driver.CudaError("no device")

    monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
    monkeypatch.setattr(cuda_driver, "allocate", allocate)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with pytest.raises(KoptError, match="no device"):
            device_buffer(4096, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert min(seen) >= 2000


def test_closing_a_tensor_lets_go_of_its_memory() -> None:
    gc.collect()
    made = shared_tensor({"shape": [1 << 16], "dtype": "float32"}, CPU)
    assert _mapped() >= 1
    before = _mapped()
    made.close()
    del made
    gc.collect()
    assert _mapped() == before - 1


def _mapped() -> int:
    with open("/proc/self/maps") as stream:
        return sum("memfd:kopt" in line for line in stream)


@settings(deadline=None)
@given(spec=SPECS)
def test_a_tensor_lies_between_two_guards(spec: dict[str, object]) -> None:
    made = shared_tensor(spec, CPU)
    try:
        before, after = made.guards()
        assert (before.numel(), after.numel()) == (GUARD, GUARD)
        made.buffer.base.fill_(0xA5)
        size = extent_bytes(made.spec)
        inside = made.buffer.base[GUARD : GUARD + size]
        inside.zero_()
        assert bool((before == 0xA5).all())
        assert bool((after == 0xA5).all())
        assert not bool(made.tensor.clone().flatten().view(torch.uint8).any())
        inside.fill_(1)
        assert made.tensor.numel() == 0 or bool(made.tensor.clone().flatten().view(torch.uint8).all())
        assert (made.message["offset"], made.message["buffer"]) == (GUARD, made.buffer.id)
        assert size == made.tensor.nbytes
    finally:
        made.close()


def test_a_write_beside_a_tensor_is_in_a_guard() -> None:
    made = shared_tensor({"shape": [3], "dtype": "float16"}, CPU)
    made.buffer.base.fill_(0xA5)
    first = made.tensor.data_ptr() - made.buffer.base.data_ptr()
    for offset, guard in ((first - 1, 0), (first + 6, 1)):
        made.buffer.base[offset] = 0
        assert [bool((g != 0xA5).any()) for g in made.guards()] == [guard == 0, guard == 1]
        made.buffer.base[offset] = 0xA5
    made.close()


@pytest.mark.parametrize(
    ("shape", "stride", "dtype", "size"),
    [
        ([], None, "float32", 4),
        ([0, 5], None, "float32", 0),
        ([2, 3], None, "float64", 48),
        ([2, 3], [1, 2], "float32", 24),
        ([2, 3], [100, 1], "float32", 4 * 103),
        ([4, 3], [0, 1], "float32", 12),
        ([2], [7], "complex64", 64),
        ([3, 1], [2, 99], "uint8", 5),
    ],
)
def test_the_extent_in_bytes(shape: list[int], stride: list[int] | None, dtype: str, size: int) -> None:
    assert extent_bytes({"shape": shape, "dtype": dtype, "stride": stride}) == size


def test_strides_are_kept_and_so_are_the_guards_behind_gaps() -> None:
    made = shared_tensor({"shape": [2, 3], "dtype": "float32", "stride": [100, 1]}, CPU)
    assert made.tensor.stride() == (100, 1)
    made.buffer.base.fill_(0xA5)
    made.tensor.fill_(1.0)
    assert all(bool((guard == 0xA5).all()) for guard in made.guards())
    assert int((made.buffer.base != 0xA5).sum()) == 6 * 4
    made.close()


def test_other_words_of_a_spec_are_not_passed_on() -> None:
    made = shared_tensor({"shape": (2,), "dtype": "int8", "name": "x", "alias": 3}, CPU)
    assert isinstance(made, SharedTensor)
    assert made.spec == {"shape": [2], "dtype": "int8", "stride": None}
    made.close()


def test_a_full_gpu_is_an_error_with_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise cuda_driver.CudaError("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(cuda_driver, "allocate", refuse)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
    with pytest.raises(KoptError, match=r"6\.4 GB .*CUDA_ERROR_OUT_OF_MEMORY") as raised:
        device_buffer(6_400_000_000, 0)
    assert raised.value.code == "out_of_memory"


@pytest.mark.gpu
def test_device_memory_is_an_allocation_of_its_own() -> None:
    made = shared_tensor({"shape": [3], "dtype": "float32"}, torch.device("cuda:0"))
    made.tensor.copy_(torch.arange(3.0))
    assert made.tensor.tolist() == [0.0, 1.0, 2.0]
    assert made.buffer.size % (2 << 20) == 0
    made.close()


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (MADE, False),
        (MADE.transpose(0, 2), True),
        (MADE[:, :3], True),
        (MADE.flatten()[::4], True),
        (MADE.flatten()[::5], False),
        (MADE[:1].transpose(0, 1), False),
        (MADE[0, 0, :1].expand(3, 4), False),
        (torch.arange(9).unfold(0, 3, 1), False),
        (MADE[:0].transpose(0, 2), False),
        (MADE.sum(), False),
    ],
    ids=["plain", "swapped", "gaps", "wide gaps", "too wide", "a size of one", "expanded", "windows", "none", "one"],
)
def test_a_makers_strides_are_kept_unless_elements_share_memory(made: torch.Tensor, *, kept: bool) -> None:
    spec = laid_out(spec_of(made))
    assert spec["stride"] == (list(made.stride()) if kept else None)
    lent = shared_tensor(spec, CPU)
    lent.tensor.copy_(made)
    assert same_bits(lent.tensor, made.clone())
    lent.close()


def test_who_knows_one_of_a_row_knows_nothing_of_the_others() -> None:
    """They lie in an order drawn at random, with gaps, and share no element."""
    row = shared_row({"shape": [40, 25], "dtype": "float32"}, 20, CPU, random.Random(5))
    assert row.offsets != sorted(row.offsets)
    ordered = sorted(row.offsets)
    steps = [later - earlier for earlier, later in itertools.pairwise(ordered)]
    assert min(steps) >= 4000
    assert len(set(steps)) > 1
    assert all(offset % 512 == 0 for offset in row.offsets)
    for n, tensor in enumerate(row.tensors):
        tensor.fill_(float(n))
    assert [float(tensor.sum()) for tensor in row.tensors] == [1000.0 * n for n in range(20)]
    assert row.message(3)["offsets"] == row.offsets[3:]
    row.close()


def test_memory_is_let_go_of_once_its_own_device_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[object] = []
    monkeypatch.setattr(torch.cuda, "synchronize", order.append)
    base = torch.empty(8, dtype=torch.uint8, device="meta")  # stands for a GPU that is not the current one
    buffer = Buffer(1, "device", 8, -1, base, _release=lambda: order.append("released"))
    buffer.close()
    assert order == [base.device, "released"]
