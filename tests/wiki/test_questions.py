"""The development questions: what their README says of them holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from kbs.evidence.vocabulary import vocabulary
from wiki.library import bundled_wiki
from wiki.page import Page

FOLDER = Path(__file__).parents[1] / "questions"
KINDS = {"answerable", "wrong-premise", "unanswerable"}


def questions() -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]


def test_each_question_is_complete() -> None:
    every = questions()
    assert len({one["id"] for one in every}) == len(every) >= 740
    for one in every:
        assert one["kind"] in KINDS, one["id"]
        assert urlparse(one["address"]).netloc, one["id"]
        assert (one["by"] == "none") == (not one["in_wiki"]), one["id"]
        assert bool(one["gold"]) == (one["by"] == "section"), one["id"]
        for fact in (*one["first"], *one["must"], [*one["must_not"], ""]):
            assert [re.compile(form) for form in fact], one["id"]
    assert sum(one["kind"] != "answerable" for one in every) >= 80


def test_each_gold_section_is_in_the_wiki() -> None:
    pages = [page for page in bundled_wiki().pages(vocabulary()) if isinstance(page, Page)]
    there = {f"{page.meta.id}#{section.heading or page.meta.title}" for page in pages for section in page.sections}
    gold = {name for one in questions() for name in one["gold"]}
    assert not gold - there, "a heading has changed: change its name in tests/questions too"
