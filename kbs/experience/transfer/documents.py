"""The records of a text: JSON, JSON lines, Markdown (tables, and headings with bullets), and tables with separators.

Each comes as its fields with the place where it stands, and with what objects or headings around it say of all in them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from kbs.common.plain_yaml import plain_documents
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import op_name
from kbs.experience.transfer.fields import (
    CAME,
    MEASURES,
    SHARED,
    TRIED,
    flat,
    plain_name,
    roles_in,
    roles_of,
    says,
    shared_by,
    words_of,
)
from kbs.experience.transfer.values import is_moment

_DIGITS = 100
"""A whole number with more is read as a text."""
_YAML_NODES = 500_000
_LONGEST_TITLE = 400
_DEEPEST = 8
"""Levels of a document in which records are looked for."""
_AS_PART = {"correct", "failing", "error", "outcome", "speedup", "elapsed"}
"""Fields whose names are those of parts of a record."""
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_PIPE = re.compile(r"(?<!\\)\|")
_MARKED = re.compile(r"(\*\*|__|\*|`)((?:(?!\1).)*)\1")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()\s]*\)")
_STATED = re.compile(r"(?:[-*+]\s+)?\**([^:*|#\d][^:*|]{0,40}?)\**(?:\s*\([^()]*\))?\s*:\**(?:\s+(.*)|$)")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\s*(?:[:–—-]\s*)?(.*)")
_SIGNED = re.compile(r"[+\u2212-]\d[\d.]*\s*%")
_UNSURE = re.compile(
    r"\b(?:if\b|unless|expect|should|would|could|might|may|hope|predict|plan|goal|idea|benefit|risk|next)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.;])\s+")
_NUMBERED = re.compile(r"(?:[\d.]+\s*[.)]?\s+)?(.*)")
_ATTEMPT = re.compile(
    r"(attempt|experiment|trial|iteration|iter|step|exp|version|try|change|v)\s*#?(\d{1,6})\s*"
    r"(?:\(([^()]{1,60})\)\s*[:–—-]|[:.)–—-])\s*(.+)",
    re.IGNORECASE,
)
_CAME_TO = re.compile(
    r"(.{1,200}?)\s*(?:[:=→–—]|->|\s-)\s*(\d[\d.,]{0,20}(?:\s*(?:[munµμ]?s|[kmgtp]flop/?s|[gt]b/s)\b"
    r"|\s*[x×%](?!\w)|(?=\s*\()).{0,300})",
    re.IGNORECASE,
)
"""A change, and the time or the ratio that it came to."""
_TOLD = {"slower", "better", "kept", "neutral", "failed", "unkept"}
_TRYING = re.compile(r"\b(?:tried|attempted)\b|^attempts", re.IGNORECASE)
_LONGEST_TEXT = 4000
_TRIED = re.compile(r"(?:we |i |also )?tried (.{3,300})", re.IGNORECASE)
_ABOUT = re.compile(
    r"\s+(?:-|–|—)\s.*|\s*\b(?:optimi[sz]ation|experiments?|journal|log|history|report|notes|results|tuning|on)\b.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Piece:
    """What may be a record."""

    where: str
    found: Any
    """Its own fields; a ValueError for what cannot be read."""
    around: Mapping[str, Any] = field(default_factory=dict)
    """What is said of it around it."""
    title: str = ""
    """The headings above it."""
    table: str = ""
    """Where the table begins in which it is."""


def loads(text: str) -> Any:
    """JSON, and NaN and infinities as Python writes them: they spoil the field that they are in, and no more. So does
    a number that is too long to be read: it stays a text. Raises ValueError, also for what is nested too deep.
    """
    try:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else digits)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


# --- JSON -------------------------------------------------------------------------------------------------------------


def objects(text: str) -> Iterator[Piece]:
    """Those of a JSON document, or of one on each line. Raises ValueError for what is neither."""
    try:
        document = loads(text)
    except ValueError:
        lines = text.split("\n")  # other ends of lines may stand within a text
        if len(lines) < 2 or lines[0].strip() in ("[", "{") or not any(map(_is_json, lines)):
            raise
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield from (Piece(f"line {number}", *found) for found in _records(loads(line)))
                except ValueError as wrong:
                    yield Piece(f"line {number}", ValueError(f"it is not JSON: {wrong}"))
        return
    for number, (found, around) in enumerate(_records(document), start=1):
        yield Piece(f"record {number}", found, around)


def yaml_objects(text: str) -> Iterator[Piece]:
    """Those of YAML documents. Raises ValueError."""
    documents = [one for one in plain_documents(text, _YAML_NODES) if one is not None]
    for number, (found, around) in enumerate(_records(documents), start=1):
        yield Piece(f"record {number}", found, around)


def _is_json(line: str) -> bool:
    try:
        return isinstance(loads(line), dict)
    except ValueError:
        return False


def _records(found: Any, around: Mapping[str, Any] | None = None, levels: int = _DEEPEST) -> Iterator[tuple[Any, Any]]:
    """(what may be a record, what is said around it): the items of lists, and the values of objects of records, whose
    keys they keep."""
    around = around or {}
    if isinstance(found, list) and levels:
        for one in found:
            yield from _records(one, around, levels - 1) if isinstance(one, list | dict) else ((one, around),)
        return
    if not isinstance(found, dict) or not levels or found.get("kind") in ("experiment", "mask", "join"):
        yield found, around
        return
    if isinstance(found.get("experiment"), dict):
        yield found, around
        return
    plain = {name: value for name, value in found.items() if not isinstance(value, dict | list)}
    said = roles_in(plain)
    attempt = bool(said.intersection(TRIED)) or {"kernel", "speedup"} <= said
    every = _is_map(found)
    inner = {
        str(name): value
        for name, value in found.items()
        if (every or _holds_records(value))
        and (not attempt or isinstance(value, list) or roles_in(value).intersection(TRIED))
    }
    if not inner:
        yield found, around
        return
    own = {name: value for name, value in found.items() if str(name) not in inner}
    shared = {**around, **shared_by(own)}
    if attempt:
        yield own, around
    alike = not own and len(inner) > 1
    for name, value in inner.items():
        if isinstance(value, dict) and _is_map(value) and not _names_kernel(value):
            for key, one in value.items():
                yield from _records(one, {**shared, "key": str(key)}, levels - 1)
        else:
            keyed = {"key": name} if alike or _is_key(name) else {}
            yield from _records(value, {**shared, **keyed}, levels - 1)


def _holds_records(value: Any) -> bool:
    """Whether a value is a list or an object of records, holds one of those, or is a record that names its kernel."""
    if isinstance(value, list):
        return any(isinstance(one, dict) and _is_record(one) for one in value)
    if not isinstance(value, dict):
        return False
    return _is_map(value) or any(map(_holds_records, value.values())) or (_is_record(value) and _names_kernel(value))


def _is_map(value: Mapping[str, Any]) -> bool:
    """Whether all values are records with a key in common, and no parts of one, such as its check and its times."""
    items = list(value.values())
    if not items or not all(isinstance(one, dict) and _is_record(one) for one in items):
        return False
    parts = words_of("rows")["parts"]
    if any(plain_name(str(name)) in parts or roles_of((f"{name}_ms",))[0] for name in value):
        return False
    if any(_AS_PART.intersection(dict(roles_of((str(name),))[0])) for name in value):
        return False
    alone = len(items) > 1 or roles_in(items[0]).intersection(("kernel", *TRIED)) or _is_key(next(iter(value)))
    return bool(alone) and bool(set.intersection(*({plain_name(str(key)) for key in one} for one in items)))


def _is_key(name: str) -> bool:
    """Whether the key of an object alone says which problem or kernel it is about."""
    return str(name).isdecimal() or bool(op_name(str(name)))


def _names_kernel(value: Mapping[str, Any]) -> bool:
    return any(
        "kernel" in dict(roles_of((str(name),))[0]) and not isinstance(one, dict | list) for name, one in value.items()
    )


def _is_record(found: Mapping[str, Any]) -> bool:
    """Whether an object says what was tried or what came of it, itself or in objects in it."""
    return bool(roles_in(found).intersection((*CAME, *TRIED))) or any(map(_holds_records, found.values()))


# --- tables -----------------------------------------------------------------------------------------------------------


def is_header(header: list[str]) -> bool:
    """Whether a table's columns may be those of records."""
    said = {role for name in header for role, _ in roles_of((name,))[0]}
    return bool(said.intersection(("kernel", *CAME, *TRIED)))


def rows_of(text: str) -> tuple[list[str], list[Piece]]:
    """(columns, rows) of a table whose cells commas, semicolons or tabs separate."""
    csv.field_size_limit(1 << 30)
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    try:
        header = [name.strip() for name in next(reader, [])]
        return header, [
            Piece(f"line {reader.line_num}", _row(header, [cell.strip() for cell in row]))
            for row in reader
            if any(map(str.strip, row))
        ]
    except csv.Error:
        return [], []


def _row(header: list[str], cells: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, cell in enumerate(cells):
        name = header[place] if place < len(header) else f"column {place + 1}"
        found[f"{name} {place + 1}" if name in found else name] = cell
    return found


# --- Markdown ---------------------------------------------------------------------------------------------------------


@dataclass
class _Section:
    level: int
    title: str
    kernel: str = ""
    shared: dict[str, Any] = field(default_factory=dict)


class Markdown:
    """Reads the tables of a Markdown text, and headings with bullets that say what came of an attempt."""

    def __init__(self, text: str) -> None:
        self.columns: list[str] = []
        """Those of tables that hold no records."""
        self.pieces: list[Piece] = []
        self._sections = [_Section(0, "")]
        self._attempt: tuple[str, str, dict[str, Any]] = ("", "", {})
        self._prose: list[str] = []
        self._open = ""
        """The bullet to which lines that stand further in belong."""
        self._tabled = False
        self.title = ""
        """The first heading."""
        self._read(text.split("\n"))
        self._close()
        if self.title and len(self.pieces) > 1:  # what is said below a title is said of the whole text
            self.pieces = [one for one in self.pieces if one.found.get("change") != self.title]

    def _read(self, written: list[str]) -> None:
        place, fenced, lines = 0, False, [line.strip() for line in written]
        while place < len(lines):
            line, after = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
            place += 1
            if line.startswith(("```", "~~~")):
                fenced = not fenced
            elif re.match(r"#{1,6}\s*[^#\s]", line):
                if not fenced:
                    self._heading(line, place)
            elif "|" in after and _RULE.fullmatch(after) and any(header := _cells(line)):
                start, place = place + 1, place + 1
                while place < len(lines) and "|" in lines[place]:
                    place += 1
                if not is_header(header):
                    self.columns += header
                    continue
                self._tabled = True
                for number, row in enumerate(lines[start:place], start=start + 1):
                    self._put(f"line {number}", _row(_labelled(header), _cells(row)), f"table {start}")
            elif self._open and line and written[place - 1][0].isspace():
                self._attempt[2][self._open] = f"{self._attempt[2][self._open]} {line}"[:_LONGEST_TEXT]
                if match := _STATED.match(line):
                    self._stated(match[1], match[2] or "", line)
            elif match := _STATED.match(line):
                self._stated(match[1], match[2] or "", line)
                self._open = match[1].strip() if match[1].strip() in self._attempt[2] else ""
            elif (match := _TRIED.match(line)) and says(line) & _TOLD:
                self._close()
                self._put(f"line {place}", {"change": match[1], "result": match[1]})
            elif not fenced:
                self._open = ""
                self._prose.append(line.lstrip("-*+ "))

    def _heading(self, line: str, number: int) -> None:
        self._close()
        level = len(line) - len(line.lstrip("#"))
        line = " ".join(line[:_LONGEST_TITLE].split())
        match = _NUMBERED.fullmatch(_unmarked(line.lstrip("#").strip()))
        title = re.sub(r"^[^\w\s`([\"'+-]+\s+", "", (match[1] if match else "") or line.lstrip("#").strip())
        while self._sections[-1].level >= level:
            self._sections.pop()
        section = _Section(level, title)
        self._sections.append(section)
        self.title = self.title or title
        stated, attempt = _STATED.match(title), _ATTEMPT.match(title)
        steps = words_of("rows")["steps"]
        counted = {attempt[1].lower() if attempt[1].lower() in steps else "iteration": attempt[2]} if attempt else {}
        if attempt and attempt[3]:
            counted["date" if is_moment(attempt[3]) else "result"] = attempt[3]
        if came_to := _CAME_TO.fullmatch(attempt[4] if attempt else title):
            figure = re.split(r"[\s(]*\(|,\s", came_to[2])[0]
            said = {"result": came_to[2], **({} if figure.endswith(("x", "×", "%")) else {"latency": figure})}
            self._attempt = (f"line {number}", came_to[1], {**counted, **said})
            return
        if attempt:
            if day := _DAY.match(attempt[4]):
                counted["date"] = day[1]
            self._attempt = (f"line {number}", (day[2] or title) if day else attempt[4].strip(), counted)
            return
        if stated and _is_shared(stated[1]):
            self._stated(stated[1], stated[2] or "", line)
            return
        section.kernel = _kernel_of(title)
        products = {one.id for one in vocabulary().find(title, "product")}
        if len(products) == 1:
            section.shared["gpu"] = products.pop()
        day = _DAY.match(title)
        if day or (re.search(r"\b(?:19|20)\d\d\b", title) and not section.kernel):
            section.shared["date"] = day[1] if day else title
        self._attempt = (f"line {number}", title, {})

    def _stated(self, written: str, value: str, line: str) -> None:
        """A line such as `GPU: L4`, or a bullet; several sentences may each state something."""
        where, _, fields = self._attempt
        if where and (not _is_shared(written) or re.match(r"[-*+]\s", line)) and not line.startswith("#"):
            fields.setdefault(written.strip(), _unmarked(value.strip()))
            if not roles_of((written,))[0]:
                self._prose.append(line.lstrip("-*+ "))
            return
        target = self._sections[-1] if self.pieces else self._sections[0]
        for part in re.split(r"(?<=[.)])\s+(?=[A-Z][\w ]{0,30}:)", f"{written}: {value}"):
            stated = _STATED.match(part)
            if stated and _is_shared(stated[1]):
                target.shared[stated[1].strip()] = _unmarked((stated[2] or "").strip().rstrip("."))

    def _close(self) -> None:
        """End a heading; what was stated below it is a record where it says what came of an attempt."""
        (where, title, fields), self._attempt = self._attempt, ("", "", {})
        prose, self._prose, self._open = " ".join(filter(None, self._prose))[:_LONGEST_TEXT], [], ""
        tabled, self._tabled = self._tabled, False
        said = roles_in(fields)
        result = " ".join(str(one.value) for one in flat(fields) if one.role == "outcome")
        if plain_name(title) in words_of("rows")["sums"] or (tabled and not says(result) & _TOLD):
            return  # the rows are the records
        above = self._sections[-2].title if len(self._sections) > 1 else ""
        if where and prose and not said.intersection(CAME) and ("iteration" in fields or _TRYING.search(above)):
            sure = (one for one in _SENTENCE.split(prose) if not _UNSURE.search(one))
            told = [one for one in sure if says(one) & {*_TOLD, "incorrect"} or _SIGNED.search(one)]
            fields = {**fields, "result": " ".join(told) or (above if says(above) & _TOLD else ""), "notes": prose}
            said = {*said, "outcome"}
        if where and (said.intersection(CAME) or "iteration" in fields):
            self._put(where, fields if said.intersection(TRIED) else {"change": title, **fields})

    def _put(self, where: str, fields: dict[str, Any], table: str = "") -> None:
        around: dict[str, Any] = {}
        for section in self._sections:
            around.update(section.shared)
        headed = next((one.kernel for one in reversed(self._sections) if one.kernel), "")
        if headed:
            around = {"kernel": headed, **{name: one for name, one in around.items() if plain_name(name) != "kernel"}}
        title = " / ".join(one.title for one in self._sections[-2:] if one.title)
        self.pieces.append(Piece(where, fields, around, title, table))


def subject_of(title: str, path: PurePath) -> str:
    """What a file is about, by its title, its name and its folders', the nearest that names an operation."""
    plain = _ABOUT.sub("", re.split(r"[\[(:]", title)[0]).strip()
    names = (plain, title, path.stem, *(one.name for one in [*path.parents][:3]))
    return next((name if len(name) <= 60 else op_name(name) for name in names if name and op_name(name)), "")


def _is_shared(name: str) -> bool:
    return any(role in SHARED for role, _ in roles_of((name,))[0])


def _kernel_of(title: str) -> str:
    """The kernel that a heading names: it has the name of an operation, or calls it a kernel; empty if it has none."""
    day = _DAY.match(title)
    plain = _ABOUT.sub("", re.split(r"[\[(]", day[2] if day else title)[0]).strip()
    named = op_name(plain) or re.fullmatch(r".*\w\s+kernel", plain, re.IGNORECASE) or re.fullmatch(r"\w+_\w+", plain)
    return plain if named and len(plain.split()) <= 6 else ""


def _unmarked(text: str) -> str:
    text = _LINK.sub(r"\1", text)
    match = _MARKED.fullmatch(text)
    return match[2].strip() if match else text


def _labelled(header: list[str]) -> list[str]:
    """Columns of a table that only measures: what stands in the first is what its rows are called."""
    said = {role for name in header for role, _ in roles_of((name,))[0]}
    figures = sum(bool({role for role, _ in roles_of((name,))[0]}.intersection(MEASURES)) for name in header)
    known = said - {*MEASURES[1:], "parameters"} or figures < 2 or roles_of((header[0],))[0]
    return header if known or plain_name(header[0]) in words_of("rows")["sizes"] else ["label", *header[1:]]


def _cells(line: str) -> list[str]:
    cells = _PIPE.split(line.removeprefix("|").removesuffix("|"))
    return [_unmarked(cell.replace("\\|", "|").strip()) for cell in cells]
