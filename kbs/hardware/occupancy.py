"""How many blocks of a kernel an SM can hold, and what limits them.

The rule is NVIDIA's: registers are given to whole warps in units, out of the register file of one of the SM's
sub-partitions; shared memory to whole blocks in units, with a part that the system keeps; warp slots, block slots and
barriers one by one. Tests hold every result against the calculator of the CUDA toolkit (`cuda_occupancy.h`).
The limits are values of a wiki page, each with the line that states it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kbs.common.json_model import JsonDataclass
from kbs.evidence.spec import ABSENT, Spec
from kbs.evidence.vocabulary import Vocabulary

REGISTER_BYTES = 4
PER_WARP = "warp"
"""The granularity of register allocation that this module knows: registers are handed to whole warps."""

WARPS = "warps"
BLOCKS = "blocks"
REGISTERS = "registers"
SHARED_MEMORY = "shared memory"
BARRIERS = "barriers"

NEEDED = {
    "warp_size": "warp_size",
    "max_threads_per_block": "threads_per_block",
    "max_warps_per_sm": "warps",
    "max_blocks_per_sm": "blocks",
    "register_file_per_sm": "registers",
    "max_registers_per_block": "registers_per_block",
    "max_registers_per_thread": "registers_per_thread",
    "register_allocation_unit": "register_unit",
    "warp_allocation_granularity": "sub_partitions",
    "shared_memory_per_sm": "shared_memory",
    "shared_memory_per_block": "shared_memory_per_block",
    "shared_memory_per_block_default": "shared_memory_per_block_default",
    "reserved_shared_memory_per_block": "reserved_shared_memory",
    "shared_memory_allocation_unit": "shared_memory_unit",
    "l1_capacity": "unified_cache",
}
"""Metric → field of `SmLimits`. Memory is in bytes, the register file in registers."""
WORDS = ("register_allocation_granularity", "shared_memory_carveouts", "max_barriers_per_sm")
"""Further metrics that are needed, and that are no plain number on every page."""


@dataclass(frozen=True)
class SmLimits:
    """What one SM of a compute capability has, in threads, warps, blocks, registers, barriers and bytes."""

    product: str
    warp_size: int
    threads_per_block: int
    warps: int
    blocks: int
    registers: int
    registers_per_block: int
    registers_per_thread: int
    register_unit: int
    """Registers of a warp are rounded up to a multiple of this."""
    sub_partitions: int
    """The register file is split over so many parts; a block's warps are handed to them in turn."""
    shared_memory: int
    shared_memory_per_block: int
    """With the opt-in, without the reserved part."""
    shared_memory_per_block_default: int
    """Without the opt-in."""
    reserved_shared_memory: int
    """Of every block, for the system."""
    shared_memory_unit: int
    unified_cache: int
    """L1 and shared memory together."""
    carveouts: tuple[int, ...]
    """How much of the unified cache can be shared memory, ascending."""
    barriers: int | None
    """None if NVIDIA's calculator counts no barriers."""
    specs: Mapping[str, Spec] = field(default_factory=dict)
    """Metric → the row that states it."""


def sm_limits(specs: Iterable[Spec], product: str, vocabulary: Vocabulary) -> SmLimits | list[str]:
    """The limits of a product from the rows of its page, or the metrics that the page does not state usably."""
    stated: dict[str, Spec] = {}
    for spec in specs:
        if spec.product == product and spec.recommended and spec.published and not spec.qualifier:
            stated.setdefault(spec.metric, spec)
    values: dict[str, int] = {}
    missing = []
    for metric, name in NEEDED.items():
        base = stated[metric].base(vocabulary) if metric in stated else None
        least = 0 if metric == "reserved_shared_memory_per_block" else 1
        if base is None or base != int(base) or base < least:
            missing.append(metric)
        else:
            values[name] = int(base) // (REGISTER_BYTES if metric == "register_file_per_sm" else 1)
    granularity, carved, barriers = (stated.get(metric) for metric in WORDS)
    if granularity is None or granularity.value != PER_WARP:
        missing.append("register_allocation_granularity")
    sizes = [int(size) * 1024 for size in re.findall(r"\d+", carved.value)] if carved else []
    if not sizes or sizes != sorted(sizes) or sizes[-1] != values.get("shared_memory"):
        missing.append("shared_memory_carveouts")
    slots = barriers.base(vocabulary) if barriers else None
    if barriers is None or (slots is None and barriers.value != ABSENT):
        missing.append("max_barriers_per_sm")
    if missing:
        return missing
    used = {metric: stated[metric] for metric in (*NEEDED, *WORDS)}
    return SmLimits(
        product=product, **values, carveouts=tuple(sizes), barriers=None if slots is None else int(slots), specs=used
    )


@dataclass(frozen=True)
class Usage:
    """What one block of a kernel takes."""

    threads: int
    registers: int
    """Of one thread, as the compiler reports them."""
    shared_memory: int
    """Bytes, static and dynamic, without the reserved part."""
    barriers: int = 1


@dataclass(frozen=True)
class Excess:
    """A value that no kernel can have."""

    what: str
    value: int
    limit: int
    metric: str
    """The metric that states the limit."""


def excesses(usage: Usage, limits: SmLimits) -> list[Excess]:
    """The values of a usage that are beyond a limit of the hardware by themselves."""
    asked = (
        ("threads a block", usage.threads, limits.threads_per_block, "max_threads_per_block"),
        ("registers a thread", usage.registers, limits.registers_per_thread, "max_registers_per_thread"),
        ("bytes of shared memory", usage.shared_memory, limits.shared_memory_per_block, "shared_memory_per_block"),
        ("barriers a block", usage.barriers, limits.barriers, "max_barriers_per_sm"),
    )
    return [Excess(what, value, top, metric) for what, value, top, metric in asked if top is not None and value > top]


@dataclass(frozen=True, kw_only=True)
class ResourceLimit(JsonDataclass):
    """How many blocks one resource admits."""

    resource: str
    blocks: int | None
    """None if the kernel uses nothing of it."""
    limiting: bool = False
    """Whether it admits the fewest."""
    arithmetic: str
    metrics: tuple[str, ...]
    """The limits that it rests on."""


@dataclass(frozen=True)
class Need(JsonDataclass):
    """What a limiting resource must fall to before one more block fits."""

    resource: str
    what: str
    """Of what the kernel must use less: threads a block, registers a thread, bytes of shared memory a block, barriers a
    block, or block slots."""
    now: int
    at_most: int | None
    """None if no kernel can have one block more."""


@dataclass(frozen=True)
class Occupancy:
    """How an SM is filled with blocks of one kernel."""

    usage: Usage
    blocks: int
    """0 where the kernel cannot be launched."""
    warps_per_block: int
    warps: int
    max_warps: int
    limits: tuple[ResourceLimit, ...]
    limiters: tuple[str, ...]
    """The resources that admit no block more than these."""
    registers_per_block: int
    """Allocated."""
    shared_memory_per_block: int
    """Allocated, in bytes, with the reserved part."""
    configuration: int
    """Bytes of the smallest carve-out that holds the blocks; of the preferred one where a preference was given."""
    l1: int
    """Bytes of the unified cache that this carve-out leaves to L1."""
    needs: tuple[Need, ...]

    @property
    def launchable(self) -> bool:
        """Whether a block fits at all."""
        return self.blocks > 0

    @property
    def fraction(self) -> float:
        """Warps that are resident, of those that could be."""
        return self.warps / self.max_warps


def occupancy(usage: Usage, limits: SmLimits, carveout: int | None = None) -> Occupancy:
    """Fill an SM with blocks. `carveout` is the share of shared memory that was preferred, in percent of the largest.

    The usage must be one that `excesses` finds nothing in.
    """
    found = _resource_limits(usage, limits, carveout)
    blocks = min(limit.blocks for limit in found if limit.blocks is not None)
    limiters = tuple(limit.resource for limit in found if limit.blocks == blocks)
    per_block = _divide_up(usage.threads, limits.warp_size)
    shared = _shared_allocated(usage, limits)
    if carveout is None:
        configuration = next(size for size in limits.carveouts if size >= shared * blocks)
    else:
        configuration = _preferred(usage, limits, carveout)
    return Occupancy(
        usage=usage,
        blocks=blocks,
        warps_per_block=per_block,
        warps=blocks * per_block,
        max_warps=limits.warps,
        limits=tuple(replace(limit, limiting=limit.blocks == blocks) for limit in found),
        limiters=limiters,
        registers_per_block=_registers_allocated(usage, limits) * per_block,
        shared_memory_per_block=shared,
        configuration=configuration,
        l1=limits.unified_cache - configuration,
        needs=tuple(_need(resource, usage, limits, carveout, blocks + 1) for resource in limiters),
    )


def _resource_limits(usage: Usage, limits: SmLimits, carveout: int | None) -> tuple[ResourceLimit, ...]:
    found = [_warp_limit(usage, limits), _block_limit(limits), _register_limit(usage, limits)]
    found.append(_shared_limit(usage, limits, carveout))
    if limits.barriers is not None:
        found.append(_barrier_limit(usage, limits))
    return tuple(found)


def _warp_limit(usage: Usage, limits: SmLimits) -> ResourceLimit:
    per_block = _divide_up(usage.threads, limits.warp_size)
    arithmetic = f"{limits.warps} warps / ({usage.threads} threads / {limits.warp_size} = {per_block} warps a block)"
    return ResourceLimit(
        resource=WARPS,
        blocks=limits.warps // per_block,
        arithmetic=arithmetic,
        metrics=("max_warps_per_sm", "warp_size"),
    )


def _block_limit(limits: SmLimits) -> ResourceLimit:
    return ResourceLimit(
        resource=BLOCKS, blocks=limits.blocks, arithmetic=f"{limits.blocks} block slots", metrics=("max_blocks_per_sm",)
    )


def _register_limit(usage: Usage, limits: SmLimits) -> ResourceLimit:
    metrics = (
        "register_file_per_sm",
        "register_allocation_unit",
        "register_allocation_granularity",
        "warp_allocation_granularity",
        "max_registers_per_block",
    )
    per_warp = _registers_allocated(usage, limits)
    if not per_warp:
        return ResourceLimit(resource=REGISTERS, blocks=None, arithmetic="no registers", metrics=metrics)
    per_block = _divide_up(usage.threads, limits.warp_size)
    parts, file = limits.sub_partitions, limits.registers // limits.sub_partitions
    said = (
        f"{usage.registers} x {limits.warp_size} = {usage.registers * limits.warp_size:,} registers a warp, "
        f"allocated {per_warp:,}"
    )
    # The hardware checks a block's registers as if its warps filled all sub-partitions evenly.
    checked = per_warp * _round_up(per_block, parts)
    if checked > limits.registers_per_block:
        said += (
            f"; a block is checked as {_round_up(per_block, parts)} x {per_warp:,} = {checked:,}, more than "
            f"{limits.registers_per_block:,}"
        )
        return ResourceLimit(resource=REGISTERS, blocks=0, arithmetic=said, metrics=metrics)
    warps = file // per_warp * parts
    said += f"; {parts} x floor({file:,} / {per_warp:,}) = {warps} warps / {per_block} a block"
    return ResourceLimit(resource=REGISTERS, blocks=warps // per_block, arithmetic=said, metrics=metrics)


def _shared_limit(usage: Usage, limits: SmLimits, carveout: int | None) -> ResourceLimit:
    metrics = (
        "shared_memory_per_sm",
        "reserved_shared_memory_per_block",
        "shared_memory_allocation_unit",
        "shared_memory_carveouts",
    )
    allocated = _shared_allocated(usage, limits)
    if not allocated:
        return ResourceLimit(resource=SHARED_MEMORY, blocks=None, arithmetic="no shared memory", metrics=metrics)
    room = limits.shared_memory if carveout is None else _preferred(usage, limits, carveout)
    said = (
        f"{usage.shared_memory:,} + {limits.reserved_shared_memory:,} reserved, allocated {allocated:,} B; "
        f"{room:,} B / {allocated:,}"
    )
    return ResourceLimit(resource=SHARED_MEMORY, blocks=room // allocated, arithmetic=said, metrics=metrics)


def _preferred(usage: Usage, limits: SmLimits, carveout: int) -> int:
    """Bytes of the configuration that a preference gives: rounded up, and giving way to a block that needs more."""
    wanted = max(carveout * limits.shared_memory // 100, 0)
    room = next(size for size in limits.carveouts if size >= wanted)
    allocated = _shared_allocated(usage, limits)
    return room if room >= allocated else next(size for size in limits.carveouts if size >= allocated)


def _barrier_limit(usage: Usage, limits: SmLimits) -> ResourceLimit:
    metrics = ("max_barriers_per_sm",)
    if limits.barriers is None or not usage.barriers:
        return ResourceLimit(resource=BARRIERS, blocks=None, arithmetic="no barriers", metrics=metrics)
    said = f"{limits.barriers} barriers / {usage.barriers} a block"
    return ResourceLimit(resource=BARRIERS, blocks=limits.barriers // usage.barriers, arithmetic=said, metrics=metrics)


def _need(resource: str, usage: Usage, limits: SmLimits, carveout: int | None, blocks: int) -> Need:
    """The largest use of `resource` with which it admits `blocks` blocks; it is less than now."""
    if resource == BLOCKS:
        return Need(resource, "block slots", limits.blocks, None)
    choices: dict[str, tuple[str, str, Callable[[Usage], ResourceLimit]]] = {
        WARPS: ("threads a block", "threads", lambda changed: _warp_limit(changed, limits)),
        REGISTERS: ("registers a thread", "registers", lambda changed: _register_limit(changed, limits)),
        SHARED_MEMORY: (
            "bytes of shared memory a block",
            "shared_memory",
            lambda changed: _shared_limit(changed, limits, carveout),
        ),
        BARRIERS: ("barriers a block", "barriers", lambda changed: _barrier_limit(changed, limits)),
    }
    what, name, admits = choices[resource]
    now = int(getattr(usage, name))

    def refused(amount: int) -> bool:
        admitted = admits(replace(usage, **{name: amount})).blocks
        return admitted is not None and admitted < blocks

    # Less never admits fewer blocks, so the amounts that are refused are the upper ones.
    amounts = range(1 if name == "threads" else 0, now)
    first = bisect_left(amounts, True, key=refused)
    return Need(resource, what, now, amounts[first - 1] if first else None)


def _registers_allocated(usage: Usage, limits: SmLimits) -> int:
    """Of one warp."""
    return _round_up(usage.registers * limits.warp_size, limits.register_unit)


def _shared_allocated(usage: Usage, limits: SmLimits) -> int:
    """Of one block, in bytes."""
    return _round_up(usage.shared_memory + limits.reserved_shared_memory, limits.shared_memory_unit)


def _divide_up(amount: int, by: int) -> int:
    return -(-amount // by)


def _round_up(amount: int, unit: int) -> int:
    return _divide_up(amount, unit) * unit
