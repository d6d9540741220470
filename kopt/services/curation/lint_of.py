"""What the lint finds in a commit of a wiki, and what of it a change has brought."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from kbs.evidence.vocabulary import Vocabulary
from kopt.services.curation.repository import Repository
from wiki.lint import lint
from wiki.page import Problem


def problems_at(repository: Repository, commit: str, terms: Vocabulary, today: datetime.date) -> list[Problem]:
    """All problems of the wiki as a commit or tree has it."""
    with repository.files_of(commit) as wiki:
        return lint(wiki, terms, today=today)


def brought(
    repository: Repository, old: str, new: str, pages: Collection[str], terms: Vocabulary, today: datetime.date
) -> tuple[list[Problem], list[Problem]]:
    """(errors and warnings of `new` in these pages, and errors elsewhere that `old` does not have; all other errors)"""
    found = problems_at(repository, new, terms, today)
    own = [one for one in found if one.path in pages]
    elsewhere = [one for one in found if one.path not in pages and one.error]
    if elsewhere:
        # Lines may have moved, so a problem is known by what it says.
        before = {(one.path, one.rule, one.message) for one in problems_at(repository, old, terms, today)}
        caused = [one for one in elsewhere if (one.path, one.rule, one.message) not in before]
        return [*own, *caused], [one for one in elsewhere if one not in caused]
    return own, []
