"""`kopt cite` and `kopt show`: evidence, checked and read."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from kbs.evidence.checking import CheckedCitation, Checker, Status
    from kbs.evidence.citation import Citation, CitationLine, EvidenceKind
    from wiki.library import Wikis

MAX_TEXT = 20_000_000
"""Characters; more than any report has."""
_CITATION = frozenset({"wiki", "path", "line_start", "line_end", "hash", "quote"})
"""Fields of a citation in JSON."""
_ELSEWHERE = {
    "log": "`kopt show log/ID` shows a record of the experience log.",
    "profile": "It stands in the profile's own file; `kopt cite LINE --profile FILE` checks a line that cites it.",
    "receipt": "It stands in the receipt's own file; `kopt cite LINE` checks a line that cites it.",
}
"""Where evidence that is no line of a page is looked at, by its kind."""


def cite(
    text: Annotated[str, typer.Argument(help="A citation line, a file with citations, or - for standard input.")],
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            "--profile", help="A profile or receipt that the text cites: .ncu-rep, CSV, folder, .json. May be repeated."
        ),
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Check every citation of a text against what the cited lines say now.

    A citation line is `[<gpu> ]<metric>[ (<qualifier>)]: <value> <unit> <- <wiki>/<path>:L<a>[-L<b>]`, or has a
    quotation in place of the spec. The JSON that kopt prints is checked too. Exit code 4 if any citation fails.

    Figures of a profile or receipt, `<metric>: <value> <unit> <- profile/<hash>#<metric>[<launch>]` or `<field>: … <-
    receipt/<id>#<field>`, are checked against the files that --profile gives, and receipts also against those that
    `kopt bench` kept; one whose file is neither given nor kept fails.

    Records of the experience log, `<names>: <outcome>, <speedup> <- log/<id>`, `<field>: <value> <- log/<id>` or a
    quotation, are checked against the log; a masked record is stale.
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kbs.evidence.checking import Status
        from kbs.evidence.citation import EvidenceKind
        from kopt.cli.support import engine
        from kopt.services.experience_evidence import log_checker
        from kopt.services.results.citations import CiteData

        content = _content(text)
        with engine() as eng:
            with log_checker(eng.settings) as log:
                checked = check_all(
                    content, eng.library, {**_checkers(profile or [], eng.settings.home), EvidenceKind.LOG: log}
                )
            warnings = list(eng.warnings)
        failed = sum(c.status is not Status.OK for c in checked)
        if not checked:
            warnings.append("no citation was found in the text")

        def show(console: Console) -> None:
            for item in checked:
                where = f"{item.line}: " if item.line else ""
                console.print(f"{where}{item.status:<9} {item.text or item.reference}", markup=False)
                if item.detail and item.status is not Status.OK:
                    console.print(f"    {item.reference}: {item.detail}", markup=False)
                if item.status is not Status.OK and item.says:
                    console.print(f"    the line says: {item.says}", markup=False)
                if item.said:
                    console.print(f"    it said:       {item.said}", markup=False)
            console.print(f"{len(checked) - failed} ok, {failed} failed", markup=False)

        data = CiteData(citations=checked, ok=len(checked) - failed, failed=failed)
        return Reply(data, show, ExitCode.REJECTED if failed else ExitCode.OK, warnings)

    deliver("cite", json, debug, work)


def _checkers(profiles: list[Path], home: Path) -> Mapping[EvidenceKind, Checker]:
    """For these files and the receipts that are kept; imported, with all that reads profiles, when one is checked."""
    from kbs.evidence.citation import EvidenceKind

    @functools.cache
    def made() -> Mapping[EvidenceKind, Checker]:
        from kopt.services.user_kernel.evidence import checkers
        from kopt.services.user_kernel.files import read_evidence

        return checkers([read_evidence(path) for path in profiles], home)

    def check(cited: CitationLine) -> tuple[Status, str, str]:
        return made()[cited.reference.kind](cited)

    if profiles:
        made()  # a file that cannot be read is an error, whether it is cited or not
    return {EvidenceKind.PROFILE: check, EvidenceKind.RECEIPT: check}


def _content(text: str) -> str:
    from kbs.common.errors import UsageError
    from kbs.evidence.citation import parse_reference

    if text == "-":
        return _whole(sys.stdin.buffer.read(MAX_TEXT + 1).decode("utf-8", "replace"))
    try:
        is_file = len(text) < 4096 and "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        if re.fullmatch(r"\S*(?:/\S*|\.[A-Za-z]\w*)", text) and ":L" not in text and parse_reference(text) is None:
            raise UsageError(
                f"there is no file {text}",
                code="file_not_found",
                hint="Give a file, a citation line, or - for standard input.",
            )
        return text
    try:
        with Path(text).open(encoding="utf-8", errors="replace") as stream:
            return _whole(stream.read(MAX_TEXT + 1))
    except OSError as error:
        raise UsageError(
            f"{text} cannot be read: {error.strerror}", code="file_unreadable", hint="Check its permissions."
        ) from error


def _whole(content: str) -> str:
    """The text, if all of it was read: a citation beyond would pass unseen."""
    from kbs.common.errors import UsageError

    if len(content) > MAX_TEXT:
        raise UsageError(
            f"the text has more than {MAX_TEXT:,} characters", code="text_too_long", hint="Check it in parts."
        )
    return content


def check_all(
    content: str, library: Wikis, checkers: Mapping[EvidenceKind, Checker] | None = None
) -> list[CheckedCitation]:
    """Check the citations of a text, or of a JSON document: those with hash and quote, and those in its strings."""
    import json
    from dataclasses import replace

    from kbs.evidence.checking import check_citation, check_text

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


def _evidence_in(document: object) -> Iterator[Citation | str]:
    """Every object of a JSON document that has the fields of a citation, and every other string."""
    from kbs.evidence.citation import Citation

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
                said = (str(item.get("revision", "")), str(item["hash"]), str(item["quote"]))
                yield Citation(str(item["wiki"]), str(item["path"]), start, end, *said)
                item = {name: value for name, value in item.items() if name not in _CITATION}
            # Names are the document's own words too.
            waiting += reversed([part for pair in item.items() for part in pair])


def show(
    reference: Annotated[
        str,
        typer.Argument(help="A citation such as gpu-wiki/kernel/softmax.md:L34 or log/ID, or a page's id."),
    ],
    context: Annotated[int, typer.Option("--context", "-C", min=0, max=1000, help="Lines before and after.")] = 0,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Print the cited lines with their numbers, a whole page, or a record of the experience log."""

    def work() -> Reply:
        from kbs.evidence.citation import EvidenceKind, parse_reference
        from kopt.cli.log.commands import entry_reply
        from kopt.cli.support import engine

        named = parse_reference(reference)
        if named is not None and named.kind is EvidenceKind.LOG:
            return entry_reply(named.target)
        with engine() as eng:
            reply = lines_reply(eng.library, reference, context)
            reply.warnings += eng.warnings
            return reply

    deliver("show", json, debug, work)


def lines_reply(library: Wikis, text: str, context: int) -> Reply:
    """The lines of a reference, or of a page named by its id or path."""
    from kbs.common.errors import ExitCode, UsageError
    from kbs.evidence.citation import EvidenceKind, lines_hash, parse_reference
    from kopt.services.results.citations import ShowData

    reference = parse_reference(text)
    if reference is not None and reference.kind is not EvidenceKind.WIKI:
        raise UsageError(
            f"{text} cites a {reference.kind}, and no line of a page",
            code="evidence_unknown",
            hint=_ELSEWHERE.get(reference.kind, "Lines of a page are cited so: gpu-wiki/PATH:L1-L5."),
        )
    if reference is not None:
        wiki, path, start, end = reference.wiki, reference.target, reference.line_start, reference.line_end
        lines = library.lines(wiki, path)
    else:
        wiki, path, start, end = *_find_page(library, text), 1, 0
        lines = library.lines(wiki, path)
        end = len(lines or ())
    if lines is None or start > len(lines) or end > len(lines):
        why = f"{path} ends at line {len(lines)}" if lines is not None else "there is no such page"
        raise UsageError(f"{text} cannot be shown: {why}", code="not_found", hint="`kopt search WORDS` finds pages.")
    first, last = max(1, start - context), min(len(lines), end + context)
    numbered = [(n, lines[n - 1]) for n in range(first, last + 1)]
    page = library.page(wiki, path)
    title = getattr(getattr(page, "meta", None), "title", path)

    def show_lines(console: Console) -> None:
        width = len(str(last))
        for number, line in numbered:
            mark = ">" if context and start <= number <= end else " "
            console.print(f"{mark}{number:>{width}}  {line}", markup=False)

    data = ShowData(
        reference=f"{wiki}/{path}:L{start}" + (f"-L{end}" if end != start else ""),
        page=f"{wiki}/{path}",
        title=title,
        lines=numbered,
        hash=lines_hash(lines[start - 1 : end]),
        revision=library.all[wiki].revision,
    )
    return Reply(data, show_lines, ExitCode.OK)


def _find_page(library: Wikis, text: str) -> tuple[str, str]:
    """(wiki, path) of a page named by id, path, or wiki and path; the latest wiki wins."""
    import difflib

    from kbs.common.errors import UsageError

    wanted = text.strip().removesuffix(".md")
    ids: dict[str, tuple[str, str]] = {}
    for wiki in library.all.values():
        for file in wiki.files():
            page = file.path.removesuffix(".md")
            ids[page] = ids[f"{wiki.name}/{page}"] = (wiki.name, file.path)
    if wanted in ids:
        return ids[wanted]
    near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.4)
    raise UsageError(
        f"there is no page {text}",
        code="not_found",
        hint=f"Did you mean {', '.join(near)}?" if near else "`kopt search WORDS` finds pages.",
    )
