"""Several processes find in a wiki what one finds."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest

import wiki.lint
from kbs.evidence.vocabulary import vocabulary
from wiki.library import Wiki, bundled_wiki
from wiki.lint import lint
from wiki.lint.shares import shared_out
from wiki.page import Problem

TODAY = datetime.date(2026, 11, 28)
pytestmark = pytest.mark.processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Every fourth bundled page, and a copy of each: links that lead nowhere, and names and sentences that are given
    twice."""
    for file in bundled_wiki().files()[::4]:
        text = (bundled_wiki().read(file.path) or b"").decode()
        for path in (file.path, file.path.removesuffix(".md") + "-copy.md"):
            (tmp_path / path).parent.mkdir(exist_ok=True)
            text = text.replace(f"id: {file.path.removesuffix('.md')}\n", f"id: {path.removesuffix('.md')}\n")
            (tmp_path / path).write_text(text, "utf-8")
    return tmp_path


def _both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Problem], list[Problem]]:
    """What one process finds, and what three find."""
    wiki_ = Wiki("many", folder)
    one = lint(wiki_, vocabulary(), today=TODAY)
    monkeypatch.setattr(wiki.lint, "shared_out", lambda paths: [tuple(paths[start::3]) for start in range(3)])
    return one, lint(wiki_, vocabulary(), today=TODAY)


def test_processes_find_what_one_finds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "kernel" / "broken.md").write_text("no front matter\n", "utf-8")
    one, three = _both(folder, monkeypatch)
    assert three == one
    assert {"ask-twice", "broken-link", "duplicate", "front-matter", "index-entry", "orphan", "repeated-sentence"} <= {
        problem.rule for problem in one
    }


def test_a_wiki_without_asks_is_warned_of_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in folder.rglob("*.md"):
        file.write_text(file.read_text("utf-8").replace("<!-- asks:", "<!-- :"), "utf-8")
    one, three = _both(folder, monkeypatch)
    assert three == one
    assert len([problem for problem in three if problem.rule == "section-asks"]) == 1


def test_pages_are_read_here_where_no_process_can_be_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    one, three = _both(folder, monkeypatch)
    assert three == one


def test_few_pages_are_one_share() -> None:
    assert shared_out(["a.md", "b.md"]) == [("a.md", "b.md")]
    assert {path for share in shared_out([str(n) for n in range(2000)]) for path in share} == set(map(str, range(2000)))
