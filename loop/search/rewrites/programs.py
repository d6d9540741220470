"""Rewrites of the grid: which program does which part, in which order, and how many programs there are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loop.search.rewrites.launch import with_warps
from loop.search.rewrites.rewrite import Rewrite
from loop.search.rewrites.source import Edit, Kernel, Launch, Source, calls_in, constexprs
from loop.search.variant import Config, Value

_HELPER = '''

def {name}(total, each):
    """As many programs as run at once, and no more than there is work for."""
    if not torch.cuda.is_available():
        return min(total, each)
    here = torch.cuda.get_device_properties(torch.cuda.current_device())
    return min(total, here.multi_processor_count * each)
'''


@dataclass(frozen=True)
class _Line:
    """A kernel whose programs stand in one line, and whose body can stand in a loop over them."""

    launch: Launch
    program: ast.Call
    """Its one `tl.program_id(0)`."""
    total: str
    """How many programs the launch asks for, as an expression of the host code."""


def _line(source: Source) -> _Line | None:
    """The only launch of the only kernel that fits; None where nothing can be looped over."""
    if len(source.launches) != 1:
        return None
    launch = source.launches[0]
    kernel = launch.kernel
    programs = list(calls_in(kernel, source, "program_id", "num_programs"))
    if len(programs) != 1 or _axis(programs[0]) != 0 or ast.unparse(programs[0].func).endswith("num_programs"):
        return None
    if any(isinstance(node, ast.Return | ast.Yield | ast.Lambda) for node in ast.walk(kernel)):
        return None
    if any(_several_lines(node) for one in _body(kernel) for node in ast.walk(one)):
        return None
    given = kernel.args
    simple = not (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs) and given.args
    own_line = kernel.body[0].lineno > kernel.lineno
    total = _total(source, launch)
    if not simple or not own_line or not total or any(word.arg is None for word in launch.call.keywords):
        return None
    return _Line(launch, programs[0], total)


def _several_lines(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value


def _body(kernel: Kernel) -> list[ast.stmt]:
    """The statements of a kernel, without its docstring."""
    first = kernel.body[0]
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return kernel.body[1:] if said and len(kernel.body) > 1 else kernel.body


def _axis(call: ast.Call) -> int | None:
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "axis"), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, int) else None


def _total(source: Source, launch: Launch) -> str:
    """The length of a grid of one dimension, as an expression; empty where it is not seen."""
    words = source.words(launch.grid)
    grid = source.assigned(launch.grid.id) if isinstance(launch.grid, ast.Name) else launch.grid
    if isinstance(grid, ast.Tuple) and len(grid.elts) == 1 and not isinstance(grid.elts[0], ast.Starred):
        return f"{words}[0]" if isinstance(launch.grid, ast.Name) else source.words(grid.elts[0])
    if isinstance(grid, ast.Lambda) and isinstance(grid.body, ast.Tuple) and len(grid.body.elts) == 1:
        named = {
            node.slice.value
            for node in ast.walk(grid.body)
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        }
        given = {one.arg: source.words(one.value) for one in launch.call.keywords if one.arg}
        if not named or not named <= set(given) & constexprs(launch.kernel):
            return ""
        meta = ", ".join(f'"{name}": {given[name]}' for name in sorted(map(str, named)))
        return f"({words})({{{meta}}})[0]"
    return ""


def _looped(source: Source, found: _Line, grid: Callable[[str], str], helper: str = "") -> str:
    """Every program does the parts of several, one after the other: a loop over the parts around the kernel's body."""
    launch, kernel = found.launch, found.launch.kernel
    part, parts = source.free("kopt_part"), source.free("kopt_parts")
    last = kernel.args.args[-1]
    end = source.at(kernel.args.defaults[-1] if kernel.args.defaults else last)[1]
    edits: list[Edit] = [(end, end, f", {parts}" + ("=1" if kernel.args.defaults else ""))]
    body = _body(kernel)
    indent = " " * body[0].col_offset
    tl = source.language
    first = source.line_start(body[0])
    edits.append((
        first, first, f"{indent}for {part} in range({tl}.program_id(0), {parts}, {tl}.num_programs(0)):\n",
    ))  # fmt: skip
    until = source.at(body[-1])[1]
    at = first
    while at < until:  # every line of the body moves in, empty ones apart
        over = source.data.find(b"\n", at) + 1 or len(source.data)
        if source.data[at:over].strip():
            edits.append((at, at, "    "))
        at = over
    start, stop = source.at(found.program)
    edits.append((start, stop, part))
    start, stop = source.at(launch.grid)
    edits.append((start, stop, f"({grid(found.total)},)"))
    edits.append(source.argument(launch.call, parts, found.total))
    if helper:
        after = source.at(kernel)[1]
        edits.append((after, after, f"\n{helper}".rstrip("\n")))
    return _ordered(source, edits)


def _ordered(source: Source, edits: list[Edit]) -> str:
    """Edits of one place in the order in which they were made: `edited` writes the last of a place first."""
    joined: dict[tuple[int, int], str] = {}
    for start, end, new in edits:
        joined[start, end] = joined.get((start, end), "") + new
    return source.edited((start, end, new) for (start, end), new in joined.items())


def _persistent_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    imported = any(
        isinstance(node, ast.Import) and any(one.name == "torch" and not one.asname for one in node.names)
        for node in source.tree.body
    )
    return {"programs": (2, 1, 4, 8, 16)} if imported and _line(source) is not None else {}


def _persistent(source: Source, config: Config) -> str:
    found = _line(source)
    assert found is not None  # its space says so
    name = source.free("_kopt_programs")
    return _looped(
        source, found, lambda total: f"{name}({total}, {config['programs']})", _HELPER.format(name=name)
    )  # fmt: skip


def _parts_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    return {"parts": (2, 4, 8, 16)} if _line(source) is not None else {}


def _parts(source: Source, config: Config) -> str:
    found = _line(source)
    assert found is not None  # its space says so
    return _looped(source, found, lambda total: f"-(-({total}) // {config['parts']})")


def _pair(source: Source) -> tuple[ast.Assign, ast.Assign] | None:
    """The two statements that read a program's place in a grid of two dimensions."""
    if len(source.launches) != 1:
        return None
    kernel = source.launches[0].kernel
    places = list(calls_in(kernel, source, "program_id", "num_programs", "swizzle2d"))
    found: dict[int | None, ast.Assign] = {}
    for one in kernel.body:
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            continue
        if isinstance(one.value, ast.Call) and one.value in places and one.lineno == one.end_lineno:
            found[_axis(one.value)] = one
    if len(places) != 2 or set(found) != {0, 1}:
        return None
    return found[0], found[1]


def _grouped_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    return {"group": (8, 4, 16, 2)} if _pair(source) is not None else {}


def _grouped(source: Source, config: Config) -> str:
    pair = _pair(source)
    assert pair is not None  # its space says so
    tl = source.language
    names = [one.targets[0].id for one in pair if isinstance(one.targets[0], ast.Name)]
    later = max(pair, key=lambda one: one.lineno)
    end = source.at(later)[1]
    sizes = f"{tl}.num_programs(0), {tl}.num_programs(1)"
    said = f"{', '.join(names)} = {tl}.swizzle2d({', '.join(names)}, {sizes}, {config['group']})"
    # Whatever stands on the line behind the statement, such as a comment, stays there.
    line = source.data.find(b"\n", end)
    at = len(source.data) if line < 0 else line
    return source.edited([(at, at, f"\n{' ' * later.col_offset}{said}")])


PROGRAMS = (
    Rewrite(
        "persistent", "persistent_kernel", *with_warps(_persistent_space, _persistent),
        "As many programs as run at once, each of which takes one part after the other, start only once.",
    ),
    Rewrite(
        "parts-per-program", "thread_coarsening", *with_warps(_parts_space, _parts),
        "A program that does several parts pays for its start once, and overlaps their loads.",
    ),
    Rewrite(
        "grouped-order", "tile_scheduler_swizzle", _grouped_space, _grouped,
        "Programs that run at the same time share more of what they read, so that more of it is still in the cache.",
    ),
)  # fmt: skip
