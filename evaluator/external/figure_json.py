"""Find the numbers in JSON that a benchmark printed, each with its position."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evaluator.external.figure_text import Seen

MAX_DEPTH = 32
"""JSON that is nested deeper is not read."""
_MAX_NAME = 400
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?P<number>-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|Infinity)|NaN)', re.DOTALL
)


class TooDeepError(ValueError):
    """The document is nested deeper than `MAX_DEPTH`."""


def numbers(lines: list[str], *, whole: bool) -> list[Seen] | None:
    """The numbers of the document that all lines make (if these are all), else of the last line that is an object.

    None where there is neither. Raises `TooDeepError`.
    """
    text = "\n".join(lines)
    value = _container(text) if whole else None
    if value is not None:
        return list(_placed(value, text, 0))
    for number, line in reversed(list(enumerate(lines))):
        value = _container(line) if line.lstrip().startswith("{") else None
        if value is not None:
            return list(_placed(value, line, number))
    return None


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object; a name may stand in it twice, and both count."""

    __slots__ = ()


def _container(text: str) -> Any:
    """A JSON object or list; None where the text is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_Pairs
        )
    except (ValueError, RecursionError):
        return None


def _placed(value: Any, text: str, line: int) -> Iterator[Seen]:
    begin = left = 0
    starts = (match.start("number") for match in _TOKEN.finditer(text) if match["number"])
    for (name, number), at in zip(_leaves(value, "", MAX_DEPTH), starts, strict=True):
        line += text.count("\n", begin, at)
        left = max(left, text.rfind("\n", begin, at) + 1)
        begin = at
        yield Seen(name or "value", number, "", at - left, line)


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """(keys and positions on the way joined by dots, cut where they are long; number), in the order of the text."""
    if isinstance(value, _Number):
        yield name, value
    elif isinstance(value, list):
        if depth == 0:
            raise TooDeepError(f"it is nested deeper than {MAX_DEPTH} levels")
        pairs = value if isinstance(value, _Pairs) else [(str(place), child) for place, child in enumerate(value)]
        for key, child in pairs:
            yield from _leaves(child, f"{name}.{key}"[:_MAX_NAME] if name else key[:_MAX_NAME], depth - 1)
