"""Checks a wiki's pages and fixes what can be fixed automatically.

`lint` finds problems, `fixes` lists the changes and `apply_fix` makes one. A rule is a function with `@rule` in the
module of what it looks at. Rule ids are stable, because people write them into scripts.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

from kbs.evidence.vocabulary import Vocabulary
from wiki.library import Told, Wiki
from wiki.lint.fix import Fix, apply_fix, fixes
from wiki.lint.rule import REGISTERED
from wiki.lint.rules import boards, links, methods, numbers, sections, sources, specs, structure, text
from wiki.lint.shares import Task, found_alone, found_together, lint_in_shares, shared_out
from wiki.lint.view import WikiView, read_wiki, without_collecting
from wiki.page import Problem

__all__ = ["RULES", "Fix", "apply_fix", "explain_rules", "explanations", "fixes", "lint", "read_wiki", "relint"]

_MODULES = (boards, links, methods, numbers, sections, sources, specs, structure, text)
"""Importing them registers their rules."""

RULES: dict[str, str] = dict(
    sorted({**{rule.id: rule.summary for rule in REGISTERED}, **structure.READER_RULES}.items())
)
"""The summary of each rule, by id."""


def lint(
    wiki: Wiki,
    vocabulary: Vocabulary,
    *,
    today: datetime.date,
    sources_record: Path | None = None,
    told: Told | None = None,
) -> list[Problem]:
    """All problems of a wiki, sorted by page and line; of notes, the files that cannot be read.

    `sources_record` is the file with one row for each source of each page; without it that rule is left out.
    `told` hears how many pages were read.
    """
    if wiki.notes:
        return [problem for read in wiki.pages(vocabulary) if isinstance(read, list) for problem in read]
    with without_collecting():
        task = Task(wiki, vocabulary, today, sources_record, tuple(file.path for file in wiki.files()))
        found = lint_in_shares(task, shared_out(task.paths), told)
        if found is None:
            view = read_wiki(wiki, vocabulary, today, sources_record, told)
            found = found_alone(view) + found_together(view)
    return _sorted(found)


def relint(view: WikiView, files: Mapping[str, bytes]) -> list[Problem]:
    """All problems of a wiki in which some files have other contents, where the others have no problem of their own.

    The others are neither read nor checked again by the rules that look at one page at a time.
    """
    changed = view.changed(files)
    return _sorted(found_alone(changed.only(files)) + found_together(changed))


def _sorted(found: list[Problem]) -> list[Problem]:
    return sorted(set(found), key=lambda problem: (problem.path, problem.line, problem.rule, problem.message))


def explanations() -> dict[str, str]:
    """The whole explanation of each rule, by id."""
    explained = {rule.id: rule.explanation for rule in REGISTERED} | structure.READER_RULES
    return {id: explained[id] for id in RULES}


def explain_rules() -> str:
    """Explain every rule, as docs/lint-rules.md shows them."""
    return "\n".join(f"## `{id}`\n\n{text}\n" for id, text in explanations().items())
