"""What one call of a reference computes: PyTorch's operators, and the tensors between them. Foreign: checked here."""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field, JsonValue

from kbs.common.json_model import Record


class Spec(Record):
    """A tensor's form; sizes and strides in elements."""

    shape: tuple[int, ...] = Field(max_length=16)
    stride: tuple[int, ...] = Field(max_length=16)
    offset: int = Field(ge=0)
    dtype: str = Field(pattern=r"^[a-z0-9_]{1,20}$")
    """Without `torch.`."""

    @property
    def count(self) -> int:
        """Its elements."""
        return math.prod(self.shape)


class View(Spec):
    """A tensor as an operator sees it: a look at the memory of a source, or of what a node made."""

    source: int | None = Field(default=None, ge=0)
    node: int | None = Field(default=None, ge=0)
    result: int = Field(default=0, ge=0)
    """Which of the node's results."""


class Origin(Spec):
    """A tensor that was there before the call."""

    what: str = Field(pattern="^(input|weight|constant)$")
    name: str = Field(max_length=200)


class Node(Record):
    """An operator that made new tensors."""

    op: str = Field(max_length=100)
    """Its name in PyTorch: `add`."""
    args: dict[str, JsonValue]
    """By the names of its schema; a tensor stands as `{"tensor": …}`."""
    results: tuple[Spec, ...]

    def tensor(self, name: str) -> View | None:
        """An argument that is a tensor."""
        return self.tensors.get(name)

    @property
    def tensors(self) -> dict[str, View]:
        """All arguments that are tensors, by name."""
        return {
            name: View.model_validate(value["tensor"])
            for name, value in self.args.items()
            if isinstance(value, dict) and "tensor" in value
        }


class Number(Record):
    """An argument of the call that is a plain number."""

    position: int = Field(ge=0, le=100)
    """Among all arguments."""
    value: bool | int | float


class Graph(Record):
    """All operators of a call, in the order in which they ran."""

    sources: tuple[Origin, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[View, ...]
    single: bool
    """Whether the call returns a tensor, and no list of them."""
    numbers: tuple[Number, ...] = ()


def read_graph(answer: dict[str, Any]) -> Graph:
    """The graph that a worker wrote down. Raises `ValidationError`, `KeyError` or `TypeError` where it is none.

    Every tensor points to a source that is there, or to an earlier node.
    """
    outputs = tuple(View.model_validate(one["tensor"]) for one in answer["outputs"] if isinstance(one, dict))
    if len(outputs) != len(answer["outputs"]):
        raise TypeError("a result is no tensor")
    graph = Graph(
        sources=answer["sources"], nodes=answer["nodes"], outputs=outputs, single=answer["single"],
        numbers=answer.get("numbers", ()),
    )  # fmt: skip
    for place, node in enumerate(graph.nodes):
        for view in node.tensors.values():
            _check(view, graph, place)
    for view in graph.outputs:
        _check(view, graph, len(graph.nodes))
    return graph


def _check(view: View, graph: Graph, before: int) -> None:
    if (view.source is None) == (view.node is None):
        raise TypeError("a tensor has no origin, or two")
    if view.source is not None and view.source >= len(graph.sources):
        raise TypeError("a tensor has no source")
    if view.node is not None and (view.node >= before or view.result >= len(graph.nodes[view.node].results)):
        raise TypeError("a tensor comes from a later operator")
