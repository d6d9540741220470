"""Witnesses of a claimed device time: what confirms it, what refutes it, and what says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.timing.clock_checks import CrossCheck, cross_check_calls, judge_cross_check

# --- the audit --------------------------------------------------------------------------------------------------------


def walls(per_call: float, calls: int = 10, empty: float = 500.0) -> CrossCheck:
    """Turns of so many calls, of which the median takes `per_call` each."""
    whole = empty + calls * per_call
    return CrossCheck(calls, (whole + 80.0, whole, whole - 9.0), (empty - 40.0, empty, empty + 700.0))


def test_an_audit_by_hand() -> None:
    """Allowed: 1.25 · 200 us, and of what a message differs by and the host's first launch a tenth: (20 + 150)/10."""
    found = judge_cross_check(walls(205.0), 200.0, 20.0, waits=False)
    assert (found.status, found.detail) == ("confirmed", "")
    assert (found.calls, found.turns, found.empty_us, found.claim_us) == (10, 3, 500.0, 200.0)
    assert found.per_call_us == pytest.approx(205.0)
    assert found.allowed_us == pytest.approx(250.0 + 17.0)


@pytest.mark.parametrize(
    ("per_call", "claim", "enqueue", "waits", "calls", "allowed", "status"),
    [
        (266.9, 200.0, 20.0, False, 10, 267.0, "confirmed"),
        (266.9, 200.0, 166.0, False, 10, 281.6, "confirmed"),
        (281.7, 200.0, 166.0, False, 10, 281.6, "refuted"),
        (267.1, 200.0, 20.0, False, 10, 267.0, "refuted"),
        (900.0, 200.0, 20.0, False, 10, 267.0, "refuted"),
        # The call waits for the device: a launch more, whatever the host needed.
        (275.9, 200.0, 9000.0, True, 10, 276.0, "confirmed"),
        (276.1, 200.0, 9000.0, True, 10, 276.0, "refuted"),
        # The host is slower than the device, and needs up to half as long again as in its turns.
        (289.9, 200.0, 300.0, False, 10, 495.0, "confirmed"),
        (290.1, 200.0, 300.0, False, 10, 495.0, "not binding"),
        (494.9, 200.0, 300.0, False, 10, 495.0, "not binding"),
        (495.1, 200.0, 300.0, False, 10, 495.0, "refuted"),
        (900.0, 200.0, 9000.0, False, 10, 13500.0 + 915.0, "not binding"),
        (289.9, 200.0, 9000.0, False, 10, 13500.0 + 915.0, "confirmed"),
        # A short call; the host is taken to need ten microseconds at least.
        (40.0, 49.9, 5.0, False, 64, 62.375 + 155 / 64, "not binding"),
        (51.0, 50.0, 5.0, False, 64, 62.5 + 155 / 64, "confirmed"),
        (70.0, 49.9, 5.0, False, 64, 62.375 + 155 / 64, "refuted"),
        (42.1, 30.4, 31.2, False, 64, 46.8 + 181.2 / 64, "not binding"),
        (17.3, 3.0, 4.0, False, 64, 15.0 + 154 / 64, "not binding"),
        (17.5, 3.0, 4.0, False, 64, 15.0 + 154 / 64, "refuted"),
        # Too few calls for the clock: 4 · 249 us are less than a millisecond.
        (249.0, 249.0, 5.0, False, 4, 311.25 + 38.75, "not binding"),
        (250.0, 250.0, 5.0, False, 4, 312.5 + 38.75, "confirmed"),
        (400.0, 249.0, 5.0, False, 4, 311.25 + 38.75, "refuted"),
    ],
)
def test_what_a_claim_allows(
    per_call: float, claim: float, enqueue: float, waits: bool, calls: int, allowed: float, status: str
) -> None:
    found = judge_cross_check(walls(per_call, calls), claim, enqueue, waits=waits)
    assert found.allowed_us == pytest.approx(allowed)
    assert found.status == status


def test_copies_of_results_may_take_their_time_and_confirm_nothing() -> None:
    """The device may have worked while they were launched, or not: ten microseconds each."""
    slow = CrossCheck(10, (500.0 + 10 * 280.0,), (500.0,), results=2)
    found = judge_cross_check(slow, 200.0, 20.0, waits=False)
    assert (found.status, found.per_call_us, found.allowed_us) == ("not binding", 280.0, 287.0)
    assert "267.0 us fit" in found.detail
    assert judge_cross_check(slow, 190.0, 20.0, waits=False).status == "refuted"
    assert judge_cross_check(slow, 220.0, 20.0, waits=False).status == "confirmed"
    assert judge_cross_check(CrossCheck(10, (3300.0,), (500.0,)), 200.0, 20.0, waits=False).status == "refuted"


@pytest.mark.parametrize(
    ("per_call", "claim", "calls", "status"),
    [
        # 1.25 times the claim is confirmed and 1.5 times allowed, with 2 us from one call to the next and 150 us a row,
        # whatever the host said that it needs.
        (8.6, 5.0, 400, "confirmed"),
        (8.7, 5.0, 400, "not binding"),
        (9.8, 5.0, 400, "not binding"),
        (9.9, 5.0, 400, "refuted"),
        (66.3, 50.0, 80, "confirmed"),
        (66.5, 50.0, 80, "not binding"),
        (79.0, 50.0, 80, "refuted"),
        (2.0, 2.0, 400, "not binding"),
        (250.0, 250.0, 4, "confirmed"),
    ],
)
def test_what_a_claim_allows_where_the_host_has_no_part(per_call: float, claim: float, calls: int, status: str) -> None:
    found = judge_cross_check(replace(walls(per_call, calls), captured=True), claim, 9000.0, waits=False)
    assert (found.status, found.captured) == (status, True)
    assert found.allowed_us == pytest.approx(1.5 * claim + 2.0 + 150.0 / calls)


UNLESS = "a call took 300.0 us by kopt's clock, and 290.0 us fit, unless the host was the slower one"
TOO_LONG = "a call took 300.0 us by kopt's clock, and at 200.0 us claimed 267.0 us fit"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (judge_cross_check(walls(300.0), 200.0, 20.0, waits=False), TOO_LONG),
        (judge_cross_check(walls(30.0), 30.0, 20.0, waits=False), "below 50 us the launch hides what the device does"),
        (judge_cross_check(walls(60.0), 60.0, 20.0, waits=False), "10 calls are too short for the clock"),
        (judge_cross_check(walls(300.0), 200.0, 300.0, waits=False), UNLESS),
    ],
)  # fmt: skip
def test_what_an_audit_says(found: Any, said: str) -> None:
    assert found.detail == said


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (CrossCheck(8, (), ()), "no audit turn was made"),
        (CrossCheck(8, (900.0,), ()), "no audit turn was made"),
        (CrossCheck(8, (), (100.0,)), "no audit turn was made"),
        (CrossCheck(0, (), (), why="there is no room"), "there is no room"),
        (CrossCheck(8, (900.0,), (1.0,), why="it was given up"), "it was given up"),
    ],
)
def test_an_audit_that_was_not_made(made: CrossCheck, said: str) -> None:
    found = judge_cross_check(made, 200.0, 20.0, waits=False)
    assert (found.status, found.detail, found.turns) == ("not run", said, len(made.walls_us))
    assert (found.per_call_us, found.empty_us, found.allowed_us, found.claim_us) == (None, None, None, 200.0)


def test_a_turn_with_calls_that_is_faster_than_one_without_takes_no_time() -> None:
    found = judge_cross_check(CrossCheck(10, (300.0,), (450.0,)), 200.0, 20.0, waits=False)
    assert (found.per_call_us, found.status) == (0.0, "confirmed")


@pytest.mark.slow
@settings(deadline=None)
@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e4), st.booleans(), st.integers(1, 64))
def test_an_honest_claim_is_never_refuted(claim: float, launch: float, enqueue: float, waits: bool, calls: int) -> None:
    """Back to back, calls take what the slower of device and host needs, and the host half as long again as it did in
    turns; those that wait, a launch more."""
    honest = claim + min(launch, 10.0) if waits else max(claim, 1.45 * enqueue)
    assert judge_cross_check(walls(honest, calls), claim, enqueue, waits=waits).status != "refuted"


@pytest.mark.slow
@settings(deadline=None)
@given(st.floats(50.0, 1e4), st.floats(1.6, 10.0), st.floats(0.0, 1e6))
def test_whatever_the_host_is_said_to_need_a_false_claim_is_not_confirmed(
    claim: float, more: float, enqueue: float
) -> None:
    """The host's time is a claim too. 1.25 times, and its share of what differs, is all that is let through."""
    calls = cross_check_calls(claim, 1 << 20, 1 << 36)
    found = judge_cross_check(walls(claim * (more + 0.65 * (calls <= 4)), calls), claim, enqueue, waits=False)
    assert found.status != "confirmed"


@settings(deadline=None)
@given(st.floats(50, 1e4), st.floats(1.0, 3.0))
def test_a_time_of_a_third_is_always_refuted(actual: float, more: float) -> None:
    claim = actual / (3 * more)
    calls = cross_check_calls(claim, 1 << 20, 1 << 36)
    assert judge_cross_check(walls(actual, calls), claim, min(claim, 8.0), waits=False).status == "refuted"


# --- how many calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "size", "free", "calls"),
    [
        (400.0, 1 << 20, 1 << 40, 10),
        (401.0, 1 << 20, 1 << 40, 10),
        (399.0, 1 << 20, 1 << 40, 11),
        (0.0, 1, 1 << 40, 1024),
        (10.0, 1, 1 << 40, 400),
        (62.4, 1, 1 << 40, 65),
        (1e6, 1, 1 << 40, 2),
        (100.0, 1 << 30, 40 << 30, 10),
        (4000.0, 1 << 30, 8 << 30, 2),
        (4000.0, 1 << 30, (8 << 30) - 1, 1),
        (4000.0, 1 << 30, 2 << 30, 1),
        (4000.0, 1 << 30, (2 << 30) - 1, 0),
        (100.0, 1 << 30, 0, 0),
        (100.0, 0, 1 << 30, 40),
    ],
)
def test_how_many_calls_an_cross_check_sample_has(claim: float, size: int, free: int, calls: int) -> None:
    """Four milliseconds of them, at most 1024, in a quarter of the free memory.

    One where two do not fit, and 0 where one does not, with a result of its own and one to copy.
    """
    assert cross_check_calls(claim, size, free) == calls
