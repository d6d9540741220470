"""Plans and seeds."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.receipt.plan import BaselineChoice, Plan, SeedSchedule, TimingPlan, utc_now
from tests.evaluator.receipts import plan

MASTERS = st.binary(min_size=32, max_size=32)
INDICES = st.integers(min_value=0, max_value=2**64 - 1)


@settings(deadline=None)
@given(MASTERS, st.text(), INDICES)
def test_a_seed_fits_a_generator_and_comes_again(master: bytes, purpose: str, index: int) -> None:
    seed = SeedSchedule(master, "secret").seed(purpose.encode("utf-8", "replace").decode(), index)
    again = SeedSchedule(master, "replayed").seed(purpose.encode("utf-8", "replace").decode(), index)
    assert 0 <= seed < 2**63
    assert seed == again


@settings(deadline=None)
@given(MASTERS, st.lists(st.tuples(st.sampled_from(["inputs", "inputs\0", "weights", ""]), INDICES), unique=True))
def test_no_two_uses_share_a_seed(master: bytes, uses: list[tuple[str, int]]) -> None:
    schedule = SeedSchedule(master, "secret")
    assert len({schedule.seed(*use) for use in uses}) == len(uses)


def test_seeds_never_change_between_versions() -> None:
    """A receipt can be replayed only as long as this holds."""
    schedule = SeedSchedule.given("17")
    assert schedule.reveal() == hashlib.sha256(b"kopt seed given\x0017").hexdigest()
    assert schedule.commitment == hashlib.sha256(bytes.fromhex(schedule.reveal())).hexdigest()
    assert [schedule.seed("inputs", n) for n in range(2)] == [8887581503025574252, 5942777375684163196]


@settings(deadline=None)
@given(MASTERS, MASTERS)
def test_a_schedule_matches_its_own_commitment_alone(one: bytes, other: bytes) -> None:
    schedule = SeedSchedule(one, "secret")
    assert schedule.matches(schedule.commitment)
    assert schedule.matches(SeedSchedule(other, "secret").commitment) == (one == other)
    assert not schedule.matches("ü")


@settings(deadline=None)
@given(MASTERS)
def test_a_revealed_schedule_is_the_same(master: bytes) -> None:
    schedule = SeedSchedule(master, "secret")
    assert SeedSchedule.replayed(schedule.reveal()).master == master


def test_origins() -> None:
    assert SeedSchedule.secret().origin == "secret"
    assert SeedSchedule.secret().master != SeedSchedule.secret().master
    assert SeedSchedule.given("a") == SeedSchedule.given("a") != SeedSchedule.given("b")
    assert SeedSchedule.replayed("00" * 32).origin == "replayed"


def test_a_schedule_does_not_print_its_secret() -> None:
    schedule = SeedSchedule.secret()
    assert schedule.reveal() not in repr(schedule)
    assert repr(schedule.master) not in repr(schedule)


@pytest.mark.parametrize("revealed", ["", "zz" * 32, "00" * 31, "00" * 33])
def test_what_is_no_schedule(revealed: str) -> None:
    with pytest.raises(ValueError, match=r"32 bytes|hexadecimal"):
        SeedSchedule.replayed(revealed)


def test_the_hash_is_of_everything_in_the_plan() -> None:
    original = plan()
    assert Plan.model_validate_json(original.model_dump_json()).hash == original.hash
    changes: dict[str, Any] = {
        "name": "signal",
        "candidate_hash": "0" * 64,
        "reference_hash": None,
        "distributions": ("normal",),
        "workloads": ({"n": 65},),
        "repeats": 4,
        "strided": False,
        "sanitizers": ("memcheck",),
        "timing": TimingPlan(restarts=5, seconds=10.0, baselines=(BaselineChoice(name="eager", how="eager"),)),
        "seed_commitment": "1" * 64,
        "seed_origin": "secret",
        "device": "cuda:0",
        "time_limit": 61,
        "memory_limit": 1,
        "created": "2026-11-21T07:14:01Z",
    }
    assert changes.keys() == Plan.model_fields.keys()
    hashes = {plan(**{name: value}).hash for name, value in changes.items()}
    assert len(hashes | {original.hash}) == len(changes) + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"distributions": ()},
        {"distributions": ("normal", "normal")},
        {"workloads": ()},
        {"workloads": ({"m": 1, "n": 2}, {"n": 2, "m": 1})},
        {"sanitizers": ("memcheck", "memcheck")},
        {"repeats": 0},
        {"time_limit": float("inf")},
        {"memory_limit": 0},
        {"seed_commitment": "A" * 64},
        {"created": "yesterday"},
        {"name": "quick"},
        {"more": 1},
    ],
    ids=str,
)
def test_plans_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plan(**wrong)


EAGER = BaselineChoice(name="eager", how="eager")
LIBRARY = BaselineChoice(name="mine_2.0-b", how="package.module:function")


def timing(**changes: Any) -> TimingPlan:
    """Five restarts beside one baseline."""
    return TimingPlan(**{"restarts": 5, "seconds": 10.0, "baselines": (EAGER,), **changes})


def test_how_times_will_be_taken() -> None:
    planned = plan(timing=timing(baselines=(LIBRARY, EAGER)))
    again = Plan.model_validate_json(planned.model_dump_json())
    assert again == planned
    assert again.timing is not None
    assert [choice.name for choice in again.timing.baselines] == ["mine_2.0-b", "eager"]
    assert timing(baselines=()).baselines == ()


def test_the_hash_is_of_how_times_are_taken() -> None:
    """The order of baselines too: the verdict speaks of the first."""
    changes: list[dict[str, Any]] = [
        {},
        {"restarts": 6},
        {"seconds": 11.0},
        {"baselines": ()},
        {"baselines": (EAGER, LIBRARY)},
        {"baselines": (LIBRARY, EAGER)},
        {"baselines": (BaselineChoice(name="eager", how="compile"),)},
    ]
    assert len({plan(timing=timing(**change)).hash for change in changes} | {plan().hash}) == len(changes) + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"restarts": 0},
        {"seconds": 0.0},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"baselines": (EAGER, BaselineChoice(name="eager", how="compile"))},
        {"baselines": (BaselineChoice(name="candidate", how="eager"),)},
        {"more": 1},
    ],
    ids=str,
)
def test_times_that_cannot_be_taken(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        timing(**wrong)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("", "eager"),
        ("-x", "eager"),
        ("a b", "eager"),
        ("x" * 41, "eager"),
        ("a\n", "eager"),
        ("x", ""),
        ("x", "fast"),
        ("x", "module"),
        ("x", "module:"),
        ("x", ":function"),
        ("x", "1module:function"),
        ("x", "module:function()"),
        ("x", "module:a:b"),
        ("x", "eager\n"),
    ],
)
def test_baselines_that_cannot_be_named(name: str, how: str) -> None:
    with pytest.raises(ValidationError):
        BaselineChoice(name=name, how=how)


@pytest.mark.parametrize("how", ["eager", "compile", "m:f", "a.b.c:d.e", "_m:_f2"])
def test_baselines_that_can(how: str) -> None:
    assert BaselineChoice(name="x" * 40, how=how).how == how


def test_the_time_is_written_as_plans_take_it() -> None:
    assert plan(created=utc_now()).created.endswith("Z")
