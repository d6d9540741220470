"""Exports of the experience log: for kopt elsewhere (JSON, JSON lines, CSV), and for other tools (Parquet, MLflow).

Keys and tokens that kopt itself was given are taken out of every text: an export is made to be handed on.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.files import may_overwrite, write_whole
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.experience.transfer.import_export import begins, columns, to_csv, to_json
from kopt.services.settings import LoadedSettings, ModelServices

BINARY = frozenset({"parquet"})
"""Formats that are no text, and need a file."""
_MLFLOW = "kopt-experience-mlflow"
_PARQUET_KEY = b"kopt-experience"
_HIDDEN = "[a secret]"
_LEAST = 8
"""Characters of a secret that is looked for: a shorter one would be found in words."""
_MOST_PARAM, _MOST_TAG = 6000, 5000
"""Characters that MLflow keeps of a value."""
_NOT_A_KEY = re.compile(r"[^A-Za-z0-9_.\-/ ]")
_NUMBERS = ("iteration", "speedup_median", "speedup_low", "speedup_high")


def check_format(format: str) -> None:
    """Raises `UsageError` (`format_unknown`) for a format that exports do not have."""
    if format not in FORMATS:
        raise UsageError(
            f"unknown --format {format[:40]!r}", code="format_unknown", hint=f"Choose from {', '.join(FORMATS)}."
        )


def export_log(
    log: ExperienceLog, wanted: Filter, format: str, output: Path | None, settings: LoadedSettings
) -> tuple[bytes, int]:
    """(the export, how many experiments it has), written to `output` if that is given.

    Records that ship with kopt are left out unless the filter asks for them: whoever imports it has them.

    Raises `UsageError`: `format_unknown`, `no_output` for Parquet without a file, `output_exists` for a file that is
    not an export of this format. `ConfigurationError` (`extra_missing`) for Parquet without pyarrow.
    """
    check_format(format)
    if output is None and format in BINARY:
        raise UsageError(f"{format} is no text", code="no_output", hint="Name a file with --output.")
    with log.index() as index:
        entries = list(index.entries(replace(wanted, shipped=False) if wanted.shipped is None else wanted))
    hidden = _secrets(settings)
    made = FORMATS[format]([_without(hidden, entry) for entry in entries] if hidden else entries)
    if output is not None:
        own = _own_parquet(output) if format == "parquet" else may_overwrite(output, _BEGINS[format])
        if not own:
            raise UsageError(
                f"{output} exists and is not a {format} export of kopt",
                code="output_exists",
                hint="Choose another file with --output, or move that one away.",
            )
        write_whole(output, made)
    return made, len(entries)


# --- secrets ----------------------------------------------------------------------------------------------------------


def _secrets(settings: LoadedSettings) -> tuple[str, ...]:
    """Keys and tokens of the settings and the environment."""
    values, services = settings.values, ModelServices()
    known = [
        values.chroma_token.get_secret_value(),
        *(one.get_secret_value() for one in values.chroma_headers.values()),
        services.openai_api_key.get_secret_value(),
        services.anthropic_api_key.get_secret_value(),
        os.environ.get("KOPT_MCP_TOKEN", ""),
    ]
    return tuple(one for one in dict.fromkeys(known) if len(one) >= _LEAST)


def _without(hidden: Sequence[str], entry: Entry) -> Entry:
    def clean(value: Any) -> Any:
        if isinstance(value, str):
            for secret in hidden:
                value = value.replace(secret, _HIDDEN)
            return value
        if isinstance(value, dict):
            return {clean(key): clean(one) for key, one in value.items()}
        return [clean(one) for one in value] if isinstance(value, list) else value

    one = entry.experiment.model_dump(mode="json")
    found = clean(one)
    if found == one and clean(entry.why) == entry.why:
        return entry
    return replace(entry, experiment=Experiment.model_validate_json(json.dumps(found)), why=clean(entry.why))


# --- formats ----------------------------------------------------------------------------------------------------------


def _json(entries: Sequence[Entry]) -> bytes:
    return to_json(entries).encode()


def _jsonl(entries: Sequence[Entry]) -> bytes:
    """A line a record, as the list of the JSON export has it."""
    records = json.loads(to_json(entries))["records"]
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode()


def _csv(entries: Sequence[Entry]) -> bytes:
    return to_csv(entries).encode()


def _parquet(entries: Sequence[Entry]) -> bytes:
    """The columns of the CSV: numbers as numbers, `masked` as a truth value, what is nested as JSON."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError(
            "Parquet needs the package pyarrow, which is not installed",
            code="extra_missing",
            hint="Install it: pip install 'kopt[parquet]'. CSV and JSON lines need nothing.",
        ) from error
    kinds = {**dict.fromkeys(_NUMBERS, arrow.float64()), "iteration": arrow.int64(), "masked": arrow.bool_()}
    schema = arrow.schema(
        [(name, kinds.get(name, arrow.string())) for name in columns()], metadata={_PARQUET_KEY: b"1"}
    )
    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(list(map(_row, entries)), schema=schema), out)
    return out.getvalue()


def _row(entry: Entry) -> dict[str, Any]:
    one = entry.experiment.model_dump(mode="json")
    ratio = one.pop("speedup") or {}
    one.update({f"speedup_{end}": ratio.get(end) for end in ("median", "low", "high")})
    one.update(masked=entry.masked, why=entry.why, ids=list(entry.ids), origin=entry.origin)
    return {name: json.dumps(one[name]) if isinstance(one[name], list | dict) else one[name] for name in columns()}


def _own_parquet(path: Path) -> bool:
    """Whether nothing is there, or a Parquet file that kopt wrote."""
    if not path.exists():
        return True
    if not may_overwrite(path, b"PAR1"):
        return False
    from pyarrow import ArrowException, parquet

    try:
        return _PARQUET_KEY in (parquet.read_schema(path).metadata or {})
    except (ArrowException, OSError):
        return False


def _mlflow(entries: Sequence[Entry]) -> bytes:
    """MLflow's JSON of runs, one an experiment: info, and params, metrics and tags as lists of keys and values."""
    document = {"kind": _MLFLOW, "schema_version": 1, "runs": [_run(entry) for entry in entries]}
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def _run(entry: Entry) -> dict[str, Any]:
    one = entry.experiment
    made = datetime.strptime(one.time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    moment = int(made.timestamp() * 1000)
    params = {
        **{name: getattr(one, name) for name in ("kernel", "op", "backend", "gpu", "capability", "dtype")},
        **{f"dims.{name}": str(size) for name, size in one.dims.items()},
        **{f"parameters.{name}": value for name, value in one.parameters.items()},
        "methods": ", ".join(one.methods),
    }
    tags = {
        "mlflow.runName": one.reference,
        **{name: getattr(one, name) for name in ("optimization", "hypothesis", "observed", "lesson", "receipt", "run")},
        **{name: getattr(one, name) for name in ("bottleneck_before", "bottleneck_after", "dominant_stall", "source")},
        "outcome": one.outcome.value,
        "provenance": one.provenance.value,
        "masked": "yes" if entry.masked else "no",
        "origin": entry.origin,
        "evidence": ", ".join(one.evidence),
    }
    return {
        "info": {
            "run_id": one.id,
            "run_name": one.reference,
            "experiment_id": "0",
            "status": "FINISHED",
            "start_time": moment,
            "end_time": moment,
            "lifecycle_stage": "deleted" if entry.masked else "active",
        },
        "data": {
            "params": _pairs(params, _MOST_PARAM),
            "metrics": [
                {"key": _key(key), "value": value, "timestamp": moment, "step": one.iteration or 0}
                for key, value in _figures(one)
            ],
            "tags": _pairs(tags, _MOST_TAG),
        },
    }


def _figures(one: Experiment) -> Iterator[tuple[str, float]]:
    if one.speedup is not None:
        for end in ("median", "low", "high"):
            value = getattr(one.speedup, end)
            if value is not None:
                yield f"speedup_{end}" if end != "median" else "speedup", value
    for when, figures in (("before", one.metrics_before), ("after", one.metrics_after)):
        yield from ((f"{when}.{name}", float(figure)) for name, figure in figures.items())


def _pairs(values: Mapping[str, str], most: int) -> list[dict[str, str]]:
    return [{"key": _key(key), "value": value[:most]} for key, value in values.items() if value]


def _key(name: str) -> str:
    """A name of the characters that MLflow allows."""
    return _NOT_A_KEY.sub("_", name)[:250]


FORMATS: dict[str, Callable[[Sequence[Entry]], bytes]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "mlflow": _mlflow,
}
"""Name of a format → what writes it."""
_BEGINS = {
    "json": begins("json"),
    "csv": begins("csv"),
    "jsonl": b'{"experiment": {"kind": "experiment", ',
    "mlflow": f'{{\n "kind": "{_MLFLOW}"'.encode(),
}
"""What every export of a format begins with."""
