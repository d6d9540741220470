"""What the lint found, as a pipeline reads it: annotations of GitHub, and SARIF 2.1.0.

Pages and names of files may be anybody's. In annotations nothing of them can end a command or begin another; in SARIF
nothing becomes a link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kbs.common.visible_text import visible
from wiki.library import Wiki
from wiki.page import Problem

Found = Sequence[tuple[Wiki, Problem]]
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def workflow_commands(found: Found, folder: Path) -> Iterator[str]:
    """A workflow command of GitHub for each problem; files are named from `folder`."""
    for wiki, problem in found:
        place = f",line={problem.line}" if problem.line > 0 else ""
        file = _property("/".join(_place(wiki, problem, folder)[1]))
        level = "error" if problem.error else "warning"
        yield f"::{level} file={file}{place},title={_property(problem.rule)}::{_data(visible(problem.message))}"


def sarif(found: Found, folder: Path, rules: Mapping[str, str], version: str) -> str:
    """A SARIF log with one run. `rules`: id → what it asks for, its first line as the summary; files are named from
    `folder`, and those of wikis elsewhere from their wiki."""
    order = {id: number for number, id in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "kopt wiki lint",
                "version": version,
                "rules": [_rule(id, text) for id, text in rules.items()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": "The checkout of the workflow, or the folder that kopt ran in."}},
            "WIKI": {"description": {"text": "The folder that holds a wiki outside of it."}},
        },
        "results": [_result(wiki, problem, folder, order) for wiki, problem in found],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1) + "\n"  # ASCII alone: whatever stands in a page, its bytes are plain


def _place(wiki: Wiki, problem: Problem, folder: Path) -> tuple[str, tuple[str, ...]]:
    """(what the path begins at, its parts)."""
    file = wiki.place(problem.path)
    for root in (folder.absolute(), folder.resolve()):
        if file.is_relative_to(root):
            return "SRCROOT", file.relative_to(root).parts
    return "WIKI", (wiki.name, *problem.path.split("/"))


# --- GitHub -----------------------------------------------------------------------------------------------------------


def _data(text: str) -> str:
    """The message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- SARIF ------------------------------------------------------------------------------------------------------------


def _rule(id: str, text: str) -> dict[str, Any]:
    summary = text.partition("\n")[0]
    return {
        "id": id,
        "name": "".join(part.capitalize() for part in id.split("-")),
        "shortDescription": {"text": _message(summary)},
        "fullDescription": {"text": _message(" ".join(text.split()))},
        "help": {"text": _message(text), "markdown": text},
    }


def _result(wiki: Wiki, problem: Problem, folder: Path, order: Mapping[str, int]) -> dict[str, Any]:
    base, parts = _place(wiki, problem, folder)
    place: dict[str, Any] = {"artifactLocation": {"uri": "/".join(map(quote, parts)), "uriBaseId": base}}
    if problem.line > 0:
        place["region"] = {"startLine": problem.line}
    made: dict[str, Any] = {
        "ruleId": problem.rule,
        "level": "error" if problem.error else "warning",
        "message": {"text": _message(visible(problem.message))},
        "locations": [{"physicalLocation": place}],
    }
    return {**made, "ruleIndex": order[problem.rule]} if problem.rule in order else made


def _message(text: str) -> str:
    """Plain text of SARIF, in which brackets would be a link and braces a placeholder."""
    return re.sub(r"([{}])", r"\1\1", re.sub(r"([\\\[\]])", r"\\\1", text))
