"""Moves the main branch to a new commit, with the files of the work tree where the branch is checked out.

First it is checked that nothing uncommitted would be overwritten, then the files are written, then the branch moves. A
note of what is under way lets the next command put the files back if this one is killed between the two.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kbs.common.errors import UsageError
from kbs.common.files import write_whole
from kbs.common.visible_text import visible
from kopt.services.curation.repository import NONE, Repository

_NOTE = "kopt-wiki.json"
_AT_ONCE = 500
"""Paths of one git command."""
_SHOWN = 5
_SUBMODULE = "160000"
_LINK = "120000"
Changed = Mapping[str, tuple[str, str, str, str]]
"""Path → (mode, object) before and after."""


def advance(repository: Repository, old: str, new: str, why: str) -> None:
    """Move the main branch from `old` to `new`; files that do not differ between the two are not touched.

    Raises `UsageError` (`uncommitted_changes`) and `KoptError` (`branch_moved`); then nothing was changed.
    """
    ref = f"refs/heads/{repository.main}"
    if not repository.main_here:
        repository.move(ref, new, old, why)
        return
    changed = repository.changed(old, new)
    state = _state(repository, changed)
    theirs = [path for path, found in state.items() if not found <= {"old", "new"}]
    if theirs:
        more = f" and {len(theirs) - _SHOWN} more" if len(theirs) > _SHOWN else ""
        raise UsageError(
            f"changes that are not committed would be overwritten: {visible(', '.join(theirs[:_SHOWN]))}{more}",
            code="uncommitted_changes",
            hint="Commit them, or set them aside with `git stash -u`; then run the command again. Nothing was changed.",
        )
    note = repository.folder / _NOTE
    write_whole(note, json.dumps({"branch": repository.main, "old": old, "new": new}).encode())
    try:
        _write(repository, changed, new, after=True)
        repository.move(ref, new, old, why)
    except BaseException:
        with contextlib.suppress(Exception):
            recover(repository)
        raise
    note.unlink(missing_ok=True)


def recover(repository: Repository) -> list[str]:
    """Put the files back that an interrupted command had written before it moved the branch; what was done, in words.

    A file that was changed since is left as it is. Raises what git reports.
    """
    note = repository.folder / _NOTE
    try:
        found = json.loads(note.read_bytes())
        branch, old, new = (str(found[key]) for key in ("branch", "old", "new"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        note.unlink(missing_ok=True)
        return []
    said = []
    here = repository.git.ask("symbolic-ref", "--quiet", "HEAD") == (True, f"refs/heads/{branch}")
    if here and repository.commit(f"refs/heads/{branch}") == old and repository.commit(new):
        changed = repository.changed(old, new)
        state = _state(repository, changed)
        back = {path: changed[path] for path, one in state.items() if "new" in one and one <= {"old", "new"}}
        _write(repository, back, old, after=False)
        if back:
            said = ["an earlier command was ended while it wrote files; they were put back as they were before it"]
    note.unlink(missing_ok=True)
    return said


def _write(repository: Repository, changed: Changed, commit: str, *, after: bool) -> None:
    """Write files and index entries as a commit has them."""
    at = 2 if after else 0
    gone = [path for path, about in changed.items() if not about[at]]
    for some in _parts(gone):
        repository.git.tell("rm", "--quiet", "--force", "--ignore-unmatch", "--", *some)
        for path in some:  # one that git did not know of yet
            (repository.top / path).unlink(missing_ok=True)
    for some in _parts([path for path in changed if path not in set(gone)]):
        repository.git.tell("checkout", "--quiet", "--no-recurse-submodules", commit, "--", *some)


def _parts(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (paths[at : at + _AT_ONCE] for at in range(0, len(paths), _AT_ONCE))


def _state(repository: Repository, changed: Changed) -> dict[str, set[str]]:
    """For each path, of what its file and its index entry are: `old`, `new`, or `other`."""
    indexed: dict[str, str] = {}
    for some in _parts(list(changed)):
        for entry in filter(None, repository.git.tell("ls-files", "--stage", "-z", "--", *some).split("\0")):
            about, path = entry.split("\t", 1)
            _, digest, stage = about.split(" ")
            indexed[path] = digest if stage == "0" else "unmerged"
    on_disk = _on_disk(repository, changed)
    found = {}
    for path, (mode, old, new_mode, new) in changed.items():
        seen = [indexed.get(path, NONE)]
        if _SUBMODULE not in (mode, new_mode):
            seen.append(on_disk[path])
        # A file that is neither there before nor after is as it should be on both sides.
        found[path] = {"old" if one == old else "new" if one == new else "other" for one in seen}
    return found


def _on_disk(repository: Repository, changed: Changed) -> dict[str, str]:
    """The object that each file would be; none where it is not there, `other` where it is something else."""
    found: dict[str, str] = {}
    regular: list[str] = []
    for path, about in changed.items():
        file = repository.top / path
        if any(up.is_symlink() for up in _between(file, repository.top)):
            found[path] = "other"
        elif file.is_symlink():
            found[path] = _link(repository, file) if _LINK in (about[0], about[2]) else "other"
        elif file.is_file():
            regular.append(path)
        else:
            found[path] = "other" if os.path.lexists(file) else NONE
    for some in _parts(regular):
        found.update(zip(some, repository.git.tell("hash-object", "--", *some).splitlines(), strict=True))
    return found


def _link(repository: Repository, file: Path) -> str:
    with repository.scratch() as (git, folder):
        (folder / "link").write_bytes(os.fsencode(os.readlink(file)))  # noqa: PTH115 - as bytes, as git has it
        return git.tell("hash-object", "--no-filters", "--", str(folder / "link"))


def _between(file: Path, top: Path) -> Iterable[Path]:
    return (up for up in file.parents if up != top and up.is_relative_to(top))
