"""The sources of an answer: the index, the vocabulary, the search, and helpers that query them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kbs.answers.model import Claim, ClaimKind
from kbs.evidence.checking import MIN_QUOTED_WORDS, plain_text, stands_in
from kbs.evidence.citation import NOTES, lines_hash
from kbs.evidence.passage import Passage
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import AdviceRow
from kbs.evidence.vocabulary import Vocabulary, is_capability, is_target, words
from kbs.index.passages import ALL, Chosen
from kbs.index.sections import SectionResult
from kbs.index.store import Store
from kbs.questions.question import Question

NOTE = "note"
"""The confidence of what a note says, beside its words."""
Searcher = Callable[[Question], SectionResult]


@dataclass
class Knowledge:
    """The evidence at hand."""

    store: Store
    vocabulary: Vocabulary
    searcher: Searcher
    notes: Searcher = lambda _: SectionResult()
    """Searches foreign notes, which are not among what `searcher` finds."""
    reviewed: Chosen = ALL
    """What says how rare a word is: where there are notes, all but them."""
    _of: dict[str, list[Spec]] = field(default_factory=dict, repr=False)
    _standing: dict[str, set[str]] = field(default_factory=dict, repr=False)

    @cached_property
    def specs(self) -> list[Spec]:
        """Every spec of the index."""
        return self.store.specs()

    def about(self, product: str) -> list[Spec]:
        """Every spec of a product. Those of all take a tenth of a second to read, so each is read when asked for."""
        if product not in self._of:
            self._of[product] = self.store.specs(product)
        return self._of[product]

    @cached_property
    def documented(self) -> list[str]:
        """Products that have a hardware page with specs, in the order of the vocabulary."""
        have = self.store.spec_products()
        return [product for product in self.vocabulary.products if product in have]

    def of(self, product: str, metric: str) -> list[Spec]:
        """The recommended specs of a metric of a product; a later wiki's rows take the place of an earlier one's."""
        found = [s for s in self.about(product) if s.metric == metric and s.recommended]
        seen: set[str] = set()
        out = []
        for spec in found:
            if spec.qualifier not in seen:
                seen.add(spec.qualifier)
                out.append(spec)
        return out

    def capability(self, product: str) -> str:
        """The compute capability of a product whose page has its limits; "" where there is none."""
        if is_capability(product):
            return product
        value = next((spec.value for spec in self.of(product, "compute_capability")), "")
        id = f"cc-{value.replace('.', '-')}"
        if value and id in self.documented:
            return id
        of = self.vocabulary.products[product].architecture if product in self.vocabulary.products else ""
        kin = [id for id in self.documented if is_capability(id) and self.vocabulary.products[id].architecture == of]
        return kin[0] if len(kin) == 1 and not value else ""

    def target(self, product: str) -> str:
        """The target of AMD's compilers, as gfx942, that alone has the architecture of a product; "" if none."""
        of = self.vocabulary.products[product].architecture if product in self.vocabulary.products else ""
        kin = [id for id in self.documented if is_target(id) and self.vocabulary.products[id].architecture == of]
        return kin[0] if of and len(kin) == 1 else ""

    def stands_for(self, products: Sequence[str]) -> set[str]:
        """Products, and their compute capabilities and targets: pages of these are about them too."""
        for id in products:
            if id not in self._standing:
                self._standing[id] = {one for one in (id, self.capability(id), self.target(id)) if one}
        return set[str]().union(*(self._standing[id] for id in products))

    @cached_property
    def of_techniques(self) -> dict[str, dict[str, list[str]]]:
        """id of a technique → facet → values of its page."""
        pages = self.store.facets(f"technique/{id}" for id in self.vocabulary.techniques)
        return {page.partition("/")[2]: facets for page, facets in pages.items()}

    def stated(self, product: str, metric: str) -> list[Spec]:
        """The values of a product, or, where its page has none, those of its compute capability."""
        return self.of(product, metric) or self.of(self.capability(product), metric)

    def others(self, product: str, metric: str) -> list[Spec]:
        """Values of other sources, which the page does not recommend."""
        return [s for s in self.about(product) if s.metric == metric and not s.recommended]

    def name(self, product: str) -> str:
        """A product's name."""
        return self.vocabulary.products[product].name

    def names(self, products: list[str] | tuple[str, ...]) -> str:
        """Names of products, for a sentence."""
        return join([self.name(product) for product in products])

    def spec_claim(self, spec: Spec) -> Claim:
        """What a spec row says, as a claim."""
        source = spec.source
        # A card that cites a vendor document names that document in the place; any other source is named itself.
        named = source.place if source.kind in ("fact-card", "derived") else f"{source.title}, {source.place}"
        origin = f"derived: {named}" if source.kind == "derived" else named.rstrip(", ")
        return Claim(
            spec.statement(self.vocabulary),
            ClaimKind.SPEC,
            (spec.citation,),
            subject=spec.product,
            note=f"{spec.confidence}: {origin}",
        )

    def lead(self, page_id: str) -> Claim | None:
        """The first sentence of a page."""
        for id in self.store.passage_ids(page_id=page_id)[:2]:
            passage = self.store.passages([id])[id]
            for claim in sentences(passage):
                if not claim.citations[0].quote.lstrip().startswith("|"):
                    return claim
        return None

    def techniques_against(self, symptom: str) -> list[str]:
        """Ids of the pages of techniques that name a symptom, those first that name it first. Pages that treat a
        subject, such as all of shared memory, are none."""
        pages = self._about(symptom, "technique")
        return [page for page in pages if page.rpartition("/")[2] in self.vocabulary.techniques]

    def advice_against(self, symptom: str) -> list[AdviceRow]:
        """A row of advice for each technique that the profiling pages about a symptom name, in their order."""
        pages = self._about(symptom, "profiling")
        facets = self.store.facets(pages)
        named = [technique for page in pages for technique in facets[page].get("technique", ())]
        rows: dict[str, AdviceRow] = {}
        for row in self.store.rows("advice"):
            rows.setdefault(row.technique, row)
        return [rows[technique] for technique in dict.fromkeys(named) if technique in rows]

    def _about(self, symptom: str, kind: str) -> list[str]:
        """Ids of the pages of a kind that name a symptom; a page names the one that it is most about first."""
        facets = self.store.facets(self.store.page_ids("symptom", symptom))
        places = {page: of["symptom"].index(symptom) for page, of in facets.items() if of["kind"] == [kind]}
        return sorted(places, key=lambda page: (places[page], page))


_READ_BY_ROW = frozenset({"qualifier", "test", "because", "count", "opcodes"})
"""Heads of the columns that tell the tables of values, thresholds, advice, costs and signatures."""
MAX_PARAGRAPH = 5_000
"""Characters of a paragraph of notes that is quoted; a longer one is no prose, or its lines say little of the place."""
_OWN_LINE = re.compile(r"\s*(?:[-*+>|]|\d{1,3}[.)])\s")
"""Items of lists, quotations and rows of tables, which go on no sentence."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])")
_LINK_ALONE = re.compile(r"(?:[-*]\s+)?!?\[[^\]]*\]\([^)]*\)\.?")


def join(items: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def sentences(passage: Passage) -> Iterator[Claim]:
    """What a passage says, each a claim with its own lines cited.

    A line of a wiki is a sentence, or a row of a table; in notes sentences run over lines.
    """
    spans: list[list[int]] = []
    lines = passage.text.split("\n")
    notes = passage.citation.wiki.startswith(NOTES)
    for at in _lines_that_say(lines):
        if notes and spans and spans[-1][-1] == at - 1 and not _OWN_LINE.match(lines[at]):
            spans[-1].append(at)
        else:
            spans.append([at])
    cited = passage.citation
    for first, *_, last in ((span[0], *span) for span in spans):
        for text, start, end in _quotable(lines, first, last) if notes else [(plain_text(lines[first]), first, last)]:
            of = lines[start : end + 1]
            at = cited.line_start + start
            own = replace(cited, line_start=at, line_end=at + end - start, hash=lines_hash(of), quote="\n".join(of))
            yield Claim(text, ClaimKind.STATEMENT, (own,), subject=passage.page_id, note=NOTE if notes else "")


def _quotable(lines: Sequence[str], first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """The sentences of a paragraph, each with the places of its first and last line. A note may have any form: what
    could not be found again in its lines is left out."""

    def has(start: int, end: int) -> bool:
        return stands_in(sentence, "\n".join(lines[start : end + 1]))

    paragraph = "\n".join(lines[first : last + 1])
    for sentence in _SENTENCE_END.split(plain_text(paragraph)) if len(paragraph) <= MAX_PARAGRAPH else ():
        start, end = first, last
        if len(words(sentence)) < MIN_QUOTED_WORDS or not has(start, end):
            continue
        while start < end and has(start + 1, end):
            start += 1
        while start < end and has(start, end - 1):
            end -= 1
        yield sentence, start, end


def is_read_by_row(line: str) -> bool:
    """Whether a line is the head of a table whose rows are looked up, not quoted."""
    return line.lstrip().startswith("|") and bool(_READ_BY_ROW.intersection(plain_text(line).split(" | ")))


def _lines_that_say(lines: Sequence[str]) -> Iterator[int]:
    """The places of lines that say something: prose, and rows of tables.

    Headings, code, table heads, and a link or a figure alone say nothing; tables that are read by row are looked up,
    not quoted.
    """
    fenced = False
    header = ""
    for at, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if stripped.startswith("|"):
            if not header:
                header = stripped
            if stripped == header or not stripped.strip("|-: ") or is_read_by_row(header):
                continue
        else:
            header = ""
        if fenced or not stripped or stripped.startswith(("#", "<", "[^", "    ")) or _LINK_ALONE.fullmatch(stripped):
            continue
        yield at
