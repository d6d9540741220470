"""Citations: their grammar, and the lines of a text that cite something.

    gpu-wiki/hardware/h100-sxm.md:L23            a line of a wiki page; L23-L25 for several
    gpu-wiki/hardware/h100-sxm.md:L23@1f0c9a77   the same, with the hash of the lines as they were when cited
    receipt/<hash>#<field>                       a field of an evaluation receipt
    profile/<hash>#<metric>                      a metric of a kernel profile
    log/<id>                                     a record of the experience log
    note/<name>/<path>:L<a>[-L<b>]               a line of foreign notes; other characters of a path stand as %20

A citation line states a claim and where it stands:

    [<gpu> ]<metric>[ (<qualifier>)]: <value> <unit> <- <reference>
    "<words of the cited lines>" <- <reference>
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kbs.common.json_model import JsonDataclass
from kbs.evidence.units import NUMBER

MAX_LINE = 100_000
"""Claims of longer lines are not read; a citation on one fails."""


class EvidenceKind(StrEnum):
    """What sort of evidence a reference points at."""

    WIKI = "wiki"
    RECEIPT = "receipt"
    PROFILE = "profile"
    LOG = "log"
    NOTE = "note"


NOTES = f"{EvidenceKind.NOTE}/"
"""What the name of a folder of notes begins with where a wiki's name stands, and no wiki's does."""


@dataclass(frozen=True)
class Citation(JsonDataclass):
    """Where a claim stands, with all that is needed to check it again later."""

    wiki: str
    path: str
    """Path of the page below the wiki's folder, with forward slashes."""
    line_start: int
    line_end: int
    """Both 1-based and inclusive; the front matter counts."""
    revision: str
    """The wiki's revision when the lines were cited: SHA-256 of the sorted list of its paths and content hashes. Empty
    where it is not known."""
    hash: str
    """SHA-256 of the cited lines; see `lines_hash`."""
    quote: str
    """The cited lines themselves."""

    @property
    def reference(self) -> str:
        """The printed form, `gpu-wiki/hardware/h100-sxm.md:L23`."""
        span = f"L{self.line_start}" + (f"-L{self.line_end}" if self.line_end != self.line_start else "")
        return f"{self.wiki}/{self.path}:{span}"


@dataclass(frozen=True)
class Reference:
    """A parsed reference. `target` is the page, hash or id; `part` the field or metric; `wiki` is `note/<name>` for
    notes."""

    kind: EvidenceKind
    text: str
    target: str
    part: str = ""
    wiki: str = ""
    line_start: int = 0
    line_end: int = 0
    hash: str = ""

    @property
    def of_lines(self) -> bool:
        """Whether it names lines of a file: a wiki's page, or notes."""
        return self.kind in (EvidenceKind.WIKI, EvidenceKind.NOTE)


@dataclass(frozen=True)
class SpecClaim:
    """What a citation line says about a product."""

    subject: str
    """Product, where one is named, and metric as they are written; the checker tells them apart."""
    qualifier: str
    value: str
    unit: str


@dataclass(frozen=True)
class CitationLine:
    """One citation found in a text: 1-based `line` of the text, and what is claimed of the reference.

    What is in the place of a reference and cannot be read as one is a reference to line 0.
    """

    line: int
    text: str
    reference: Reference
    claim: SpecClaim | None = None
    """The spec that the line states, if it has the form of one."""
    quote: str = ""
    """The words that the line puts in quotation marks."""
    malformed: str = ""
    """Why what stands left of the arrow is neither a spec nor a quotation; empty if it is one."""


def lines_hash(lines: Sequence[str]) -> str:
    """SHA-256 (hex) of lines joined by a line feed; trailing blanks and the file's line ends do not count."""
    joined = "\n".join(line.rstrip() for line in lines)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


_NAME = r"[A-Za-z0-9_][\w.-]*"
_PART = r"[A-Za-z0-9_%][\w.%-]*"
_SPAN = r":L(?P<a>[1-9]\d{0,8})(?:-L?(?P<b>[1-9]\d{0,8}))?"
_REFERENCE = re.compile(
    rf"""(?<![\w/.-])(?:
        receipt/(?P<receipt>[0-9A-Za-z_-]{{4,128}})\#(?P<field>[\w.\[\]-]+)
      | profile/(?P<profile>[0-9A-Za-z_-]{{4,128}})\#(?P<metric>[\w.\[\]-]+)
      | log/(?P<log>[0-9A-Za-z_-]{{4,64}})(?![\w/.]*:L)
      | (?P<wiki>{_NAME})/(?P<path>(?:{_PART}/)*{_PART}\.(?:md|markdown|txt|rst)){_SPAN}(?:@(?P<hash>[0-9a-f]{{8,64}}))?
    )(?![\w@])""",
    re.VERBOSE,
)
_NEARLY = re.compile(r"(?<![\w/.-])[\w.-]+/[\w./%-]*\.(?:md|markdown|txt|rst):[\w@-]*")
"""A reference but for its lines or its hash."""
_ARROW = re.compile(r"<-+|←|&lt;-+")
_PLACE = re.compile(r"[\s`*_(\[]*(?P<place>[^\s`*()\[\]]*[/#.][^\s`*()\[\]]*)")
_AND = re.compile(r"[\s`*_,;&()\[\]]*(?:and\s[\s`*_(\[]*)?")
_LEADING = re.compile(r"^\s*(?:>\s*)*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:\[\d{1,4}\]:?\s*)?")
_CLAIM = re.compile(r"^(?P<head>[^:\"“]{1,200}?)(?:\s*\((?P<qualifier>[^()]{1,80})\))?\s*:\s+(?P<value>\S.*)$")
_QUOTED = re.compile(r"^[\"“](?P<quote>.+)[\"”]$")


def parse_reference(text: str) -> Reference | None:
    """Read `text`, all of it, as a reference."""
    match = _REFERENCE.fullmatch(text.strip())
    return _reference(match) if match else None


def references(text: str) -> Iterator[tuple[int, int, Reference]]:
    """(start, end, reference) of each place of `text` that is one, in order; a line that is too long is not read."""
    for match in _REFERENCE.finditer(text) if len(text) <= MAX_LINE else ():
        yield match.start(), match.end(), _reference(match)


def _reference(match: re.Match[str]) -> Reference:
    text = match.group(0)
    if match["receipt"]:
        return Reference(EvidenceKind.RECEIPT, text, match["receipt"], match["field"])
    if match["profile"]:
        return Reference(EvidenceKind.PROFILE, text, match["profile"], match["metric"])
    if match["log"]:
        return Reference(EvidenceKind.LOG, text, match["log"])
    start = int(match["a"])
    end = int(match["b"] or start)
    kind, wiki, path = EvidenceKind.WIKI, match["wiki"], match["path"]
    if wiki == "note" and "/" in path:
        name, path = path.split("/", 1)
        kind, wiki = EvidenceKind.NOTE, NOTES + name
    return Reference(kind, text, path, wiki=wiki, line_start=start, line_end=end, hash=match["hash"] or "")


def find_citations(text: str) -> Iterator[CitationLine]:
    """Every citation of `text`, in order: citation lines with their claim, and bare references in prose."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > MAX_LINE:
            hidden = _REFERENCE.search(line)
            if hidden:
                why = f"a line of more than {MAX_LINE:,} characters is not read for claims"
                yield CitationLine(number, line[:200], _reference(hidden), malformed=why)
            continue
        yield from _citations_of(number, line)


def _citations_of(number: int, line: str) -> Iterator[CitationLine]:
    end, left = 0, ""
    for match in _REFERENCE.finditer(line):
        between, end = line[end : match.start()], match.end()
        yield from _nearly(number, line, between)
        reference, gap = _reference(match), ""
        arrow = _last_arrow(between)
        if arrow:
            left, gap = between[: arrow.start()], between[arrow.end() :].strip("`*_ \t([")
        elif not _AND.fullmatch(between):
            left = ""
        cited = _citation_line(number, line, left, reference)
        if (arrow and not gap) or not cited.malformed:
            yield cited
        else:
            # The line points at the evidence, and claims nothing that code can read.
            left = ""
            yield CitationLine(number, line.strip(), reference)
    tail = line[end:]
    nearly = list(_nearly(number, line, tail))
    yield from nearly
    arrow = _last_arrow(tail)
    place = _PLACE.match(tail, arrow.end()) if arrow and not nearly else None
    if arrow and place:
        cited = _citation_line(number, line, tail[: arrow.start()], Reference(EvidenceKind.WIKI, place["place"], ""))
        if not cited.malformed:
            yield cited


def _last_arrow(text: str) -> re.Match[str] | None:
    return max(_ARROW.finditer(text), key=lambda match: match.start(), default=None)


def _nearly(number: int, line: str, part: str) -> Iterator[CitationLine]:
    for match in _NEARLY.finditer(part):
        yield CitationLine(number, line.strip(), Reference(EvidenceKind.WIKI, match[0], ""))


def _citation_line(number: int, line: str, left: str, reference: Reference) -> CitationLine:
    stated = _LEADING.sub("", left, count=1).strip("`*|;, \t")
    quoted = _QUOTED.match(stated)
    if quoted:
        return CitationLine(number, line.strip(), reference, quote=quoted["quote"])
    claim = parse_claim(stated.rsplit("|", 1)[-1])
    if claim is not None:
        return CitationLine(number, line.strip(), reference, claim=claim)
    return CitationLine(number, line.strip(), reference, malformed=f"“{stated}” is neither a spec nor a quotation")


_VALUE = re.compile(rf"^(?P<number>{NUMBER})\s*(?P<unit>[^\d\s].*)?$")


def parse_claim(text: str) -> SpecClaim | None:
    """Read `[<gpu> ]<metric>[ (<qualifier>)]: <value> <unit>`."""
    match = _CLAIM.match(text.strip())
    if match is None:
        return None
    value_text = match["value"].strip().rstrip(".;")
    number = _VALUE.match(value_text)
    value, unit = (number["number"], (number["unit"] or "").strip()) if number else (value_text, "")
    return SpecClaim(match["head"].strip(), (match["qualifier"] or "").strip(), value, unit)
