"""The check of each sentence that a model makes of claims: nothing passes that the claims which it names do not say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kbs.answers.model import ClaimKind
from kbs.evidence.vocabulary import Vocabulary
from kbs.wording.forms import JOINT, OPENERS, SpecValue, Way, leans, plain, same_metric, ways
from kbs.wording.pack import Numbered

MOST_JOINED = 3
"""Claims that one sentence may join; the values of one metric may be of more products."""
MOST_CLAIMS = 8
_LONGEST = 4000
"""Characters of a line; the longest claims are quoted rows."""
_LINE = re.compile(r"(?:[-*•] |\d{1,2}[.)] )?(?P<text>.*?)\s*(?P<ids>(?:\[[^\[\]]*\]\s*)+)\.?")
_IDS = re.compile(r"c[1-9]\d{0,3}")
_MARKUP = re.compile(r"://|\bwww\.|\]\(|!\[|```")


class Reason(StrEnum):
    """Why a sentence is left out, as it is told."""

    UNNAMED = "it names no claim"
    UNKNOWN = "it names a claim that there is not"
    CHARACTERS = "it has characters that its claims do not have"
    MARKUP = "it has an address or markup"
    LONG = "it is too long, or joins too many claims"
    NUMBER = "it has a number that its claims do not have"
    PRODUCT = "it has a GPU that its claims do not have"
    NEGATION = "it says no where its claims do not, or leaves a no out"
    WORDS = "its words are not those of its claims"
    SECTIONS = "it joins claims of several sections"
    LEANS = "it points at a sentence that does not stand before it"
    ORDER = "it says later what its page says before"
    REPEATED = "it was said before"


@dataclass(frozen=True)
class Kept:
    """A sentence that says what its claims say."""

    text: str
    claims: tuple[Numbered, ...]
    """In the order in which it says them."""
    headline: bool = False
    """It begins with the direct answer, whole."""
    added: bool = False
    """kopt says it, since the model left it out."""


@dataclass(frozen=True)
class Refused:
    """A sentence that is left out. Its text is not kept: it would be what the check is against."""

    reason: Reason
    headline: bool
    """It names the direct answer."""


class SentenceCheck:
    """Checks the sentences of one answer in their order."""

    def __init__(self, claims: Sequence[Numbered], terms: Vocabulary) -> None:
        self._terms = terms
        self._claims = {one.id: one for one in claims}
        self._order = {one.id: at for at, one in enumerate(claims)}
        self._before: dict[str, str] = {}
        """Claim → the one before it in its section."""
        newest: dict[str, str] = {}
        for one in claims:
            self._before[one.id] = newest.get(one.section, "")
            newest[one.section] = one.id
        self._headline = claims[0].id if claims else ""
        self._said: set[tuple[str, str]] = set()
        self._last = ""
        """Id of the claim that was said last."""

    def said(self, one: Numbered) -> bool:
        """Whether a claim was said, whole or in part."""
        return any(id == one.id for id, _ in self._said)

    def add(self, one: Numbered) -> Kept:
        """A claim that is said in its own words, and not to be said again."""
        self._said.add((one.id, ""))
        self._last = one.id
        return Kept(one.said, (one,), headline=one.id == self._headline, added=True)

    def check(self, line: str) -> Kept | Refused:
        """A line of the form `sentence [c3,c7]`, read and compared with its claims."""
        line = plain(line)
        if len(line) > _LONGEST:
            return Refused(Reason.LONG, headline=False)
        found = _LINE.fullmatch(line)
        ids = _IDS.findall(found["ids"]) if found else []
        if found is None or not ids or not found["text"] or re.sub(r"c\d+|[\[\], ]", "", found["ids"]):
            return Refused(Reason.UNNAMED, headline=False)
        headline = self._headline in ids
        if any(id not in self._claims for id in ids):
            return Refused(Reason.UNKNOWN, headline)
        named = [self._claims[id] for id in dict.fromkeys(ids)]
        kept = self._why_not(found["text"].removesuffix("."), named)
        if isinstance(kept, Reason):
            return Refused(kept, headline)
        self._said |= {(one.id, "" if whole else words) for one, words, whole in kept}
        self._last = kept[-1][0].id
        first, _, whole = kept[0]
        text = found["text"].removesuffix(".")
        claims = tuple(dict.fromkeys(one for one, _, _ in kept))
        return Kept(f"{text}.", claims, headline=whole and first.id == self._headline)

    def _why_not(self, text: str, named: list[Numbered]) -> Reason | list[tuple[Numbered, str, bool]]:
        """Why a sentence is left out; or its parts: claim, words, and whether they say it whole."""
        known = "".join(plain(one.said) for one in named)
        if not all(c.isprintable() and (c.isascii() or c in known) for c in text):
            return Reason.CHARACTERS
        if _MARKUP.search(text):
            return Reason.MARKUP
        if len({one.section for one in named}) > 1:
            return Reason.SECTIONS
        if len(named) > MOST_CLAIMS:
            return Reason.LONG
        parts = self._parts(text, named)
        if parts is None:
            return self._difference(text, named)
        last, said = self._last, [id for id, _ in self._said]
        for one, words, _ in parts:
            if leans(words) and not self._stands_before(last, one):
                return Reason.LEANS
            if words[:4].lower() == "the " and not self._among_its_own(last, one):
                return Reason.LEANS
            if any(self._comes_late(one, self._claims[id]) for id in said):
                return Reason.ORDER
            last = one.id
            said.append(last)
        if any({(one.id, ""), (one.id, words)} & self._said for one, words, _ in parts):
            return Reason.REPEATED
        return parts

    def _comes_late(self, one: Numbered, said: Numbered) -> bool:
        """Whether a statement was said that both the answer and its page say after this one: it may rest on this."""
        if not (one.claim.kind is said.claim.kind is ClaimKind.STATEMENT) or one.section != said.section:
            return False
        here, there = _places(one), _places(said)
        return self._order[one.id] < self._order[said.id] and any(
            here[page] < there[page] for page in here.keys() & there
        )

    def _stands_before(self, last: str, one: Numbered) -> bool:
        """Whether the claim that was said last is the one before `one`; before the first of a section, it is another
        section's."""
        if before := self._before[one.id]:
            return before == last
        return not last or self._claims[last].section != one.section

    def _among_its_own(self, last: str, one: Numbered) -> bool:
        """Whether "the" of a statement can be understood: the claim said last, or its heading, is of the same page."""
        if one.claim.kind is not ClaimKind.STATEMENT or not last or self._claims[last].section != one.section:
            return True
        return bool(_places(one).keys() & _places(self._claims[last]).keys())

    def _parts(self, text: str, named: list[Numbered]) -> list[tuple[Numbered, str, bool]] | None:
        """The text as a chain of ways to say the claims, each once; None where it is none."""
        opener = next((one for one in OPENERS if text.startswith(one)), "")
        bare = text.removeprefix(opener)
        if len(named) == 1:
            [one] = named
            fitting = [way for way in ways(one, self._terms) if re.fullmatch(way.pattern, bare)]
            return [(one, bare, any(way.whole for way in fitting))] if fitting else None
        values = [SpecValue.of(one, self._terms) for one in named]
        if all(values) and same_metric(bare, [value for value in values if value]):
            return [(one, f"{bare} {one.id}", True) for one in named]
        if len(named) > MOST_JOINED:
            return None
        allowed = {one.id: [way for way in ways(one, self._terms) if way.verbatim and way.whole] for one in named}
        for order in itertools.permutations(named):
            chain = re.escape(JOINT).join(f"({_either(allowed[one.id])})" for one in order)
            if found := re.fullmatch(chain, bare):
                return [(one, words, True) for one, words in zip(order, found.groups(), strict=True)]
        return None

    def _difference(self, text: str, named: list[Numbered]) -> Reason:
        """What is wrong with a sentence, as nearly as can be told."""
        claims = " ".join(plain(one.said) for one in named)
        if not _numbers(text) <= _numbers(claims):
            return Reason.NUMBER
        products = {mention.id for mention in self._terms.find(text, "product")}
        if not products <= {mention.id for mention in self._terms.find(claims, "product")}:
            return Reason.PRODUCT
        return Reason.NEGATION if _negations(text) != _negations(claims) else Reason.WORDS


def _places(one: Numbered) -> dict[str, int]:
    """Page → first line that a claim cites of it."""
    lines: dict[str, int] = {}
    for cited in one.claim.citations:
        page = f"{cited.wiki}/{cited.path}"
        lines[page] = min(cited.line_start, lines.get(page, cited.line_start))
    return lines


def _either(patterns: Sequence[Way]) -> str:
    return "|".join(way.pattern for way in patterns)


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<![A-Za-z])\.?\d+(?:[.,]\d+)*", text))


def _negations(text: str) -> list[str]:
    return sorted(re.findall(r"\b(?:no|not|never|none|cannot|without|nor)\b|n't\b", text.lower()))
