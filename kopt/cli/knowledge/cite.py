"""`kopt cite` and `kopt show`: evidence, checked and read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import pages

if TYPE_CHECKING:
    from kopt.services.knowledge.citations import PageLines
    from wiki.library import Wikis

_NAME = 4096
"""Characters of a path; a text of more is none."""
_RECORD = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
"""The id of a record of the log."""
MAX_TEXT = 20_000_000
"""Characters; more than any report has."""


@command("cite", reads_wikis=True, paged=True)
def cite(
    text: Annotated[str, typer.Argument(help="A citation line, a file with citations, or - for standard input.")],
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            "--profile", help="A profile or receipt that the text cites: .ncu-rep, CSV, folder, .json. Repeatable."
        ),
    ] = None,
) -> Reply:
    """Check every citation of a text against what the cited lines say now.

    Exit code 4 if any citation fails, 3 if the text has none.

    A citation line is `[<gpu> ]<metric>[ (<qualifier>)]: <value> <unit> <- <wiki>/<path>:L<a>[-L<b>]`, or has a
    quotation in place of the spec. JSON that kopt printed is checked too.

    Figures of a profile or receipt are cited as `<metric>: <value> <unit> <- profile/<hash>#<metric>[<launch>]` or
    `<field>: <value> <unit> <- receipt/<id>#<field>`. They are checked against the files given with --profile; receipts
    also against those that `kopt bench` kept. A citation of any other file fails.

    Records of the experience log are cited as `<names>: <outcome>, <speedup> <- log/<id>`, `<field>: <value> <-
    log/<id>` or a quotation. A masked record is stale.

    Notes are quoted and cited as `note/<name>/<path>:L<a>[-L<b>]`. A spec that cites a note fails.
    """
    from kbs.common.errors import ExitCode
    from kopt.services.knowledge.citations import check, checked_lines
    from kopt.services.results.answering.citations import CiteData

    content = _content(text)
    with engine() as eng:
        checked = check(eng, content, profile or ())
        warnings = list(eng.warnings)
    data = CiteData.of(checked)
    if not checked:
        said = "No citation was found in the text, so nothing was checked. `kopt cite --help` shows their form."
        if content == text and re.fullmatch(r"[\w.-]+", text):
            said = f"There is no file {text}, and no citation in that word. `kopt cite --help` shows their form."
        return Reply(data, print_lines([said]), ExitCode.ABSTAINED, warnings)
    return Reply(data, print_lines(checked_lines(checked)), ExitCode.REJECTED if data.failed else ExitCode.OK, warnings)


def _content(text: str) -> str:
    """The text to check: standard input, a file, or the argument itself."""
    from kbs.common.errors import UsageError
    from kbs.evidence.citation import parse_reference

    if text == "-":
        return _whole(sys.stdin.buffer.read(MAX_TEXT + 1).decode("utf-8", "replace"))
    try:
        is_file = len(text) < _NAME and "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        if "\n" not in text and text and _is_folder(text):
            raise UsageError(f"{text} is a folder", code="not_a_file", hint="Give a file, or cat files and give -.")
        if re.fullmatch(r"\S*(?:/\S*|\.[A-Za-z]\w*)", text) and ":L" not in text and parse_reference(text) is None:
            raise UsageError(
                f"{text} is no ordinary file" if _is_there(text) else f"no such file: {text}",
                code="file_not_found",
                hint="Give a file, a citation line, or - for standard input.",
            )
        return text
    try:
        with Path(text).open(encoding="utf-8", errors="replace") as stream:
            return _whole(stream.read(MAX_TEXT + 1))
    except OSError as error:
        raise UsageError(
            f"cannot read {text}: {error.strerror}", code="file_unreadable", hint="Check its permissions."
        ) from error


def _is_folder(text: str) -> bool:
    try:
        return len(text) < _NAME and Path(text).is_dir()
    except (OSError, ValueError):
        return False


def _is_there(text: str) -> bool:
    try:
        return len(text) < _NAME and Path(text).exists()
    except (OSError, ValueError):
        return False


def _whole(content: str) -> str:
    """The text, if all of it was read: a citation beyond the limit would go unchecked."""
    from kbs.common.errors import UsageError

    if len(content) > MAX_TEXT:
        raise UsageError(
            f"the text has more than {MAX_TEXT:,} characters", code="text_too_long", hint="Check it in parts."
        )
    return content


@command("show", reads_wikis=True, paged=True)
def show(
    reference: Annotated[
        list[str],
        typer.Argument(
            autocompletion=pages, help="A citation such as gpu-wiki/kernel/softmax.md:L34 or log/ID, or a page's name."
        ),
    ],
    context: Annotated[int, typer.Option("--context", "-C", min=0, max=1000, help="Lines before and after.")] = 0,
) -> Reply:
    """Print cited lines with their numbers, a whole page, or a record of the experience log."""
    from kbs.evidence.citation import EvidenceKind, parse_reference
    from kopt.cli.log.commands import entry_reply

    text = " ".join(reference).strip()
    if _RECORD.fullmatch(text):
        return entry_reply(text)
    named = parse_reference(text)
    if named is not None and named.kind is EvidenceKind.LOG:
        return entry_reply(named.target)
    with engine() as eng:
        reply = lines_reply(eng.library, text, context)
        reply.warnings += eng.warnings
        return reply


def lines_reply(library: Wikis, text: str, context: int = 0) -> Reply:
    """The lines of a citation, or of a page named by its id or path."""
    from kopt.services.knowledge.citations import read_lines
    from kopt.services.results.answering.citations import ShowData

    found = read_lines(library, text, context)
    return Reply(ShowData.of(found), print_lines(_numbered(found, mark=context > 0)))


def _numbered(found: PageLines, *, mark: bool) -> Iterator[str]:
    width = len(str(found.lines[-1][0])) if found.lines else 0
    for number, line in found.lines:
        yield f"{'>' if mark and found.start <= number <= found.end else ' '}{number:>{width}}  {line}"
