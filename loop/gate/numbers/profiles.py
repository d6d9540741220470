"""What a profile says of a number: the metric whose name stands beside it, and the values of that metric."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from evaluator.profiling.profile import Launch
from kbs.evidence.units import Quantity
from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.numbers import wording
from loop.gate.numbers.figures import exact
from loop.gate.numbers.names import NameFinder, Words, name_words
from loop.gate.numbers.sources import PROFILE_UNITS
from loop.gate.numbers.spoken import Spoken


@lru_cache(maxsize=1)
def metric_names() -> NameFinder[str]:
    """Names of metrics, ours and those of Nsight Compute."""
    table: dict[Words, str] = {}
    for metric in profile_metrics().all.values():
        for name in (metric.id, metric.name, metric.label, *metric.ncu):
            key = name_words(name)
            if not (len(key) == 1 and key[0] in wording.GENERIC):
                table.setdefault(key, metric.id)
    return NameFinder(table)


def beside(spoken: Spoken) -> str | None:
    """The metric of the profile whose name is right before or right after a number."""
    names = spoken.sentence.metrics
    before = next((name for name in reversed(names) if name.end <= spoken.start), None)
    linked = before is not None and spoken.start - before.end < 40
    if before is not None and linked and wording.LINK.match(spoken.text[before.end : spoken.start]):
        return before.meaning
    behind = next((name for name in names if name.start >= spoken.end), None)
    near = behind is not None and behind.start - spoken.end < 20 and bool(spoken.dimension)
    if behind is not None and near and wording.BEHIND.match(spoken.text[spoken.end : behind.start]):
        return behind.meaning
    return None


def values_of(launch: Launch, metric: str, *, bare: bool = False) -> list[Quantity]:
    """Every way to state a launch's value of a metric; `bare`: also without its unit."""
    counter = launch.metric(metric)
    if counter is None or counter.amount is None or counter.value is None:
        return []
    found = [exact(counter.amount, "")] if bare or not counter.unit else []
    if bare:
        found.append(exact(counter.value, ""))
    known = PROFILE_UNITS.get(counter.unit)
    if known is not None:
        scale = counter.value / counter.amount * known[1] if counter.amount else known[1]
        found.append(exact(counter.amount, known[0], scale))
    elif not counter.unit:
        # A count may be stated with the name of what it counts, and a share of 1 as a percentage.
        counted = (*wording.COUNTS, "multiprocessors", "cycles", "per cycle")
        found += [exact(counter.amount, dimension) for dimension in counted]
        found.append(exact(counter.amount, "percent", Decimal(1)))
    return found


def says(launch: Launch, spoken: Spoken) -> bool:
    """Whether a profile shows the number with the unit that follows it: `32 byte/sector`."""
    unit = re.match(r"\s?([\w/%]+)", spoken.behind_number)
    return unit is not None and any(one.shown == f"{spoken.written} {unit[1]}" for one in launch.counters.values())


def names(launch: Launch, spoken: Spoken) -> bool:
    """Whether a profile has the bare number as the value of a metric whose name has the word beside it."""
    words = [*re.findall(r"[a-z]{4,}", spoken.before.lower())[-1:], *re.findall(r"[a-z]{4,}", spoken.after.lower())[:1]]
    return not spoken.dimension and any(
        counter.amount == spoken.plain.base and any(word.rstrip("s") in name.lower() for word in words)
        for name, counter in launch.counters.items()
    )


def shown_of(launches: Sequence[Launch], metric: str) -> str:
    """The value of a metric in the first profile that has it; empty for none."""
    counters = (launch.metric(metric) for launch in launches)
    return next((counter.shown for counter in counters if counter), "")
