"""What the names in a kernel's Python code are given, and what of it sizes a grid."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Named = tuple[int, str, ast.expr]
"""(line, name, value)"""


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """(parameter, default)"""
    positional = [*arguments.posonlyargs, *arguments.args]
    for one, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield one.arg, default
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield one.arg, value


def paired(target: ast.expr, value: ast.expr) -> Iterator[Named]:
    """The names of an assignment with the value of each."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from paired(one, other)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield target.lineno, target.id if isinstance(target, ast.Name) else target.attr, value
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        yield target.lineno, str(target.slice.value), value


def of_grids(tree: ast.Module) -> set[int]:
    """Ids of the nodes that a grid's size comes from: its expression, and what the names in it were given."""
    within: dict[int, ast.AST] = {}  # node → the function that it stands in
    given: dict[tuple[int, str], list[ast.expr]] = {}
    grids: list[ast.AST] = []
    waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while waiting:
        node, scope = waiting.pop()
        within[id(node)] = scope
        inside = node if isinstance(node, ast.FunctionDef) else scope
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for _, name, value in paired(target, node.value):
                    given.setdefault((id(scope), name), []).append(value)
        elif isinstance(node, ast.FunctionDef):
            ends = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
            given.setdefault((id(scope), node.name), []).extend(one for one in ends if one is not None)
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                given.setdefault((id(node), argument.arg), [])
            for name, default in defaults(node.args):
                given[id(node), name].append(default)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grids.append(node.func.slice)
    everywhere: dict[str, list[ast.expr]] = {}
    for (_, name), values in given.items():
        everywhere.setdefault(name, []).extend(values)

    def meant(name: ast.Name) -> list[ast.expr]:
        scope = within[id(name)]
        while (id(scope), name.id) not in given and scope is not tree:
            scope = within[id(scope)]
        return given.get((id(scope), name.id), everywhere.get(name.id, []))  # a `global` is given in any function

    found = set[int]()
    while grids:
        node = grids.pop()
        if id(node) not in found and not (isinstance(node, ast.Attribute) and node.attr in ("device", "dtype")):
            found.add(id(node))  # where a tensor lies says nothing of its size
            grids += [*ast.iter_child_nodes(node), *(meant(node) if isinstance(node, ast.Name) else ())]
    return found
