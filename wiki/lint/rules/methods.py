"""Rules on method pages: their facts for choosing the method, and their signatures in machine code."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from kbs.evidence.table_rows import MethodRow
from wiki.library import WikiFile, Wikis, bundled_wiki
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.methods import method_pages, methods_of
from wiki.page import FrontMatter, Page

_KEYS = ("axis", "priority", "features", "triggers", "conflicts", "complements", "defect")


@rule("method")
def method_facts(view: WikiView) -> Iterator[Finding]:
    """State completely how a method is chosen.

    Checks that a method page has an axis and a priority (or `defect: true`), that the methods it names exist, that
    conflicts are stated on both sides, that other pages state none of these keys, and that a method is stated once: by
    a page of its own or by a row of another's table of methods.

    Why: the optimization loop ranks methods by these facts.

    Example: `conflicts: [split-k]` on a page that `method/split-k.md` does not name in turn.
    """
    own: dict[str, tuple[Page, MethodRow]] = {}
    for page in view.pages:
        for row in methods_of(page):
            first = own.setdefault(row.method, (page, row))
            if first != (page, row):
                yield Finding(page.path, row.line, f"the method {row.method} is stated by {first[0].path} too")
    known = {*own, *_bundled_methods()}
    for page in view.pages:
        if page.method is None:
            for key in _stated(page.meta):
                yield Finding(page.path, front_matter_line(page, key), f"only a method page can state {key}")
        else:
            yield from _incomplete(page)
        for row in methods_of(page):
            yield from _related(page, row, own, known)


def _facts(page: Page, row: MethodRow) -> FrontMatter | MethodRow:
    """What names other methods: a page that is not whole does so too."""
    return page.meta if page.method else row


def _related(
    page: Page, row: MethodRow, own: Mapping[str, tuple[Page, MethodRow]], known: Collection[str]
) -> Iterator[Finding]:
    """What is wrong with the methods that a method names."""
    facts = _facts(page, row)

    def at(key: str, other: str) -> int:
        return front_matter_line(page, key, other) if page.method else row.line

    for key, others in (("conflicts", facts.conflicts), ("complements", facts.complements)):
        for other in others:
            if other == row.method:
                yield Finding(page.path, at(key, other), f"{key}: a method cannot name itself")
            elif other not in known:
                yield Finding(page.path, at(key, other), f"{key}: no wiki has a page of the method {other!r}")
            elif key == "conflicts" and other in own and row.method not in _facts(*own[other]).conflicts:
                message = f"{other} conflicts with it, but {own[other][0].path} does not say so"
                yield Finding(page.path, at(key, other), message)
    for both in sorted({*facts.conflicts} & {*facts.complements}):
        message = f"{both} cannot both conflict with the method and complement it"
        yield Finding(page.path, at("complements", both), message)


def _incomplete(page: Page) -> Iterator[Finding]:
    line = front_matter_line(page, "kind")
    if page.meta.defect:
        for key in _stated(page.meta):
            if key != "defect":
                yield Finding(page.path, front_matter_line(page, key), f"a defect is not chosen, so it has no {key}")
        return
    for key in ("axis", "priority"):
        if getattr(page.meta, key) is None:
            yield Finding(page.path, line, f"a method page must state its {key}, or `defect: true`")


def _stated(meta: FrontMatter) -> list[str]:
    return [key for key in _KEYS if getattr(meta, key)]


def _bundled_methods() -> set[str]:
    """Methods of the bundled wiki, which pages of other wikis may name."""
    return _methods_of_files(tuple(bundled_wiki().files()))


@lru_cache(maxsize=1)
def _methods_of_files(_: tuple[WikiFile, ...]) -> set[str]:
    """The same, for the files as they are now."""
    return {row.method for page in method_pages(Wikis([bundled_wiki()])) for row in methods_of(page)}


@rule("signature", alone=True)
def signature(view: WikiView) -> Iterator[Finding]:
    """Give one signature per method and target, which its instructions fit.

    Checks that no two rows speak of one target, that no opcode both counts and is unclear, and that the opcodes of an
    instruction to expect belong to the signature of each of its targets.

    Why: machine code either shows a method or does not; two rows could say both.

    Example: two rows for `sm_90` in one table of signatures.
    """
    for page in view.pages:
        first: dict[int, int] = {}
        for row in page.signatures:
            line = row.citation.line_start
            for target in row.targets:
                above = first.setdefault(target, line)
                if above != line:
                    yield Finding(page.path, line, f"line {above} has a signature for sm_{target} already")
            if len(set(row.targets)) < len(row.targets):
                yield Finding(page.path, line, "a target is listed twice here")
            for both in sorted({p.text for p in row.opcodes} & {p.text for p in row.unclear}):
                yield Finding(page.path, line, f"{both} cannot both count and be unclear")
        signed = {target: {p.text for p in row.opcodes} for row in page.signatures for target in row.targets}
        for expected in page.instructions:
            line, opcodes = expected.citation.line_start, {p.text for p in expected.opcodes}
            for target in expected.targets:
                for other in sorted(opcodes - signed.get(target, set())):
                    yield Finding(page.path, line, f"{other} is not in the signature for sm_{target}")
