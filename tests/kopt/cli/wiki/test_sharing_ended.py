"""`kopt wiki accept` and `sync` ended by SIGKILL at each moment at which git changes something."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kopt.cli.wiki.clones import SCAN, Clones, git, page

pytestmark = [pytest.mark.processes, pytest.mark.slow]
_GIT = """#!/bin/sh
# Runs git, and ends who called it before or after its N-th command of a kind.
for word in "$@"; do
    if [ -n "$skip" ]; then skip=; elif [ "$word" = -c ]; then skip=1; else sub=$word; break; fi
done
hit=
case " $KILL_AT " in *" $sub "*)
    echo "$sub" >> "$KILL_LOG"
    [ "$(wc -l < "$KILL_LOG")" -eq "$KILL_NUMBER" ] && hit=1
esac
if [ -n "$hit" ] && [ "$KILL_WHEN" = half ]; then
    "$REAL_GIT" "$@"
    : > "$(pwd)/.git/index.lock"
    kill -9 $PPID
    exit 1
fi
if [ -n "$hit" ] && [ "$KILL_WHEN" = before ]; then kill -9 $PPID; exit 1; fi
"$REAL_GIT" "$@"
code=$?
[ -n "$hit" ] && kill -9 $PPID
exit $code
"""
CHANGING = ("checkout", "rm", "update-ref", "fetch", "push")


@pytest.fixture(scope="module")
def prepared(built_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Clones:
    """`one` is behind the remote, has accepted a page, and has two proposals and a change that is not committed."""
    clones = Clones.make(tmp_path_factory.mktemp("ended") / "work", built_home)
    clones.propose("technique/pad", page("technique/pad", "A pad is unused.", links="../kernel/sum.md"), clone="two")
    clones.kopt("accept", "technique/pad", clone="two")
    clones.propose("technique/tile", page("technique/tile", "A tile is a part.", links="pad.md"), clone="two")
    assert clones.kopt("sync", clone="two").code == 0
    clones.propose("kernel/scan", SCAN.replace("adds up", "folds"))
    assert clones.kopt("accept", "kernel/scan").code == 0
    swizzle = page("technique/swizzle", "A swizzle permutes tiles.", links="../kernel/scan.md")
    clones.propose("technique/swizzle", swizzle)
    clones.propose("technique/skew", page("technique/skew", "A skew shifts rows.", links="../kernel/scan.md"))
    (clones.root / "one/mine.txt").write_text("not committed")
    tools = clones.root / "bin"
    tools.mkdir()
    (tools / "git").write_text(_GIT)
    (tools / "git").chmod(0o755)
    return clones


def ended(clones: Clones, what: tuple[str, ...], at: tuple[str, ...], number: int, when: str) -> tuple[int, list[str]]:
    """Run a command that is killed at its N-th git command of a kind: (exit code, those that were begun)."""
    log = clones.root / "killed.log"
    log.write_text("")
    env = {
        "PATH": f"{clones.root / 'bin'}{os.pathsep}{os.environ['PATH']}", "REAL_GIT": str(shutil.which("git")),
        "KILL_AT": " ".join(at), "KILL_LOG": str(log), "KILL_NUMBER": str(number), "KILL_WHEN": when,
    }  # fmt: skip
    return clones.kopt(*what, env=env).code, log.read_text().split()


def settled(clones: Clones, *words: str) -> dict[str, Any]:
    """The command once more, which must do what it was to do."""
    done = clones.kopt(*words, "--json")
    assert done.code == 0, done.out
    return dict(json.loads(done.out))


ACCEPT = ("accept", "technique/swizzle")
SYNC = ("sync",)


MOMENTS = {ACCEPT: 4, SYNC: 9}
"""How many commands of git change something."""


@pytest.mark.parametrize(
    ("what", "number", "when"),
    [
        (what, number, when)
        for what, many in MOMENTS.items()
        for number in range(1, many + 1)
        for when in ("before", "after")
        if when == "after" or number == 1  # before one is as after that which comes before it
    ],
    ids=str,
)
def test_what_was_ended_is_mended_by_the_next_command(
    prepared: Clones, tmp_path: Path, what: tuple[str, ...], number: int, when: str
) -> None:
    clones = prepared.copy(tmp_path / "work")
    code, begun = ended(clones, what, CHANGING, number, when)
    assert len(begun) >= number, f"a moment that is none: {begun}"
    assert code == -9
    assert not clones.lost()
    assert (clones.root / "one/mine.txt").read_text() == "not committed"
    again = clones.kopt(*what, "--json")
    if what == ACCEPT and again.code == 2:  # the branch was the last to go
        assert again.json["errors"][0]["code"] == "proposal_unknown"
    else:
        assert again.code == 0, again.out
    last = settled(clones, "sync")
    assert last["data"]["conflicts"] == []
    one = clones.root / "one"
    assert git(one, "status", "--porcelain") == "?? mine.txt"
    assert "folds" in clones.text("one", "kernel/scan")
    assert "A pad" in clones.text("one", "technique/pad")
    if what == ACCEPT:
        assert "A swizzle" in clones.text("one", "technique/swizzle")
    assert git(one, "rev-parse", "main") == git(clones.root / "remote.git", "rev-parse", "main")
    open_ = ["skew", "tile"] if what == ACCEPT else ["skew", "swizzle", "tile"]
    assert git(
        clones.root / "remote.git", "for-each-ref", "--format=%(refname:short)", "refs/heads/propose"
    ) == "\n".join(f"propose/technique-{name}" for name in open_)
    assert not clones.lost()
    git(one, "fsck", "--strict")


def test_all_moments_are_tried(prepared: Clones, tmp_path: Path) -> None:
    """A command that changes more than the test above ends must be added there."""
    for what, many in MOMENTS.items():
        clones = prepared.copy(tmp_path / what[0])
        code, begun = ended(clones, what, CHANGING, 0, "before")
        assert (code, len(begun)) == (0, many), begun


def test_a_lock_that_a_killed_git_left_is_told_of(prepared: Clones, tmp_path: Path) -> None:
    clones = prepared.copy(tmp_path / "work")
    before = git(clones.root / "one", "rev-parse", "main")
    assert ended(clones, ACCEPT, ("checkout",), 1, "half")[0] == -9
    error = clones.json(*ACCEPT, code=1)
    assert error["code"] == "git_locked"
    assert str(clones.root / "one/.git/index.lock") in error["message"]
    (clones.root / "one/.git/index.lock").unlink()
    assert git(clones.root / "one", "rev-parse", "main") == before
    again = settled(clones, *ACCEPT)
    assert again["warnings"] == [
        "an earlier command was ended while it wrote files; they were put back as they were before it"
    ]
    assert git(clones.root / "one", "status", "--porcelain") == "?? mine.txt"
    assert not clones.lost()


def test_a_file_that_was_changed_after_the_kill_is_left(prepared: Clones, tmp_path: Path) -> None:
    clones = prepared.copy(tmp_path / "work")
    assert ended(clones, ACCEPT, ("checkout",), 1, "after")[0] == -9
    clones.write("one", "technique/swizzle", "Mine.\n")
    error = clones.json(*ACCEPT, code=2)
    assert error["code"] == "uncommitted_changes"
    assert (clones.root / "one/technique/swizzle.md").read_text() == "Mine.\n"
    assert not clones.lost()
