"""A run from its first event to its end, with tools that measure nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evaluator.receipt.receipt import parse
from evaluator.store.seal import load_key, verify
from kbs.common.errors import UsageError
from loop.journal import registry as known
from loop.journal.events import Stalled, Stopped
from loop.journal.state import Phase
from loop.run.driver import create_run
from tests.loop import crashes, tools
from tests.loop.driving import drive, faster, opened, propose

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_run_from_its_plan_to_its_report(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        assert drive(driver, faster) is Phase.FINISHED
        state = driver.state
    assert [version.closed and version.closed.kept for version in state.versions] == [True] * 4
    assert (state.best, state.iterations) == (3, 3)
    assert state.stopped == Stopped(reason="cap", evidence="3 of 3 iterations are done; 3 were kept")
    assert state.final is not None
    assert state.final.ratio is not None
    assert state.final.ratio[0] == pytest.approx(1 / 0.9**3)
    best = tools.kernel(3, us=100 * 0.9**3).encode()
    assert (root / "best" / "kernel.py").read_bytes() == best
    assert (root / "trajectory" / "v3-a1.py").read_bytes() == best
    assert (root / "current_iteration.txt").read_text() == "3\n"
    assert crashes.git(root, "log", "--format=%s").splitlines() == [
        "[final] restore v3 (1.37x): cap",
        "[iter 3] Load four words at once, variant 3.",
        "[iter 2] Load four words at once, variant 2.",
        "[iter 1] Load four words at once, variant 1.",
        "[baseline] softmax.py",
    ]
    assert crashes.git(root, "status", "--porcelain") == ""
    key = load_key(root.parent / "home")
    receipts = sorted(root.glob("v*/attempts/*/receipt.json")) + sorted(root.glob("final/*/receipt.json"))
    assert len(receipts) == 5
    assert all(verify(path.read_bytes(), key).ok for path in receipts)
    assert len({parse(path.read_bytes()).seed for path in receipts}) == 5
    assert [run.root for run in known.known_runs(root.parent / "home")] == [root]


def test_every_file_that_an_event_names_has_its_hash(root: Path) -> None:
    with opened(root) as driver:
        drive(driver, faster)
        named = driver.state.files
    there = {name: root / name for name in named if (root / name).exists()}
    assert set(named) == set(there)
    changed = [name for name, path in there.items() if hashlib.sha256(path.read_bytes()).hexdigest() != named[name]]
    assert changed == []


def test_the_end_that_was_opened_again_changes_nothing(root: Path) -> None:
    with opened(root) as driver:
        drive(driver, faster)
    before, head = (root / "journal.jsonl").read_bytes(), crashes.git(root, "rev-parse", "HEAD")
    with opened(root) as driver:
        assert driver.advance() is Phase.FINISHED
    assert (root / "journal.jsonl").read_bytes() == before
    assert crashes.git(root, "rev-parse", "HEAD") == head


def test_on_the_cpu_nothing_is_kept_unless_that_was_asked_for(root: Path) -> None:
    with opened(root, accept_unmeasured=False) as driver:
        drive(driver, faster)
        assert driver.state.best == 0
        assert [version.passed for version in driver.state.versions] == [True] * 4
        assert all(version.opened.parent == 0 for version in driver.state.versions[1:])
    assert (root / "best" / "kernel.py").read_bytes() == tools.kernel(0, us=100).encode()


def test_a_slower_version_is_kept_as_a_file_and_not_as_the_best(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        drive(driver, lambda version, _: tools.kernel(version, us={1: 80, 2: 90, 3: 70}[version]))
        state = driver.state
    assert [version.kept for version in state.versions] == [True, True, False, True]
    assert [version.parent for version in state.versions] == [None, 0, 1, 1]
    assert (root / "v2" / "kernel.py").read_bytes() == tools.kernel(2, us=90).encode()


def test_three_failed_attempts_close_a_version_and_the_run_goes_on(root: Path) -> None:
    def made(version: int, attempt: int) -> str:
        return tools.kernel(10 * version + attempt, verdict="incorrect" if version == 2 else "accepted")

    with opened(root) as driver:
        assert drive(driver, made) is Phase.FINISHED
        state = driver.state
    failed = state.versions[2]
    assert failed.closed is not None
    assert failed.closed.outcome == "failed"
    assert failed.closed.why.startswith("3 attempts, none accepted: a1 incorrect: as it says: incorrect; a2 ")
    assert len(failed.attempts) == 3
    assert failed.committed is not None
    assert state.versions[3].opened.parent == 1
    assert (root / "trajectory" / "v2-a3.py").exists()
    assert crashes.git(root, "log", "--format=%s").splitlines()[2].startswith("[iter 2] failed: Load four")


def test_a_version_that_the_gate_rejects_as_a_whole_is_no_parent(root: Path) -> None:
    with opened(root) as driver:
        drive(driver, lambda v, _: tools.kernel(v, **({"gate": "version:profile_fits"} if v == 1 else {})))
        state = driver.state
    assert state.versions[1].closed is not None
    assert state.versions[1].closed.why == "the gate: profile_fits (`kopt run gate v1` says where)"
    assert state.versions[2].opened.parent == 0


def test_the_gate_may_reject_the_end_and_nothing_is_lost(root: Path) -> None:
    with opened(root) as driver:
        phase = drive(driver, lambda v, _: tools.kernel(v, **({"gate": "final:summary"} if v == 3 else {})))
        assert phase is Phase.REPORT
        assert driver.rejected is not None
        assert driver.rejected.rules == ("summary",)
        assert driver.state.reported is None


NOT_ACCEPTED = ["incorrect", "compile_error", "cheating", "task_refused", "crashed", "timeout", "not_supported_here"]


@pytest.mark.parametrize("verdict", NOT_ACCEPTED)
def test_a_baseline_that_is_not_accepted_ends_the_run_and_says_so(root: Path, verdict: str) -> None:
    home = root.parent / "home"
    files = tools.run_files(tools.kernel(0, verdict=verdict))
    create_run(root, tools.run_record(home), files, home)
    with opened(root) as driver:
        assert driver.advance() is Phase.BASELINE_FAILED
        closed = driver.state.versions[0].closed
        assert closed is not None
        assert closed.why == f"version 0, the user's kernel, is {verdict}: as it says: {verdict}"
        with pytest.raises(UsageError) as caught:
            driver.extend(3)
        assert caught.value.code == "baseline_failed"
    assert crashes.git(root, "status", "--porcelain") == ""


def test_a_run_that_is_stopped_ends_with_what_it_has(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        driver.advance()
        propose(driver, tools.kernel(1, us=50))
        driver.advance()
        assert driver.final() is Phase.FINISHED
        state = driver.state
        driver.stop("again")
        assert state.stopped == Stopped(reason="user", evidence="the user stopped the run after 1 iterations")
    assert state.versions[2].closed is not None
    assert state.versions[2].closed.why == "the run was stopped before a proposal was accepted"
    assert state.final is not None
    assert state.final.version == 1
    assert crashes.git(root, "log", "--format=%s").splitlines()[:2] == [
        "[final] restore v1 (2x): user",
        "[iter 2] failed: no proposal",
    ]


def test_an_ended_run_can_be_extended_and_ended_once_more(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        drive(driver, faster)
        driver.extend(1)
        assert drive(driver, faster) is Phase.FINISHED
        assert driver.state.iterations == 4
        assert driver.state.reports == 2
    log = crashes.git(root, "log", "--format=%s").splitlines()
    assert log[:3] == [
        "[final] restore v4 (1.52x): cap",
        "[iter 4] Load four words at once, variant 4.",
        "[final] restore v3 (1.37x): cap",
    ]
    assert (root / "final/v3/receipt.json").exists()
    assert (root / "final/v4-2/receipt.json").exists()
    assert crashes.git(root, "status", "--porcelain") == ""


def test_a_stall_is_noted_with_what_was_tried_and_masks_half(root: Path) -> None:
    with opened(root, device="cuda:0", iterations=4, partial_restart=True) as driver:
        drive(driver, lambda version, _: tools.kernel(version, us=100 + version))
        stalls = driver.state.stalls
        assert stalls == [Stalled(version=3, tried=("vectorized_access",), untried=("split_k",), masked=(1,))]
        assert [version.masked for version in driver.state.versions] == [False, True, False, False, False]


def test_a_mask_is_an_event_and_not_an_edit(root: Path) -> None:
    with opened(root) as driver:
        drive(driver, faster)
        memory = (root / "v1/memory.json").read_bytes()
        driver.mask(1, True, "a wrong turn")
        driver.mask(1, True, "said twice")
        assert driver.state.versions[1].masked
        assert sum(entry.event.kind == "masked" for entry in driver.state.entries) == 1
        with pytest.raises(UsageError) as caught:
            driver.mask(9, True, "")
        assert caught.value.code == "no_version"
        assert driver.advance() is Phase.FINISHED
    assert (root / "v1/memory.json").read_bytes() == memory
    assert crashes.git(root, "status", "--porcelain") == ""


def test_a_limit_of_time_ends_a_run_that_waits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root, seconds=60.0) as driver:
        assert driver.advance() is Phase.PROPOSE
        monkeypatch.setattr("loop.run.driver.utc_now", lambda: "2099-01-01T00:00:00Z")
        assert driver.advance() is Phase.FINISHED
        assert driver.state.stopped is not None
        assert driver.state.stopped.reason == "time"
