"""What fits on an SM, as text."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.common.visible_text import visible
from kopt.services.results.machine_code import KernelOccupancyData, OccupancyData


def occupancy_lines(data: OccupancyData) -> Iterator[str]:
    """Every kernel, then the limits with their citation lines."""
    for number, kernel in enumerate(data.kernels):
        if number:
            yield ""
        yield from _kernel(kernel, data)
    for refused in data.refused:
        yield from ("", f"{visible(refused.kernel)}: cannot be launched: {refused.why}")
        yield from (f"  {line}" for line in refused.citation_lines)
    if data.how:
        yield from ("", f"Compiled by {visible(data.how)}")
    yield from (f"Note: {visible(note)}" for note in data.notes)
    yield from ("", "Limits")
    for limit in data.limits:
        yield f"  {limit.citation_line}  ({limit.confidence}; {limit.source})"


def _kernel(kernel: KernelOccupancyData, data: OccupancyData) -> Iterator[str]:
    subject = f"{visible(kernel.kernel)} on " if kernel.kernel else ""
    named = f" ({data.gpu})" if data.gpu else ""
    yield (
        f"{subject}compute capability {data.compute_capability}{named}: {kernel.threads} threads per block, "
        f"{kernel.registers} registers per thread, {kernel.shared_memory:,} B of shared memory per block"
    )
    limiters = " and ".join(kernel.limiters)
    if kernel.launchable:
        yield (
            f"{kernel.blocks} blocks of {kernel.warps_per_block} warps per SM: {kernel.warps} of {kernel.max_warps} "
            f"warps, {kernel.occupancy:.1%}; limited by {limiters}"
        )
    else:
        yield f"not a single block fits, so it cannot be launched: not enough {limiters}"
    yield ""
    for each in kernel.resources:
        admitted = "any" if each.blocks is None else str(each.blocks)
        mark = "  <- limits" if each.limiting else ""
        yield f"  {each.resource:<14}{admitted:>4} blocks   {each.arithmetic}{mark}"
    more = f"One more block ({kernel.blocks + 1})" if kernel.blocks else "A block"
    yield from ("", f"{more} would need: {_one_more(kernel)}")
    yield (
        f"Shared memory: {kernel.allocated_shared_memory:,} B allocated per block; a carve-out of "
        f"{kernel.carveout_bytes // 1024} KB leaves {kernel.l1_bytes // 1024} KB to L1"
    )
    yield from (f"Note: {note}" for note in kernel.notes)


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
