"""Rules on the front matter, and what the reader of a page reports under rule ids of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from kbs.evidence.units import parse_unit
from kbs.hardware.profile_metrics import DERIVED, profile_metrics
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.page import Problem
from wiki.tables import ADVICE_HEADER, COST_HEADER, DISAGREEMENT, HEADERS, SPEC_HEADER, header_names

READER_RULES = {
    "encoding": "Save every page as UTF-8 text.",
    "front-matter": "Begin every page with YAML front matter in the form of docs/wiki-format.md.",
    "markdown": "Write pages that can be read as Markdown.",
    "page-size": "Keep pages below the size limit.",
    "table-row": "Fill in the rows of tables that kopt reads as docs/wiki-format.md says.",
    "unit": "Use a unit of the vocabulary that fits the metric.",
    "unreadable": "Make every page readable.",
}
"""Rules that the reader of a page checks; `lint` passes its problems on."""


def reader_problems(view: WikiView) -> Iterator[Problem]:
    """Problems of broken pages, and of single rows of the others."""
    yield from view.broken
    for page in view.pages:
        yield from page.problems


@rule("vocabulary", alone=True)
def vocabulary_ids(view: WikiView) -> Iterator[Finding]:
    """Use ids of the vocabulary in the front matter.

    Checks vendor, architectures, languages, operations, bottlenecks, symptoms, techniques, tags, features and triggers.

    Why: questions are matched to pages by these ids; an unknown one never matches.

    Example: `architectures: [hopper-gpu]` instead of `[hopper]`.
    """
    terms = view.vocabulary
    for page in view.pages:
        meta = page.meta
        keys: tuple[tuple[str, tuple[str, ...], Collection[str]], ...] = (
            ("vendor", (meta.vendor,) if meta.vendor else (), terms.vendors),
            ("architectures", meta.architectures, terms.architectures),
            ("languages", meta.languages, terms.languages),
            ("operations", meta.operations, terms.operations),
            ("bottlenecks", meta.bottlenecks, terms.bottlenecks),
            ("symptoms", meta.symptoms, terms.symptoms),
            ("techniques", meta.techniques, terms.techniques),
            ("tags", meta.tags, terms.tags),
            ("features", meta.features, terms.features),
            ("triggers", meta.triggers, terms.symptoms),
        )
        for key, ids, known in keys:
            for id in ids:
                if id not in known:
                    line = front_matter_line(page, key, id)
                    yield Finding(page.path, line, f"{key}: {id!r} is not in the vocabulary")


@rule("front-matter", alone=True)
def whole_front_matter(view: WikiView) -> Iterator[Finding]:
    """Name the vendor on a hardware page, and each key once."""
    for page in view.pages:
        first: dict[str, int] = {}
        for number in range(2, page.body_start - 1):
            found = re.match(r"(\w+)\s*:", page.lines[number - 1])
            if found and first.setdefault(found[1], number) != number:
                yield Finding(page.path, number, f"{found[1]} stands in line {first[found[1]]} already")
        if page.meta.kind == "hardware" and not page.meta.vendor:
            yield Finding(page.path, front_matter_line(page, "kind"), "a hardware page must name its vendor")


MAX_AGE_DAYS = 365


@rule("review-date", alone=True)
def review_date(view: WikiView) -> Iterator[Finding]:
    """Review every page once a year.

    Checks that the review is at most a year old (a warning), and that no date is in the future (an error).

    Why: toolchains and drivers change what is true of a kernel.

    Example: `reviewed: 2019-04-01`.
    """
    for page in view.pages:
        age = (view.today - page.meta.reviewed).days
        if age < 0:
            line = front_matter_line(page, "reviewed")
            yield Finding(page.path, line, f"the review date {page.meta.reviewed} is in the future")
        elif age > MAX_AGE_DAYS:
            line = front_matter_line(page, "reviewed")
            yield Finding(page.path, line, f"the page was last reviewed {age} days ago", error=False)
        for source in page.meta.sources:
            if source.accessed > view.today:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{source.id} was accessed in the future, on {source.accessed}")


@rule("table-header", alone=True)
def table_header(view: WikiView) -> Iterator[Finding]:
    """Write the headers of tables that are read by row as docs/wiki-format.md has them.

    Checks for tables whose header is nearly that of such a table, and for a table of specs, costs or advice below a
    heading of another name.

    Why: a table with another header is ordinary text, and none of its rows is read.

    Example: the header `metric | value | unit | qualifier | confidence | sources`.
    """
    for page in view.pages:
        for block in page.blocks:
            if block.kind == "text":
                for number in range(block.line_start, block.line_end + 1):
                    if page.lines[number - 1].startswith("|") and header_names(page.lines[number - 1]) in HEADERS:
                        yield Finding(page.path, number, "a line of dashes is missing below this header")
            if block.kind != "table":
                continue
            names = header_names(page.lines[block.line_start - 1])
            near = max(HEADERS, key=lambda header: len({*header} & {*names}))
            if names not in HEADERS:
                if len({*near} & {*names}) >= len(near) - 1 and len(names) >= len(near) - 1:
                    message = f"this table is not read by row; its header would be {' | '.join(near)}"
                    yield Finding(page.path, block.line_start, message)
                continue
            wanted = _HEADINGS.get(near)
            if wanted and (block.trail[-1].lower() if block.trail else "") not in wanted:
                yield Finding(page.path, block.line_start, f"this table stands below “{wanted[0].capitalize()}”")


_HEADINGS: dict[tuple[str, ...], tuple[str, ...]] = {
    SPEC_HEADER: ("specifications", DISAGREEMENT),
    COST_HEADER: ("cost",),
    ADVICE_HEADER: ("what to try",),
}


@rule("row-vocabulary", alone=True)
def row_vocabulary(view: WikiView) -> Iterator[Finding]:
    """Use names in rows that kopt knows.

    Checks metrics of thresholds (those of a profile that kopt reads or computes), dtypes and units of measurements, and
    targets of signatures and instructions. A metric of Nsight Compute that kopt does not read is a warning.

    Why: a row whose names are unknown is never used, and nobody is told.

    Example: the threshold metric `sm__throughtput.avg`.
    """
    terms, known = view.vocabulary, profile_metrics()
    for page in view.pages:
        for threshold in page.thresholds:
            for name in re.split(r" [-/+×] ", threshold.metric):
                if name in known.by_ncu or name in known.all or name in DERIVED or _SOURCE_COUNTER.match(name):
                    continue
                message = f"kopt reads no metric {name!r} of profiles, and computes none"
                yield Finding(page.path, threshold.citation.line_start, message, error=name.startswith("kopt__"))
        for measured in page.measured:
            word = re.split(r"[\s,/]", measured.dtype.strip().lower())[0]
            if (
                word
                and word not in ("not", "mixed")
                and not terms.resolve("dtype", word)
                and not _OTHER_TYPE.match(word)
            ):
                yield Finding(
                    page.path, measured.citation.line_start, f"{measured.dtype!r} is no type of the vocabulary"
                )
            if measured.unit and parse_unit(measured.unit) is None:
                yield Finding(
                    page.path, measured.citation.line_start, f"{measured.unit!r} is no unit of the vocabulary"
                )
        stated = [(row.citation.line_start, row.targets) for row in page.signatures]
        stated += [(row.citation.line_start, row.targets) for row in page.instructions]
        for line, targets in stated:
            for target in targets:
                if not terms.resolve("architecture", f"sm_{target}"):
                    yield Finding(page.path, line, f"no architecture has the target sm_{target}")


_SOURCE_COUNTER = re.compile(r"(?:memory|inst|thread|smsp__pcsamp)_[a-z0-9_]+$")
"""What the source page of Nsight Compute counts."""
_OTHER_TYPE = re.compile(r"(?:u?int\d+|uint\d+|(?:mx|nv)fp\d+|bool)$")
