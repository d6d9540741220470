"""The session of docs/examples/agent.jsonl: what its agent cited still holds, and the page shows that session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kopt
from scripts.agent_session import Step, written
from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples"
QUESTIONS, ITERATIONS = 10, 3


@pytest.fixture(scope="module")
def calls() -> list[dict[str, Any]]:
    """Every line of the session."""
    return [json.loads(line) for line in (EXAMPLES / "agent.jsonl").read_text("utf-8").splitlines()]


def test_every_answer_of_the_agent_is_accepted_and_the_wrong_figure_is_not(
    calls: list[dict[str, Any]], built_home: Path
) -> None:
    texts = [one["arguments"]["text"] for one in calls if one.get("tool") == "cite"]
    *answers, wrong = texts
    assert len(answers) == QUESTIONS
    assert kopt.cite(wrong, home=built_home).status == "rejected"
    for answer in answers:
        found = kopt.cite(answer, home=built_home)
        assert (found.status, len(found.citations) >= 2) == ("ok", True), answer


def test_the_page_shows_the_session(calls: list[dict[str, Any]]) -> None:
    page = (EXAMPLES / "agent.md").read_text("utf-8")
    for number, one in enumerate(calls, 1):
        assert f"## {number}." in page
        assert one["say"] in page
    assert page.count("\nv3: passed, and is the best version now") == 1
    assert f"iterations   {ITERATIONS} of {ITERATIONS}" in page
    assert "stopped      cap: 3 of 3 iterations are done; 3 were kept" in page
    assert str(ROOT) not in page


def test_a_long_argument_is_shown_as_it_is_and_a_long_result_is_cut() -> None:
    told = "\n".join(f"line {number}" for number in range(60))
    step = Step("Why.", "run_submit", {"source": "a\n```\nb", "show": True}, "ok", told, ["open"])
    text = written([step, Step("Done.")], {"line 3\n": "three\n"})
    assert "`source`:\n\n````text\na\n```\nb\n````" in text
    assert '{\n "show": true\n}' in text
    assert "three\nline 4\n" in text
    assert "… 20 more lines" in text
    assert "line 59" not in text
    assert text.endswith("## 2.\n\nDone.\n")
