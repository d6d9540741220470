"""What --bytes and --operations count, in every workload, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.request import Request
from evaluator.source.source_file import SourceFile
from evaluator.workloads import check_declared, declared, workloads
from kbs.common.errors import UsageError


def request(**words: Any) -> Request:
    """A request, of which only sizes matter."""
    return Request(candidate=SourceFile(name="k.py", text=""), **words)


def test_what_is_not_declared_is_not_counted() -> None:
    assert declared(request(), {"M": 4}) == (None, None)
    assert declared(request(bytes="M"), {"M": 4}) == (4, None)
    assert declared(request(operations="M"), {"M": 4}) == (None, 4)


@given(st.integers(1, 60_000), st.integers(1, 60_000), st.integers(1, 60_000))
def test_they_are_computed_from_the_sizes(m: int, n: int, k: int) -> None:
    asked = request(bytes="2*(M*K + K*N + M*N)", operations="2*M*N*K")
    found = declared(asked, {"M": m, "N": n, "K": k})
    assert found == (2 * (m * k + k * n + m * n), 2 * m * n * k)


def test_a_large_product_of_matrices_has_more_operations_than_a_buffer_has_elements() -> None:
    sizes = {"M": 65536, "N": 65536, "K": 65536}
    assert declared(request(operations="2*M*N*K"), sizes) == (None, 2**49)


def failure(asked: Request) -> UsageError:
    """How the words are refused."""
    with pytest.raises(UsageError) as raised:
        check_declared(asked)
    assert raised.value.code == "size_invalid"
    return raised.value


@pytest.mark.parametrize("name", ["bytes", "operations"])
@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("M*Q", "there is no size Q"),
        ("M**2", "only whole numbers, names and"),
        ("M/2", "only whole numbers, names and"),
        ("M*", "it is not an expression"),
        ("M-4", "it gives 0, not 1 to 2^53"),
        ("-M", "it gives -4, not 1 to 2^53"),
        ("M//0", "it divides by zero"),
        ("M*4503599627370496", "not 1 to 2^53"),
        ("M" + "*1" * 101, "it is longer than"),
        ("len('x')", "only whole numbers, names and"),
    ],
)
def test_what_gives_no_number_is_refused(name: str, expression: str, said: str) -> None:
    error = failure(request(dims={"M": 4}, **{name: expression}))
    assert said in error.message
    assert f"--{name} " in (error.hint or "")
    assert "--ptr-size" not in (error.hint or "")


def test_it_is_tried_with_every_workload() -> None:
    shared = {"dims": {"M": 4}, "workloads": ({"N": 2}, {"N": 9})}
    check_declared(request(bytes="M*(N-1)", **shared))
    assert "it gives 0" in failure(request(bytes="M*(N-2)", **shared)).message
    assert "there is no size N" in failure(request(bytes="M*N", dims={"M": 4})).message
    odd = request(bytes="M-6", dims={"M": 8}, vary=("M",))
    assert workloads(odd) == ({"M": 8}, {"M": 7})
    check_declared(odd)
    assert "it gives 0" in failure(odd.model_copy(update={"bytes": "M-7"})).message
