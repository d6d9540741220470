"""Where references lead on the pages of this server, and texts with links at their references."""

from __future__ import annotations

import re
from urllib.parse import quote

from markupsafe import Markup, escape

from kbs.common.visible_text import visible_lines
from kbs.evidence.citation import EvidenceKind, Reference, parse_reference, references
from kopt.services.publishing.addresses import file_of, line_of

_FIELDS = {
    "dims": "Sizes", "gpu": "GPU", "chip": "GPU", "dtype": "Element type", "op": "Operation", "outcome": "Outcome",
    "bottleneck": "Bottleneck", "provenance": "Known by", "method": "Method", "backend": "Language",
}  # fmt: skip
"""Option of a command → the field of a form that stands for it on a page."""
_OPTION = re.compile(r"(?<![\w-])--(" + "|".join(_FIELDS) + r")(?![\w-])")


def in_fields(text: str) -> str:
    """What kopt says, with the names of fields in place of those of options. Not for what a user wrote."""
    return _OPTION.sub(lambda found: f"“{_FIELDS[found[1]]}”", text)


def page_address(wiki: str, path: str) -> str:
    """The page of a wiki's page."""
    return "/wiki/" + quote(file_of(wiki, path))


def address_of(text: str) -> str:
    """Where a reference such as `gpu-wiki/kernel/softmax.md:L3` or `log/ID` leads; empty where nothing is shown."""
    found = parse_reference(text)
    return "" if found is None else _address(found)


def _address(found: Reference) -> str:
    match found.kind:
        case EvidenceKind.WIKI | EvidenceKind.NOTE:
            return page_address(found.wiki, found.target) + line_of(found)
        case EvidenceKind.LOG:
            return f"/log/{quote(found.target, safe='')}"
        case EvidenceKind.RECEIPT:
            return f"/bench/{quote(found.target, safe='')}"
        case _:
            return ""


def linked(text: str) -> Markup:
    """A text, escaped, with a link at each reference that leads to a page of this server."""
    text = visible_lines(text)
    out, done = [], 0
    for start, end, found in references(text):
        address = _address(found)
        if address and start >= done:
            link = Markup('<a href="{}">{}</a>').format(address, text[start:end])
            out += [escape(text[done:start]), link]
            done = end
    return Markup("").join([*out, escape(text[done:])])
