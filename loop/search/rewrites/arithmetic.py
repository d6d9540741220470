"""Rewrites of formulas: cheaper instructions for the same value. They change last bits, and the evaluator holds each
result against the reference."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from loop.search.rewrites.rewrite import Apply, Rewrite, Space
from loop.search.rewrites.source import Edit, Source, called, calls
from loop.search.variant import Config, Value

_LOG2_E = "1.4426950408889634"
_LN_2 = "0.6931471805599453"


def _replaced(edits: Callable[[Source], list[Edit]]) -> tuple[Space, Apply]:
    def space(source: Source) -> Mapping[str, tuple[Value, ...]]:
        return {"replaced": (True,)} if edits(source) else {}

    def apply(source: Source, _: Config) -> str:
        return source.edited(edits(source))

    return space, apply


def _exp2(source: Source) -> list[Edit]:
    edits = list[Edit]()
    for one in calls(source, "exp"):
        if len(one.args) == 1 and not one.keywords:
            start, end = source.at(one.func)
            first, last = source.at(one.args[0])
            edits += [(start, end, f"{source.language}.exp2"), (first, first, "("), (last, last, f") * {_LOG2_E}")]
    return edits


def _log2(source: Source) -> list[Edit]:
    edits = list[Edit]()
    for one in calls(source, "log"):
        if len(one.args) == 1 and not one.keywords:
            start, end = source.at(one.func)
            last = source.at(one)[1]
            edits += [(start, end, f"({source.language}.log2"), (last, last, f" * {_LN_2})")]
    return edits


def _rsqrt(source: Source) -> list[Edit]:
    """`1.0 / tl.sqrt(x)`"""
    edits = list[Edit]()
    for kernel in source.kernels.values():
        for node in ast.walk(kernel):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            one, root = node.left, node.right
            unit = isinstance(one, ast.Constant) and one.value in (1, 1.0)
            if unit and isinstance(root, ast.Call) and called(root, source, "sqrt") and len(root.args) == 1:
                start, end = source.at(node)
                edits.append((start, end, f"{source.language}.rsqrt({source.words(root.args[0])})"))
    return edits


def _reciprocal(source: Source) -> list[Edit]:
    """`x / s` where s is one number a row: a name that is assigned from a reduction."""
    edits = list[Edit]()
    for kernel in source.kernels.values():
        sums = {
            to.id
            for node in ast.walk(kernel)
            if isinstance(node, ast.Assign) and called(node.value, source, "sum")
            for to in node.targets
            if isinstance(to, ast.Name)
        }
        stored: dict[str, int] = {}
        for node in ast.walk(kernel):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored[node.id] = stored.get(node.id, 0) + 1
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name):
                name = node.right.id
                plain = isinstance(node.left, ast.Name | ast.Call)
                left, right = source.at(node.left)[1], source.at(node)[1]
                bare = source.data[left:right].split() == [b"/", name.encode()]  # no parentheses between them
                if plain and bare and name in sums and stored.get(name) == 1:
                    edits.append((left, right, f" * (1.0 / {name})"))
    return edits


ARITHMETIC = (
    Rewrite(
        "exp2", "mufu_ex2_softmax", *_replaced(_exp2),
        "The hardware has an instruction for powers of two; any other base costs a multiplication, which can be joined "
        "with one that is there.",
        reorders=True,
    ),
    Rewrite(
        "log2", "strength_reduce", *_replaced(_log2),
        "The hardware has an instruction for the logarithm to base two.",
        reorders=True,
    ),
    Rewrite(
        "rsqrt", "strength_reduce", *_replaced(_rsqrt),
        "One instruction gives the reciprocal of a root; a root with a division takes many.",
        reorders=True,
    ),
    Rewrite(
        "reciprocal", "strength_reduce", *_replaced(_reciprocal),
        "One division for a row and a multiplication for each element are cheaper than a division for each element.",
        reorders=True,
    ),
)  # fmt: skip
