"""Types of a kernel's parameters as people write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.sass.triton_types import Parameter, read_kernel_types
from kbs.common.errors import UsageError


def test_types_and_constants_in_order() -> None:
    read = read_kernel_types("k: *fp32:16, i32:16, i32, 1024, 0.5, True, 'a', i32:1", 8, 2)
    assert (read.kernel, read.num_warps, read.num_stages) == ("k", 8, 2)
    assert read.parameters == (
        Parameter("*fp32", True, None),
        Parameter("i32", True, None),
        Parameter("i32", False, None),
        Parameter("", False, 1024),
        Parameter("", False, 0.5),
        Parameter("", False, True),
        Parameter("", False, "a"),
        Parameter("", False, 1),
    )


def test_a_kernel_without_parameters() -> None:
    assert read_kernel_types("k:").parameters == ()


@pytest.mark.parametrize("text", ["", "k", "k i32", "2k: i32", "k: *float", "k: i32,", "k: *fp32:8", "k: fp33"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_kernel_types(text)
    assert caught.value.code == "signature_invalid"


@given(st.text(max_size=60).map(lambda text: f"k: {text}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert read_kernel_types(text).kernel == "k"
