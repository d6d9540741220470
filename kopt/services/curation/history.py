"""The commits of a page of a wiki that is kept in git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kbs.common.errors import ConfigurationError
from kbs.common.git import GitCommands, GitUse
from kbs.common.visible_text import visible
from kopt.services.engine import Engine
from kopt.services.knowledge.citations import find_page

_USE = GitUse(reason="the history of a page is read with it", repository="the wiki's", retry="run the command again.")
_SECONDS = 60.0
_PARTS = ("%H", "%cI", "%an", "%s")
"""Of a commit: hash, time, author, first line."""
_BETWEEN, _LAST = "%x1f", "%x1e"


@dataclass(frozen=True)
class Commit:
    """A commit that changed a page."""

    hash: str
    time: str
    author: str
    subject: str
    """The first line of its message."""
    path: str
    """The page's path in the repository then: it may have been renamed since."""


@dataclass(frozen=True)
class History:
    """The commits of a page, the newest first."""

    wiki: str
    path: str
    commits: tuple[Commit, ...]
    changed: bool
    """Whether the page differs from its newest commit, or is in none."""


def page_history(engine: Engine, asked: str, limit: int) -> History:
    """The newest `limit` commits of a page, those under its former names too.

    Raises `UsageError` (`not_found`), `ConfigurationError` (`wiki_not_in_git`), and what git reports.
    """
    wiki, path = find_page(engine.library, asked)
    file = engine.library.all[wiki].place(path).resolve()
    git = GitCommands(file.parent, _USE, seconds=_SECONDS)
    inside, _ = git.ask("rev-parse", "--show-toplevel")
    if not inside:
        raise ConfigurationError(
            f"{wiki} is in no git repository that can be read",
            code="wiki_not_in_git",
            hint="Keep its folder in git; a page of a wiki that came with kopt has its history in kopt's repository.",
        )
    # Not `git status`: it would run the filters that the repository names, and a wiki may be somebody else's.
    committed = git.ask("rev-parse", "--verify", "--quiet", f"HEAD:./{file.name}")[1]
    changed = git.tell("hash-object", "--no-filters", "--", file.name) != committed
    known, _ = git.ask("rev-parse", "--verify", "--quiet", "HEAD")
    form = _LAST + _BETWEEN.join(_PARTS) + _BETWEEN
    words = ("log", "--follow", "--name-only", "--no-show-signature", f"--max-count={limit}", f"--format={form}")
    out = git.tell(*words, "--", file.name) if known else ""
    commits = tuple(_commit(one) for one in out.split("\x1e") if one.strip())
    return History(wiki, path, commits, changed)


def _commit(text: str) -> Commit:
    digest, time, author, subject, names = (text.split("\x1f", 4) + [""] * 5)[:5]
    path = next((line for line in names.splitlines() if line.strip()), "")
    return Commit(digest, time, visible(author), visible(subject), visible(Path(path).as_posix()) if path else "")
