"""The forms that a segment's kernels can have, with the values that can be chosen and a model of their cost.

The models rank, and nothing else: bytes over bandwidth, how full the GPU is, what is read twice, what waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loop.search.generators.cooperative import cooperative
from loop.search.generators.kernels import Kernel, elementwise, looped, split, whole
from loop.search.generators.matmul import Blocks, describable, matmul
from loop.search.generators.segment import Product, Segment, element_bytes
from loop.search.generators.shape import Shape, cdiv, power
from loop.search.variant import Config, Target, Value

_NAME = "kernel"
_TILE = 32768
"""Elements of a tile that a program can hold at all."""


@dataclass(frozen=True)
class Family:
    """A form of kernels for one segment."""

    name: str
    methods: tuple[str, ...]
    space: dict[str, tuple[Value, ...]]
    build: Callable[[Config], list[Kernel]]
    cost: Callable[[Config], float]
    why: str


@dataclass(frozen=True)
class _Model:
    """What the cost of a kernel is made of."""

    segment: Segment
    target: Target

    @property
    def floor(self) -> float:
        """Microseconds in which the bytes can move."""
        return self.segment.bytes() / self.target.bandwidth * 1e6

    @property
    def tiles(self) -> int:
        """Tensors that vary along the reduced axes and are read."""
        return max(1, sum(bool(one.axes & (self.segment.reduced or one.axes)) for one in self.segment.loads))

    @property
    def reads(self) -> float:
        """Of the bytes, the part that is read along the reduced axes."""
        segment = self.segment
        read = sum(
            segment.group(one.axes) * element_bytes(one.memory.dtype) for one in segment.loads if one.memory is not None
        )
        return min(1.0, read / max(1, segment.bytes()))

    def time(
        self, programs: int, warps: int, elements: float, passes: float = 1.0, launches: int = 1, wanted: int = 8
    ) -> float:
        """`elements`: of a tile, for each thread, and `wanted` of them; `passes`: how often what is read is read."""
        moved = self.floor * (1 - self.reads + self.reads * passes)
        resident = max(1, min(self.target.threads // (32 * warps), 32))
        waves = programs / (self.target.multiprocessors * resident)
        busy = min(1.0, programs * warps / (4 * self.target.multiprocessors))
        full = math.ceil(waves) / waves if waves > 1 else 1 / busy
        few = 1.0 + 0.1 * max(0.0, math.log2(wanted / max(elements, 0.5)))
        many = 1.0 + 0.5 * max(0.0, math.log2(elements * self.tiles / 64))
        return moved * min(full, 4.0) * few * many + launches * self.target.launch_us


def _warps(config: Config) -> int:
    return int(config["num_warps"])


def _options(config: Config) -> dict[str, int]:
    return {"num_warps": _warps(config)}


def families(segment: Segment, target: Target) -> Iterator[Family]:
    """Every form that fits a segment."""
    model = _Model(segment, target)
    if segment.product is not None:
        yield _product(model, segment.product)
        return
    if not segment.reduced:
        yield _elementwise(model)
        return
    shape = Shape.of(segment)
    for make in (_whole, _looped, _split, _cooperative, _ahead, _streamed):
        found = make(model, shape)
        if found is not None and all(found.space.values()):
            yield found


def _elementwise(model: _Model) -> Family:
    count = model.segment.group(range(len(model.segment.sizes)))

    def build(config: Config) -> list[Kernel]:
        return [elementwise(model.segment, _NAME, int(config["block"]), _options(config), bool(config["streaming"]))]

    def cost(config: Config) -> float:
        block = int(config["block"])
        own = 1.0 if config["streaming"] else 1.001
        return own * model.time(cdiv(count, block), _warps(config), block / (32 * _warps(config)))

    space: dict[str, tuple[Value, ...]] = {
        "block": (1024, 2048, 4096, 512, 8192), "num_warps": (4, 8, 2), "streaming": (True, False),
    }  # fmt: skip
    why = "All operations in one kernel read and write each element once."
    return Family("fused-elementwise", ("kernel_fusion",), space, build, cost, why)


def _product(model: _Model, product: Product) -> Family:
    target = model.target
    single = product.dtype == "float32"
    space: dict[str, tuple[Value, ...]] = {
        "rows": (128, 64, 256, 32), "columns": (256, 128, 64), "depth": (64, 32) if not single else (32, 16, 64),
        "group": (8, 4, 16), "num_warps": (8, 4), "num_stages": (3, 4, 2), "waves": (0, 1),
    }  # fmt: skip
    if single:
        space["precision"] = ("ieee", "tf32x3", "bf16x6")
    if target.capability >= 90 and describable(product):
        space["descriptors"] = (True, False)
    # Hopper's matrix units take float32 operands only where the depth is contiguous; bfloat16 ones lie either way.
    deep = product.left.strides[2] == 1 and product.right.strides[1] == 1
    slower = {"ieee": 1.8, "tf32x3": 1.0, "bf16x6": 1.15} if deep else {"ieee": 1.05, "tf32x3": 1.8, "bf16x6": 1.0}

    def build(config: Config) -> list[Kernel]:
        rows, columns, depth, group, waves = (
            int(config[name]) for name in ("rows", "columns", "depth", "group", "waves")
        )
        read = bool(config.get("descriptors"))
        blocks = Blocks(rows, columns, depth, group, str(config.get("precision", "")), waves, read)
        options = {**_options(config), "num_stages": int(config["num_stages"])}
        return [matmul(model.segment, product, _NAME, blocks, options)]

    def cost(config: Config) -> float:
        rows, columns, depth = (int(config[name]) for name in ("rows", "columns", "depth"))
        stages, warps = int(config["num_stages"]), _warps(config)
        size = element_bytes(product.dtype)
        if stages * depth * (rows + columns) * size > target.shared_bytes - 1024 or rows * columns > 128 * 32 * warps:
            return math.inf
        tiles = product.batch * cdiv(product.rows, rows) * cdiv(product.columns, columns)
        waves = tiles / target.multiprocessors
        full = math.ceil(waves) / waves
        padded = tiles * rows * columns / (product.batch * product.rows * product.columns)
        rate = target.flops or target.bandwidth * (40 if single else 250)
        few = 1.0 + 0.15 * max(0.0, math.log2(128 * 256 / (rows * columns))) + 0.05 * (4 - min(stages, 4))
        few *= 1.0 + 0.1 * (warps == 4 and rows * columns > 128 * 128) + 0.001 * int(config["waves"])
        few *= (0.95 if not config["waves"] else 0.93) if config.get("descriptors") else 1.0
        exact = slower.get(str(config.get("precision")), 1.0)
        exact *= 1.2 if single and config["precision"] != "ieee" and rows * columns > 64 * 32 * warps else 1.0
        return max(model.floor, product.operations / rate * 1e6 * full * padded * few * exact) + target.launch_us

    why = "The product and what follows it, element by element, are one kernel, and neighbours share what they read."
    return Family("matmul-epilogue", ("tile_scheduler_swizzle", "epilogue_fusion"), space, build, cost, why)


def _beside(shape: Shape, most: int) -> tuple[Value, ...]:
    """Rows, or columns, of a tile: no more than there are."""
    if shape.inner > 1:
        return tuple(n for n in (64, 32, 128, 256, 512, 1024, 2048, 4096, 16) if n <= min(most, power(shape.inner)))
    return tuple(n for n in (1, 2, 4, 8, 16, 32) if n <= min(most, power(shape.outer)))


def _whole(model: _Model, shape: Shape) -> Family | None:
    block = power(shape.along)
    space: dict[str, tuple[Value, ...]] = {
        "beside": _beside(shape, max(1, 2 * _TILE // block)), "num_warps": (8, 4, 16, 2, 1, 32), "waves": (0, 2, 4, 8),
        "streaming": (True, False),
    }  # fmt: skip
    if block > 4 * _TILE or (shape.inner > 1 and block > 2048):
        return None

    def build(config: Config) -> list[Kernel]:
        beside, waves = int(config["beside"]), int(config["waves"])
        return [whole(model.segment, _NAME, beside, _options(config), bool(config["streaming"]), waves)]

    def cost(config: Config) -> float:
        beside, waves, warps = int(config["beside"]), int(config["waves"]), _warps(config)
        elements = beside * block / (32 * warps)
        if elements > 128 or elements < 1 or waves * 32 * warps > model.target.threads:
            return math.inf
        own = (1.0 if config["streaming"] else 1.001) * (1.0 if not waves else 1.01)
        return own * model.time(shape.programs(beside), warps, elements, wanted=32)

    why = "A program that holds whole rows reads each element once, whatever is reduced."
    return Family("whole-rows", ("kernel_fusion", "online_recomputation"), space, build, cost, why)


def _looped(model: _Model, shape: Shape) -> Family | None:
    segment = model.segment
    columns = shape.inner > 1
    space: dict[str, tuple[Value, ...]] = {
        "beside": _beside(shape, 1024), "block": (8, 16, 4, 32, 64, 1, 2) if columns else (2048, 4096, 1024, 8192),
        "num_warps": (4, 8, 16), "stages": (1, 2, 3, 4), "hints": (False, True),
    }  # fmt: skip
    passes = segment.levels + (1.0 if segment.maps and segment.levels else 0.0)

    def build(config: Config) -> list[Kernel]:
        beside, block, stages = (int(config[name]) for name in ("beside", "block", "stages"))
        return [looped(segment, _NAME, beside, block, _options(config), stages, bool(config["hints"]))]

    def cost(config: Config) -> float:
        beside, block, warps = int(config["beside"]), int(config["block"]), _warps(config)
        elements = beside * block / (32 * warps)
        if elements > 64 or elements < 1 or block > 2 * power(shape.along):
            return math.inf
        cached = shape.along * 8 < model.target.l2_bytes / model.target.multiprocessors
        own = (1.001 if config["hints"] else 1.0) * (1 + 0.001 * abs(int(config["stages"]) - 2))
        again = 1 + 0.3 * (passes - 1) if cached else max(1.0, passes)
        return own * model.time(shape.programs(beside), warps, elements, again)

    why = "Rows in pieces need few registers, and reductions that go on from piece to piece spare passes."
    return Family("rows-in-pieces", ("online_recomputation", "reduction"), space, build, cost, why)


def _split(model: _Model, shape: Shape) -> Family | None:
    segment = model.segment
    if segment.scans or shape.along < 64:
        return None
    columns = shape.inner > 1
    beside = _beside(shape, 4096) if columns else (1,)
    space: dict[str, tuple[Value, ...]] = {
        "beside": beside, "block": (8, 4, 2, 16, 32, 1) if columns else (4096, 2048, 1024, 8192),
        "parts": tuple(n for n in (4, 2, 8, 16, 32, 64, 128, 256, 512) if n * 8 <= shape.along),
        "num_warps": (8, 4, 16), "stages": (1, 2, 3),
    }  # fmt: skip
    if segment.maps:
        space["last_rows"] = tuple(n for n in (4, 1, 16, 8, 2) if n <= power(shape.outer)) if not columns else (1,)
        space["last_block"] = (1024, 2048, 4096) if not columns else (16, 32, 64)
    passes = segment.levels + (1.0 if segment.maps else 0.0)

    def build(config: Config) -> list[Kernel]:
        beside_, block, parts, stages = (int(config[name]) for name in ("beside", "block", "parts", "stages"))
        rows, width = int(config.get("last_rows", 1)), int(config.get("last_block", block))
        last = (beside_, width) if columns else (rows, width)
        return split(segment, _NAME, beside_, block, parts, last, _options(config), stages)

    def cost(config: Config) -> float:
        beside_, block, parts = (int(config[name]) for name in ("beside", "block", "parts"))
        warps = _warps(config)
        elements = beside_ * block / (32 * warps)
        if elements > 64 or elements < 1 or parts * block > 2 * shape.along:
            return math.inf
        programs = shape.programs(beside_) * parts
        shared = 1.0 if int(config.get("last_rows", 4)) > 1 else 1.1
        own = 1 + 0.001 * abs(int(config["stages"]) - 2)
        return own * shared * model.time(programs, warps, elements, passes, segment.levels + 1)

    why = "Several programs a row keep the whole GPU busy where there are few rows."
    return Family("split-rows", ("reduction", "split_k"), space, build, cost, why)


def _residency(model: _Model, config: Config, span: int, held: int, beside: int = 24) -> int:
    """Registers for each thread, so that the wanted programs are resident; 0 where that cannot be. `beside`: how many
    a thread needs for other things than what it holds."""
    warps, waves = _warps(config), int(config["waves"])
    threads = 32 * warps * waves
    if threads > model.target.threads:
        return 0
    most = min(255, model.target.registers // threads // 8 * 8)
    needed = span * held / (32 * warps) + beside
    return most if needed <= most else 0


def _cooperative(model: _Model, shape: Shape) -> Family | None:
    segment, target = model.segment, model.target
    if shape.inner > 1 or segment.scans or not segment.maps or shape.along < 8192 or not segment.levels:
        return None
    held = max(1, sum(bool(one.axes & segment.reduced and one.axes - segment.reduced) for one in segment.loads))
    space: dict[str, tuple[Value, ...]] = {
        "span": tuple(n for n in (4096, 8192, 16384, 32768, 2048) if n < 2 * shape.along),
        "num_warps": (4, 8, 16, 2, 32), "waves": (8, 4, 2, 1, 12, 16, 6),
    }  # fmt: skip

    def build(config: Config) -> list[Kernel]:
        span = int(config["span"])
        options = {**_options(config), "maxnreg": _residency(model, config, span, held)}
        return [cooperative(segment, _NAME, cdiv(shape.along, span), int(config["waves"]), options, "registers")]

    def cost(config: Config) -> float:
        span, waves, warps = int(config["span"]), int(config["waves"]), _warps(config)
        parts = cdiv(shape.along, span)
        if not _residency(model, config, span, held) or parts > waves * target.multiprocessors:
            return math.inf
        elements = span / (32 * warps)
        resident = waves * target.multiprocessors // parts * parts
        idle = waves * target.multiprocessors / resident
        last = shape.along / (parts * span)
        waits = 1.25 + 0.02 * math.sqrt(parts) / waves
        held_bytes = resident * span * 4 / (target.multiprocessors * 200_000)
        few = 1.0 + 0.2 * max(0.0, math.log2(0.5 / max(held_bytes, 0.05)))
        return model.time(resident, warps, elements) * idle / last * waits * few

    why = "Programs that share a row and hold their part in registers read it once, however long it is."
    return Family("cooperative-rows", ("fewer_syncs", "persistent_kernel"), space, build, cost, why)


def _ahead(model: _Model, shape: Shape) -> Family | None:
    found = _cooperative(model, shape)
    if found is None or model.segment.levels != 1:
        return None
    segment, target = model.segment, model.target
    held = 2 * max(1, sum(bool(one.axes & segment.reduced and one.axes - segment.reduced) for one in segment.loads))
    space: dict[str, tuple[Value, ...]] = {
        "span": tuple(n for n in (8192, 4096, 16384, 2048) if n < 2 * shape.along), "num_warps": (8, 16, 4, 2),
        "waves": (2, 1, 4, 3, 8, 6),
    }  # fmt: skip

    def build(config: Config) -> list[Kernel]:
        span = int(config["span"])
        options = {**_options(config), "maxnreg": _residency(model, config, span, held, 44)}
        return [cooperative(segment, _NAME, cdiv(shape.along, span), int(config["waves"]), options, "ahead")]

    def cost(config: Config) -> float:
        span, waves, warps = int(config["span"]), int(config["waves"]), _warps(config)
        parts = cdiv(shape.along, span)
        resident = waves * target.multiprocessors // parts * parts
        if not _residency(model, config, span, held, 44) or not resident or resident // parts > shape.outer:
            return math.inf
        # Half of the memory of the registers may be under way: what is less, and what waits for itself, costs.
        under_way = resident * span * 4 / (target.multiprocessors * 65536)
        few = 1.0 + 0.3 * max(0.0, math.log2(1.0 / max(under_way, 0.05)))
        turns = math.ceil(shape.outer * parts / resident) * resident / (shape.outer * parts)
        last = shape.along / (parts * span)
        own = 1.1 + 0.01 * warps / waves
        return model.time(resident, max(warps, 4), span / (32 * warps)) * few * turns / last * own

    why = "The next row is on its way into registers while the programs of this one wait for each other."
    return Family("cooperative-rows-ahead", ("overlap_compute_memory", "persistent_kernel"), space, build, cost, why)


def _streamed(model: _Model, shape: Shape) -> Family | None:
    segment, target = model.segment, model.target
    if shape.inner > 1 or segment.scans or not segment.maps or shape.along < 8192 or segment.levels != 1:
        return None
    space: dict[str, tuple[Value, ...]] = {
        "span": tuple(n for n in (8192, 4096, 16384, 2048, 32768) if n < 2 * shape.along), "num_warps": (8, 16, 4, 32),
        "waves": (4, 2, 3, 6, 8, 1),
    }  # fmt: skip

    def build(config: Config) -> list[Kernel]:
        span = int(config["span"])
        options = {**_options(config), "maxnreg": _residency(model, config, span, 1)}
        return [cooperative(segment, _NAME, cdiv(shape.along, span), int(config["waves"]), options, "cache")]

    def cost(config: Config) -> float:
        span, waves, warps = int(config["span"]), int(config["waves"]), _warps(config)
        parts = cdiv(shape.along, span)
        if not _residency(model, config, span, 1) or parts > waves * target.multiprocessors:
            return math.inf
        resident = waves * target.multiprocessors // parts * parts
        cached = 2 * resident * span * 4 * model.tiles / target.l2_bytes
        again = 1.15 if cached < 0.5 else 1.15 + (cached - 0.5)
        idle = waves * target.multiprocessors / resident
        return model.time(resident, warps, span / (32 * warps)) * idle * again

    why = "The next row's reductions hide the wait for those of this row, which is then read from the cache."
    return Family("cooperative-rows-cached", ("overlap_compute_memory", "persistent_kernel"), space, build, cost, why)
