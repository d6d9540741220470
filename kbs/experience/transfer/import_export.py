"""Exports the log to JSON and CSV, and imports an export, another tool's log or a run's folder."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kbs.common.errors import ExitCode, UsageError
from kbs.common.ulid import PATTERN as ULID
from kbs.common.visible_text import visible
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment, Reason
from kbs.experience.files import first_problem
from kbs.experience.method_names import MethodNames
from kbs.experience.transfer.documents import (
    Markdown,
    Piece,
    is_header,
    loads,
    objects,
    rows_of,
    subject_of,
    yaml_objects,
)
from kbs.experience.transfer.fields import words_of
from kbs.experience.transfer.public_form import Reader
from kbs.experience.transfer.run_folder import Verify, read_run

KIND = "kopt-experience"
MAX_BYTES = 1 << 30
"""No larger file is imported."""
_NESTED = (
    "dims",
    "metrics_before",
    "metrics_after",
    "methods",
    "parameters",
    "expected",
    "attribution",
    "evidence",
    "ids",
)
_SPEEDUP = ("speedup_median", "speedup_low", "speedup_high")
_MAX_YAML = 5_000_000
"""Characters of YAML that are read: it takes a second for each million."""
_REASON: TypeAdapter[str] = TypeAdapter(Reason)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters that a spreadsheet may take for a formula; such a text gets a quote before it."""
_HINT = (
    "`kopt log import` reads what `kopt log export` writes, records of other tools (JSON, JSON lines, CSV, Markdown"
    " tables), and the folder of a run."
)
_WOULD_DO = ("kernel", "optimization", "outcome", "speedup", "correct")
_AHEAD = timedelta(minutes=5)
"""So far a clock may be ahead of this one."""


class FormatError(UsageError):
    """Nothing of a file can be read as records: all of it is left out."""

    exit_code = ExitCode.REJECTED


@dataclass(frozen=True)
class Import:
    """What was read of a file."""

    experiments: tuple[Experiment, ...]
    masked: tuple[tuple[str, bool, str], ...] = ()
    """(id, whether it was masked, why) of those that were masked or unmasked where they come from."""
    joined: tuple[tuple[str, ...], ...] = ()
    """Ids that named one experiment there."""
    left_out: tuple[str, ...] = ()
    """Records that cannot be kept, each with its line, its row or its number, and why."""
    notes: tuple[str, ...] = ()
    """What could not be read of those that are kept, and what held no record."""
    repeated: int = 0
    """Records that stand in the file again, word for word."""

    @property
    def problems(self) -> tuple[str, ...]:
        """All that could not be read."""
        return (*self.left_out, *self.notes)


# --- export -----------------------------------------------------------------------------------------------------------


def to_json(entries: Iterable[Entry]) -> str:
    """One JSON document: experiments as they are, with `masked`, `why`, `ids` and `origin`."""
    records = [
        {
            "experiment": entry.experiment.model_dump(mode="json"),
            "masked": entry.masked,
            "why": entry.why,
            "ids": list(entry.ids),
            "origin": entry.origin,
        }
        for entry in entries
    ]
    document = {"kind": KIND, "schema_version": 1, "records": records}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def to_csv(entries: Iterable[Entry]) -> str:
    """A table with one row an experiment; what is nested is JSON in its cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns())
    for entry in entries:
        one = entry.experiment.model_dump(mode="json")
        ratio = one.pop("speedup") or {}
        cells = {
            **{name: json.dumps(value) if name in _NESTED else value for name, value in one.items()},
            **{name: ratio.get(name.removeprefix("speedup_")) for name in _SPEEDUP},
            "masked": "yes" if entry.masked else "no",
            "why": entry.why,
            "ids": json.dumps(entry.ids),
            "origin": entry.origin,
        }
        writer.writerow([_cell(cells[name]) for name in columns()])
    return out.getvalue()


def begins(format: str) -> bytes:
    """What every export of a form, `json` or `csv`, begins with."""
    return (f'{{\n "kind": "{KIND}"' if format == "json" else ",".join(columns()[:3]) + ",").encode()


def columns() -> list[str]:
    """The columns of the table."""
    fields = [name for name in Experiment.model_fields if name not in ("kind", "schema_version", "speedup")]
    return [*fields, *_SPEEDUP, "masked", "why", "ids", "origin"]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


# --- import -----------------------------------------------------------------------------------------------------------


def read(path: Path, verify: Verify, names: MethodNames | None = None) -> Import:
    """Read a file, or a run's folder, whose receipts `verify` looks at. `names` are those of methods.

    Raises `UsageError`: `import_unreadable` if nothing of it can be read, `import_format` if it is none of these,
    `no_run` for a folder that is not a run's.
    """
    if path.is_dir():
        experiments, left_out, notes = read_run(path, verify)
        return Import(tuple(experiments), left_out=tuple(left_out), notes=tuple(notes))
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
            changed = os.fstat(stream.fileno()).st_mtime
        text = data.decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be read: {why}", code="import_unreadable", hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}", code="import_unreadable", hint=_HINT) from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} has more than {MAX_BYTES} bytes", code="import_unreadable", hint=_HINT)
    undated = min(datetime.fromtimestamp(max(0.0, changed), UTC), datetime.now(UTC))
    found, title = _found_in(text, path)
    reader = Reader(visible(path.name), names or MethodNames(), undated, subject_of(title, path.absolute()))
    return _gathered(found, reader)


def _found_in(text: str, path: Path) -> tuple[Iterable[Piece], str]:
    """(what may be records of a file's text, its title)."""
    if text.startswith(",".join(columns()[:3])):
        return (Piece(where, one) for where, one in _exported_rows(text)), ""
    wrong = f"{path} is neither JSON nor a table"
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return list(objects(text)), ""
        except ValueError as error:
            wrong = f"{path} is not JSON: {error}"
    told = Markdown(text)
    header, rows = rows_of(text)
    if told.pieces:
        return told.pieces, told.title
    if len(text) < _MAX_YAML and re.match(r"(?:#.*\n|\s)*(?:---|(?:- )?[\w'\"-]+:\s)", text):
        with contextlib.suppress(ValueError):
            if items := [one for one in yaml_objects(text) if isinstance(one.found, dict)]:
                return items, ""
    if rows and is_header(header):
        return rows, ""
    if wrong.endswith("table"):
        found = told.columns or (header if len(header) > 1 else [])
        shown = ", ".join(visible(name[:30]) for name in found[:20])
        known = "; ".join(f"{role}: {', '.join(words_of('fields')[role][:5])}" for role in _WOULD_DO)
        has = f"no column of {path} is that of a record: it has {shown}" if found else wrong
        wrong = f"{has}. Columns, or keys, of records are {known}"
    raise FormatError(wrong, code="import_format", hint=_HINT)


def _exported_rows(text: str) -> Iterator[tuple[str, Any]]:
    """(where it stands, exported record) of a table that `to_csv` wrote."""
    csv.field_size_limit(MAX_BYTES)
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), start=2):
        try:
            cells = {name: (row.get(name) or "").removeprefix("'") for name in columns()}
            nested = {name: loads(cells[name] or "null") for name in _NESTED}
            ratio = {name.removeprefix("speedup_"): float(cells[name]) for name in _SPEEDUP if cells[name]}
            record = {
                **{name: value for name, value in cells.items() if name in Experiment.model_fields},
                **{
                    name: value
                    for name, value in nested.items()
                    if name in Experiment.model_fields and value is not None
                },
                "iteration": int(cells["iteration"]) if cells["iteration"] else None,
                "speedup": ratio or None,
            }
            masked = cells["masked"] == "yes"
            yield f"row {number}", {"experiment": record, "masked": masked, "why": cells["why"], "ids": nested["ids"]}
        except ValueError as error:
            yield f"row {number}", ValueError(f"it is not as kopt writes it: {error}")


def _gathered(found: Iterable[Piece], reader: Reader) -> Import:
    experiments: dict[str, Experiment] = {}
    masked: list[tuple[str, bool, str]] = []
    joined: list[tuple[str, ...]] = []
    left_out: list[str] = []
    notes: list[str] = []
    unknown: Counter[str] = Counter()
    repeated = 0
    for piece in found:
        where = piece.where
        try:
            entry, said, unread = _entry(piece, reader)
            _not_ahead(entry.experiment.time)
        except ValidationError as error:
            left_out.append(f"{where}: left out: {first_problem(error)}")
            continue
        except (ValueError, KeyError, TypeError) as error:
            left_out.append(f"{where}: left out: {visible(str(error))[:300]}")
            continue
        notes += [f"{where}: {note}" for note in said]
        record = entry.experiment
        unknown.update(visible(name[:60])[:60] for name in unread)
        if record.id in experiments:
            if experiments[record.id] == record:
                repeated += 1
            else:
                left_out.append(f"{where}: left out: another record of the file has its id {record.id}")
            continue
        experiments[record.id] = record
        if entry.why:
            masked.append((record.id, entry.masked, entry.why))
        if len(entry.ids) > 1:
            joined.append(entry.ids)
    notes += [f"{name}: no field of a record; {count} records have it" for name, count in sorted(unknown.items())]
    return Import(
        tuple(experiments.values()), tuple(masked), tuple(joined), tuple(left_out), tuple(notes), repeated
    )  # fmt: skip


def _not_ahead(time: str) -> None:
    """Raises ValueError for a time in the future. One that was written without a time zone may be of the zone here."""
    now = datetime.now(UTC)
    here = now + max(timedelta(0), datetime.now().astimezone().utcoffset() or timedelta(0))
    if datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) > here + _AHEAD:
        raise ValueError(f"its date, {time}, lies in the future")


def _entry(piece: Piece, reader: Reader) -> tuple[Entry, list[str], list[str]]:
    """An exported record, a line of a log, or an object of another tool's log. Raises ValueError, and the like."""
    found = piece.found
    if isinstance(found, ValueError):
        raise found
    if isinstance(found, dict) and isinstance(found.get("experiment"), dict):
        one = Experiment.model_validate_json(json.dumps(found["experiment"]))
        ids = (id for id in found.get("ids") or () if isinstance(id, str) and re.fullmatch(ULID, id))
        masked, why = found.get("masked") is True, found.get("why")
        return Entry(one, masked, _reason(why, masked), tuple(dict.fromkeys((one.id, *ids)))), [], []
    if isinstance(found, dict) and found.get("kind") == "experiment":
        return Entry(Experiment.model_validate_json(json.dumps(found))), [], []
    if isinstance(found, dict) and found.get("kind") in ("mask", "join"):
        raise ValueError(f"it is a {found['kind']} of a log's own file; what `kopt log export` writes keeps those")
    record, notes, unread = reader.read(piece)
    return Entry(record), notes, unread


def _reason(why: Any, masked: bool) -> str:
    """Why a record was masked, or unmasked; empty if it never was."""
    if not why:
        return "masked where it was imported from" if masked else ""
    try:
        return _REASON.validate_python(why)
    except ValidationError as error:
        raise ValueError(f"why: {first_problem(error)}") from None
