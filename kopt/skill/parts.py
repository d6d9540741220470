"""Puts a section into a text, an entry into JSON, a table into TOML that others write too; all else in them stays."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kbs.common.errors import KoptError, UsageError

BEGIN, END = "<!-- kopt: begin -->", "<!-- kopt: end -->"
"""Around the section; whatever stands between them is kopt's."""
Status = Literal["new", "added", "same", "other"]
Made = tuple[bytes, Status]
"""(the whole file as it would be, what that changes)"""


def section(path: str, there: bytes, text: str) -> Made:
    """A section of a Markdown file. UsageError `file_unsuitable`."""
    old = _text(path, there)
    if old.count(BEGIN) != old.count(END) or old.count(BEGIN) > 1 or old.find(END) < old.find(BEGIN):
        raise _unsuitable(path, f"has `{BEGIN}` or `{END}` without the other, or twice")
    new = f"{BEGIN}\n{text.strip()}\n{END}"
    if BEGIN not in old:
        gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
        return f"{old}{gap}{new}\n".encode(), "added"
    start, end = old.index(BEGIN), old.index(END) + len(END)
    if old[start:end].replace("\r\n", "\n") == new:
        return there, "same"
    return (old[:start] + new + old[end:]).encode(), "other"


def json_entry(path: str, there: bytes, keys: Sequence[str], value: Mapping[str, Any]) -> Made:
    """An entry of a JSON file, at `keys`. UsageError `file_unsuitable`."""
    old = _text(path, there)
    try:
        document = json.loads(old) if old.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _unsuitable(path, f"is not valid JSON: {error}") from error
    inner = document
    for key in keys[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        raise _unsuitable(path, f"has no object at {'.'.join(keys[:-1])}")
    known = inner.get(keys[-1])
    if _as_good(known, value):
        return there, "same"
    inner[keys[-1]] = dict(value)
    indent = re.search(r"^([ \t]+)\S", old, re.MULTILINE)
    made = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    return f"{made}\n".encode(), "added" if known is None else "other"


def toml_table(path: str, there: bytes, keys: Sequence[str], value: Mapping[str, Any]) -> Made:
    """A table at the end of a TOML file. UsageError `file_unsuitable`, `output_exists` where another table is there."""
    old = _text(path, there)
    document = _toml(path, old)
    for key in keys:
        document = document.get(key, {}) if isinstance(document, dict) else None
    if _as_good(document, value):
        return there, "same"
    name = ".".join(keys)
    if document:
        raise UsageError(
            f"{path} has another [{name}]",
            code="output_exists",
            hint="Change that table yourself, or take it out and run the command again.",
        )
    lines = [f"[{name}]", *(f"{key} = {json.dumps(one, ensure_ascii=False)}" for key, one in value.items())]
    gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
    made = old + gap + "\n".join(lines) + "\n"
    _toml(path, made)  # a table that is written inline cannot be added to
    return made.encode(), "added"


def _as_good(known: object, value: Mapping[str, Any]) -> bool:
    """Whether an entry does what is wanted: it may have the full path of the command, or another one."""
    if not isinstance(known, dict) or not isinstance(known.get("command"), str):
        return False
    names = (Path(known["command"]).name, Path(value["command"]).name)
    return {**known, "command": names[0]} == {**value, "command": names[1]}


def _toml(path: str, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unsuitable(path, f"is not valid TOML, or cannot be added to: {error}") from error


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unsuitable(path, "is not UTF-8 text") from error


def _unsuitable(path: str, why: str) -> KoptError:
    return UsageError(
        f"{path} {why}", code="file_unsuitable", hint="Mend it, or add what is wanted by hand: docs/mcp.md."
    )
