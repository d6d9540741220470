"""How far a launch is from what its device can do: bytes a second against a measured ceiling and a cited peak.

A profile has no operations that an algorithm needs, so nothing is said about FLOP a second here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from evaluator.profile import Launch
from kbs.thresholds import DIGITS, plain
from kbs.units import format_number

READ_ONLY = Decimal("0.1")
"""Bytes written over bytes read below which a kernel is held against reads and not against copies."""


@dataclass(frozen=True)
class Headroom:
    """One comparison."""

    against: str
    """`measured copy 512 MiB`, or `cited peak`."""
    share: Decimal
    """Achieved rate over that one."""
    arithmetic: tuple[str, ...]
    """The achieved rate, and the share."""
    where: str
    """Device, driver and time of a measurement; citation of a spec."""


def headroom(
    launch: Launch,
    measured: Sequence[tuple[str, Decimal]],
    measured_where: str,
    peak: Decimal | None,
    peak_citation: str,
) -> tuple[Headroom, ...]:
    """DRAM bytes a second of the launch against each rate that is known."""
    achieved = achieved_bandwidth(launch)
    if achieved is None:
        return ()
    rate, steps = achieved
    found = []
    best = _best(launch, measured)
    if best is not None:
        found.append(_against(f"measured {best[0]}", rate, steps, best[1], measured_where))
    if peak is not None:
        found.append(_against("cited peak", rate, steps, peak, peak_citation))
    return tuple(found)


def achieved_bandwidth(launch: Launch) -> tuple[Decimal, tuple[str, ...]] | None:
    """Bytes a second to and from device memory, with the arithmetic; None where the profile does not have it."""
    read, written, time = (launch.value(id) for id in ("dram_bytes_read", "dram_bytes_written", "duration"))
    if read is not None and written is not None and time:
        with localcontext() as context:
            context.prec = 40
            rate = (read + written) / time * 10**6
        return rate, (f"({plain(read)} B + {plain(written)} B) / {plain(time)} us = {_rate(rate)}",)
    stated = launch.metric("dram_bandwidth")
    if stated is None or stated.value is None:
        return None
    return stated.value, ()


def _best(launch: Launch, measured: Sequence[tuple[str, Decimal]]) -> tuple[str, Decimal] | None:
    """The fastest measured figure of the launch's own mix of reads and writes."""
    read, written = launch.value("dram_bytes_read"), launch.value("dram_bytes_written")
    kind = "copy"
    if read is not None and written is not None:
        kind = "read" if written < read * READ_ONLY else "fill" if read < written * READ_ONLY else "copy"
    mine = [figure for figure in measured if re.match(rf"{kind}\b", figure[0])]
    return max(mine, key=lambda figure: figure[1], default=None)


def _against(name: str, rate: Decimal, steps: tuple[str, ...], other: Decimal, where: str) -> Headroom:
    with localcontext() as context:
        context.prec = 40
        share = rate / other
        shown = f"{rate:.0f} B/s / {other:.0f} B/s = {format_number(share, DIGITS)}"
    return Headroom(name, share, (*steps, shown), where)


def _rate(value: Decimal) -> str:
    return f"{format_number(value / 10**9, DIGITS)} GB/s"
