"""What a view of a run says, from a run with tools that measure nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.cli.run.watch import watch_lines
from kopt.services.runs.watching import event_line, views, watched
from loop.journal.state import Phase
from loop.run.driver import read_run
from tests.loop import tools
from tests.loop.driving import drive, faster, opened, propose

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def said(root: Path, now: str | None = None) -> list[str]:
    view = read_run(root)
    return list(watch_lines(watched(view, now or view.state.entries[-1].time)))


def line(lines: list[str], label: str) -> str:
    return next(one for one in lines if one.startswith(f"  {label}"))


def test_the_best_version_is_held_against_version_0_and_the_floor(root: Path) -> None:
    with opened(root, device="cuda:0", seconds=600.0) as driver:
        driver.advance()
        propose(driver, tools.kernel(1, us=50))
        # submitted, and not evaluated yet: this is what is being tried
        data = watched(read_run(root), driver.state.clock_from)
        assert data.trying.startswith("v1, attempt 1, ")
        assert (data.seconds_left, data.ended) == (600.0, False)
        driver.advance()
        data = watched(read_run(root), driver.state.clock_from)
        assert data.trying == ""
    lines = said(root)
    best, targets = line(lines, "best so far"), data.floor_us
    assert "v1, 50 µs" in best
    assert "2x by the medians of v0, 100 µs" in best
    assert ("floor" in best) == (targets is not None)
    assert "1 of 3 done" in line(lines, "iteration")
    assert line(lines, "iteration").count("#") == 7
    assert "left" in line(lines, "time")
    assert "a proposal is awaited" in line(lines, "trying")


def test_a_run_without_times(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
    lines = said(root)
    assert "no times are taken" in line(lines, "best so far")
    assert "no limit" in line(lines, "time")


def test_time_that_is_over_is_none_left(root: Path) -> None:
    with opened(root, seconds=60.0) as driver:
        driver.advance()
        assert watched(read_run(root), "2036-01-01T00:00:00Z").seconds_left == 0


def test_the_view_is_read_anew_while_the_run_goes_on_and_ends_with_it(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        driver.advance()
        counts, waits = [], 0

        def wait() -> None:
            nonlocal waits
            waits += 1
            if waits == 2:
                drive(driver, faster)

        for view in views(root, wait):
            counts.append(len(view.state.entries))
        assert view.state.phase(view.record) is Phase.FINISHED
        assert counts[0] == counts[1] < counts[2]
        assert waits == 2


def test_each_event_is_one_line(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        driver.advance()
        propose(driver, tools.kernel(1, gate="proposal:spec"))
        drive(driver, faster)
        entries = driver.state.entries
    lines = [event_line(entry) for entry in entries]
    assert all("\n" not in one and one.startswith(entry.time) for one, entry in zip(lines, entries, strict=True))
    text = "\n".join(lines)
    for part in (
        "v1 opened: a change of v0 is wanted",
        "v1 refused: proposal 1: spec: kernel.py:1: it says so",
        "v1 submitted: attempt 1: ",
        "v1 evaluated: attempt 1 accepted, 90 µs, 1.11x of its parent",
        "v1 gated: passes the gate",
        "v1 closed: passed, kept",
        "stopped: cap",
        "final measured: agrees",
    ):
        assert part in text, part
