"""The public form of a log: JSON objects with `id`, `date`, `iteration`, `kernel`, `backend`, `chip`, `dims`,
`bottleneck_before`, `dominant_stall`, `metrics_before`, `metrics_after`, `optimization`, `hypothesis`, `outcome`,
`speedup` and `notes`. Nothing in them is measured as far as is known: the records are `reported`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, TypeVar

from pydantic import ValidationError

from kbs.common.ulid import PATTERN, ulid_at
from kbs.common.visible_text import visible
from kbs.experience.experiment import (
    MAX_WORDS,
    Experiment,
    Outcome,
    Provenance,
    Speedup,
    bottleneck_name,
    is_unicode,
    op_name,
)
from kbs.experience.files import first_problem
from kbs.experience.transfer.figures import figures

FIELDS = ("id", "date", "iteration", "kernel", "backend", "chip", "dims", "bottleneck_before", "dominant_stall",
          "metrics_before", "metrics_after", "optimization", "hypothesis", "outcome", "speedup", "notes")  # fmt: skip
_OUTCOMES = {
    Outcome.SUCCESS: ("success", "successful", "succeeded", "improved", "improvement", "faster", "win", "positive"),
    Outcome.NEUTRAL: ("neutral", "no change", "nochange", "unchanged", "same", "no effect", "no improvement"),
    Outcome.REGRESSION: ("regression", "regressed", "slower", "worse", "negative"),
    Outcome.INCORRECT: ("incorrect", "wrong", "wrong result", "wrong results", "mismatch"),
    Outcome.REJECTED: ("rejected", "reverted", "refused"),
    Outcome.FAILED: ("failed", "failure", "fail", "error", "crash", "crashed", "compile error", "timeout"),
}
_OUTCOME = {word: outcome for outcome, words in _OUTCOMES.items() for word in words}
_SPEEDUP = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,20})?)\s*[x×]?", re.IGNORECASE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
T = TypeVar("T")


class UnreadError(ValueError):
    """Why a field or an object is left out, in one sentence."""


def read_public(found: Any, source: str) -> tuple[Experiment | None, list[str]]:
    """(the record, or None if the object cannot be one; what of it could not be read).

    The same object gives the same id each time, so that a file can be imported again. `source`: the file's name.
    """
    notes: list[str] = []
    if not isinstance(found, Mapping):
        return None, ["it is not a JSON object"]
    notes += [f"{visible(str(name)[:60])[:60]}: no field of the public form" for name in found if name not in FIELDS]

    def field(name: str, read: Callable[[Any], T], empty: T) -> T:
        value = found.get(name)
        if value is None or value == "":
            return empty
        try:
            return read(value)
        except UnreadError as error:
            notes.append(f"{name}: {error}")
            return empty

    try:
        moment = _moment(found.get("date"))
        kernel = _needed(found, "kernel")[:200]
        theirs = field("id", _words, "")
        record = Experiment(
            id=_id(found, moment),
            time=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            iteration=field("iteration", _whole, None),
            kernel=kernel,
            op=op_name(kernel),
            backend=field("backend", _words, ""),
            gpu=field("chip", _words, ""),
            dims=field("dims", _dims, {}),
            bottleneck_before=field("bottleneck_before", _bottleneck, ""),
            dominant_stall=field("dominant_stall", _words, ""),
            metrics_before=figures(found.get("metrics_before"), "metrics_before", notes),
            metrics_after=figures(found.get("metrics_after"), "metrics_after", notes),
            optimization=_needed(found, "optimization"),
            hypothesis=field("hypothesis", _words, ""),
            outcome=_outcome(found.get("outcome")),
            speedup=field("speedup", _speedup, None),
            lesson=field("notes", _words, ""),
            source=(f"{source}: {theirs}" if theirs else source)[:200],
            provenance=Provenance.REPORTED,
        )
    except UnreadError as error:
        return None, [*notes, str(error)]
    except ValidationError as error:
        return None, [*notes, first_problem(error)]
    return record, notes


def _id(found: Mapping[str, Any], moment: datetime) -> str:
    given = found.get("id")
    if isinstance(given, str) and re.fullmatch(PATTERN, given):
        return given
    text = json.dumps({name: found.get(name) for name in FIELDS}, sort_keys=True, ensure_ascii=True, default=str)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:10], "big")
    return ulid_at(max(0, int(moment.timestamp() * 1000)), number)


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not value.strip():
        raise UnreadError("date: there is none, so that nobody knows how old it is")
    text = value.strip()
    try:
        if _DAY.fullmatch(text):
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UnreadError(
            f"date: {visible(text[:40])} is not a date such as 2026-11-21 or 2026-11-21T14:25:35Z"
        ) from None
    if not 1970 <= moment.year <= 9998:
        raise UnreadError(f"date: {visible(text[:40])} is not of this age")
    return moment


def _needed(found: Mapping[str, Any], name: str) -> str:
    """Words without which there is no record."""
    try:
        return _words(found.get(name))
    except UnreadError as error:
        raise UnreadError(f"{name}: {error}") from None


def _words(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return _words("; ".join(value))
        raise UnreadError("there is none" if value is None else "it is not text")
    if isinstance(value, float) and not isfinite(value):
        raise UnreadError("it is not text")
    text = str(value).encode("utf-8", "replace").decode().strip()
    if len(text) > MAX_WORDS:
        raise UnreadError(f"it has {len(text)} characters; at most {MAX_WORDS} are kept")
    return text


def _whole(value: Any) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise UnreadError("it is not a whole number from 0 to 1000000")
    return value


def _dims(value: Any) -> dict[str, int]:
    """Sizes by name; without names they are d0, d1 and so on."""
    if isinstance(value, str):
        parts = [part for part in re.split(r"[\s,;x×*()\[\]]+", value) if part]
        named = [part.replace(":", "=").partition("=") for part in parts]
        pairs: list[tuple[str, Any]] = [
            (name if mark else f"d{place}", size if mark else name) for place, (name, mark, size) in enumerate(named)
        ]
    elif isinstance(value, list):
        pairs = [(f"d{place}", size) for place, size in enumerate(value)]
    elif isinstance(value, Mapping):
        pairs = [(str(name), size) for name, size in value.items()]
    else:
        raise UnreadError("sizes are an object, a list, or words such as M=4096,N=8192")
    sizes: dict[str, int] = {}
    for name, size in pairs:
        if isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < 14:
            size = int(size)
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**40 or not name.strip():
            written = f"{visible(name[:40])}={visible(str(size)[:40])}"
            raise UnreadError(f"the size {written} is not a whole number from 1 to 2^40")
        if not is_unicode(name):
            raise UnreadError(f"{visible(name[:40])} is not a name of a size")
        sizes[name.strip()[:200]] = size
    if len(sizes) > 32:
        raise UnreadError("more than 32 sizes")
    return sizes


def _bottleneck(value: Any) -> str:
    try:
        return bottleneck_name(_words(value))
    except ValueError as error:
        raise UnreadError(visible(str(error))) from None


def _outcome(value: Any) -> Outcome:
    text = " ".join(re.split(r"[\s_-]+", _words(value).lower())) if value is not None else ""
    if text not in _OUTCOME:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise UnreadError(f"outcome: {visible(text)[:40] or 'nothing'} is none of {known}")
    return _OUTCOME[text]


def _speedup(value: Any) -> Speedup:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    match = _SPEEDUP.fullmatch(text.strip()) if isinstance(text, str) else None
    ratio = float(match[1]) if match else 0.0
    if ratio <= 0:
        raise UnreadError(f"{visible(str(value)[:40])} is not a ratio such as 1.25 or 1.25x")
    return Speedup(median=ratio)
