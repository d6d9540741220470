"""Several candidates for a version: ranked by a signal, the best two compared with the parent, one of them chosen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.receipt import parse
from kopt.services.results.runs import RunData
from kopt.services.runs.telling.state import run_lines
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.planning.frontier import Candidate, frontier
from loop.proposals.proposal import Branch
from loop.run.driver import Driver
from tests.loop import tools
from tests.loop.driving import opened, propose
from tests.loop.gate import valid

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def branches(**says: dict[str, Any]) -> tuple[Branch, ...]:
    """Branches by their names, with what their kernels say of themselves."""
    return tuple(Branch(name=name, kernel=tools.kernel(n, **one)) for n, (name, one) in enumerate(says.items(), 10))


def hand_in(driver: Driver, main: dict[str, Any], **others: dict[str, Any]) -> dict[str, Candidate]:
    """Hand in a kernel with branches for the first version, and go on; what came of each candidate."""
    driver.advance()
    assert propose(driver, tools.kernel(1, **main), branches=branches(**others))
    driver.advance()
    return {one.name: one for one in frontier(driver.state.versions[1].attempts[0])}


def asked(driver: Driver) -> list[str]:
    bench = driver.run.tools
    assert isinstance(bench, tools.FakeTools)
    return [what.split()[0] for what in bench.asked[2:]]


def test_the_best_candidate_becomes_the_version(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(
            driver, {"us": 90}, wide={"us": 80, "signal_us": 70}, deep={"us": 95, "signal_us": 75}, slow={"us": 120}
        )
        version = driver.state.versions[1]
        assert asked(driver) == ["signal"] * 4 + ["verdict"] * 2
        assert driver.run.tools.begun == [4, 3, 2]  # type: ignore[attr-defined]  # several devices share what is left
    assert list(found) == ["wide", "deep", "main", "slow"]
    assert [one.outcome for one in found.values()] == ["champion", "compared", "ranked", "ranked"]
    assert found["main"].why == "its signal is number 3, and the best 2 are compared with the parent"
    assert found["deep"].why == "1.05x [1.05x, 1.06x], and not better than wide"
    assert version.kept
    assert version.result is not None
    assert (version.result.branch, version.result.median_us) == ("wide", 80)
    kernel = tools.kernel(10, us=80, signal_us=70).encode()
    for place in ("v1", "best", "v1/branches/a1/wide"):
        assert (root / place / "kernel.py").read_bytes() == kernel
    assert (root / "v1/attempts/a1/kernel.py").read_bytes() == tools.kernel(1, us=90).encode()
    assert (root / "trajectory/v1-a1-deep.py").read_bytes() == tools.kernel(11, us=95, signal_us=75).encode()
    document = json.loads((root / "v1/branches/a1/frontier.json").read_text())
    assert [one["name"] for one in document["candidates"]] == list(found)
    assert parse((root / "v1/branches/a1/slow/signal/receipt.json").read_bytes()).plan.name == "signal"


def test_a_lucky_signal_does_not_win(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"us": 80, "signal_us": 79}, lucky={"us": 99, "signal_us": 60})
    assert found["main"].outcome == "champion"
    assert (found["lucky"].outcome, found["lucky"].signal_us) == ("compared", 60)


def test_of_two_that_are_equally_fast_the_simpler_one_is_chosen(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"us": 80, "padding": "x" * 200}, short={"us": 80})
    assert found["short"].outcome == "champion"


def test_what_a_signal_rejects_is_not_compared(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"signal": "incorrect"}, right={"us": 90}, broken={"signal": "crashed"})
        assert asked(driver) == ["signal"] * 3 + ["verdict"]
        assert driver.state.versions[1].passed
    assert [one.outcome for one in found.values()] == ["champion", "rejected", "rejected"]
    assert found["main"].why == "its signal says incorrect: as it says: incorrect"


def test_an_attempt_without_a_right_candidate_fails_and_costs_no_verdict(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"verdict": "incorrect"}, other={"signal": "timeout"})
        attempt = driver.state.versions[1].attempts[0]
        assert driver.phase is Phase.PROPOSE
        assert asked(driver) == ["signal"] * 2
    assert {one.outcome for one in found.values()} == {"rejected"}
    assert attempt.evaluated is not None
    assert (attempt.evaluated.verdict, attempt.evaluated.branch) == ("incorrect", "main")
    assert (root / "v1/attempts/a1/receipt.json").exists()


def test_a_verdict_rejects_what_its_signal_let_pass(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"signal": "accepted", "verdict": "incorrect", "us": 50}, other={"us": 90})
        assert driver.state.versions[1].passed
    assert [(one.name, one.outcome) for one in found.values()] == [("other", "champion"), ("main", "rejected")]
    assert found["main"].why == "its verdict says incorrect: as it says: incorrect"


def test_a_candidate_that_cannot_be_run_leaves_the_others(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        found = hand_in(driver, {"unfit": 1}, right={"us": 90})
        assert driver.state.versions[1].kept
        assert found["main"].why == "its signal says it cannot be run: it has two entries"
        assert found["right"].outcome == "champion"


def test_an_attempt_that_cannot_be_run_at_all_is_none(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        driver.advance()
        assert propose(driver, tools.kernel(1, unfit=1), branches=branches(other={"unfit": 1}))
        driver.advance()
        version = driver.state.versions[1]
        assert (version.attempts, len(version.refused)) == ([], 1)
        assert not any(path.startswith("v1/branches/") for path in driver.state.files)
        assert propose(driver, tools.kernel(2, us=90))
        driver.advance()
        assert driver.state.versions[1].passed
        assert list((root / "v1/branches").iterdir()) == [root / "v1/branches/a1"]
        assert not (root / "v1/branches/a1/other").exists()


def test_without_times_the_first_right_candidate_is_chosen(root: Path) -> None:
    with opened(root) as driver:
        found = hand_in(driver, {"signal": "incorrect"}, one={}, two={})
    assert next((one.name, one.outcome) for one in found.values()) == ("one", "champion")
    assert found["one"].why == "right, and not timed"


def test_the_gate_reads_the_text_of_every_branch(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        handed = tools.proposal(1, tools.kernel(1), branches=branches(fine={}, bad={"gate": "proposal:spec"}))
        taken = driver.submit(handed, b"{}")
        assert not taken.accepted
        assert [(one.rule, one.file, one.line) for one in taken.broken] == [
            ("spec", "proposal.json#branches[1].kernel", 1)
        ]
        unfit = tools.proposal(1, tools.kernel(1), branches=(Branch(name="no", kernel="x = 1\n"),))
        assert [one.file for one in driver.submit(unfit, b"{}").broken] == ["proposal.json#branches[0].kernel"]


def test_the_real_gate_passes_the_champion_of_several(tmp_path: Path) -> None:
    """The version's kernel is a branch's: its files, its profile and its pages are of that one."""
    run = valid.build(tmp_path)
    record = run.record
    bench = valid.GpuTools(run.home, record, wiki=run.wiki)
    parts: Any = valid.RealParts(RunFolder(run.root), record, bench, wiki=run.wiki)
    with Driver.open(run.root, bench, run.home, parts) as driver:
        driver.advance()
        body = "    return (x.softmax(-1) + 1) - 1\n"
        wide = Branch(name="wide", kernel=valid.kernel(4, 63, body))
        handed = run.proposal(kernel=valid.kernel(4, 70), branches=(wide,))
        taken = driver.submit(handed, b"{}")
        assert taken.accepted, taken.broken
        driver.advance()
        version = driver.state.versions[4]
        assert version.gated is not None
        assert version.gated.passed, version.gated.rules
        assert version.kept
    assert (run.root / "v4/kernel.py").read_text() == wide.kernel
    report = run.gate(4)
    assert report.passed, list(report.lines())
    (run.root / "v4/kernel.py").write_text(valid.kernel(4, 70))
    assert "proposal-recorded" in run.gate(4).rules


def test_status_tells_the_candidates(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        hand_in(driver, {"us": 90}, wide={"us": 80, "signal_us": 70}, slow={"us": 120})
        found = RunData.of(driver.folder, driver.record, driver.state)
    told = [(one.name, one.outcome, one.signal_us) for one in found.versions[1].attempts[0].candidates]
    assert told == [("wide", "champion", 70), ("main", "compared", 90), ("slow", "ranked", 120)]
    lines = "\n".join(run_lines(found))
    assert "wide: champion, signal 70 µs" in lines
    assert "slow: ranked, signal 120 µs; its signal is number 3" in lines
