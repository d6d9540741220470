"""Read metric values of imported logs: `81.2`, `81.2 %`, `268 Mbyte`, `32 register/thread`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kbs.common.visible_text import visible
from kbs.evidence.quantities import parse_profiler_unit
from kbs.evidence.units import Notation, Unit
from kbs.experience.experiment import MAX_FIGURE, is_unicode, metric_name
from kbs.hardware.profile_metrics import profile_metrics

MAX_METRICS = 500
"""No more metrics of an experiment are kept."""
_NOTATION = Notation(thousands="", loose=True)
_FIGURE = re.compile(rf"({_NOTATION.pattern})\s*(\S{{0,24}})")


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


def _scale(written: str, unit: str) -> Decimal | None:
    """How many of `unit` one of `written` is; None where it is none of them. No unit at all is taken for `unit`."""
    if written in ("", unit):
        return Decimal(1)
    found = parse_profiler_unit(written)
    if found is None:
        return None
    counts_bytes = not unit and found == Unit("B", Decimal(1))
    return found.scale if found.dimension == unit or counts_bytes else None
