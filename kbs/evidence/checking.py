"""Checks citations against what the cited lines say now.

A wiki is reached through the `Library` protocol, which the package `wiki` implements: `kbs` knows nothing of files.
Other kinds of evidence have a checker each, plugged in by whoever owns that evidence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from kbs.common.json_model import JsonDataclass
from kbs.evidence.citation import (
    NOTES,
    Citation,
    CitationLine,
    EvidenceKind,
    Reference,
    SpecClaim,
    find_citations,
    lines_hash,
)
from kbs.evidence.spec import Spec, claim_disagrees
from kbs.evidence.vocabulary import Vocabulary, words

MIN_QUOTED_WORDS = 3
"""A shorter quotation would be found nearly anywhere."""
_TRIES = 20
"""Places of a page that are looked at for a quotation that does not stand where it should."""

NOTHING_CLAIMED = "the lines exist; nothing was claimed of them in a form that can be compared"


class Status(StrEnum):
    """The verdict on one citation."""

    OK = "ok"
    NOT_FOUND = "not found"
    STALE = "stale"
    MISMATCH = "mismatch"


class Library(Protocol):
    """The wikis, as the checker needs them."""

    def lines(self, wiki: str, path: str) -> Sequence[str] | None:
        """All lines of a page as they are now; None if there is no such page."""

    def specs(self, wiki: str, path: str) -> Sequence[Spec]:
        """The specs that a page states."""

    def pages_of(self, wiki: str) -> Sequence[str] | None:
        """Paths of all pages of a wiki; None if the wiki is not known."""

    def past_lines(self, wiki: str, path: str, start: int, end: int, hash_prefix: str) -> Sequence[str] | None:
        """The lines as an earlier revision had them, found by their hash; None if no history holds them."""


@dataclass(frozen=True)
class CheckedCitation(JsonDataclass):
    """A citation, and what came of it."""

    line: int
    """1-based line of the checked text; 0 for a citation of a JSON document."""
    text: str
    reference: str
    status: Status
    detail: str
    """Why, in one sentence; empty for ok."""
    says: str
    """What the cited lines say now."""
    said: str = ""
    """What they said when they were cited, where that differs and is known."""


Checker = Callable[[CitationLine], tuple[Status, str, str]]
"""Checks what a line claims of evidence of another kind: status, why, and what the evidence says."""


_CODE = re.compile(r"(?<!`)`++([^`\n]++)`++")  # from the start of a run only, and without a step back: linear
_HELD = re.compile("\ue000(\\d+)\ue001")
"""Where code stood: a number between two characters that no text of a page may mean anything by."""


def plain_text(markdown: str) -> str:
    """Markdown lines as the words that a reader sees: no links, marks, footnote references or table rules.

    Code between backticks stays as it is: `kernel[grid](x)` is no link, and `torch._dynamo` has no mark. Every pattern
    takes a time linear in the text, whatever a page holds.
    """
    if "`" not in markdown:
        return _unmarked(markdown)
    code: list[str] = []

    def held(found: re.Match[str]) -> str:
        code.append(found[1])
        return f"\ue000{len(code) - 1}\ue001"

    text = _unmarked(_CODE.sub(held, markdown.replace("\ue000", "").replace("\ue001", "")))
    return " ".join(_HELD.sub(lambda place: code[int(place[1])], text).split()).strip(" |").strip()


def _unmarked(markdown: str) -> str:
    """The same with code read like any other text."""
    text = markdown
    if "[" in text:  # most text has few marks, and a search for each costs more than to look for it
        text = re.sub(r"\[\^[^\]\s]{1,80}\]", "", text)
        text = re.sub(r"!?\[([^\[\]]*)\]\([^)\s]{0,500}\)", r"\1", text)
    if "\n" in text or not text[:1].isalpha():  # marks of a heading, quotation or list stand where a line begins
        text = re.sub(r"(?m)^[^\S\n]*(?:#{1,6}\s+|>\s?|[-*+]\s+|\d{1,3}[.)]\s+)", "", text)
    if "*" in text or "_" in text or "`" in text:
        text = re.sub(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|`", "", text)
    if "|" in text:
        text = re.sub(r"(?:(?<!\s)\s*)?\|\s*", " | ", text)
    return " ".join(text.split()).strip(" |").strip()


def check_text(
    text: str, library: Library, vocabulary: Vocabulary, checkers: Mapping[EvidenceKind, Checker] | None = None
) -> list[CheckedCitation]:
    """Check every citation of `text`."""
    return [check_line(cited, library, vocabulary, checkers or {}) for cited in find_citations(text)]


def check_line(
    cited: CitationLine, library: Library, vocabulary: Vocabulary, checkers: Mapping[EvidenceKind, Checker]
) -> CheckedCitation:
    """Check one citation found in a text."""
    reference = cited.reference

    def verdict(status: Status, detail: str = "", says: str = "", said: str = "") -> CheckedCitation:
        return CheckedCitation(cited.line, cited.text, reference.text, status, detail, says, said)

    if not reference.of_lines:
        checker = checkers.get(reference.kind)
        if checker is None:
            return verdict(Status.NOT_FOUND, f"there is no {reference.kind} store here to look it up in")
        return verdict(*checker(cited))
    found = _cited_lines(reference, library)
    if isinstance(found, str):
        return verdict(Status.NOT_FOUND, found)
    says = "\n".join(found)
    if reference.hash and not lines_hash(found).startswith(reference.hash):
        then = library.past_lines(
            reference.wiki, reference.target, reference.line_start, reference.line_end, reference.hash
        )
        said = "\n".join(then) if then is not None else ""
        detail = "the lines have changed since they were cited"
        return verdict(Status.STALE, detail + _moved(said, reference, library), says, said)
    if cited.malformed:
        return verdict(Status.MISMATCH, cited.malformed, says)
    if cited.quote:
        if len(words(cited.quote)) < MIN_QUOTED_WORDS:
            return verdict(Status.MISMATCH, f"a quotation needs at least {MIN_QUOTED_WORDS} words", says)
        page = seen("\n".join(library.lines(reference.wiki, reference.target) or ())).split("\n")
        if stands_in(cited.quote, "\n".join(page[reference.line_start - 1 : reference.line_end])):
            return verdict(Status.OK, says=says)
        if stands_in(cited.quote, says):
            return verdict(Status.MISMATCH, "the quoted words stand in a comment, which no reader sees", says)
        elsewhere = _place(_standing(cited.quote, page), "has them", "have them")
        return verdict(Status.MISMATCH, f"the lines do not have the quoted words{elsewhere}", says)
    if cited.claim is not None and reference.kind is EvidenceKind.NOTE:
        return verdict(Status.MISMATCH, "notes are no source of hardware values; they can be quoted", says)
    if cited.claim is not None:
        reason = _claim_against_lines(cited.claim, reference, library, vocabulary)
        return verdict(Status.MISMATCH if reason else Status.OK, reason, says)
    return verdict(Status.OK, NOTHING_CLAIMED, says)


_UNSEEN = re.compile(
    r"(?P<code>^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)|`[^`\n]+`)|<!--.*?(?:-->|\Z)", re.DOTALL | re.MULTILINE
)


@lru_cache(maxsize=8)
def seen(page: str) -> str:
    """A page without its comments, which no reader sees (`asks:` is one), on as many lines. Code keeps its own."""
    return _UNSEEN.sub(lambda found: found["code"] or "\n" * found[0].count("\n"), page) if "<!--" in page else page


def stands_in(quote: str, markdown: str) -> bool:
    """Whether the words of `quote` are in `markdown`, none of them the cut end of another word, number or unit."""
    wanted, text = _unmarked(quote).casefold(), _unmarked(markdown).casefold()  # a quote has lost its backticks
    return bool(re.search(rf"(?<!\w)(?<!\w[.,/-]){re.escape(wanted)}(?!\w|[.,/-]\w)", text))


def _standing(quote: str, page: Sequence[str]) -> tuple[int, int] | None:
    """The first and last line, from 1, of a page where the words of `quote` stand; None where they do not."""
    wanted = _unmarked(quote).casefold()
    text, starts, numbers = _plain_page("\n".join(page))
    at = -1
    for _ in range(_TRIES):
        at = text.find(wanted, at + 1)
        if at < 0:
            return None
        first, last = (numbers[bisect_right(starts, place) - 1] for place in (at, at + len(wanted) - 1))
        if stands_in(quote, "\n".join(page[first - 1 : last])):
            return first, last
    return None


@lru_cache(maxsize=8)
def _plain_page(page: str) -> tuple[str, list[int], list[int]]:
    """(the words of a page, where in them a line begins, its number): for a text that cites a page many times."""
    lines = [(number, _unmarked(line).casefold()) for number, line in enumerate(page.split("\n"), start=1)]
    lines = [one for one in lines if one[1]]
    starts = list(accumulate((len(line) + 1 for _, line in lines), initial=0))
    return " ".join(line for _, line in lines), starts[:-1], [number for number, _ in lines]


def _place(found: tuple[int, int] | None, has: str, have: str = "") -> str:
    """`; L12 has it`: where the words or the value stand on the same page; "" if nowhere."""
    if found is None:
        return ""
    start, end = found
    return f"; L{start} {has}" if start == end else f"; L{start}-L{end} {have}"


def check_citation(citation: Citation, library: Library) -> CheckedCitation:
    """Check a citation that carries its quote and hash: do the lines still read as they did?"""
    reference = Reference(
        EvidenceKind.WIKI,
        citation.reference,
        citation.path,
        wiki=citation.wiki,
        line_start=citation.line_start,
        line_end=citation.line_end,
    )
    found = _cited_lines(reference, library)
    if isinstance(found, str):
        return CheckedCitation(0, "", citation.reference, Status.NOT_FOUND, found, "", citation.quote)
    says = "\n".join(found)
    if lines_hash(found) == citation.hash:
        if lines_hash(citation.quote.split("\n")) != citation.hash:
            detail = "the quote is not what the hash was taken from"
            return CheckedCitation(0, "", citation.reference, Status.MISMATCH, detail, says, citation.quote)
        return CheckedCitation(0, "", citation.reference, Status.OK, "", says)
    detail = "the lines have changed since they were cited" + _moved(citation.quote, reference, library)
    return CheckedCitation(0, "", citation.reference, Status.STALE, detail, says, citation.quote)


def _cited_lines(reference: Reference, library: Library) -> list[str] | str:
    """The cited lines, or why there are none."""
    if reference.line_start < 1:
        return f"“{reference.text}” names no lines that could be looked up"
    page = library.lines(reference.wiki, reference.target)
    if page is None:
        if library.pages_of(reference.wiki) is None:
            what = "are no notes" if reference.wiki.startswith(NOTES) else "is no wiki"
            return f"there {what} named {reference.wiki.removeprefix(NOTES)}"
        return f"{reference.wiki} has no page {reference.target}"
    if reference.line_end < reference.line_start:
        return f"line {reference.line_end} comes before line {reference.line_start}"
    if reference.line_end > len(page):
        return f"{reference.target} ends at line {len(page)}"
    return list(page[reference.line_start - 1 : reference.line_end])


def _moved(said: str, reference: Reference, library: Library) -> str:
    """Where the quoted lines stand now, if they only moved."""
    wanted = [line.rstrip() for line in said.split("\n")]
    page = [line.rstrip() for line in library.lines(reference.wiki, reference.target) or ()]
    for start in range(len(page) - len(wanted) + 1) if said.strip() else ():
        if page[start : start + len(wanted)] == wanted:
            end = f"-L{start + len(wanted)}" if len(wanted) > 1 else ""
            return f"; the same text is at L{start + 1}{end} now"
    return ""


@dataclass(frozen=True)
class _Reading:
    """What the words before the colon may mean."""

    product: str
    """The words that stand for the product; empty if none do."""
    products: list[str]
    """Ids of the products that they can mean."""
    metrics: list[str]


def _readings(head: str, vocabulary: Vocabulary) -> list[_Reading]:
    """Every way to read words as a product and a metric ("H100 PCIe bandwidth" has two), known products first."""
    tokens = words(head)
    found: list[_Reading] = []
    for cut in range(len(tokens)):
        metrics = vocabulary.resolve("metric", " ".join(tokens[cut:]))
        product = " ".join(tokens[:cut])
        products = vocabulary.resolve("product", product)
        # "A40 PCIe bandwidth" names its PCIe bandwidth, though the A40 is called "A40 PCIe" too.
        if metrics and not (len(products) == 1 and products in [one.products for one in found]):
            found.append(_Reading(product, products, metrics))
    return sorted(found, key=lambda reading: len(reading.products) != 1 and reading.product != "")


def _claim_against_lines(claim: SpecClaim, reference: Reference, library: Library, vocabulary: Vocabulary) -> str:
    """Why the cited lines do not state the claim, however it is read; "" where they do."""
    readings = _readings(claim.subject, vocabulary)
    reasons = [_reading_against_lines(reading, claim, reference, library, vocabulary) for reading in readings]
    if not reasons:
        return f"“{claim.subject}” names no metric of the vocabulary"
    if "" in reasons:
        return ""
    metrics = {metric for one in readings for metric in one.metrics}
    for spec in library.specs(reference.wiki, reference.target):
        if spec.metric not in metrics:
            continue
        line = spec.citation.line_start
        there = replace(reference, line_start=line, line_end=line)
        if any(not _reading_against_lines(one, claim, there, library, vocabulary) for one in readings):
            return reasons[0] + _place((line, line), "states it")
    return reasons[0]


def _reading_against_lines(
    reading: _Reading, claim: SpecClaim, reference: Reference, library: Library, vocabulary: Vocabulary
) -> str:
    page_specs = library.specs(reference.wiki, reference.target)
    products, metrics = reading.products, reading.metrics
    if reading.product and not products:
        return f"“{reading.product}” is not a product of the vocabulary"
    if len(products) > 1:
        names = ", ".join(vocabulary.products[id].name for id in products)
        return f"“{reading.product}” leaves open which of {names} is meant"
    on_lines = [s for s in page_specs if reference.line_start <= s.citation.line_start <= reference.line_end]
    if not on_lines:
        return "the cited lines state no hardware value"
    if not products and len({s.product for s in page_specs}) != 1:
        return "the claim names no product, and the page describes several"
    reasons: list[str] = []
    for spec in on_lines:
        if products and spec.product != products[0]:
            reasons.append(f"the line is about {vocabulary.products[spec.product].name}")
            continue
        if spec.metric not in metrics:
            reasons.append(f"the line states {vocabulary.metrics[spec.metric].name}")
            continue
        rivals = len({s.qualifier for s in page_specs if s.metric == spec.metric and s.product == spec.product})
        reason = claim_disagrees(claim, spec, rivals, vocabulary)
        if not reason:
            return ""
        reasons.append(reason)
    return "; ".join(dict.fromkeys(reasons))
