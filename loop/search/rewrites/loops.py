"""Rewrites of a kernel's loops: stages of their own, unrolled turns, loops that the compiler writes out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from loop.search.rewrites.rewrite import Apply, Rewrite, Space
from loop.search.rewrites.source import Edit, Source, called, calls_in, constexprs
from loop.search.variant import Config, Value

_WRITTEN_OUT = 64
"""Turns of a loop with literal bounds that may be written out."""


def _loops(source: Source) -> Iterator[tuple[ast.For, ast.Call, frozenset[str]]]:
    """(loop, its range, constants of the kernel) of each `for i in range(...)` or `tl.range(...)` of a kernel."""
    for kernel in source.kernels.values():
        for node in ast.walk(kernel):
            if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
                plain = isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
                if plain or called(node.iter, source, "range"):
                    yield node, node.iter, constexprs(kernel)


def _loading(source: Source, keyword: str) -> list[ast.Call]:
    """Ranges of innermost loops that load, and that do not have the keyword."""
    return [
        over
        for loop, over, _ in _loops(source)
        if next(calls_in(loop, source, "load"), None) is not None
        and not any(isinstance(node, ast.For | ast.While) for one in loop.body for node in ast.walk(one))
        and all(word.arg != keyword for word in over.keywords)
    ]


def _given(keyword: str, values: tuple[int, ...]) -> tuple[Space, Apply]:
    def space(source: Source) -> Mapping[str, tuple[Value, ...]]:
        return {keyword: values} if _loading(source, keyword) else {}

    def apply(source: Source, config: Config) -> str:
        edits = list[Edit]()
        for over in _loading(source, keyword):
            start, end = source.at(over.func)
            edits += [
                (start, end, f"{source.language}.range"),
                source.argument(over, keyword, str(config[keyword])),
            ]
        return source.edited(edits)

    return space, apply


def _static(source: Source) -> list[ast.Call]:
    """Ranges whose bounds the compiler knows, of loops without a loop in them."""
    found = []
    for loop, over, constants in _loops(source):
        known = all(
            isinstance(one, ast.Constant) or (isinstance(one, ast.Name) and one.id in constants) for one in over.args
        )
        literals = [one.value for one in over.args if isinstance(one, ast.Constant)]
        small = all(isinstance(one, int) and abs(one) <= _WRITTEN_OUT for one in literals)
        nested = any(isinstance(node, ast.For | ast.While) for one in loop.body for node in ast.walk(one))
        if over.args and known and small and not nested and not over.keywords:
            found.append(over)
    return found


def _static_space(source: Source) -> Mapping[str, tuple[Value, ...]]:
    return {"static": (True,)} if _static(source) else {}


def _static_apply(source: Source, _: Config) -> str:
    spans = (source.at(over.func) for over in _static(source))
    return source.edited((start, end, f"{source.language}.static_range") for start, end in spans)


LOOPS = (
    Rewrite(
        "loop-stages", "multi_stage_pipeline", *_given("num_stages", (2, 3, 4, 5)),
        "The loop loads what its next turns need while it computes with what is there.",
    ),
    Rewrite(
        "loop-unroll", "loop_unroll", *_given("loop_unroll_factor", (2, 4, 8)),
        "Several turns at once have several independent loads on their way.",
    ),
    Rewrite(
        "static-loop", "loop_unroll", _static_space, _static_apply,
        "A loop that is written out has no counter, and its turns can be mixed.",
    ),
)  # fmt: skip
