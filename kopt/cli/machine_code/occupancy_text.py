"""Occupancy in words, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbs.common.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from kopt.services.results.machine_code import KernelOccupancyData, OccupancyData


def show_gaps(console: Console, gaps: list[str]) -> None:
    """What the wiki does not say."""
    for gap in gaps:
        console.print(gap, markup=False)


def show(console: Console, data: OccupancyData) -> None:
    """Every kernel, then the limits with their citation lines."""
    for number, kernel in enumerate(data.kernels):
        if number:
            console.print()
        _show_kernel(console, kernel, data)
    for refused in data.refused:
        console.print(f"\n{visible(refused.kernel)}: cannot be launched: {refused.why}", markup=False)
        for line in refused.citation_lines:
            console.print(f"  {line}", markup=False)
    if data.how:
        console.print(f"\nCompiled by {visible(data.how)}", markup=False)
    for note in data.notes:
        console.print(f"Note: {visible(note)}", markup=False)
    console.print("\nLimits", markup=False)
    for limit in data.limits:
        console.print(f"  {limit.citation_line}  ({limit.confidence}; {limit.source})", markup=False)


def _show_kernel(console: Console, kernel: KernelOccupancyData, data: OccupancyData) -> None:
    subject = f"{visible(kernel.kernel)} on " if kernel.kernel else ""
    named = f" ({data.gpu})" if data.gpu else ""
    lines = [
        f"{subject}compute capability {data.compute_capability}{named}: {kernel.threads} threads a block, "
        f"{kernel.registers} registers a thread, {kernel.shared_memory:,} B of shared memory a block"
    ]
    limiters = " and ".join(kernel.limiters)
    if kernel.launchable:
        lines.append(
            f"{kernel.blocks} blocks of {kernel.warps_per_block} warps an SM: {kernel.warps} of {kernel.max_warps} "
            f"warps, {kernel.occupancy:.1%}; limited by {limiters}"
        )
    else:
        lines.append(f"not a single block fits: it cannot be launched, for want of {limiters}")
    lines.append("")
    for each in kernel.resources:
        admitted = "any" if each.blocks is None else str(each.blocks)
        mark = "  <- limits" if each.limiting else ""
        lines.append(f"  {each.resource:<14}{admitted:>4} blocks   {each.arithmetic}{mark}")
    more = f"One more block ({kernel.blocks + 1})" if kernel.blocks else "A block"
    lines += ["", f"{more} would need: {_one_more(kernel)}"]
    lines.append(
        f"Shared memory: {kernel.allocated_shared_memory:,} B allocated a block; a carve-out of "
        f"{kernel.carveout_bytes // 1024} KB leaves {kernel.l1_bytes // 1024} KB to L1"
    )
    lines += [f"Note: {note}" for note in kernel.notes]
    for line in lines:
        console.print(line, markup=False)


def _one_more(kernel: KernelOccupancyData) -> str:
    needs = []
    for need in kernel.one_more_block:
        if need.what == "block slots":
            needs.append(f"more than the {need.now} block slots that an SM has, so only larger blocks add warps")
        elif need.at_most is None:
            needs.append(f"{need.what}: no number is low enough (now {need.now:,})")
        else:
            needs.append(f"at most {need.at_most:,} {need.what} (now {need.now:,})")
    full = "; all warps that an SM can hold are resident already" if kernel.warps == kernel.max_warps else ""
    return " and ".join(needs) + full
