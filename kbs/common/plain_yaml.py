"""Reads YAML as plain values: no tags, and no aliases that multiply; bounded in depth and in nodes."""

from __future__ import annotations

from typing import Any

import yaml

DEPTH = 12
_TAGS = (None, "!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")))


def loader() -> Any:
    """The safe loader, in C where there is one."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def compose(text: str, nodes: int, tags: bool = True) -> list[yaml.Node]:
    """The documents of a text. Composing recurses in C, where no limit holds, so depth and nodes are counted first.

    Raises yaml.YAMLError, and ValueError for what is too large, and without `tags` for one that is not plain YAML's.
    """
    depth = seen = 0
    for event in yaml.parse(text, Loader=loader()):
        seen += isinstance(event, yaml.NodeEvent)
        if not tags and getattr(event, "tag", None) not in _TAGS:
            raise ValueError("a tag that is none of plain YAML")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH or seen > nodes:
            raise ValueError("too large or too deeply nested")
    return [node for node in yaml.compose_all(text, Loader=loader()) if node is not None]


def plain(root: yaml.Node, nodes: int) -> object:
    """A node as strings, lists and dictionaries. Raises ValueError for aliases that would multiply or recur."""
    seen = 0

    def value(node: yaml.Node, depth: int) -> object:
        nonlocal seen
        seen += 1
        if depth > DEPTH or seen > nodes:
            raise ValueError("too large or too deeply nested")
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return {str(value(key, depth + 1)): value(item, depth + 1) for key, item in node.value}
        raise ValueError("not plain YAML")

    return value(root, 0)


def plain_documents(text: str, nodes: int) -> list[object]:
    """All documents of a text as plain values. Raises ValueError for what is no YAML, or too large."""
    try:
        return [plain(node, nodes) for node in compose(text, nodes, tags=False)]
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)[:200]) from None
