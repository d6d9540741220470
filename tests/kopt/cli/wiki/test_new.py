"""`kopt wiki new`: a page that needs nothing but to be filled in."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import vocabulary
from kopt.services.curation.new_page import KINDS, new_page, notes_on, target_wiki, write_page
from wiki.library import BUNDLED, Wiki, bundled_wiki
from wiki.lint import lint
from wiki.page import Page
from wiki.tables import read_by_row

Runner = Callable[..., Any]
TODAY = datetime.date(2026, 11, 22)


def made(name: str, title: str = "") -> Any:
    """A new page."""
    return new_page(name, title, vocabulary(), TODAY)


@pytest.mark.parametrize("kind", KINDS)
def test_the_lint_tells_of_each_mark_and_of_nothing_else(tmp_path: Path, kind: str) -> None:
    page = made(f"{kind}/warp-shuffle_sums")
    write_page(page, Wiki("team", tmp_path))
    found = lint(Wiki("team", tmp_path), vocabulary(), today=TODAY)
    elsewhere = {one.rule for one in found} - {"placeholder"}
    assert elsewhere <= {"index-entry", "orphan"}
    marked = [number for number, line in enumerate(page.text.split("\n"), 1) if "TODO:" in line]
    assert [one.line for one in found if one.rule == "placeholder"] == marked == [one.line for one in page.todo]
    assert len(marked) >= 10
    (read,) = Wiki("team", tmp_path).pages(vocabulary())
    assert isinstance(read, Page)
    assert (read.meta.kind, read.meta.title, read.meta.reviewed) == (kind, "Warp shuffle sums", TODAY)
    assert [len(section.asks) for section in read.sections[:2]] == [3, 3]


def test_two_new_pages_do_not_disturb_each_other(tmp_path: Path) -> None:
    wiki = Wiki("team", tmp_path)
    for name in ("technique/swizzle", "technique/split-k", "hardware/gb300"):
        write_page(made(name), wiki)
    rules = {one.rule for one in lint(wiki, vocabulary(), today=TODAY)}
    assert rules <= {"placeholder", "index-entry", "orphan"}


@pytest.mark.parametrize("title", ["A --> <!-- b", "x: [y] *w*", "共享内存 · 冲突", "`code` | $m$", "w" * 100, '"q"'])
def test_any_title_makes_a_page(tmp_path: Path, title: str) -> None:
    page = made("pitfall/some-title", title)
    assert {one.rule for one in page.todo} == {"placeholder"}
    write_page(page, Wiki("team", tmp_path))
    (read,) = Wiki("team", tmp_path).pages(vocabulary())
    assert isinstance(read, Page)
    assert read.meta.title == title


@pytest.mark.parametrize(
    ("kind", "headings"),
    [
        ("hardware", ["## Specifications"]),
        ("bottleneck", ["## Thresholds of Thing", "## What to try"]),
        ("kernel", ["## Cost", "## What to try"]),
        ("profiling", ["## Thresholds of Thing"]),
        ("experiment", ["## Measured"]),
        ("technique", []),
    ],
)
def test_tables_of_a_kind_are_those_that_are_read_by_row(kind: str, headings: list[str]) -> None:
    lines = made(f"{kind}/thing").text.split("\n")
    heads = [line for line in lines if line.startswith("| ")]
    assert [line for line in lines if line.startswith("## ")][1:] == headings
    assert [read_by_row(head) for head in heads] == [True] * len(headings)


@pytest.mark.parametrize(
    "name",
    ["softmax", "gpu/softmax", "kernel/", "kernel/Soft Max", "kernel/../x", "kernel/a/b", "/kernel/a", "kernel/é"],
)
def test_what_cannot_be_a_page(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(name)
    assert caught.value.code == "page_name"
    assert "hardware, bottleneck" in caught.value.hint


@pytest.mark.parametrize("title", ["x" * 101, "a\nb", "a\x1b[31mb"])
def test_what_cannot_be_a_title(title: str) -> None:
    with pytest.raises(UsageError) as caught:
        made("kernel/a", title)
    assert caught.value.code == "page_title"


def test_nothing_is_replaced_and_nothing_is_written_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "team", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    wiki = Wiki("team", root)
    page = made("kernel/scan")
    file = write_page(page, wiki)
    file.write_text("mine")
    with pytest.raises(UsageError) as caught:
        write_page(page, wiki)
    assert (caught.value.code, file.read_text()) == ("page_exists", "mine")

    (root / "method").symlink_to(outside)
    (root / "pitfall").symlink_to(root / "pitfall")
    (root / "kernel" / "sum.md").symlink_to(outside / "sum.md")
    with pytest.raises(UsageError) as caught:
        write_page(made("method/scan"), wiki)
    assert caught.value.code == "page_outside"
    for name, code in (("pitfall/a", "page_unwritable"), ("kernel/sum", "page_exists")):
        with pytest.raises(UsageError) as caught:
            write_page(made(name), wiki)
        assert caught.value.code in (code, "page_outside")
    assert list(outside.iterdir()) == []


def test_which_wiki_is_meant(tmp_path: Path) -> None:
    team = Wiki("team", tmp_path)
    known = [bundled_wiki(), team, Wiki("note/papers", tmp_path / "papers")]
    assert target_wiki("team", known) == team
    assert target_wiki(str(tmp_path), known) == team
    empty = tmp_path / "empty"
    empty.mkdir()
    assert target_wiki(str(empty), known) == Wiki("empty", empty)
    for unknown in ("note/papers", str(tmp_path / "gone"), "a\x00b"):
        with pytest.raises(UsageError) as caught:
            target_wiki(unknown, known)
        assert caught.value.code == "wiki_unknown"


def test_what_is_told_of_a_page_of_that_name(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    bundled, team = bundled_wiki(), Wiki("team", tmp_path / "team")
    (note,) = notes_on(made("kernel/softmax"), team, [bundled, team])
    assert note.startswith(f"the page kernel/softmax of {BUNDLED} is there too")
    assert notes_on(made("kernel/nobody-has-it"), team, [bundled, team]) == []
    (note,) = notes_on(made("kernel/nobody-has-it"), Wiki(BUNDLED, installed), [bundled])
    assert "an update may remove the page" in note


def test_the_command(run: Runner, built_home: Path, tmp_path: Path) -> None:
    shown = run(built_home, "wiki", "new", "technique/split-k", cwd=tmp_path)
    assert (shown.code, list(tmp_path.iterdir())) == (0, [])
    assert shown.out.startswith('---\nid: technique/split-k\nkind: technique\ntitle: "Split k"\n')

    done = run(built_home, "wiki", "new", "technique/stream-k", "--wiki", ".", "--title", "Stream-K", cwd=tmp_path)
    file = tmp_path / "technique/stream-k.md"
    assert done.code == 0
    assert done.out.startswith(f"technique/stream-k: written to {file}; to be filled in:\n  line 5: add what fits")
    linted = run(built_home, "wiki", "lint", "--wiki", ".", "--json", cwd=tmp_path)
    assert linted.code == 4
    assert {one["rule"] for one in linted.json["data"]["problems"]} == {"placeholder", "index-entry", "orphan"}

    again = run(built_home, "wiki", "new", "technique/stream-k", "--wiki", ".", "--json", cwd=tmp_path)
    assert (again.code, again.json["errors"][0]["code"]) == (2, "page_exists")
    data = run(built_home, "wiki", "new", "kernel/softmax", "--json", cwd=tmp_path).json
    assert (data["data"]["page"], data["data"]["file"], data["data"]["wiki"]) == ("kernel/softmax", "", "")
    assert data["data"]["markdown"].startswith("---\nid: kernel/softmax\n")
    assert "of gpu-wiki is there too" in data["warnings"][0]
