"""Exports the log to JSON and CSV, and imports an export, the public form or a run's folder."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kbs.common.errors import UsageError
from kbs.common.ulid import PATTERN as ULID
from kbs.common.visible_text import visible
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment, Reason
from kbs.experience.files import first_problem
from kbs.experience.transfer.public_form import read_public
from kbs.experience.transfer.run_folder import Verify, read_run

KIND = "kopt-experience"
MAX_BYTES = 1 << 30
"""No larger file is imported."""
_DIGITS = 100
"""A whole number with more is read as a text."""
_NESTED = ("dims", "metrics_before", "metrics_after", "methods", "expected", "attribution", "evidence", "ids")
_SPEEDUP = ("speedup_median", "speedup_low", "speedup_high")
_REASON: TypeAdapter[str] = TypeAdapter(Reason)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters that a spreadsheet may take for a formula; such a text gets a quote before it."""
_HINT = (
    "`kopt log import` reads what `kopt log export` writes, a log in the public form (JSON), and the folder of a run."
)


@dataclass(frozen=True)
class Import:
    """What was read of a file."""

    experiments: tuple[Experiment, ...]
    masked: tuple[tuple[str, bool, str], ...]
    """(id, whether it was masked, why) of those that were masked or unmasked where they come from."""
    joined: tuple[tuple[str, ...], ...]
    """Ids that named one experiment there."""
    problems: tuple[str, ...]
    """What could not be read, each with its line, its row or its number in the list."""


# --- export -----------------------------------------------------------------------------------------------------------


def to_json(entries: Iterable[Entry]) -> str:
    """One JSON document: experiments as they are, with `masked`, `why` and `ids`."""
    records = [
        {
            "experiment": entry.experiment.model_dump(mode="json"),
            "masked": entry.masked,
            "why": entry.why,
            "ids": list(entry.ids),
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
        }
        writer.writerow([_cell(cells[name]) for name in columns()])
    return out.getvalue()


def begins(format: str) -> bytes:
    """What every export of a form, `json` or `csv`, begins with."""
    return (f'{{\n "kind": "{KIND}"' if format == "json" else ",".join(columns()) + "\r\n").encode()


def columns() -> list[str]:
    """The columns of the table."""
    fields = [name for name in Experiment.model_fields if name not in ("kind", "schema_version", "speedup")]
    return [*fields, *_SPEEDUP, "masked", "why", "ids"]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


# --- import -----------------------------------------------------------------------------------------------------------


def read(path: Path, verify: Verify) -> Import:
    """Read a file, or a run's folder, whose receipts `verify` looks at.

    Raises `UsageError`: `import_unreadable` if nothing of it can be read, `import_format` if it is none of these,
    `no_run` for a folder that is not a run's.
    """
    if path.is_dir():
        experiments, problems = read_run(path, verify)
        return Import(tuple(experiments), (), (), tuple(problems))
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path} cannot be read: {why}", code="import_unreadable", hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}", code="import_unreadable", hint=_HINT) from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} has more than {MAX_BYTES} bytes", code="import_unreadable", hint=_HINT)
    if text.lstrip()[:1] in ("[", "{"):
        return _gathered(_objects(text, path), visible(path.name))
    if text.startswith(",".join(columns()[:3])):
        return _gathered(_rows(text), visible(path.name))
    raise UsageError(f"{path} is neither JSON nor a table that kopt wrote", code="import_format", hint=_HINT)


def _objects(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    """(where it stands, object) of a JSON document, or of one on each line."""
    try:
        document = _loads(text)
    except ValueError as error:
        lines = text.split("\n")  # other ends of lines may stand within a text
        if len(lines) < 2 or lines[0].strip() in ("[", "{"):
            raise UsageError(f"{path} is not JSON: {error}", code="import_format", hint=_HINT) from error
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield f"line {number}", _loads(line)
                except ValueError as wrong:
                    yield f"line {number}", ValueError(f"it is not JSON: {wrong}")
        return
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        is_list = len(lists) == 1 and "kernel" not in document and document.get("kind") in (None, KIND)
        document = lists[0] if is_list else [document]
    for number, one in enumerate(document, start=1):
        yield f"record {number}", one


def _rows(text: str) -> Iterator[tuple[str, Any]]:
    """(where it stands, exported record) of a table that `to_csv` wrote."""
    csv.field_size_limit(MAX_BYTES)
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), start=2):
        try:
            cells = {name: (row.get(name) or "").removeprefix("'") for name in columns()}
            nested = {name: _loads(cells[name] or "null") for name in _NESTED}
            ratio = {name.removeprefix("speedup_"): float(cells[name]) for name in _SPEEDUP if cells[name]}
            record = {
                **{name: value for name, value in cells.items() if name in Experiment.model_fields},
                **{name: value for name, value in nested.items() if name in Experiment.model_fields},
                "iteration": int(cells["iteration"]) if cells["iteration"] else None,
                "speedup": ratio or None,
            }
            masked = cells["masked"] == "yes"
            yield f"row {number}", {"experiment": record, "masked": masked, "why": cells["why"], "ids": nested["ids"]}
        except ValueError as error:
            yield f"row {number}", ValueError(f"it is not as kopt writes it: {error}")


def _gathered(found: Iterable[tuple[str, Any]], source: str) -> Import:
    experiments: dict[str, Experiment] = {}
    masked: list[tuple[str, bool, str]] = []
    joined: list[tuple[str, ...]] = []
    problems: list[str] = []
    for where, one in found:
        try:
            if isinstance(one, ValueError):
                raise one
            entry, notes = _entry(one, source)
        except ValidationError as error:
            problems.append(f"{where}: left out: {first_problem(error)}")
            continue
        except (ValueError, KeyError, TypeError) as error:
            problems.append(f"{where}: left out: {visible(str(error))[:300]}")
            continue
        problems += [f"{where}: {note}" for note in notes]
        if entry is None:
            continue
        record = entry.experiment
        if experiments.setdefault(record.id, record) != record:
            problems.append(f"{where}: left out: another record of the file has its id {record.id}")
            continue
        if entry.why:
            masked.append((record.id, entry.masked, entry.why))
        if len(entry.ids) > 1:
            joined.append(entry.ids)
    return Import(tuple(experiments.values()), tuple(masked), tuple(joined), tuple(problems))


def _entry(found: Any, source: str) -> tuple[Entry | None, list[str]]:
    """An exported record, a line of a log, or an object of the public form. Raises ValueError, and the like."""
    if isinstance(found, dict) and "experiment" in found:
        one = Experiment.model_validate_json(json.dumps(found["experiment"]))
        ids = (id for id in found.get("ids") or () if isinstance(id, str) and re.fullmatch(ULID, id))
        masked, why = found.get("masked") is True, found.get("why")
        return Entry(one, masked, _reason(why, masked), tuple(dict.fromkeys((one.id, *ids)))), []
    if isinstance(found, dict) and "kind" in found and "optimization" in found:
        return Entry(Experiment.model_validate_json(json.dumps(found))), []
    if isinstance(found, dict) and found.get("kind") in ("mask", "join"):
        raise ValueError(f"it is a {found['kind']} of a log's own file; what `kopt log export` writes keeps those")
    one_or_none, notes = read_public(found, source)
    return (Entry(one_or_none), notes) if one_or_none else (None, [*notes[:-1], f"left out: {notes[-1]}"])


def _reason(why: Any, masked: bool) -> str:
    """Why a record was masked, or unmasked; empty if it never was."""
    if not why:
        return "masked where it was imported from" if masked else ""
    try:
        return _REASON.validate_python(why)
    except ValidationError as error:
        raise ValueError(f"why: {first_problem(error)}") from None


def _loads(text: str) -> Any:
    """JSON, and NaN and infinities as Python writes them: they spoil the field that they are in, and no more. So does
    a number that is too long to be read: it stays a text. Raises ValueError, also for what is nested too deep.
    """
    try:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else digits)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
