"""Automatic fixes: the index and white space. Each is shown as a change first, then written."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from kbs.common.errors import KoptError
from kbs.common.files import write_whole
from kbs.evidence.vocabulary import Vocabulary
from wiki.index_page import is_generated, render_index
from wiki.library import INDEX_PAGE, Wiki
from wiki.lint.rules.text import tidy
from wiki.lint.view import read_wiki


@dataclass(frozen=True)
class Fix:
    """A file's text now, and as it should be."""

    path: str
    """Path below the wiki's folder."""
    old: str
    """Empty for a file that does not exist yet."""
    new: str


def fixes(wiki: Wiki, vocabulary: Vocabulary) -> list[Fix]:
    """Every automatic fix of a page or the index; nothing is written. Foreign notes are left as they are.

    An index that someone wrote by hand keeps everything but its white space.
    """
    if wiki.notes:
        return []
    view = read_wiki(wiki, vocabulary, datetime.date.max)
    wanted = {path: tidy(text) for path, text in view.texts.items()}
    index = view.texts.get(INDEX_PAGE, "")
    unreadable = INDEX_PAGE not in view.texts and wiki.read(INDEX_PAGE) is not None
    if view.pages and not unreadable and (is_generated(index) or not index.strip()):
        wanted[INDEX_PAGE] = render_index(wiki.name, view.pages)
    changes = (Fix(path, view.texts.get(path, ""), new) for path, new in sorted(wanted.items()))
    return [change for change in changes if change.old != change.new]


def apply_fix(wiki: Wiki, fix: Fix) -> None:
    """Write a change atomically.

    Raises `KoptError` if the file has changed since, or cannot be written.
    """
    root = wiki.root.resolve()
    file = (root / fix.path).resolve()
    if not file.is_relative_to(root) or (wiki.read(fix.path) or b"") != fix.old.encode():
        raise KoptError(
            f"{fix.path} has changed since the fix was made",
            code="changed_meanwhile",
            hint="Run `kopt wiki lint --fix` again.",
        )
    write_whole(file, fix.new.encode(), keep_mode=True)
