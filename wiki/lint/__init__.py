"""Checks a wiki's pages, and mends what can be mended mechanically.

`lint` finds problems, `fixes` says what would be changed and `apply_fix` changes it. Each rule has a file of its own;
its id is stable, because people write it into scripts.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from kbs.evidence.vocabulary import Vocabulary
from wiki.library import Wiki
from wiki.lint import (
    anchors,
    code,
    contradictions,
    equations,
    footnotes,
    front_matter,
    hedges,
    index,
    methods,
    names,
    numbers,
    orphans,
    reading,
    record,
    reviews,
    signatures,
    specs,
    whitespace,
)
from wiki.lint.fix import Fix, apply_fix, fixes
from wiki.lint.rule import Rule
from wiki.lint.view import read_wiki
from wiki.page import Problem

__all__ = ["RULES", "Fix", "apply_fix", "fixes", "lint"]

_RULES: tuple[Rule, ...] = (
    front_matter.vocabulary_ids,
    front_matter.vendor_of_hardware,
    names.duplicate,
    anchors.broken_link,
    numbers.number_without_source,
    footnotes.footnote,
    footnotes.undefined_source,
    footnotes.unused_source,
    equations.wrong_arithmetic,
    specs.unsupported_verified,
    specs.out_of_range,
    specs.dense_or_sparse,
    specs.duplicate_spec,
    signatures.signature,
    methods.method_facts,
    contradictions.contradiction,
    reviews.review_date,
    orphans.orphan,
    code.python_block,
    hedges.hedge,
    index.index_entry,
    record.sources_record,
    whitespace.whitespace,
)

RULES: dict[str, str] = dict(sorted({**reading.SUMMARIES, **{rule.id: rule.summary for rule in _RULES}}.items()))
"""What each rule finds, by id."""


def lint(
    wiki: Wiki, vocabulary: Vocabulary, *, today: datetime.date, sources_record: Path | None = None
) -> list[Problem]:
    """All problems of a wiki, sorted by page and line.

    `sources_record` is the file with one row for each source of each page; without it that rule is left out.
    """
    view = read_wiki(wiki, vocabulary, today, sources_record)
    found = [*reading.problems(view), *(problem for rule in _RULES for problem in rule.check(view))]
    return sorted(set(found), key=lambda problem: (problem.path, problem.line, problem.rule, problem.message))
