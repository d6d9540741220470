"""Check the citations of a text, and look up the lines that a citation names."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.errors import UsageError
from kbs.evidence.checking import CheckedCitation, Checker, Status, check_citation, check_text
from kbs.evidence.citation import NOTES, Citation, CitationLine, EvidenceKind, lines_hash, parse_reference
from kopt.services.engine import Engine
from kopt.services.experience.evidence import log_checker

if TYPE_CHECKING:
    from wiki.library import Wikis

_CITATION = frozenset({"wiki", "path", "line_start", "line_end", "hash", "quote"})
"""Fields of a citation in JSON."""
_FINDS = "`kopt search WORDS` finds pages."
_LINES = re.compile(r"(?P<page>\S.*?)(?::L?|#L?)(?P<a>[1-9]\d{0,8})(?:-L?(?P<b>[1-9]\d{0,8}))?")
"""A page's name and its lines as editors and websites write them: `softmax:36`, `kernel/softmax.md#L36-L40`."""
_NAMED = 10
"""Pages that an error names."""
_ELSEWHERE = {
    "log": "`kopt show log/ID` shows a record of the experience log, and `kopt log list` lists them.",
    "profile": "It is in the profile's own file; `kopt cite LINE --profile FILE` checks a line that cites it.",
    "receipt": "It is in the receipt's own file; `kopt cite LINE` checks a line that cites it.",
}
"""Where evidence that is not a line of a page is found, by its kind."""


def check(engine: Engine, content: str, profiles: Sequence[Path] = ()) -> list[CheckedCitation]:
    """Check every citation of a text or a JSON document against wikis, log, kept receipts, and `profiles`.

    Raises `UsageError` for a profile that cannot be read.
    """
    with log_checker(engine.settings) as log:
        checkers = {**_file_checkers(profiles, engine.settings.home), EvidenceKind.LOG: log}
        return check_all(content, engine.library, checkers)


def check_all(
    content: str, library: Wikis, checkers: Mapping[EvidenceKind, Checker] | None = None
) -> list[CheckedCitation]:
    """Check the citations of a text, or of a JSON document: those with hash and quote, and those in its strings."""
    if content.lstrip().startswith(("{", "[", '"')):
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if document is not None:
            checked: list[CheckedCitation] = []
            for item in _evidence_in(document):
                if isinstance(item, str):
                    checked += [replace(c, line=0) for c in check_text(item, library, library.vocabulary, checkers)]
                else:
                    checked.append(check_citation(item, library))
            return checked
    return check_text(content, library, library.vocabulary, checkers)


def _file_checkers(profiles: Sequence[Path], home: Path) -> Mapping[EvidenceKind, Checker]:
    """For these files and kept receipts; what reads profiles is imported when one is checked."""

    @functools.cache
    def made() -> Mapping[EvidenceKind, Checker]:
        from kopt.services.user_kernel.evidence import checkers
        from kopt.services.user_kernel.files import read_report

        return checkers([read_report(path) for path in profiles], home)

    def check_one(cited: CitationLine) -> tuple[Status, str, str]:
        return made()[cited.reference.kind](cited)

    if profiles:
        made()  # a file that cannot be read is an error, whether it is cited or not
    return {EvidenceKind.PROFILE: check_one, EvidenceKind.RECEIPT: check_one}


def _evidence_in(document: object) -> Iterator[Citation | str]:
    """Every object of a JSON document that has the fields of a citation, and every other string."""
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            if item.keys() >= _CITATION:
                # A field of a wrong type fails the check; it must not hide the citation from it.
                start, end = (n if type(n) is int else 0 for n in (item["line_start"], item["line_end"]))
                texts = (str(item.get("revision", "")), str(item["hash"]), str(item["quote"]))
                yield Citation(str(item["wiki"]), str(item["path"]), start, end, *texts)
                item = {name: value for name, value in item.items() if name not in _CITATION}
            # Names are the document's own text too.
            waiting += reversed([part for pair in item.items() for part in pair])


def checked_lines(checked: Sequence[CheckedCitation]) -> Iterator[str]:
    """What came of each citation, and how many hold."""
    for one in checked:
        where = f"{one.line}: " if one.line else ""
        yield f"{where}{one.status:<9} {one.text or one.reference}"
        if one.status is not Status.OK:
            yield from [f"    {one.reference}: {one.detail}"] if one.detail else []
            yield from [f"    the line says: {one.says}"] if one.says else []
        if one.said:
            yield f"    it said:       {one.said}"
    ok = sum(one.status is Status.OK for one in checked)
    yield f"{ok} ok, {len(checked) - ok} failed"


@dataclass(frozen=True)
class PageLines:
    """Lines of a page, with context around them."""

    wiki: str
    path: str
    title: str
    start: int
    """First cited line."""
    end: int
    lines: tuple[tuple[int, str], ...]
    """Numbered; the cited ones and their context."""
    hash: str
    """Of the cited lines."""
    revision: str
    """Of the wiki."""

    @property
    def reference(self) -> str:
        """`gpu-wiki/kernel/softmax.md:L34-L36`"""
        return f"{self.wiki}/{self.path}:L{self.start}" + (f"-L{self.end}" if self.end != self.start else "")


def read_lines(library: Wikis, text: str, context: int = 0) -> PageLines:
    """The lines that a citation names, or a whole page by its id or path.

    Raises `UsageError`: `evidence_unknown`, `not_found`.
    """
    reference = parse_reference(text)
    if reference is not None and not reference.of_lines:
        raise UsageError(
            f"{text} cites a {reference.kind}, not a line of a page",
            code="evidence_unknown",
            hint=_ELSEWHERE.get(reference.kind, "Cite lines of a page as gpu-wiki/PATH:L1-L5."),
        )
    if reference is not None:
        wiki, path, start, end = reference.wiki, reference.target, reference.line_start, reference.line_end
        lines = library.lines(wiki, path)
    else:
        named = _LINES.fullmatch(text.strip())
        wiki, path = find_page(library, named["page"] if named else text)
        lines = library.lines(wiki, path)
        start, end = (int(named["a"]), int(named["b"] or named["a"])) if named else (1, len(lines or ()))
    if lines is None or not start <= end <= len(lines):
        why = "there is no such page" if lines is None else f"{path} ends at line {len(lines)}"
        why = f"line {start} comes after line {end}" if start > end > 0 else why
        raise UsageError(f"cannot show {text}: {why}", code="not_found", hint=_FINDS)
    first, last = max(1, start - context), min(len(lines), end + context)
    return PageLines(
        wiki=wiki,
        path=path,
        title=getattr(getattr(library.page(wiki, path), "meta", None), "title", path),
        start=start,
        end=end,
        lines=tuple((n, lines[n - 1]) for n in range(first, last + 1)),
        hash=lines_hash(lines[start - 1 : end]),
        revision=library.all[wiki].revision,
    )


def find_page(library: Wikis, text: str) -> tuple[str, str]:
    """(wiki, path) of a page named by id, path, wiki and path, the end of an id that only one page has, or a method.

    The latest wiki wins. UsageError (`not_found`, `page_ambiguous`).
    """
    wanted = re.sub(r"^note:", NOTES, text.strip()).removesuffix(".md")
    if not wanted:
        raise UsageError("no page is named", code="not_found", hint="Name one, for example: kopt show softmax")
    ids: dict[str, tuple[str, str]] = {}
    short: dict[str, tuple[str, str]] = {}
    """Without the wiki's name."""
    for wiki in library.all.values():
        for file in wiki.files():
            page = file.path.removesuffix(".md")
            ids[f"{wiki.name}/{page}"] = (wiki.name, file.path)
            short[f"{wiki.name}/{page}" if wiki.notes else page] = (wiki.name, file.path)  # notes take no page's place
    ids |= short
    if wanted in ids:
        return ids[wanted]
    end = "-".join(wanted.lower().split())
    # A page's own name comes first; where no page has it, the end of a name after a hyphen.
    for before in "/-":
        found = [name for name in short if end and name.endswith(before + end)]
        if len(found) == 1:
            return short[found[0]]
        if found:
            raise UsageError(
                f"{len(found)} pages are named {text}",
                code="page_ambiguous",
                hint=f"Name one of them: {', '.join(found[:_NAMED])}{' ...' if len(found) > _NAMED else ''}",
            )
    from wiki.methods import method_pages, methods_of  # imports the models of pages, which few commands need

    stated = {row.method: (page.wiki, page.path) for page in method_pages(library) for row in methods_of(page)}
    if (method := wanted.rpartition("method/")[2].replace("-", "_")) in stated:
        return stated[method]
    if within := [name for name in ids if name.startswith(f"{wanted.rstrip('/')}/")]:
        more = f" and {len(within) - _NAMED} more" if len(within) > _NAMED else ""
        raise UsageError(
            f"{text} is a folder of {len(within)} pages",
            code="page_ambiguous",
            hint=f"Name one of them: {', '.join(sorted(within)[:_NAMED])}{more}",
        )
    near = nearest_pages(library, wanted)
    raise UsageError(
        f"no page {text}",
        code="not_found",
        hint=f"Did you mean {', '.join(near)}?" if near else _ELSEWHERE.get(wanted.rstrip("/"), _FINDS),
    )


def nearest_pages(library: Wikis, text: str) -> list[str]:
    """Wiki and path, without its ending, of at most three pages whose own names are nearest to that in a text: those
    that begin with it if any do."""
    named: dict[str, list[str]] = {}
    for wiki in library.all.values():
        for file in wiki.files():
            page = file.path.removesuffix(".md")
            named.setdefault(page.rpartition("/")[2].lower(), []).append(f"{wiki.name}/{page}")
    wanted = text.lower().rpartition("/")[2]
    begun = [name for name in sorted(named) if wanted and name.startswith(f"{wanted}-")]
    close = begun or difflib.get_close_matches(wanted, named, n=3, cutoff=0.6)
    return [page for name in close for page in named[name]][:3]
