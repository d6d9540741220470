"""Rows that several resident programs share: each reads its part once, they exchange states, and each writes its part.

All programs of a row must run at the same time. The host starts no more than the GPU holds, and a program waits a
bounded number of looks for the others: then it works the row's reductions out by itself. So a row is right whatever
runs beside it, and nothing waits for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loop.search.generators.kernels import (
    Kernel,
    finished,
    pieces,
    read_states,
    state_offset,
    state_type,
)
from loop.search.generators.lines.body import Body
from loop.search.generators.lines.reducers import REDUCERS
from loop.search.generators.segment import Segment, UnreadableError, Value
from loop.search.generators.shape import Shape, cdiv, power

LOOKS = 200_000
"""How often a program looks for the others of its row, before it does their work."""


def cooperative(
    segment: Segment, name: str, parts: int, waves: int, options: Mapping[str, int], hold: str, slow: int = 1024
) -> Kernel:
    """`parts` programs a row, `waves` programs a multiprocessor.

    `hold`: `registers`, where a part is kept; `ahead`, where the next row's part is on its way into registers as well;
    or `cache`, where a part is read again after the exchange, and the next row's reductions are done before. `slow`:
    the tile of a program that goes through a row by itself. Raises `UnreadableError` where rows lie side by side, or
    a reduction needs another one and rows overlap.
    """
    shape = Shape.of(segment)
    if shape.inner > 1 or segment.scans:
        raise UnreadableError("columns, or scans, that programs would share")
    if hold != "registers" and segment.levels > 1:
        raise UnreadableError("a reduction that needs another one")
    span = cdiv(shape.along, parts)
    span = cdiv(span, 4) * 4 if hold == "cache" else power(span)
    parts = cdiv(shape.along, span)
    block = power(span)
    spelled = shape.pieces(str(block)) if parts == cdiv(shape.along, block) else str(parts)
    tile = shape.tile(1, block, span)
    body = Body(segment, tile)
    body.add(f"part_at = tl.program_id(0) % {parts}")
    body.add(f"group = tl.program_id(0) // {parts}")
    body.add(f"groups = tl.num_programs(0) // {parts}")
    body.add(f"r = part_at * {span} + tl.arange(0, BLOCK)")
    if "r" in tile.masks:
        body.add(f"r_in = r < tl.minimum((part_at + 1) * {span}, {shape.along})")
    body.add(f"count = tl.minimum({shape.along} - part_at * {span}, {span}).to(tl.float32)")
    writer = _Writer(segment, body, shape, parts, span, slow)
    {"registers": writer.held, "ahead": writer.ahead, "cache": writer.streamed}[hold]()
    scratch = [
        (f"{value.name}_states", str(REDUCERS[value.op].states * shape.outer * parts), state_type(value))
        for value in segment.reductions
    ]
    body.used += [one for one, _, _ in scratch if one not in body.used]
    body.used.append("arrived")
    constants = {"BLOCK": block, "SLOW": slow}
    before = (
        f"arrived = torch.zeros({shape.outer * segment.levels}, device=device, dtype=torch.int32)",
        f"resident = {waves} * processors(device) // {spelled}",
        "looks = LOOKS if x0.is_cuda and resident else 1".replace("x0", "device").replace(
            "device.is_cuda", 'device.type == "cuda"'
        ),
    )
    grid = f"max(1, min(resident, {shape.spelled[0]})) * {spelled}"
    return Kernel(
        name, finished(name, body, list(constants), ["looks"]), tuple(body.used), grid, constants, options,
        tuple(scratch), before, (("looks", "looks"),),
    )  # fmt: skip


class _Writer:
    """Writes the lines of one such kernel."""

    def __init__(self, segment: Segment, body: Body, shape: Shape, parts: int, span: int, slow: int) -> None:
        self.segment, self.body, self.shape = segment, body, shape
        self.parts, self.span, self.slow = parts, span, slow

    def _read(self) -> list[str]:
        """Read a part of row `o`; the names of what varies from row to row."""
        body, found = self.body, list[str]()
        for value in self.segment.loads:
            if body.varies(value) and value.axes - self.segment.reduced:
                if value.memory is not None:
                    body.hints[value.memory.name] = 'eviction_policy="evict_first"'
                found.append(body.get(value.name))
        body.store_hint = 'cache_modifier=".cs"'
        return found

    def ahead(self) -> None:
        """Start to read the next row's part, wait for what others say of this row, write it, and then reduce the next:
        memory is busy while programs wait for each other."""
        body, outer = self.body, self.shape.outer
        body.add("o = group.to(tl.int64)")
        names = self._read()
        kept = dict(body.done)
        self._publish(1, "o")
        body.add(f"for row in range(group, {outer}, groups):")
        body.depth += 1
        body.add(f"o = tl.full([], 0, tl.int64) + tl.minimum(row + groups, {outer - 1})")
        for name in names:
            del body.done[name]
        first = len(body.lines)
        self._read()
        for n in range(first, len(body.lines)):
            for name in names:
                body.lines[n] = re.sub(rf"(?<![\w.]){name}(?!\w)", f"{name}_next", body.lines[n])
        body.add("o = tl.full([], 0, tl.int64) + row")
        body.done = dict(kept)
        self._wait(1, "o")
        body.store(tiles=True)
        self._rows()
        for name in names:
            body.add(f"{name} = {name}_next")
        body.done = dict(kept)
        body.add(f"if row + groups < {outer}:")
        body.depth += 1
        body.add("o = tl.full([], 0, tl.int64) + row + groups")
        self._publish(1, "o")
        body.depth -= 1

    def held(self) -> None:
        """Read a part, and keep it."""
        body = self.body
        body.add(f"for row in range(group, {self.shape.outer}, groups):")
        body.depth += 1
        body.add("o = tl.full([], 0, tl.int64) + row")
        self._read()
        for level in range(1, self.segment.levels + 1):
            self._publish(level, "o")
            self._wait(level, "o")
        body.store(tiles=True)
        self._rows()

    def streamed(self) -> None:
        """Do the next row's reductions before the wait for those of this one, and read this one again."""
        body, outer = self.body, self.shape.outer
        for one in self.segment.loads:
            if one.memory is not None and body.varies(one):
                body.hints[one.memory.name] = 'eviction_policy="evict_last"'
        known = dict(body.done)
        body.add("o = group.to(tl.int64)")
        self._publish(1, "o")
        body.done = dict(known)
        body.add(f"for row in range(group, {outer}, groups):")
        body.depth += 1
        body.add(f"if row + groups < {outer}:")
        body.depth += 1
        body.add("o = tl.full([], 0, tl.int64) + row + groups")
        self._publish(1, "o")
        body.depth -= 1
        body.done = dict(known)
        body.add("o = tl.full([], 0, tl.int64) + row")
        for one in self.segment.loads:
            if one.memory is not None and one.axes - self.segment.reduced:
                body.hints[one.memory.name] = 'eviction_policy="evict_first"'
        body.store_hint = 'cache_modifier=".cs"'
        self._wait(1, "o")
        body.store(tiles=True)
        self._rows()

    def _rows(self) -> None:
        body = self.body
        if body.stores_rows:
            body.add("if part_at == 0:")
            body.depth += 1
            body.store(tiles=False)
            body.depth -= 1

    def _publish(self, level: int, row: str) -> None:
        """Write a part's states, and say that they are there."""
        body = self.body
        for value in body.at_level(level):
            arg = body.get(str(value.args[0]))
            states = REDUCERS[value.op].whole(body, value, arg, "tl.maximum(count, 1.0)")
            for number, state in enumerate(states):
                where = state_offset(self.shape, self.parts, number, "part_at")
                body.add(f"tl.store({value.name}_states + {where}, {state})")
        body.add("tl.debug_barrier()")
        at = f"arrived + {(level - 1) * self.shape.outer} + {row}" if level > 1 else f"arrived + {row}"
        body.add(f'tl.atomic_add({at}, 1, sem="release", scope="gpu")')

    def _wait(self, level: int, row: str) -> None:
        """Wait until all parts are there, or do the whole row."""
        body = self.body
        at = f"arrived + {(level - 1) * self.shape.outer} + {row}" if level > 1 else f"arrived + {row}"
        body.add(f'here = tl.atomic_add({at}, 0, sem="acquire", scope="gpu")')
        body.add("look = 0")
        body.add(f"while (here < {self.parts}) & (look < looks):")
        body.add(f'    here = tl.atomic_add({at}, 0, sem="acquire", scope="gpu")')
        body.add("    look += 1")
        body.add("tl.debug_barrier()")
        kept = dict(body.done)
        values = body.at_level(level)
        body.add(f"if here >= {self.parts}:")
        body.depth += 1
        first = len(body.lines)
        for value in values:
            read_states(body, self.shape, self.parts, self.span, value, ', cache_modifier=".cg"')
            self._named(value)
        for n in range(first, len(body.lines)):  # names of their own: what came before has another shape
            for value in values:
                own = rf"(?<![\w.])({value.name}_(?!states|r\d)\w+)(?!\w)"
                body.lines[n] = re.sub(own, r"\1_joined", body.lines[n])
        body.depth -= 1
        body.add("else:")
        body.depth += 1
        self._alone(level, kept)
        body.depth -= 1
        body.done = kept
        for value in values:
            body.finish(value, [f"{value.name}_r{n}" for n in range(REDUCERS[value.op].states)])

    def _named(self, value: Value) -> None:
        """Give the states names that both ways share."""
        body = self.body
        for part in self.segment.values.values():
            if part.op == "part" and part.args[0] == value.name:
                body.add(f"{value.name}_r{part.args[1]} = {body.done[part.name]}")

    def _alone(self, level: int, kept: Mapping[str, str]) -> None:
        """The reductions of a whole row, in one program."""
        body = self.body
        alone = Body(self.segment, self.shape.tile(1, self.slow), body.depth)
        alone.used = body.used
        alone.done = (
            {name: text for name, text in kept.items() if not body.varies(self.segment.values[name])} if kept else {}
        )
        states = pieces(alone, level, "0", str(self.shape.along), str(self.shape.along))
        for value in alone.at_level(level):
            alone.finish(value, states[value.name])
        for line in alone.lines:
            changed = line.replace("BLOCK", "SLOW").replace("STAGES", "1")
            for name in ("r_in", "r", *self._tiled()):
                changed = _renamed(changed, name)
            for value in alone.at_level(level):
                changed = re.sub(rf"(?<![\w.])({value.name}(?:_\w+)?)(?!\w)", r"\1_alone", changed)
            body.lines.append(changed)
        for value in alone.at_level(level):
            for part in self.segment.values.values():
                if part.op == "part" and part.args[0] == value.name:
                    body.add(f"{value.name}_r{part.args[1]} = {alone.done[part.name]}_alone")

    def _tiled(self) -> list[str]:
        """Names of values of a part, which the way of one program must not write over."""
        return [one.name for one in self.segment.values.values() if self.body.varies(one) and one.op != "part"]


def _renamed(line: str, name: str) -> str:
    return re.sub(rf"(?<![\w.]){name}(?!\w)", f"{name}_alone", line)
