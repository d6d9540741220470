"""What a data file of a workspace is, by its content: a run does not use it, and its plan says so."""

from __future__ import annotations

import json
from pathlib import Path

from evaluator.source.source_file import MAX_BYTES

_TEXTS = {".md", ".markdown", ".txt", ".rst"}
_REPORTS = {".ncu-rep": "Nsight Compute", ".nsys-rep": "Nsight Systems", ".qdrep": "Nsight Systems"}
_TENSORS = {".npz", ".npy", ".safetensors", ".pt", ".pth"}
DATA = frozenset({".csv", ".tsv", ".json", ".jsonl", ".log", ".npy", *_REPORTS, *_TEXTS})
"""Endings of files that are named in a plan, beside those of tensors that may be inputs."""
_LOOKED_AT = 8192
"""Bytes of a table or a log that say what it is."""
_SEALED = {
    "kopt-receipt": "a receipt of kopt: a run writes its own",
    "kopt-external-receipt": "a record of a benchmark of yours: --bench-command takes one in a run",
    "kopt-run": "the record of a run",
}


def kind_of_data(path: Path) -> str:
    """What a file is, in words. Never raises."""
    suffix = path.suffix.lower()
    if suffix in _TEXTS:
        return "text: searched only as notes, in a folder that --knowledge names"
    if suffix in _REPORTS:
        return f"a report of {_REPORTS[suffix]}: a run takes its own profiles"
    if suffix in _TENSORS:
        return "tensors: inputs only where --inputs names them"
    if suffix == ".json":
        return _json(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(_LOOKED_AT).decode("utf-8", "replace")
    except OSError:
        return "data that cannot be read"
    if suffix in (".csv", ".tsv"):
        of_ncu = '"Kernel Name"' in head and '"ID"' in head
        return "a report of Nsight Compute, as CSV: a run takes its own profiles" if of_ncu else "a table"
    return "a log"


def _json(path: Path) -> str:
    try:
        found = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return "data that is no JSON"
    kind = found.get("kind") if isinstance(found, dict) else None
    if isinstance(kind, str) and kind in _SEALED:
        return _SEALED[kind]
    if isinstance(found, dict) and "traceEvents" in found:
        return "a trace of a profiler: a run takes its own profiles"
    return "JSON data"
