"""Merges two trees of a wiki's repository, and explains file by file what cannot be merged.

No merge driver or filter is run: files are merged line by line, as `git merge-file` does it. The list of pages is
generated, so where it alone conflicts it is written anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kbs.common.git import GitCommands
from kbs.common.visible_text import visible
from kbs.evidence.vocabulary import Vocabulary
from kopt.services.curation.repository import Repository
from wiki.index_page import is_generated, render_index
from wiki.library import INDEX_PAGE
from wiki.page import Page

_SHOWN = 120
"""Characters of a line that an explanation quotes."""
_REGULAR = ("100644", "100755")


@dataclass(frozen=True)
class Conflict:
    """A file, or a proposal, that cannot be merged."""

    path: str
    """In the repository; of a proposal its branch."""
    kind: Literal["both changed", "both added", "deleted here", "deleted there", "not text", "proposed twice"]
    detail: str
    """What stands against what."""
    todo: str
    """What to do about it."""


@dataclass(frozen=True)
class Merged:
    """What became of a merge."""

    tree: str
    """Empty where there are conflicts."""
    conflicts: tuple[Conflict, ...]
    reindex: bool
    """Whether the list of pages must be written anew."""


def merge_trees(repository: Repository, base: str, ours: str, theirs: str) -> Merged:
    """Both what changed from `base` to `ours`, which is called "here", and to `theirs`; commits or trees."""
    conflicts: list[Conflict] = []
    reindex = False
    with repository.scratch() as (git, folder):
        git.tell("read-tree", "-i", "-m", "--aggressive", base, ours, theirs)
        for path, stages in _unmerged(git).items():
            if path == repository.path(INDEX_PAGE) and all(_is_index(git, one[1]) for one in stages.values()):
                mode, digest = stages.get(2) or stages.get(3) or stages[1]
                reindex = True
            else:
                merged = _merge_file(git, folder, path, stages)
                if isinstance(merged, Conflict):
                    conflicts.append(merged)
                    continue
                mode, digest = merged
            git.tell("update-index", "--add", "--cacheinfo", f"{mode},{digest},{path}")
        tree = "" if conflicts else git.tell("write-tree")
    return Merged(tree, tuple(conflicts), reindex)


def _unmerged(git: GitCommands) -> dict[str, dict[int, tuple[str, str]]]:
    """path → stage (1 base, 2 ours, 3 theirs) → (mode, object)"""
    found: dict[str, dict[int, tuple[str, str]]] = {}
    for entry in filter(None, git.tell("ls-files", "--unmerged", "-z").split("\0")):
        about, path = entry.split("\t", 1)
        mode, digest, stage = about.split(" ")
        found.setdefault(path, {})[int(stage)] = (mode, digest)
    return found


def _is_index(git: GitCommands, digest: str) -> bool:
    found, text = git.ask("cat-file", "blob", digest)
    return found and is_generated(text)


_TODO = "Make one file of both by hand."


def _merge_file(
    git: GitCommands, folder: Path, path: str, stages: dict[int, tuple[str, str]]
) -> tuple[str, str] | Conflict:
    base, ours, theirs = (stages.get(stage) for stage in (1, 2, 3))
    if ours is None or theirs is None:
        kind: Literal["deleted here", "deleted there"] = "deleted here" if ours is None else "deleted there"
        who = ("here", "there") if ours is None else ("there", "here")
        return Conflict(path, kind, f"deleted {who[0]}, changed {who[1]}", "Keep the changed file, or remove it too.")
    if any(mode not in _REGULAR for mode, _ in filter(None, (base, ours, theirs))):
        return Conflict(path, "not text", "a link or a submodule that both changed", "Choose one of the two.")
    files = [folder / name for name in ("ours", "base", "theirs")]
    for file, one in zip(files, (ours, base, theirs), strict=True):
        file.write_bytes(_blob(git, one[1]) if one else b"")
    names = [word for name in ("here", "before", "there") for word in ("-L", name)]
    status, out = git.ask("merge-file", "--quiet", *names, *map(str, files))
    if status:
        mode = theirs[0] if base and ours[0] == base[0] else ours[0]
        return mode, git.tell("hash-object", "-w", "--no-filters", "--", str(files[0]))
    places = _places(files[0].read_bytes().decode("utf-8", "replace"))
    if not places:
        return Conflict(
            path, "not text", f"both changed it, and it is no text {out}".rstrip(), "Choose one of the two."
        )
    many = f"{len(places)} place{'s' if len(places) > 1 else ''}"
    line, here, there = places[0]
    detail = f"{many} read otherwise; from line {line} on, here {_quoted(here)}, there {_quoted(there)}"
    return Conflict(path, "both changed" if base else "both added", detail, _TODO)


def _blob(git: GitCommands, digest: str) -> bytes:
    return git.ask("cat-file", "blob", digest, raw=True)[1].encode("utf-8", "surrogateescape")


def _places(text: str) -> list[tuple[int, str, str]]:
    """(line in the file here, its first line there that differs, the other's) of each conflict in a merged file."""
    found = []
    for match in re.finditer(r"^<<<<<<< here\n(.*?)^=======\n(.*?)^>>>>>>> there$", text, re.MULTILINE | re.DOTALL):
        before = re.sub(r"^=======\n.*?^>>>>>>> there\n|^<<<<<<< here\n", "", text[: match.start()], flags=re.M | re.S)
        here, there = ((part.strip().splitlines() or ["nothing"])[0] for part in match.groups())
        found.append((before.count("\n") + 1, here, there))
    return found


def _quoted(line: str) -> str:
    return f"“{visible(line[:_SHOWN])}{'…' if len(line) > _SHOWN else ''}”"


def with_index(repository: Repository, tree: str, terms: Vocabulary) -> str:
    """The tree with its list of pages as the pages say, unless somebody wrote the list by hand."""
    with repository.files_of(tree) as wiki:
        pages = [page for page in wiki.pages(terms) if isinstance(page, Page)]
        old = wiki.read(INDEX_PAGE)
        text = render_index(repository.wiki.name, pages)
        if old is not None:
            before = old.decode("utf-8", "replace")
            if not is_generated(before):
                return tree
            # Clones may have other names; the title stays that of the wiki.
            title = re.search(r"^# .*$", before, re.MULTILINE)
            text = re.sub(r"^# .*$", lambda _: title[0], text, count=1, flags=re.MULTILINE) if title else text
        if old == text.encode():
            return tree
    return repository.with_files(tree, {repository.path(INDEX_PAGE): text.encode()})
