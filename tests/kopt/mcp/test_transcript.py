"""The session of docs/examples/agent.jsonl: what its agent cited was accepted and stands, and the page shows it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kbs.evidence.checking import plain_text
from scripts.agent_session import Step, written
from tests.conftest import ROOT
from wiki.library import bundled_wiki

EXAMPLES = ROOT / "docs" / "examples"
QUESTIONS, ITERATIONS = 10, 3


@pytest.fixture(scope="module")
def calls() -> list[dict[str, Any]]:
    """Every line of the session."""
    return [json.loads(line) for line in (EXAMPLES / "agent.jsonl").read_text("utf-8").splitlines()]


def test_every_answer_of_the_agent_was_accepted_and_the_wrong_figure_was_not(calls: list[dict[str, Any]]) -> None:
    texts = [one["arguments"]["text"] for one in calls if one.get("tool") == "cite"]
    assert len(texts) == QUESTIONS + 1
    page = (EXAMPLES / "agent.md").read_text("utf-8")
    told = re.findall(r"(?m)^(\d+) ok, (\d+) failed$", page)
    cited = [str(text.count(" <- ")) for text in texts]
    assert told == [*((count, "0") for count in cited[:-1]), ("0", "1")]
    assert all(int(count) >= 2 for count in cited[:-1])


def test_what_the_agent_quoted_still_stands_on_its_page(calls: list[dict[str, Any]]) -> None:
    """On whichever line: pages grow."""
    wiki = bundled_wiki()
    text = "\n".join(one["arguments"]["text"] for one in calls if one.get("tool") == "cite")
    quoted = re.findall(r'(?m)^"(.*)" <- gpu-wiki/(.*):L\d+$', text)
    assert len(quoted) >= QUESTIONS
    for words, path in quoted:
        assert words in plain_text((wiki.root / path).read_text("utf-8")), path


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
