"""Integer constants of a Python module: the sizes that a reference names."""

from __future__ import annotations

import ast
import functools
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator

MAX_BYTES = 200_000
"""A longer text is not parsed for its sizes: each byte takes some hundred of memory."""
_INT_BITS = 62
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@functools.lru_cache(maxsize=8)
def sizes_named_in(text: bytes, *functions: str) -> tuple[tuple[str, int], ...]:
    """Constants of a module that its `functions` name, as pairs of name and value, in the order of the text.

    Only those that nothing else binds: neither the module again, nor one of the functions for itself. Nothing of a text
    that is longer than `MAX_BYTES` or no Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text if len(text) <= MAX_BYTES else b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    chosen = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    inside = [node for function in chosen for node in ast.walk(function)]
    named = {node.id for node in inside if isinstance(node, ast.Name)}
    bound = Counter([*_bound(_outside(tree.body)), *_bound(inside), *_global(tree)])
    return tuple((name, value) for name, value in module_constants(tree).items() if name in named and bound[name] == 1)


def _outside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What is at the top level, however deep in other statements."""
    left = list(nodes)  # no recursion: expressions may be nested more deeply than Python calls
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, _Scope):
            left += ast.iter_child_nodes(node)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _global(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


def module_constants(tree: ast.Module) -> dict[str, int]:
    """Top-level `name = 4096` and `name = 4 * 1024`.

    The last value counts. Booleans, sums of other names, and what is in an `if` are left out.
    """
    found: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], constant_int(node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, constant_int(node.value)
        else:
            continue
        if isinstance(target, ast.Name) and value is not None:
            found[target.id] = value
    return found


def constant_int(node: ast.expr) -> int | None:
    """The value of an integer literal, or of an expression of integer literals; None for all else and above 62 bits."""
    work: list[ast.expr | ast.operator | ast.unaryop] = [node]
    values: list[int] = []
    while work:
        item = work.pop()
        if isinstance(item, ast.Constant):
            if type(item.value) is not int or item.value.bit_length() > _INT_BITS:
                return None
            values.append(item.value)
        elif isinstance(item, ast.BinOp):
            work += [item.op, item.right, item.left]
        elif isinstance(item, ast.UnaryOp):
            work += [item.op, item.operand]
        elif isinstance(item, ast.operator):
            right, left = values.pop(), values.pop()
            result = _binary(item, left, right)
            if result is None or result.bit_length() > _INT_BITS:
                return None
            values.append(result)
        elif isinstance(item, ast.USub):
            values.append(-values.pop())
        elif not isinstance(item, ast.UAdd):
            return None
    return values[0]


def _binary(operator: ast.operator, left: int, right: int) -> int | None:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.FloorDiv | ast.Mod):
        if right == 0:
            return None
        return left // right if isinstance(operator, ast.FloorDiv) else left % right
    if not 0 <= right <= _INT_BITS:
        return None
    if isinstance(operator, ast.LShift):
        return left << right
    if isinstance(operator, ast.RShift):
        return left >> right
    if isinstance(operator, ast.Pow):
        power: int = left**right
        return power
    return None
