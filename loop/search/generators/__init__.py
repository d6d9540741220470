"""Whole kernels for a reference: read from its graph, in several forms, each with a discrete space."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluator.graph import Graph
from loop.search.generators.families import families
from loop.search.generators.host import file_text
from loop.search.generators.kernels import Kernel
from loop.search.generators.plain import plain
from loop.search.generators.reading import Problem, read_problem
from loop.search.generators.segment import UnreadableError
from loop.search.variant import Config, Target, Value, Variant


def generated(graph: Graph, what: str, target: Target) -> tuple[Variant, ...]:
    """The families of kernels for a reference, each with its space and a model of its cost.

    `what`: the name of the problem, for the head of a file. Raises `UnreadableError`, which says what in the reference
    has no generator.
    """
    problem = read_problem(graph)
    if not problem.segments:
        raise UnreadableError("it computes nothing")
    sizes = [(part.product is not None, part.bytes()) for part in problem.segments]
    main = sizes.index(max(sizes))
    found = []
    for family in families(problem.segments[main], target):

        def render(config: Config, build: Callable[[Config], list[Kernel]] = family.build) -> str:
            try:
                return _text(problem, main, build(config), target, what)
            except UnreadableError as error:
                raise ValueError(str(error)) from error

        found.append(
            Variant(
                name=family.name, methods=family.methods, space=family.space, render=render, cost=family.cost,
                why=family.why,
            )
        )  # fmt: skip
    return tuple(found)


def _text(problem: Problem, main: int, kernels: list[Kernel], target: Target, what: str) -> str:
    """A file: the family's kernels for the largest segment, plain ones for the others."""
    listed: list[Kernel] = []
    for place, segment in enumerate(problem.segments):
        listed += kernels if place == main else plain(segment, f"stage{place}", target)
    return file_text(problem, listed, what)


Space = Mapping[str, tuple[Value, ...]]
__all__ = ["UnreadableError", "generated"]
