"""Rules on the front matter, and what the reader of a page reports under rule ids of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.page import Problem

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


@rule("vocabulary")
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


@rule("front-matter")
def vendor_of_hardware(view: WikiView) -> Iterator[Finding]:
    """Name the vendor on a hardware page."""
    for page in view.pages:
        if page.meta.kind == "hardware" and not page.meta.vendor:
            yield Finding(page.path, front_matter_line(page, "kind"), "a hardware page must name its vendor")


MAX_AGE_DAYS = 365


@rule("review-date")
def review_date(view: WikiView) -> Iterator[Finding]:
    """Review every page once a year.

    Checks that the review is at most a year old (a warning), and that no date is in the future (an error).

    Why: toolchains and drivers change what is true of a kernel.

    Example: `reviewed: 2019-04-01`.
    """
    for page in view.pages:
        age = (view.today - page.meta.reviewed).days
        line = front_matter_line(page, "reviewed")
        if age < 0:
            yield Finding(page.path, line, f"the review date {page.meta.reviewed} is in the future")
        elif age > MAX_AGE_DAYS:
            yield Finding(page.path, line, f"the page was last reviewed {age} days ago", error=False)
        for source in page.meta.sources:
            if source.accessed > view.today:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{source.id} was accessed in the future, on {source.accessed}")
