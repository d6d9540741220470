"""Rewrites of a launch: warps, stages, registers, and the sizes of blocks."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from loop.search.rewrites.rewrite import Apply, Rewrite, Space
from loop.search.rewrites.source import Edit, Kernel, Launch, Source, called, calls_in, constexprs, integer
from loop.search.variant import Config, Value

_WARPS: tuple[int, ...] = (4, 8, 2, 16, 1, 32)
_STAGES: tuple[int, ...] = (3, 2, 4, 1, 5)
_REGISTERS: tuple[int, ...] = (128, 64, 168, 96, 255, 32)
_LEAST, _MOST = 16, 16384
"""Elements of a block."""


def _free_launches(source: Source) -> tuple[Launch, ...]:
    """Launches whose options stand in the call: none passes a dictionary of them."""
    return tuple(one for one in source.launches if all(word.arg for word in one.call.keywords))


def _option(name: str, values: tuple[int, ...], default: int | None) -> tuple[Space, Apply]:
    def space(source: Source) -> Mapping[str, tuple[Value, ...]]:
        launches = _free_launches(source)
        if not launches or len(launches) != len(source.launches):
            return {}
        given = [one.keyword(name) for one in launches]
        if any(one is not None and integer(one.value) is None for one in given):
            return {}
        now = {default if one is None else integer(one.value) for one in given}
        left = tuple(value for value in values if now != {value})
        return {name: left}

    def apply(source: Source, config: Config) -> str:
        return source.edited(source.argument(one.call, name, str(config[name])) for one in source.launches)

    return space, apply


def _stages_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    """Stages matter where a loop loads."""
    loops = (node for one in source.launches for node in ast.walk(one.kernel) if isinstance(node, ast.For))
    if not any(next(calls_in(loop, source, "load"), None) for loop in loops):
        return {}
    return _STAGE[0](source)


def _tiles(source: Source) -> dict[str, ast.Constant]:
    """Block sizes that may be changed: a literal power of two, given once by name to a constexpr of a kernel that masks
    every load and store, and used by its grid or by the step of a loop, so that every element is still visited."""
    found: dict[str, ast.Constant] = {}
    for launch in _free_launches(source):
        if sum(one.kernel is launch.kernel for one in source.launches) > 1:
            continue
        for name in sorted(constexprs(launch.kernel)):
            word = launch.keyword(name)
            literal = None if word is None else _literal(word.value, source)
            size = integer(literal)
            if literal is None or size is None or not _LEAST <= size <= _MOST or size & (size - 1):
                continue
            follows = word is not None and (_sizes_grid(launch, name, word.value, source) or _steps_loop(launch, name))
            if follows and _masked(launch, source, name):
                found[name] = literal
    return found


def _masked(launch: Launch, source: Source, block: str) -> bool:
    """Whether every load and store at offsets that come from `tl.arange(0, block)` has a mask."""
    spans = _over(launch.kernel, source, block)
    accesses = list(calls_in(launch.kernel, source, "load", "store"))
    reached = [call for call in accesses if call.args and _mentions(call.args[0], spans, source, block)]
    return bool(reached) and all(
        any(one.arg == "mask" for one in call.keywords) or len(call.args) > (1 if _is(call, "load") else 2)
        for call in reached
    )


def _over(kernel: Kernel, source: Source, block: str) -> set[str]:
    """Names that hold offsets of a block of this size, or what is made of them."""
    found, before = set[str](), -1
    while before != len(found):
        before = len(found)
        for node in ast.walk(kernel):
            value = node.value if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) else None
            if value is not None and _mentions(value, found, source, block):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]  # the others have one target
                found |= {one.id for to in targets for one in ast.walk(to) if isinstance(one, ast.Name)}
    return found


def _mentions(node: ast.AST, names: set[str], source: Source, block: str) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in names:
            return True
        if isinstance(one, ast.Call) and called(one, source, "arange") and block in ast.unparse(one):
            return True
    return False


def _is(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def _literal(value: ast.expr, source: Source) -> ast.Constant | None:
    """The literal that a value is, or that a name stands for which is assigned once."""
    if isinstance(value, ast.Constant):
        return value
    only = source.assigned(value.id) if isinstance(value, ast.Name) else None
    return only if isinstance(only, ast.Constant) else None


def _sizes_grid(launch: Launch, name: str, value: ast.expr, source: Source) -> bool:
    """Whether the grid follows the block size: by the name that holds it, or by `meta["BLOCK"]`. A literal that is
    written twice does not follow."""
    grid = source.assigned(launch.grid.id) if isinstance(launch.grid, ast.Name) else launch.grid
    if grid is None:
        return False
    for node in ast.walk(grid):
        if isinstance(value, ast.Name) and isinstance(node, ast.Name) and node.id == value.id:
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == name:
            return True
    return False


def _steps_loop(launch: Launch, name: str) -> bool:
    """Whether a loop of the kernel steps by the block size: `range(0, n, B)`, or `range(part * B, n, parts * B)`."""
    for node in ast.walk(launch.kernel):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and len(node.iter.args) == 3:
            first, _, step = node.iter.args
            if isinstance(step, ast.Name) and step.id == name:
                return True
            if _times(step, name) and (_times(first, name) or integer(first) == 0):
                return True
    return False


def _times(node: ast.expr, name: str) -> bool:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else ()
    return any(isinstance(one, ast.Name) and one.id == name for one in sides)


def _tile_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    found: dict[str, tuple[Value, ...]] = {}
    for name, literal in _tiles(source).items():
        now = integer(literal) or 0
        near = (now * 2, now // 2, now * 4, now // 4, now * 8)
        found[name] = (*(size for size in near if _LEAST <= size <= _MOST), now)
    return found


def with_warps(space: Space, apply: Apply) -> tuple[Space, Apply]:
    """The same rewrite with the warps of each program chosen with it; the first value is what the launch has."""

    def wider(source: Source) -> Mapping[str, tuple[Value, ...]]:
        found, others = dict(space(source)), _WARP[0](source).get("num_warps", ())
        now = _warps(source)
        return {**found, "num_warps": (now, *(one for one in others if one != now))} if found and others else found

    def both(source: Source, config: Config) -> str:
        rest = {name: value for name, value in config.items() if name != "num_warps"}
        made = apply(source, rest)
        warps = config.get("num_warps", _warps(source))
        return made if warps == _warps(source) else _WARP[1](Source(made), {"num_warps": warps})

    return wider, both


def _warps(source: Source) -> int:
    """What the first launch has."""
    given = source.launches[0].keyword("num_warps")
    return 4 if given is None else integer(given.value) or 4


def _tile_apply(source: Source, config: Config) -> str:
    tiles = _tiles(source)
    edits: list[Edit] = []
    for name, value in config.items():
        start, end = source.at(tiles[name])
        edits.append((start, end, str(value)))
    return source.edited(dict.fromkeys(edits))


_WARP, _STAGE, _REGISTER = (
    _option("num_warps", _WARPS, 4),
    _option("num_stages", _STAGES, 3),
    _option("maxnreg", _REGISTERS, None),
)
LAUNCH = (
    Rewrite(
        "warps", "launch_config", _WARP[0], _WARP[1],
        "More warps of a program have more loads on their way; fewer leave each thread more values that are next to "
        "each other.",
    ),
    Rewrite(
        "blocks", "launch_config", *with_warps(_tile_space, _tile_apply),
        "The size of a block decides how many programs there are, and how much each of them holds in registers.",
        reorders=True,
    ),
    Rewrite(
        "stages", "multi_stage_pipeline", _stages_space, _STAGE[1],
        "A loop with more stages loads what later turns need while it computes.",
    ),
    Rewrite(
        "registers", "register_pressure", _REGISTER[0], _REGISTER[1],
        "Fewer registers a thread let more programs share a multiprocessor, as long as nothing spills.",
    ),
)  # fmt: skip
