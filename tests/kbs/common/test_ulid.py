"""ULIDs sort by time, and never go back within a process."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.common import ulid

MOMENTS = st.integers(0, 2**48 - 1)
NUMBERS = st.integers(0, 2**80 - 1)


def test_ids_of_a_process_are_strictly_increasing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([5_000_000_000, 5_000_000_000, 4_000_000_000, 6_000_000_000])
    monkeypatch.setattr(ulid, "_last", 0)
    monkeypatch.setattr(ulid.time, "time_ns", lambda: next(clock))
    found = [ulid.new_ulid() for _ in range(4)]
    assert found == sorted(set(found))
    assert ulid.milliseconds(found[0]) == 5000
    assert ulid.milliseconds(found[3]) == 6000


def test_an_id_comes_after_one_of_a_clock_that_is_ahead() -> None:
    ahead = ulid.ulid_at(ulid.milliseconds(ulid.new_ulid()) + 10**9, 7)
    behind = ulid.ulid_at(1000, 0)
    assert ulid.new_ulid(ahead) == ulid.ulid_at(ulid.milliseconds(ahead), 8)
    assert behind < ulid.new_ulid(behind) < ahead, "its own clock holds where it is later"
    with pytest.raises(ValueError, match="does not fit"):
        ulid.new_ulid("7" + 25 * "Z")


def test_threads_get_different_ids() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ulid.new_ulid(), range(4000)))
    assert len(set(found)) == 4000


def test_an_id_states_the_time() -> None:
    before = time.time_ns() // 1_000_000
    stated = ulid.milliseconds(ulid.new_ulid())
    assert before - 1 <= stated <= time.time_ns() // 1_000_000 + 1


@given(MOMENTS, NUMBERS, MOMENTS, NUMBERS)
def test_ids_sort_as_their_numbers(a: int, x: int, b: int, y: int) -> None:
    first, second = ulid.ulid_at(a, x), ulid.ulid_at(b, y)
    assert (first < second) == ((a, x) < (b, y))
    assert re.fullmatch(ulid.PATTERN, first)
    assert ulid.milliseconds(first) == a


@pytest.mark.parametrize(("moment", "number"), [(-1, 0), (2**48, 0), (0, -1), (0, 2**80)])
def test_what_does_not_fit_is_refused(moment: int, number: int) -> None:
    with pytest.raises(ValueError, match="48 bits"):
        ulid.ulid_at(moment, number)
