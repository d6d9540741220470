"""Numbers of metrics as others write them: `81.2`, `81.2 %`, `268 Mbyte`, `32 register/thread`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kbs.common.visible_text import visible
from kbs.experience.experiment import MAX_FIGURE, is_unicode, metric_name
from kbs.hardware.profile_metrics import profile_metrics

MAX_METRICS = 500
"""No more metrics of an experiment are kept."""
_FIGURE = re.compile(r"([+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?)\s*(\S{0,24})")
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PREFIXED = {"byte": "B", "bytes": "B", "B": "B", "byte/s": "B/s", "bytes/s": "B/s", "B/s": "B/s", "byte/second": "B/s",
             "Hz": "Hz", "hz": "Hz"}  # fmt: skip
_NS = Decimal("0.001")
_TIMES: dict[str, Decimal | int] = {"us": 1, "usecond": 1, "µs": 1, "ns": _NS, "nsecond": _NS, "ms": 10**3,
                                    "msecond": 10**3, "s": 10**6, "second": 10**6}  # fmt: skip
_COUNTED = re.compile(
    r"(?:inst|instruction|cycle|warp|thread|block|register|sector|request|wavefront|byte|way|ratio|sm)s?"
    r"(?:/(?:inst|instruction|cycle|warp|thread|block|register|sector|request|wavefront|access|sm)s?)?"
)


def figures(value: Any, name: str, notes: list[str]) -> dict[str, str]:
    """Metrics whose numbers can be read, in the units of the vocabulary; what cannot is added to `notes`.

    `name`: what is read, for the notes. A metric that the vocabulary does not know keeps its name, and has no unit.
    """
    if value in (None, "", {}):
        return {}
    if not isinstance(value, Mapping):
        notes.append(f"{name}: metrics are an object of numbers")
        return {}
    found: dict[str, str] = {}
    for metric, written in list(value.items())[:MAX_METRICS]:
        shown = visible(str(metric)[:60])[:60]
        text = str(written) if isinstance(written, int | float | str) and not isinstance(written, bool) else ""
        match = _FIGURE.fullmatch(text.strip()[:100])
        if not str(metric).strip() or len(str(metric)) > 200 or not is_unicode(str(metric)):
            notes.append(f"{name}: “{shown}” is no name of a metric")
            continue
        if not match:
            notes.append(f"{name}: {shown} is no number")
            continue
        known = profile_metrics().all.get(metric_name(str(metric)))
        scale = _scale(match[2], known.unit if known else "")
        if scale is None:
            kept = f"in {known.unit}" if known and known.unit else "without a unit"
            notes.append(f"{name}: {shown} is kept {kept}, and here it is in {visible(match[2])}")
            continue
        number = match[1] if scale == 1 else f"{Decimal(match[1]) * scale:f}"
        if len(number) > MAX_FIGURE:
            notes.append(f"{name}: {shown} has a number of more than {MAX_FIGURE} characters")
        else:
            found[str(metric)] = number
    if len(value) > MAX_METRICS:
        notes.append(f"{name}: {len(value) - MAX_METRICS} of {len(value)} metrics are too many")
    return found


def _scale(written: str, unit: str) -> Decimal | int | None:
    """How many of `unit` one of `written` is; None where it is none of them. No unit at all is taken for `unit`."""
    if written in ("", unit):
        return 1
    if unit == "us":
        return _TIMES.get(written)
    if unit in ("", "B") and _COUNTED.fullmatch(written) and (unit == "" or written.startswith("byte")):
        return 1
    for length in (0, 1):
        if _PREFIXED.get(written[length:]) == unit and written[:length] in _PREFIXES:
            return _PREFIXES[written[:length]]
    return None
