"""Answers and passages as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kbs.answers.model import Answer, Claim, Section
from kbs.common.visible_text import visible
from kbs.evidence.citation import Citation
from kbs.evidence.file_evidence import FileEvidence
from kbs.index.search import Hit
from kbs.wording.pack import said, source_lines

LINES = 12
"""Lines of reasons that an answer has."""
DIRECT = 8
"""Lines that answer, where a question asks for several values."""
MARKS = 3
"""Sources that a line is marked with."""
_FIRST = 2
_ROWS = 6
"""Rows of a count that a source line has; `--json` has all."""


def answer_text(answer: Answer, *, long: bool = False) -> str:
    """The answer, its direct claim first, with numbered sources: one number for each cited place.

    Beside the direct claim it has `LINES` lines of reasons, some of each section, each with `MARKS` sources; `long`:
    all.
    """
    sources = Sources(most=None if long else MARKS)
    shown = answer.sections if long else shortened(answer.sections)
    out = reading_lines(answer)
    for section in shown:
        if section.title:
            out += ["", section.title]
        for position, claim in enumerate(section.claims, start=1):
            marks = sources.marks(claim)
            lead = "" if not section.title else (f"  {position}. " if section.title == "What to try" else "  - ")
            note = f" ({claim.note})" if claim.note else ""
            out.append(f"{lead}{said(claim)}{note}{' ' + marks if marks else ''}")
    if hidden := len(answer.claims) - sum(len(section.claims) for section in shown):
        out += ["", f"{hidden} more line{'' if hidden == 1 else 's'}: --long"]
    return "\n".join([*out, *ending(answer, sources)])


def shortened(sections: Sequence[Section]) -> list[Section]:
    """The sections with `LINES` claims beside the direct one: two of each first, then more of the earlier ones."""
    if not sections:
        return []
    direct, rest = sections[0], sections[1:]
    kept = [Section(direct.title, direct.claims[:DIRECT])]
    left = LINES + 1 - len(kept[0].claims)
    counts = [0] * len(rest)
    for most in (_FIRST, LINES):
        for place, section in enumerate(rest):
            more = max(0, min(min(most, len(section.claims)) - counts[place], left))
            counts[place] += more
            left -= more
    shown = [Section(one.title, one.claims[:count]) for one, count in zip(rest, counts, strict=True) if count]
    return [*kept, *shown]


def reading_lines(answer: Answer) -> list[str]:
    """What of the question was read otherwise than it was written, above the answer."""
    return [f"({'; '.join(answer.read)})", ""] if answer.read else []


def ending(answer: Answer, sources: Sources) -> list[str]:
    """What stands below the claims: what was taken, what is not known, and the sources that were named."""
    out: list[str] = []
    if answer.taken:
        out += ["", "Taken from your files", *(f"  - {one}" for one in answer.taken)]
    if answer.gaps:
        out += ["", "Not known", *(f"  - {gap}" for gap in answer.gaps)]
    if answer.dropped:
        out += ["", f"{answer.dropped} claims failed their check and were left out."]
    return out + sources.lines()


def inherited_lines(inherited: Sequence[str]) -> list[str]:
    """What a follow-up took from the question before it, below the answer."""
    return ["", f"Taken from the question before: {', '.join(inherited)}"] if inherited else []


class Sources:
    """The places that claims cite, numbered in the order in which they are named."""

    def __init__(self, claims: Iterable[Claim] = (), most: int | None = None) -> None:
        """`claims`: further ones, which may say best what stands at a place. Of a claim, at most `most` are named."""
        self._most = most
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, str] = {}
        self._rows: dict[str, dict[FileEvidence, None]] = {}
        """Of each count of a reference, the rows that are cited."""
        for claim in claims:
            self._learn(claim)

    def marks(self, *claims: Claim) -> str:
        """The numbers of what the claims cite: `[1][3]`; new ones are given out."""
        return "".join(f"[{number}]" for number in self.numbers(*claims))

    def numbers(self, *claims: Claim) -> list[int]:
        """The numbers of what the claims cite, each once; new ones are given out."""
        keys: list[str] = []
        for claim in claims:
            self._learn(claim)
            cited, own = _each_page_first(claim.citations)[: self._most], claim.evidence[: self._most]
            for item in own:
                self._lines.setdefault(_own_key(item), item.line)
                if item.kind == "count":
                    self._rows.setdefault(_own_key(item), {})[item] = None
            keys += [*(c.reference for c in cited), *(_own_key(item) for item in own)]
        for key in keys:
            self._numbers.setdefault(key, len(self._numbers) + 1)
        return [self._numbers[key] for key in dict.fromkeys(keys)]

    def _learn(self, claim: Claim) -> None:
        for line, citation in zip(source_lines(claim), claim.citations, strict=True):
            # A line that says what stands there is worth more than a bare place.
            if len(line) > len(self._lines.get(citation.reference, "")):
                self._lines[citation.reference] = line

    def listed(self) -> list[tuple[int, str, str]]:
        """(number, reference, line) of each source, in the order of the numbers."""
        stated = self._lines | {key: _count_line(list(rows)) for key, rows in self._rows.items()}
        return [(number, key, stated[key]) for key, number in self._numbers.items()]

    def lines(self) -> list[str]:
        """The list of sources; empty where nothing is cited."""
        listed = [f"  [{number}] {line}" for number, _, line in self.listed()]
        return ["", "Sources", *listed] if listed else []


def _each_page_first(citations: Sequence[Citation]) -> list[Citation]:
    """The first line of each page, then the others: three marks name more that way than three rows of one page."""
    first = {(citation.wiki, citation.path): citation for citation in reversed(citations)}
    return sorted(citations, key=lambda citation: citation != first[citation.wiki, citation.path])


def _own_key(item: FileEvidence) -> str:
    """What has a number of its own among the sources: a figure of a profile; all rows of one count together."""
    return f"{item.file} {item.hash}" if item.kind == "count" else item.reference


def _count_line(rows: list[FileEvidence]) -> str:
    """What a count of a reference states, in one line."""
    first = [f"{one.place}: {one.states}" for one in rows[:_ROWS]]
    more = f"; {len(rows) - _ROWS} more" if len(rows) > _ROWS else ""
    return visible(f"count of {rows[0].file} (SHA-256 {rows[0].hash[:16]}): {'; '.join(first)}{more}")


def score_stages(hit: Hit) -> str:
    """The score of each stage of the search, for `--explain`."""
    dense = f"cosine {hit.cosine:.3f}, asked {hit.asked:.3f}"
    return f"{dense}, words {hit.words:.3f}, identifier {hit.identifier}, names {hit.names:.2f}"
