"""Where a Triton kernel may compute less precisely than its parent, whatever the type is called.

Only what is stored at once may be given the type of the output. Any other conversion, but to a type as precise as is
asked for, must stand in the parent already, and so must what rounds or sees numbers as bits.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Set

from loop.proposals.programs.cancelling import cancelling

_CUDA_BITS = re.compile(
    r"__(?:float|double|half|int|uint|hiloint)\w*_as_\w+|__(?:float|double)2\w+_r[nzud]\w*|\bunion\b"
    r"|reinterpret_cast < (?:const )?(?:unsigned|int|u?int(?:8|16|32|64)_t|short|char)\b"
    r"|\b(?:rintf?|roundf?|truncf?|floorf?)\b"
)
_ROUNDS = ("floor", "ceil", "rint", "round", "nearbyint", "trunc", "div_rn", "fp_to_fp")
_WIDE = {"fp64": ("float64",), "fp32": ("float32", "float64"), "tf32": ("float32", "float64")}
_WHOLE = re.compile(r"(?:tl\.)?u?int(?:16|32|64|1|8)\b")
_SHAPES = ("zeros", "full", "zeros_like", "full_like", "empty", "empty_like")


def less_precise(before: str, after: str, language: str, asked: str) -> Iterator[tuple[int, str]]:
    """(line, what of the code is new and may lose precision) in device code; none of what the parent has too."""
    if language == "cuda":
        there = Counter(match[0] for match in _CUDA_BITS.finditer(before))
        for match in _CUDA_BITS.finditer(after):
            if not there[match[0]]:
                yield after.count("\n", 0, match.start()) + 1, match[0]
        yield from _cancels(before, after, language)
        return
    try:
        old, new = (ast.parse(text) for text in (before, after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    wide = _WIDE.get(asked, ())
    had = Counter(said for _, said in _conversions(old, wide))
    for line, said in _conversions(new, wide):
        had[said] -= 1
        if had[said] < 0 and wide:
            yield line, said
    yield from _cancels(before, after, language)
    if wide and not list(_unraised(old, wide)) and _raises(old, wide):
        yield from _unraised(new, wide)


def _cancels(before: str, after: str, language: str) -> Iterator[tuple[int, str]]:
    there = Counter(said for _, said in cancelling(before, language))
    yield from ((line, said) for line, said in cancelling(after, language) if not there[said])


def _device(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list):
            yield node


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def _type_of(call: ast.Call) -> ast.expr | None:
    """The type that a call converts to, or makes a tensor of."""
    name = _called(call)
    named = next((one.value for one in call.keywords if one.arg == "dtype"), None)
    place = {"to": 0, "cast": 1, "zeros": 1, "full": 2}.get(name)
    given = call.args[place] if place is not None and len(call.args) > place else None
    return named or given if name in ("to", "cast", *_SHAPES) else None


def _stored(function: ast.FunctionDef) -> Set[int]:
    """Ids of the expressions that are stored as they are, also by the name that they are given."""
    values = [one.args[1] for one in ast.walk(function) if isinstance(one, ast.Call)
              and _called(one) == "store" and len(one.args) > 1]  # fmt: skip
    uses = Counter(one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    named = {value.id for value in values if isinstance(value, ast.Name) and uses[value.id] == 1}
    given = [one.value for one in ast.walk(function) if isinstance(one, ast.Assign) and len(one.targets) == 1
             and isinstance(one.targets[0], ast.Name) and one.targets[0].id in named]  # fmt: skip
    return {id(one) for one in (*values, *given)}


def _conversions(tree: ast.Module, wide: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, text) of each conversion to another type than the wide ones and integers, and of each rounding."""
    for function in _device(tree):
        stored = _stored(function)
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            type = _type_of(node)
            bits = any(one.arg == "bitcast" for one in node.keywords) or (_called(node) == "to" and len(node.args) > 1)
            spelled = ast.unparse(type) if type is not None else ""
            fine = spelled.rsplit(".", 1)[-1] in wide or bool(_WHOLE.fullmatch(spelled))
            if bits or (type is not None and not fine and id(node) not in stored):
                yield node.lineno, f".{_called(node)}({spelled}{', bitcast' if bits else ''})"
            elif any(one in _called(node) for one in _ROUNDS):
                yield node.lineno, f"{_called(node)}(…)"


def _is_wide(call: ast.AST, wide: tuple[str, ...]) -> bool:
    type = _type_of(call) if isinstance(call, ast.Call) else None
    return type is not None and ast.unparse(type).rsplit(".", 1)[-1] in wide


def _raises(tree: ast.Module, wide: tuple[str, ...]) -> bool:
    """Whether a kernel converts what it loads to a wide type."""
    return any(
        _is_wide(node, wide) and any(isinstance(one, ast.Call) and _called(one) == "load" for one in ast.walk(node))
        for function in _device(tree)
        for node in ast.walk(function)
    )


def _unraised(tree: ast.Module, wide: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, text) of each load of numbers that is computed with in the type that it has in memory."""
    for function in _device(tree):
        parents = {id(child): node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
        names = {one.targets[0].id: one.value for one in ast.walk(function) if isinstance(one, ast.Assign)
                 and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)}  # fmt: skip

        def converted(node: ast.AST, inside: dict[int, ast.AST] = parents) -> bool:
            """Whether the value goes through a conversion before anything is computed with it."""
            above = inside.get(id(node))
            while isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and not _is_wide(above, wide)):
                if isinstance(above, ast.Call) and _called(above) in ("store", "reshape", "view", "trans", "where"):
                    return _called(above) == "store" or converted(above)
                if isinstance(above, ast.Call) and _called(above) not in ("to", "cast"):
                    return False
                above = inside.get(id(above))
            return _is_wide(above, wide) if above is not None else False

        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and _called(node) == "load") or converted(node):
                continue
            above = parents.get(id(node))
            targets = above.targets if isinstance(above, ast.Assign) else []
            name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
            reads = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name
                     and isinstance(one.ctx, ast.Load)]  # fmt: skip
            if name in names and reads and all(converted(one) or _copied(one, parents) for one in reads):
                continue
            yield node.lineno, f"{ast.unparse(node)[:60]} without a conversion"


def _copied(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether a name is only given to another: `value = following`, or used as an address or a condition."""
    above = parents.get(id(node))
    if isinstance(above, ast.Assign | ast.Compare):
        return True
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Call) and _called(above) in ("load", "store"):
            return node is not above.args[-1]
        above = parents.get(id(above))
    return False
