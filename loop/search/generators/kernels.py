"""Kernels of a segment: tiles that hold whole rows, rows in pieces, rows that are split among programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loop.search.generators.lines.body import Body
from loop.search.generators.lines.operators import triton_type
from loop.search.generators.lines.reducers import REDUCERS
from loop.search.generators.lines.tile import Tile
from loop.search.generators.segment import Segment, Value
from loop.search.generators.shape import Shape, cdiv, power, quotient


@dataclass(frozen=True)
class Kernel:
    """A kernel's text, and how it is launched."""

    name: str
    text: str
    arguments: tuple[str, ...]
    """Names of tensors of the host, as the kernel has them."""
    grid: str
    """An expression of the host's."""
    constants: Mapping[str, int | str]
    """Numbers, or expressions of the host's."""
    options: Mapping[str, int] = field(default_factory=dict)
    """`num_warps` and such."""
    scratch: tuple[tuple[str, str, str], ...] = ()
    """(name, number of elements, type) of buffers that it needs, made by the host."""
    before: tuple[str, ...] = ()
    """Lines of the host before the launch."""
    scalars: tuple[tuple[str, str], ...] = ()
    """(name in the kernel, expression of the host's)."""

    def launch(self) -> list[str]:
        """Lines of the host."""
        words = [*self.arguments, *(expression for _, expression in self.scalars)]
        words += [f"{name}={value}" for name, value in {**self.constants, **self.options}.items()]
        made = [
            f"{name} = torch.empty({size}, device=device, dtype=torch.{dtype})" for name, size, dtype in self.scratch
        ]
        return [*made, *self.before, f"{self.name}[({self.grid},)]({', '.join(words)})"]


def finished(name: str, body: Body, constants: Sequence[str], scalars: Sequence[str] = ()) -> str:
    """The text of a kernel."""
    head = [*body.used, *scalars, *(f"{one}: tl.constexpr" for one in constants)]
    return "\n".join(["@triton.jit", f"def {name}({', '.join(head)}):", *body.lines, ""])


# --- what does not reduce -------------------------------------------------------------------------------------------


def elementwise(segment: Segment, name: str, block: int, options: Mapping[str, int], streaming: bool = False) -> Kernel:
    """Each program a stretch of all elements."""
    count = segment.group(range(len(segment.sizes)))
    body = Body(segment, Tile("flat", frozenset({"r"} if count % block else ())))
    _stream(body, streaming)
    wide = ".to(tl.int64)" if count + block > 2**31 - 1 else ""
    body.add(f"r = tl.program_id(0){wide} * BLOCK + tl.arange(0, BLOCK)")
    if count % block:
        body.add(f"r_in = r < {count}")
    body.store(tiles=True)
    body.store(tiles=False)
    return Kernel(
        name, finished(name, body, ["BLOCK"]), tuple(body.used),
        quotient(segment.spelled(range(len(segment.sizes))), block), {"BLOCK": block}, options,
    )  # fmt: skip


def _stream(body: Body, streaming: bool) -> None:
    """Say that what is read and written once need not stay in the cache."""
    if streaming:
        for one in body.segment.loads:
            if one.memory is not None and body.varies(one):
                body.hints[one.memory.name] = 'eviction_policy="evict_first"'
        body.store_hint = 'cache_modifier=".cs"'


# --- whole rows -----------------------------------------------------------------------------------------------------


def place(body: Body, shape: Shape, beside: int, pid: str) -> None:
    """`o` and `i`, from a program's number."""
    kind = body.tile.kind
    if kind == "columns":
        tiles = cdiv(shape.inner, beside)
        if tiles == 1:
            body.add(f"o = tl.full([], 0, tl.int64) + {pid}")
            body.add("i = tl.arange(0, BESIDE)")
        else:
            body.add(f"o = tl.full([], 0, tl.int64) + {pid} // {tiles}")
            body.add(f"i = ({pid} % {tiles}) * BESIDE + tl.arange(0, BESIDE)")
        if "i" in body.tile.masks:
            body.add(f"i_in = i < {shape.inner}")
    elif kind == "rows":
        body.add(f"o = tl.full([], 0, tl.int64) + {pid} * BESIDE + tl.arange(0, BESIDE)")
        if "o" in body.tile.masks:
            body.add(f"o_in = o < {shape.outer}")
    else:
        body.add(f"o = tl.full([], 0, tl.int64) + {pid}")


def whole(
    segment: Segment, name: str, beside: int, options: Mapping[str, int], streaming: bool = False, waves: int = 0
) -> Kernel:
    """Each program whole rows: everything is read once. `waves`: programs a multiprocessor that go from row to row."""
    shape = Shape.of(segment)
    block = power(shape.along)
    body = Body(segment, shape.tile(beside, block))
    _stream(body, streaming)
    programs = shape.programs(beside)
    pid = "tl.program_id(0)"
    body.add("r = tl.arange(0, BLOCK)")
    if "r" in body.tile.masks:
        body.add(f"r_in = r < {shape.along}")
    if waves:
        body.add(f"for turn in tl.range(tl.program_id(0), {programs}, tl.num_programs(0), num_stages=STAGES):")
        body.depth, pid = 2, "turn"
    place(body, shape, beside, pid)
    for level in range(1, segment.levels + 1):
        for value in body.at_level(level):
            body.reduce_whole(value, str(float(shape.along)))
    body.store(tiles=True)
    body.store(tiles=False)
    constants = {"BESIDE": beside} if body.tile.kind != "flat" else {}
    constants |= {"BLOCK": block} | ({"STAGES": 2} if waves else {})
    grid = shape.grid(beside)
    if waves:
        grid = f"min({grid}, {waves} * processors(device))"
    return Kernel(name, finished(name, body, list(constants)), tuple(body.used), grid, constants, options)


# --- rows in pieces -------------------------------------------------------------------------------------------------


def pieces(body: Body, level: int, low: str, high: str, length: str) -> dict[str, list[str]]:
    """The reductions of a level over `low` to `high`, a tile at a time: the states of each as a row has them.

    `length`: how many elements that are, for the means.
    """
    values = body.at_level(level)
    names: dict[str, list[str]] = {}
    form = {"flat": "[BLOCK]", "rows": "[BESIDE, BLOCK]", "columns": "[BLOCK, BESIDE]"}[body.tile.kind]
    body.rows_until(level - 1)
    for value in values:
        names[value.name] = [f"{value.name}_{n}" for n in range(REDUCERS[value.op].states)]
        for state, first in zip(names[value.name], REDUCERS[value.op].start(value), strict=True):
            dtype = triton_type(value.dtype)
            if first.startswith("int "):
                dtype, first = "tl.int32", first[4:]
            body.add(f"{state} = tl.full({form}, {first}, {dtype})")
    with Loop(body, low, high) as step:
        for value in values:
            arg = body.get(str(value.args[0]))
            REDUCERS[value.op].update(body, value, names[value.name], arg, step)
    found = {}
    tile = body.tile
    for value in values:
        lanes = "tl.arange(0, BLOCK)"
        counts = f"(({length} - {lanes} + BLOCK - 1) // BLOCK).to(tl.float32)"
        counts = (
            counts if tile.kind == "flat" else f"{counts}[None, :]" if tile.kind == "rows" else f"{counts}[:, None]"
        )
        if value.op == "moments":
            counts = f"tl.maximum({counts}, 0.0)"
        found[value.name] = _merge(body, value, names[value.name], tile.axis, counts, length)
    return found


def _merge(body: Body, value: Value, names: Sequence[str], axis: int, counts: str, length: str) -> list[str]:
    before = len(body.lines)
    found = REDUCERS[value.op].merge(body, value, names, axis, body.tile.lift_row, counts)
    if value.op == "moments":  # the mean is over what this program has
        total = f"{float(body.segment.group(body.segment.reduced))}"
        for n in range(before, len(body.lines)):
            if body.lines[n].endswith(f" / {total}"):
                body.lines[n] = body.lines[n].removesuffix(f" / {total}") + f" / tl.maximum({length} + 0.0, 1.0)"
    return found


class Loop:
    """A loop over `low` to `high` by tiles; what is computed in it is forgotten after it."""

    def __init__(self, body: Body, low: str, high: str, stages: bool = True) -> None:
        self.body, self.low, self.high = body, low, high
        self.stages = stages

    def __enter__(self) -> str:
        body = self.body
        self.known = dict(body.done)
        for scan in body.segment.scans:
            kind = "0" if scan.op == "cumsum" else "1"
            carried = f"carry_{scan.name}"
            form = {"flat": "", "rows": "[BESIDE]", "columns": "[BESIDE]"}[body.tile.kind]
            number = f"{kind}.0" if scan.dtype.startswith("float") else kind
            first = (
                f"tl.full({form}, {kind}, {triton_type(scan.dtype)})"
                if form
                else f"tl.sum(tl.full([1], {number}, {triton_type(scan.dtype)}), axis=0)"
            )
            body.add(f"{carried} = {first}")
            body.done[carried] = carried
        body.add(f"for start in tl.range({self.low}, {self.high}, BLOCK, num_stages=STAGES):")
        body.depth += 1
        body.add("r = start + tl.arange(0, BLOCK)")
        if "r" in body.tile.masks:
            body.add(f"r_in = r < {self.high}")
        return f"((start - {self.low}) // BLOCK)" if self.low != "0" else "(start // BLOCK)"

    def __exit__(self, *_: object) -> None:
        self.body.depth -= 1
        self.body.done = self.known


def looped(
    segment: Segment, name: str, beside: int, block: int, options: Mapping[str, int], stages: int, hints: bool
) -> Kernel:
    """Each program rows in pieces: what later needs the reductions is read again."""
    shape = Shape.of(segment)
    body = Body(segment, shape.tile(beside, block))
    place(body, shape, beside, "tl.program_id(0)")
    reread = [one for one in segment.loads if one.memory is not None and body.varies(one)]
    if hints:
        body.store_hint = 'cache_modifier=".cs"'
        for one in reread:
            body.hints[one.memory.name] = 'eviction_policy="evict_last"'  # type: ignore[union-attr]  # it is in memory
    for level in range(1, segment.levels + 1):
        states = pieces(body, level, "0", str(shape.along), str(shape.along))
        for value in body.at_level(level):
            body.finish(value, states[value.name])
    if body.stores_tiles:
        body.rows_until(segment.levels)
        if hints:
            for one in reread:
                body.hints[one.memory.name] = 'eviction_policy="evict_first"'  # type: ignore[union-attr]  # it is in memory
        with Loop(body, "0", str(shape.along)):
            body.store(tiles=True)
    body.store(tiles=False)
    constants = {"BESIDE": beside} if body.tile.kind != "flat" else {}
    constants |= {"BLOCK": block, "STAGES": stages}
    return Kernel(name, finished(name, body, list(constants)), tuple(body.used), shape.grid(beside), constants, options)


# --- rows that programs share, one kernel after the other -----------------------------------------------------------


def state_offset(shape: Shape, parts: int, number: int, part: str) -> str:
    """Where a state of a row, or of columns, lies in its buffer; the inner axis last."""
    text = f"({number * shape.outer} + o) * {parts} + {part}" if number else f"o * {parts} + {part}"
    return f"({text}) * {shape.inner} + i" if shape.inner > 1 else text


def read_states(body: Body, shape: Shape, parts: int, span: int, value: Value, modifier: str = "") -> None:
    """Load what all programs found of a row, and make one state of it."""
    kind = body.tile.kind
    wide = power(parts)
    names = []
    body.add(f"part = tl.arange(0, {wide})")
    tests = [f"part < {parts}"] if wide != parts else []
    for number in range(REDUCERS[value.op].states):
        name = f"{value.name}_all{number}"
        first = REDUCERS[value.op].start(value)[number].removeprefix("int ")
        whole_number = REDUCERS[value.op].start(value)[number].startswith("int ") or not value.dtype.startswith("float")
        if kind == "columns":
            where = state_offset(shape, parts, number, "part[:, None]").replace("+ i", "+ i[None, :]")
            masks = [f"({test})[:, None]" for test in tests] + (["i_in[None, :]"] if "i" in body.tile.masks else [])
        else:
            where, masks = state_offset(shape, parts, number, "part"), tests
        words = [f"{value.name}_states + {where}", *([f"mask={' & '.join(masks)}", f"other={first}"] if masks else [])]
        if whole_number and masks:
            words[-1] = f"other={first}"
        body.add(f"{name} = tl.load({', '.join(words)}{modifier})")
        names.append(name)
    counts = f"tl.minimum(tl.maximum({shape.along} - part * {span}, 0), {span}).to(tl.float32)"
    counts = f"{counts}[:, None]" if kind == "columns" else counts
    found = REDUCERS[value.op].merge(body, value, names, 0, body.tile.lift_row, counts)
    body.finish(value, found)


def state_type(value: Value) -> str:
    """What a state is kept as."""
    return value.dtype if value.dtype in ("float32", "float64", "int64", "int32") else "int32"


def split(
    segment: Segment, name: str, beside: int, block: int, parts: int, last: Sequence[int], options: Mapping[str, int],
    stages: int,
) -> list[Kernel]:  # fmt: skip
    """Several programs a row, a kernel for each level of reductions and one for what is stored.

    `last`: rows beside and block of the last kernel where it goes along the rows.
    """
    shape = Shape.of(segment)
    span = cdiv(shape.along, block * parts) * block
    spelled = shape.pieces(f"{block} * {shape.pieces(str(block * parts))}")
    parts = cdiv(shape.along, span)
    found = []
    scratch = []
    for level in range(1, segment.levels + 1):
        body = Body(segment, shape.tile(beside, block, span))
        title = f"{name}_part{level}"
        body.add("part_at = tl.program_id(0)" + (f" % {parts}" if True else ""))
        place(body, shape, beside, f"(tl.program_id(0) // {parts})")
        for below in range(1, level):
            for value in body.at_level(below):
                _pointer(body, value)
                read_states(body, shape, parts, span, value)
        body.add(f"low = part_at * {span}")
        body.add(f"high = tl.minimum(low + {span}, {shape.along})")
        states = pieces(body, level, "low", "high", "(high - low)")
        for value in body.at_level(level):
            _pointer(body, value)
            reducer = REDUCERS[value.op]
            size = f"{reducer.states * shape.outer * parts * shape.inner}"
            scratch.append((f"{value.name}_states", size, state_type(value)))
            for number, state in enumerate(states[value.name]):
                where = state_offset(shape, parts, number, "part_at")
                mask = [one for one in ("o_in", "i_in") if one[0] in body.tile.masks]
                body.add(f"tl.store({value.name}_states + {where}, {state}{f', mask={mask[0]}' if mask else ''})")
        constants = {"BESIDE": beside} if body.tile.kind != "flat" else {}
        constants |= {"BLOCK": block, "STAGES": stages}
        grid = shape.grid(beside, spelled)
        found.append(
            Kernel(
                title,
                finished(title, body, list(constants)),
                tuple(body.used),
                grid,
                constants,
                options,
                tuple(scratch),
            )
        )
        scratch = []
    found.append(_last(segment, f"{name}_rest", shape, parts, span, last, options))
    return found


def _pointer(body: Body, value: Value) -> None:
    name = f"{value.name}_states"
    if name not in body.used:
        body.used.append(name)


def _last(
    segment: Segment, name: str, shape: Shape, parts: int, span: int, last: Sequence[int], options: Mapping[str, int]
) -> Kernel:
    """What is stored, once every program's states are there."""
    probe = Body(segment, shape.tile(1, 1))
    if not probe.stores_tiles:
        beside = min(power(shape.inner), 256) if shape.inner > 1 else 1
        body = Body(segment, shape.tile(beside, 1))
        place(body, shape, beside, "tl.program_id(0)")
        for level in range(1, segment.levels + 1):
            for value in body.at_level(level):
                _pointer(body, value)
                read_states(body, shape, parts, span, value)
        body.store(tiles=False)
        constants = {"BESIDE": beside} if body.tile.kind != "flat" else {}
        return Kernel(
            name, finished(name, body, list(constants)), tuple(body.used), shape.grid(beside), constants,
            {"num_warps": 4},
        )  # fmt: skip
    beside, block = last
    tiles = cdiv(shape.along, block)
    body = Body(segment, shape.tile(beside, block))
    body.store_hint = 'cache_modifier=".cs"'
    if body.tile.kind == "rows":
        return _last_of_rows(segment, name, shape, parts, span, beside, block, options)
    # The last part first: it was read last, and may still be in the cache.
    body.add(f"at = {tiles - 1} - tl.program_id(0) % {tiles}")
    body.add(f"turn = {shape.programs(beside) - 1} - tl.program_id(0) // {tiles}")
    place(body, shape, beside, "turn")
    for level in range(1, segment.levels + 1):
        for value in body.at_level(level):
            _pointer(body, value)
            read_states(body, shape, parts, span, value)
    body.rows_until(segment.levels)
    body.add("r = at * BLOCK + tl.arange(0, BLOCK)")
    if "r" in body.tile.masks:
        body.add(f"r_in = r < {shape.along}")
    body.store(tiles=True)
    if body.stores_rows:
        body.add("if at == 0:")
        body.depth += 1
        body.store(tiles=False)
        body.depth -= 1
    constants = ({"BESIDE": beside} if body.tile.kind != "flat" else {}) | {"BLOCK": block}
    grid = shape.grid(beside, shape.pieces(str(block)))
    return Kernel(name, finished(name, body, list(constants)), tuple(body.used), grid, constants, options)


def _last_of_rows(
    segment: Segment, name: str, shape: Shape, parts: int, span: int, beside: int, block: int,
    options: Mapping[str, int],
) -> Kernel:  # fmt: skip
    """A program goes through several rows at the same place, so that what all rows share is read once."""
    tiles = cdiv(shape.along, block)
    body = Body(segment, shape.tile(1, block))
    body.store_hint = 'cache_modifier=".cs"'
    body.add(f"at = {tiles - 1} - tl.program_id(0) % {tiles}")
    body.add("r = at * BLOCK + tl.arange(0, BLOCK)")
    if "r" in body.tile.masks:
        body.add(f"r_in = r < {shape.along}")
    for value in segment.values.values():
        if body.varies(value) and not value.axes - segment.reduced and segment.level(value.name) == 0:
            body.get(value.name)
    body.add(f"first = (tl.program_id(0) // {tiles}) * {beside}")
    body.add(f"for row in range(first, tl.minimum(first + {beside}, {shape.outer})):")
    body.depth += 1
    body.add(f"o = tl.full([], {shape.outer - 1}, tl.int64) - row")
    for level in range(1, segment.levels + 1):
        for value in body.at_level(level):
            _pointer(body, value)
            read_states(body, shape, parts, span, value)
    body.rows_until(segment.levels)
    body.store(tiles=True)
    if body.stores_rows:
        body.add("if at == 0:")
        body.depth += 1
        body.store(tiles=False)
        body.depth -= 1
    constants = {"BLOCK": block}
    return Kernel(
        name,
        finished(name, body, ["BLOCK"]),
        tuple(body.used),
        shape.grid(beside, shape.pieces(str(block))),
        constants,
        options,
    )
