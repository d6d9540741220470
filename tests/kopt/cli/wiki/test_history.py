"""`kopt wiki history`: the commits of a page, through renames."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Runner = Callable[..., Any]
pytestmark = pytest.mark.processes
NAMES = {"NAME": "A\x1b[31m B", "EMAIL": "a@b"}
AUTHOR = {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in NAMES.items()}


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


def test_the_command(run: Runner, built_home: Path, tmp_path: Path, page: Callable[..., str]) -> None:
    work, wiki = tmp_path / "work", tmp_path / "work/team"
    (wiki / "kernel").mkdir(parents=True)
    (work / "kopt.toml").write_text('wikis = ["team"]\n')

    def history(*words: str) -> Any:
        return run(built_home, "wiki", "history", *words, "--trust", cwd=work)

    old, new = wiki / "kernel/sum.md", wiki / "kernel/scan.md"
    old.write_text(page("kernel/sum", "# Sum\n\nA sum adds all elements of a row, in an order of its own."))
    none = history("kernel/sum", "--json")
    assert (none.code, none.json["errors"][0]["code"]) == (5, "wiki_not_in_git")

    git(work, "init", "-q", "-b", "main")
    assert history("kernel/sum").out == "the page has changes that are not committed\n"
    hashes = []
    for said in ("Begin a page\n\nAt length.", "Rename it\x07"):
        if hashes:
            git(work, "mv", str(old), str(new))
            new.write_text(new.read_text().replace("kernel/sum", "kernel/scan"))
        git(work, "add", "-A", "team")
        git(work, "commit", "-q", "-m", said)
        hashes.append(git(work, "rev-parse", "HEAD"))

    (work / "other").write_text("x")
    git(work, "add", "other")
    git(work, "commit", "-q", "-m", "Change something else")
    data = history("kernel/scan", "--json").json["data"]
    assert [data[name] for name in ("wiki", "path", "changed")] == ["team", "kernel/scan.md", False]
    assert [[one[name] for name in ("hash", "author", "subject", "path")] for one in data["commits"]] == [
        [hashes[1], "A\\x1b[31m B", "Rename it\\x07", "team/kernel/scan.md"],
        [hashes[0], "A\\x1b[31m B", "Begin a page", "team/kernel/sum.md"],
    ]
    (work / ".gitattributes").write_text("*.md filter=theirs\n")
    git(work, "config", "filter.theirs.clean", f"touch {tmp_path}/ran; cat")
    new.write_text(new.read_text() + "\nMore.\n")
    lines = history("kernel/scan", "--limit", "1").out.splitlines()
    assert lines[0].startswith(hashes[1][:12])
    assert lines[1:] == ["the page has changes that are not committed"]
    assert not (tmp_path / "ran").exists(), "a program that the repository names"
    wrong = history("kernel/nothing-like-it", "--json")
    assert (wrong.code, wrong.json["errors"][0]["code"]) == (2, "not_found")
