"""What becomes of what is handed in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import UsageError
from loop.journal.state import Phase
from loop.proposers.reading import Unread
from tests.loop import tools
from tests.loop.driving import opened, propose

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_refused_proposal_is_kept_with_its_reasons_and_is_no_attempt(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        given = driver.submit(tools.proposal(1, tools.kernel(1, gate="proposal:spec")), b"{}")
        assert (given.accepted, given.number) == (False, 1)
        assert [(one.rule, one.file, one.line, one.fix) for one in given.broken] == [
            ("spec", "kernel.py", 1, "Say otherwise.")
        ]
        unread = Unread("schema", ("the document: there is nothing in it",), "Hand in one JSON object.")
        again = driver.submit(unread, b"\xff\x00nonsense")
        assert (again.accepted, again.number) == (False, 2)
        version = driver.state.versions[1]
        assert (len(version.attempts), len(version.refused), version.refused_in_row) == (0, 2, 2)
        assert driver.phase is Phase.PROPOSE
    assert (root / "v1/refused/s2/answer.txt").read_bytes() == b"\xff\x00nonsense"
    assert b"it says so" in (root / "v1/refused/s1/reasons.json").read_bytes()
    assert not (root / "v1/attempts").exists()


@pytest.mark.parametrize(
    ("changes", "rule", "said"),
    [
        ({"version": 7}, "schema", "it is for version 7, but version 1 is open"),
        ({"parent": 1}, "schema", "version 1, did not pass"),
        ({"kernel": "def run(:\n"}, "kernel", "kernel.py"),
        ({"kernel": "x = 1\n"}, "kernel", ""),
        ({"language": "cuda", "kernel": 'extern "C" void solve(float* x, int n) {}\n'}, "kernel", ""),
    ],
)
def test_what_could_not_run_at_all_is_refused_before_the_gate(
    root: Path, changes: dict[str, Any], rule: str, said: str
) -> None:
    with opened(root) as driver:
        driver.advance()
        given = driver.submit(tools.proposal(1).model_copy(update=changes), b"{}")
        assert not given.accepted
        assert given.report is None
        assert [one.rule for one in given.broken] == [rule]
        assert said in given.broken[0].message
        assert driver.phase is Phase.PROPOSE


def test_what_the_evaluator_cannot_take_is_refused_after_all(root: Path) -> None:
    with opened(root, proposer="command", command=("propose",)) as driver:
        driver.advance()
        for number in (1, 2):
            assert propose(driver, tools.kernel(number, unfit=1))
            assert driver.advance() is Phase.PROPOSE
            version = driver.state.versions[1]
            assert (version.attempts, len(version.refused)) == ([], number)
        assert version.refused[0].rules == ("kernel",)
        assert version.refused[0].reasons == ("kernel.py: it has two entries",)
        assert propose(driver, tools.kernel(3, unfit=1))
        driver.advance()
        closed = driver.state.versions[1].closed
        assert closed is not None
        assert closed.why == "3 answers in a row were refused: kernel"
        assert propose(driver, tools.kernel(4))
        driver.advance()
        assert driver.state.versions[2].passed
    assert (root / "v1/refused/s1/proposal.json").read_bytes().count(b"unfit=1") == 1


def test_a_proposal_is_taken_only_when_one_is_awaited(root: Path) -> None:
    with opened(root) as driver:
        with pytest.raises(UsageError) as caught:
            driver.submit(tools.proposal(1), b"{}")
        assert caught.value.code == "not_awaited"
        driver.advance()
        assert propose(driver, tools.kernel(1))
        with pytest.raises(UsageError) as caught:
            propose(driver, tools.kernel(1))
        assert caught.value.code == "not_awaited"


def test_a_program_whose_answers_are_refused_three_times_loses_its_version(root: Path) -> None:
    with opened(root, proposer="command", command=("propose",)) as driver:
        driver.advance()
        for _ in range(3):
            assert driver.phase is Phase.PROPOSE
            driver.submit(Unread("command-timeout", ("it gave no answer within 5 s",), "Mend it."), b"")
        assert driver.advance() is Phase.PROPOSE
        closed = driver.state.versions[1].closed
        assert closed is not None
        assert closed.why == "3 answers in a row were refused: command-timeout"
        assert driver.state.versions[2].number == 2


def test_questions_of_a_proposal_are_asked_once(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        before = (root / "v1/searches.jsonl").read_text().splitlines()
        assert [json.loads(line)["about"] for line in before] == ["experience", "kernel", "bottleneck"]
        propose(driver, tools.kernel(1, gate="proposal:spec"))
        propose(driver, tools.kernel(1))
        after = (root / "v1/searches.jsonl").read_text().splitlines()
    assert after[:3] == before
    assert len(after) == 4
    assert "wide loads 1" in after[3]


def test_a_proposal_may_choose_another_parent(root: Path) -> None:
    with opened(root, device="cuda:0") as driver:
        driver.advance()
        propose(driver, tools.kernel(1, us=80))
        driver.advance()
        assert driver.run.version.opened.parent == 1
        propose(driver, tools.kernel(2, us=85), parent=0)
        driver.advance()
        version = driver.state.versions[2]
        assert (version.parent, version.kept, version.passed) == (0, False, True)
        assert version.accepted is not None
        assert version.accepted.evaluated is not None
        assert version.accepted.evaluated.ratio is not None
        assert version.accepted.evaluated.ratio[0] == pytest.approx(100 / 85)
