"""What a journal adds up to."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.receipt.verdict import Verdict
from kbs.common.errors import KoptError
from loop.journal.events import (
    Applied,
    Event,
    Extended,
    FinalMeasured,
    Masked,
    Prepared,
    Reported,
    Stalled,
    Stopped,
)
from loop.journal.record import RunRecord
from loop.journal.state import Phase, RunState, replay
from tests.loop import events_made as made
from tests.loop.tools import run_record


def after(*events: Event) -> RunState:
    """The state after these events."""
    return replay(made.entry(number, event) for number, event in enumerate(events, 1))


def candidates(chance: random.Random) -> list[Event]:
    """One event of each kind, with numbers that may or may not fit."""
    version, attempt, parent = chance.randrange(4), chance.randrange(1, 4), chance.randrange(3)
    flag = chance.random() < 0.7
    verdict = Verdict.ACCEPTED if flag else Verdict.INCORRECT
    return [
        made.created(),
        made.hints(),
        Prepared(files={}),
        made.opened(version, None if version == 0 else parent),
        made.refused(version, attempt),
        made.submitted(version, attempt, parent),
        made.evaluated(version, attempt, verdict),
        made.profiled(version),
        made.gated(version, flag),
        made.closed(version, flag, "passed" if flag or chance.random() < 0.3 else "failed"),
        made.recorded(max(1, version)),
        made.committed(version),
        Stalled(version=version, tried=(), untried=(), masked=(parent,)),
        Masked(version=version, masked=flag, why=""),
        Extended(iterations=attempt),
        Stopped(reason="user", evidence=""),
        FinalMeasured(version=version, receipt=made.HASH, agrees=flag, ratio=None, why="", files={}),
        Reported(files={}),
        Applied(version=version, target="k.py", before=made.HASH, after=made.HASH),
    ]


def walk(seed: int, steps: int, seen: Callable[[RunState, Event, bool], None] = lambda *_: None) -> RunState:
    """A random history: events are offered, and those that cannot follow are refused."""
    chance, state, number = random.Random(seed), RunState(), 1
    for _ in range(steps):
        offered = candidates(chance)
        fitting = [event for event in offered if not state._against(event)]
        event = chance.choice(fitting if fitting and chance.random() < 0.8 else offered)
        try:
            state.apply(made.entry(number, event))
        except KoptError:
            seen(state, event, False)
            continue
        number += 1
        seen(state, event, True)
    return state


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_replaying_gives_the_state_that_the_events_led_to(seed: int) -> None:
    state = walk(seed, 60)
    assert replay(state.entries) == state
    half = state.entries[: len(state.entries) // 2]
    resumed = replay(half)
    for entry in state.entries[len(half) :]:
        resumed.apply(entry)
    assert resumed == state


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_can_follow_keeps_the_state_sound(seed: int) -> None:
    def look(state: RunState, event: Event, taken: bool) -> None:
        assert [version.number for version in state.versions] == list(range(len(state.versions)))
        assert all(version.closed for version in state.versions[:-1])
        if state.best is not None:
            best = state.versions[state.best]
            assert best.kept
            assert best.gated is not None
            assert best.gated.passed
            assert best.accepted is not None
        for version in state.versions[1:]:
            assert version.parent is not None
            assert version.parent < version.number
            assert state.versions[version.parent].passed
        for version in state.versions:
            assert [attempt.number for attempt in version.attempts] == list(range(1, len(version.attempts) + 1))
            assert [one.submission for one in version.refused] == list(range(1, len(version.refused) + 1))
            assert sum(attempt.accepted for attempt in version.attempts[:-1]) == 0
            assert (version.committed is None) or (version.closed is not None)

    walk(seed, 80, look)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_refused_event_changes_nothing(seed: int) -> None:
    state = walk(seed, 40)
    for event in candidates(random.Random(seed + 1)):
        before = deepcopy(state)
        code = ""
        try:
            state.apply(made.entry(len(state.entries) + 1, event))
        except KoptError as error:
            code = error.code
        assert code in ("", "journal_inconsistent")
        assert (state == before) is bool(code)
        state = before


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return run_record(tmp_path)


@pytest.mark.processes
def test_the_phases_of_a_run_come_in_their_order(record: RunRecord) -> None:
    seen: list[Phase] = []
    state = RunState()
    for number, event in enumerate(made.history(1), 1):
        state.apply(made.entry(number, event))
        phase = state.phase(record)
        if not seen or seen[-1] is not phase:
            seen.append(phase)
    first = [Phase.SIGNAL, Phase.EVALUATE, Phase.PROFILE, Phase.GATE, Phase.CLOSE, Phase.COMMIT, Phase.OPEN]
    second = [*first[:5], Phase.RECORD, *first[5:]]
    ending = [Phase.RESTORE, Phase.REPORT, Phase.FINISHED]
    assert seen == [Phase.PREPARE, Phase.OPEN, *first, Phase.PROPOSE, *second, *ending]


@pytest.mark.processes
def test_after_three_failed_attempts_the_version_is_closed(record: RunRecord) -> None:
    events: list[Event] = [*made.baseline(), made.opened(1, 0)]
    for attempt in (1, 2, 3):
        assert after(*events).phase(record) is Phase.PROPOSE
        events += [made.submitted(1, attempt, 0), made.evaluated(1, attempt, Verdict.INCORRECT)]
    assert after(*events).phase(record) is Phase.CLOSE
    events += [made.closed(1, False, "failed"), made.committed(1)]
    state = after(*events)
    assert (state.phase(record), state.best, state.iterations) == (Phase.OPEN, 0, 1)


@pytest.mark.processes
def test_a_failed_version_is_no_parent(record: RunRecord) -> None:
    events = [*made.baseline(), made.opened(1, 0), made.closed(1, False, "failed"), made.committed(1)]
    with pytest.raises(KoptError, match="its parent is no version that passed"):
        after(*events, made.opened(2, 1))
    assert after(*events, made.opened(2, 0)).phase(record) is Phase.PROPOSE


@pytest.mark.processes
def test_a_passed_version_that_is_not_kept_may_be_a_parent(record: RunRecord) -> None:
    state = after(*made.baseline(), *made.iteration(1, 0, kept=False), made.opened(2, 0), made.submitted(2, 1, 1))
    assert state.best == 0
    assert state.versions[2].parent == 1


@pytest.mark.processes
def test_three_refusals_in_a_row_end_a_program_s_version_and_no_agent_s(record: RunRecord) -> None:
    program = record.model_copy(update={"proposer": "command", "command": ("propose",)})
    events = [*made.baseline(), made.opened(1, 0), *(made.refused(1, number) for number in (1, 2, 3))]
    assert after(*events).phase(program) is Phase.CLOSE
    assert after(*events).phase(record) is Phase.PROPOSE
    between = [*events[:-1], made.submitted(1, 1, 0), made.evaluated(1, 1, Verdict.INCORRECT), made.refused(1, 3)]
    assert after(*between).phase(program) is Phase.PROPOSE


@pytest.mark.processes
def test_a_stopped_run_closes_the_version_that_waits_and_ends(record: RunRecord) -> None:
    events: list[Event] = [*made.baseline(), made.opened(1, 0), Stopped(reason="user", evidence="")]
    assert after(*events).phase(record) is Phase.CLOSE
    events += [made.closed(1, False, "failed"), made.committed(1)]
    assert after(*events).phase(record) is Phase.RESTORE


@pytest.mark.processes
def test_an_extended_run_goes_on_and_ends_once_more(record: RunRecord) -> None:
    events = list(made.history(2))
    state = after(*events)
    assert (state.phase(record), state.reports) == (Phase.FINISHED, 1)
    state = after(*events, Extended(iterations=4))
    assert (state.phase(record), state.cap(record)) == (Phase.OPEN, 7)
    state = after(*events, Extended(iterations=4), *made.iteration(3, 2), Stopped(reason="user", evidence=""))
    assert state.phase(record) is Phase.RESTORE
    final = FinalMeasured(version=3, receipt=made.HASH, agrees=True, ratio=None, why="", files={})
    state = after(*[entry.event for entry in state.entries], final, Reported(files={}))
    assert (state.phase(record), state.reports) == (Phase.FINISHED, 2)


@pytest.mark.processes
def test_a_baseline_that_is_not_accepted_ends_the_run(record: RunRecord) -> None:
    start = [*made.baseline()][:4]
    state = after(*start, made.evaluated(0, 1, Verdict.INCORRECT))
    assert state.phase(record) is Phase.CLOSE
    ended = after(*[e.event for e in state.entries], made.closed(0, False, "failed"), made.committed(0))
    assert ended.phase(record) is Phase.BASELINE_FAILED
    assert ended.best is None


@pytest.mark.processes
def test_the_end_rests_on_the_first_measurement_that_agrees(record: RunRecord) -> None:
    def measured(version: int, agrees: bool) -> FinalMeasured:
        return FinalMeasured(version=version, receipt=made.HASH, agrees=agrees, ratio=None, why="", files={})

    run = [*made.baseline(), *made.iteration(1, 0), *made.iteration(2, 1), Stopped(reason="user", evidence="")]
    state = after(*run, measured(2, False))
    assert (state.final, state.phase(record)) == (None, Phase.RESTORE)
    state = after(*run, measured(2, False), measured(1, True))
    assert state.final is not None
    assert (state.final.version, state.phase(record)) == (1, Phase.REPORT)
    state = after(*run, measured(2, False), measured(1, False), measured(0, False))
    assert state.final is not None
    assert (state.final.version, state.phase(record)) == (0, Phase.REPORT)


def test_masks_are_events_and_can_be_taken_back() -> None:
    run = [*made.baseline(), *made.iteration(1, 0)]
    stall = Stalled(version=1, tried=(), untried=(), masked=(1,))
    assert after(*run, Masked(version=1, masked=True, why="")).versions[1].masked
    assert after(*run, stall).versions[1].masked
    assert not after(*run, stall, Masked(version=1, masked=False, why="")).versions[1].masked


def test_files_have_the_hash_of_the_last_event_that_names_them() -> None:
    other = "c" * 64
    look = made.gated(1).model_copy(update={"checked": {"v1/plan.md": other, "run.json": other}})
    events = [*made.baseline(), made.opened(1, 0), made.submitted(1, 1, 0), made.evaluated(1, 1), made.profiled(1)]
    files = after(*events, look).files
    assert files["v1/plan.md"] == other
    assert files["run.json"] == made.HASH
    assert files["v1/attempts/a1/kernel.py"] == made.HASH
    assert files["v1/searches.jsonl"] == made.HASH


def test_a_journal_of_a_thousand_iterations_is_replayed_whole() -> None:
    state = after(*made.history(1000))
    assert state.iterations == 1000
    assert state.best == 1000
    assert state.reported is not None
    assert sum(len(version.attempts) for version in state.versions) == 1 + 1000 + 2 * 100
    assert sum(len(version.refused) for version in state.versions) == 100
