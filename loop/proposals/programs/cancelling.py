"""Sums of a kernel in which a term cancels: in exact arithmetic they change nothing, so all that they do is to round.

`s = x * 8193.0; x = s - (s - x)` cuts bits of x, and `(x + 4096.0) - 4096.0` does too. A sum that cancels to nothing,
such as the error of a compensated sum, loses none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

_DEPTH = 12
_CUDA = re.compile(
    r"\b(\w+) - \( \1 - |\( (\w+) \+ (\w[\w.]*) \) - \3(?![\w.\[(])|\( (\w+) - (\w[\w.]*) \) \+ \5(?![\w.\[(])"
    r"|\b(\w+) = (\w+) - (\w+) ;(?=[^{}]{0,200}?= \7 - \6 ;)"
)
Terms = dict[str, Fraction]


def cancelling(text: str, language: str) -> Iterator[tuple[int, str]]:
    """(line, sum) of each sum of values from which a term falls out, and something is left."""
    if language == "cuda":
        yield from ((text.count("\n", 0, match.start()) + 1, match[0]) for match in _CUDA.finditer(text))
        return
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in function.decorator_list):
            yield from _of_function(function)


def _of_function(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                given.setdefault(target.id, []).append(node.value)  # type: ignore[attr-defined]  # it is an assignment
    values = set[str]()
    for _ in range(4):
        values |= {name for name, several in given.items() if any(_is_value(one, values) for one in several)}
    once = {name: several[0] for name, several in given.items() if len(several) == 1}
    inner = set[int]()
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and id(node) not in inner:
            inner |= {id(one) for one in ast.walk(node)}
            if _is_value(node, values) and _falls_out(_terms(node, Fraction(1), once, _DEPTH)):
                yield node.lineno, f"{ast.unparse(node)[:60]}, in which a term cancels"


def _is_value(node: ast.AST, values: set[str]) -> bool:
    """Whether it follows from what was loaded, and is no address."""
    return any(
        (isinstance(one, ast.Name) and one.id in values)
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "load")
        for one in ast.walk(node)
    )


def _terms(node: ast.expr, factor: Fraction, once: Mapping[str, ast.expr], depth: int) -> list[tuple[str, Fraction]]:
    """(what is added, how many times) of a sum, in which names that are given one sum stand for it."""
    if depth and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other = factor if isinstance(node.op, ast.Add) else -factor
        return [*_terms(node.left, factor, once, depth - 1), *_terms(node.right, other, once, depth - 1)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _terms(node.operand, -factor, once, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for number, rest in ((node.left, node.right), (node.right, node.left)):
            if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
                return _terms(rest, factor * Fraction(number.value), once, depth) if abs(number.value) < 1e30 else []
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) < 1e30:
        return [("", factor * Fraction(node.value))]
    if depth and isinstance(node, ast.Name) and isinstance(once.get(node.id), ast.BinOp | ast.Name):
        return _terms(once[node.id], factor, once, depth - 1)
    return [(ast.unparse(node), factor)]


def _falls_out(terms: list[tuple[str, Fraction]]) -> bool:
    total: Terms = {}
    size: Terms = {}
    for name, factor in terms:
        total[name] = total.get(name, Fraction(0)) + factor
        size[name] = size.get(name, Fraction(0)) + abs(factor)
    left = [name for name, factor in total.items() if factor and name]
    return bool(left) and any(size[name] > abs(total[name]) for name in total)
