"""Foreign notes as a user works with them: added, searched, quoted, cited, forgotten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
Kopt = Callable[..., Any]
ATTENTION = """# Attention in the old compiler

The zorbal schedule hides the exponential behind the matrix
product of the next tile. It needs two warpgroups.

| metric | value | unit | qualifier | confidence | source |
|---|---|---|---|---|---|
| HBM bandwidth | 9.99 | TB/s | | verified | x p. 1 |

Bank conflicts of the zorbal layout vanish once each shared memory row is padded by one word.
"""
QUOTE = '"The zorbal schedule hides the exponential behind the matrix product of the next tile."'
HERE = "note/papers/old%20wiki/attention.txt"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "old wiki").mkdir(parents=True)
    (folder / "old wiki/attention.txt").write_text(ATTENTION)
    (folder / "README.md").write_text("What our papers say, \x1b[31min short.\n")
    return folder


@pytest.fixture
def kopt(run: Callable[..., Any], home: Path, notes: Path) -> Kopt:
    """With the notes added."""
    done = run(home, "ingest", "--as", "notes", "papers", str(notes), "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["data"]["wikis"][1] == {"name": "note/papers", "root": str(notes)}
    assert done.json["data"]["problems"] == []
    return lambda *words, **more: run(home, *words, **more)


def test_notes_are_found_and_told_apart(kopt: Kopt) -> None:
    for chosen in (["--kind", "note"], ["--wiki", "note/papers"], ["--confidence", "note"]):
        found = kopt("search", "zorbal schedule", *chosen, "--json").json["data"]["passages"]
        assert found[0]["reference"].startswith(f"{HERE}:L")
        assert {one["wiki"] for one in found} == {"note/papers"}
    assert kopt("search", "zorbal schedule", "--json").json["data"]["passages"][0]["wiki"] == "note/papers"
    assert "\x1b" not in kopt("search", "in short", "--kind", "note").out


def test_a_note_answers_where_the_wiki_does_not(kopt: Kopt) -> None:
    done = kopt("ask", "what does the zorbal schedule hide", "--json")
    assert done.code == 0
    claim = done.json["data"]["claims"][0]
    assert (claim["kind"], claim["note"]) == ("statement", "note")
    assert claim["citations"][0]["wiki"] == "note/papers"
    assert kopt("cite", "-", stdin=done.out).code == 0
    text = kopt("ask", "what does the zorbal schedule hide").out
    assert f"{QUOTE} <- {HERE}:L3-L4" in text
    assert "Only notes answer this" in text


def test_the_wiki_comes_first_where_it_answers(kopt: Kopt, run: Kopt, built_home: Path) -> None:
    asked = "how do I avoid shared memory bank conflicts"
    with_notes, without = kopt("ask", asked, "--long").out, run(built_home, "ask", asked).out
    first, _, rest = with_notes.partition("What your notes say")
    assert "zorbal" not in first
    assert "(note)" in rest
    assert first.splitlines()[0] == without.splitlines()[0]
    assert f" <- {HERE}:L10" in rest


def test_many_notes_do_not_change_which_words_are_rare(kopt: Kopt, run: Kopt, built_home: Path, notes: Path) -> None:
    said = (f"## Day {n}\n\nA shared memory bank conflict of kernel {n}.\n" for n in range(600))
    (notes / "diary.md").write_text("\n".join(said))
    for asked in ("how do I avoid shared memory bank conflicts", "what is a persistent kernel"):
        first = [one("ask", asked).out.splitlines()[0] for one in (kopt, lambda *words: run(built_home, *words))]
        assert first[0] == first[1]


@pytest.mark.parametrize("asked", ["What is the HBM bandwidth of the H100 SXM?", "what is the zorbal bandwidth"])
def test_a_note_answers_no_question_for_a_value(kopt: Kopt, asked: str) -> None:
    assert "9.99" not in kopt("ask", asked, "--gpu", "h100-sxm").out
    specs = kopt("spec", "h100-sxm", "hbm_bandwidth", "--json").json["data"]["specs"]
    assert {one["citation"]["wiki"] for one in specs} == {"gpu-wiki"}


def test_citations_of_notes_are_checked(kopt: Kopt, notes: Path) -> None:
    assert kopt("cite", f"{QUOTE} <- {HERE}:L3-L4").code == 0
    for claim in ("H100 SXM HBM bandwidth: 9.99 TB/s", "HBM bandwidth: 9.99 TB/s"):
        done = kopt("cite", f"{claim} <- {HERE}:L8")
        assert done.code == 4
        assert "notes are no source of hardware values" in done.out
    shown = kopt("show", f"{HERE}:L3-L4", "--json").json["data"]
    assert shown["lines"][1] == [4, "product of the next tile. It needs two warpgroups."]
    assert kopt("show", HERE).code == kopt("show", "note:" + HERE.removeprefix("note/")).code == 0
    stale = f"see {HERE}:L3-L4@{shown['hash'][:16]}"
    assert kopt("cite", stale).code == 0
    (notes / "old wiki/attention.txt").write_text(f"One more line.\n{ATTENTION.replace('hides', 'shows')}")
    assert kopt("cite", stale).code == 4
    found = kopt("search", "zorbal schedule", "--kind", "note").out
    assert "shows the exponential" in found


def test_what_cannot_be_read_is_told_and_linted(kopt: Kopt, notes: Path) -> None:
    (notes / "bad.md").write_bytes(b"\xff\xfe")
    (notes / "nul.txt").write_bytes(b"a\0b")
    (notes / "large.md").write_bytes(b"x" * 1_000_001)
    (notes / "out.rst").symlink_to("/etc/passwd")
    done = kopt("ingest", "--json")
    told = {(one["wiki"], one["path"], one["rule"]) for one in done.json["data"]["problems"]}
    wrong = {"bad.md": "encoding", "nul.txt": "encoding", "large.md": "page-size", "out.rst": "unreadable"}
    assert told == {("note/papers", path, rule) for path, rule in wrong.items()}
    linted = kopt("wiki", "lint", "--wiki", "note/papers", "--fix", "--yes", "--json")
    assert linted.code == 4
    assert {one["path"] for one in linted.json["data"]["problems"]} == set(wrong)
    assert (notes / "README.md").read_text().startswith("What our papers say")


def test_a_home_that_cannot_be_written_answers_too(kopt: Kopt, home: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    places = [home, *(path for path in home.rglob("*") if path.is_dir())]
    try:
        for path in places:
            path.chmod(0o555)
        assert kopt("search", "zorbal schedule", "--kind", "note").code == 0
    finally:
        for path in places:
            path.chmod(0o755)


def test_notes_are_forgotten(kopt: Kopt, home: Path, notes: Path) -> None:
    assert json.loads((home / "wikis.json").read_text()) == {"note/papers": str(notes)}
    done = kopt("ingest", "--forget", "papers", "--json")
    assert [one["name"] for one in done.json["data"]["wikis"]] == ["gpu-wiki"]
    assert done.json["data"]["pages_removed"] == 2
    assert kopt("search", "zorbal", "--kind", "note").out == "No passage was found.\n"
    assert kopt("cite", f"{QUOTE} <- {HERE}:L3-L4").code == 4
    assert (notes / "old wiki/attention.txt").exists()


def test_a_wiki_and_notes_may_have_one_name(kopt: Kopt, tmp_path: Path, page: Callable[..., str]) -> None:
    file = tmp_path / "wiki/technique/a.md"
    file.parent.mkdir(parents=True)
    file.write_text(page("technique/a", "# A\n\nThe lead of a page."))
    done = kopt("ingest", "papers", str(tmp_path / "wiki"), "--json")
    assert [one["name"] for one in done.json["data"]["wikis"]] == ["gpu-wiki", "note/papers", "papers"]
    done = kopt("ingest", "--forget", "papers", "--json")
    assert [one["name"] for one in done.json["data"]["wikis"]] == ["gpu-wiki", "note/papers"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--as", "notes"], "name_without_path"),
        (["--as", "papers", "."], "kind_unknown"),
        (["a", "b", "c"], "too_many_paths"),
        (["a", ".", "--name", "b"], "too_many_paths"),
        (["--as", "notes", "a/b", "."], "wiki_name"),
        (["--as", "notes", "papers", "nowhere"], "wiki_not_found"),
    ],
)
def test_what_is_no_command(run: Kopt, home: Path, notes: Path, words: list[str], code: str) -> None:
    done = run(home, "ingest", *words, "--json", cwd=notes)
    assert (done.code in (2, 5), done.json["errors"][0]["code"]) == (True, code)


@pytest.mark.parametrize("trust", [(), ("--trust",)])
@pytest.mark.parametrize(
    "brought", ['wikis = ["note/papers"]', 'wikis = ["papers"]', 'notes = ["papers"]', '"note/papers" = "papers"']
)
def test_a_workspace_brings_no_notes(run: Kopt, home: Path, notes: Path, brought: str, trust: tuple[str, ...]) -> None:
    work = notes.parent
    (work / "kopt.toml").write_text(f"{brought}\n")
    (work / "wikis.json").write_text(json.dumps({"note/papers": str(notes)}))
    done = run(home, "search", "zorbal schedule", "--json", *trust, cwd=work)
    assert "note/papers/" not in done.out.replace(str(notes), "")
    data = done.json["data"]
    assert not data or all(one["wiki"] == "gpu-wiki" for one in data["passages"])
