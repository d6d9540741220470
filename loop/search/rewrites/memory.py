"""Rewrites of loads and stores: what the caches are told, and what the compiler may know of offsets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from loop.search.rewrites.rewrite import Apply, Rewrite, Space
from loop.search.rewrites.source import Edit, Source, called, calls, constexprs
from loop.search.variant import Config, Value


def _hint(call: str, keyword: str, values: tuple[str, ...]) -> tuple[Space, Apply]:
    """A hint that every load (or store) gets which has none of its kind."""

    def bare(source: Source) -> list[ast.Call]:
        found = list(calls(source, call))
        if any(one.arg is None or one.arg in ("volatile", "boundary_check") for c in found for one in c.keywords):
            return []
        return [one for one in found if all(word.arg != keyword for word in one.keywords)]

    def space(source: Source) -> Mapping[str, tuple[Value, ...]]:
        return {keyword: values} if bare(source) else {}

    def apply(source: Source, config: Config) -> str:
        return source.edited(source.argument(one, keyword, f'"{config[keyword]}"') for one in bare(source))

    return space, apply


def _runs(source: Source) -> Iterator[ast.BinOp]:
    """Sums `x * B + tl.arange(0, B)` with a constexpr B: offsets that follow each other, from a multiple of B on."""
    for kernel in source.kernels.values():
        constants = constexprs(kernel)
        for node in ast.walk(kernel):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
                continue
            total = node.value
            if not isinstance(total.op, ast.Add):
                continue
            for factor, span in ((total.left, total.right), (total.right, total.left)):
                block = _block(span, source)
                if block in constants and _multiple(factor, block):
                    yield total


def _block(node: ast.expr, source: Source) -> str:
    if not isinstance(node, ast.Call) or not called(node, source, "arange") or len(node.args) != 2:
        return ""
    first, last = node.args
    if isinstance(first, ast.Constant) and first.value == 0 and isinstance(last, ast.Name):
        return last.id
    return ""


def _multiple(node: ast.expr, block: str) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(isinstance(one, ast.Name) and one.id == block for one in (node.left, node.right))
    )


def _span(source: Source, total: ast.BinOp) -> str:
    return next(filter(None, (_block(one, source) for one in (total.left, total.right))))


def _runs_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    return {"hints": (True,)} if next(_runs(source), None) is not None else {}


def _runs_apply(source: Source, _: Config) -> str:
    tl, edits = source.language, list[Edit]()
    for total in _runs(source):
        start, end = source.at(total)
        block = _span(source, total)
        edits.append((start, end, f"{tl}.max_contiguous({tl}.multiple_of({source.words(total)}, {block}), {block})"))
    return source.edited(edits)


_EVICT, _LOAD, _STORE = (
    _hint("load", "eviction_policy", ("evict_first", "evict_last")),
    _hint("load", "cache_modifier", (".cg", ".ca")),
    _hint("store", "cache_modifier", (".cs", ".cg", ".wt")),
)
_STORE_EVICT = _hint("store", "eviction_policy", ("evict_first", "evict_last"))
MEMORY = (
    Rewrite(
        "load-eviction", "cache_modifier_hint", *_EVICT,
        "What is read once need not push out of the cache what is read again.",
    ),
    Rewrite(
        "load-cache", "cache_modifier_hint", *_LOAD,
        "Loads of values that no other program of the multiprocessor needs may pass by its own cache.",
    ),
    Rewrite(
        "store-cache", "cache_modifier_hint", *_STORE,
        "Results that nobody reads again soon need not stay in the cache.",
    ),
    Rewrite(
        "store-eviction", "cache_modifier_hint", *_STORE_EVICT,
        "Results that leave the cache first make room for what is still to be read.",
    ),
    Rewrite(
        "contiguous-offsets", "vectorized_access", _runs_space, _runs_apply,
        "A compiler that knows that offsets follow each other from an aligned start on makes wide loads and stores.",
    ),
)  # fmt: skip
