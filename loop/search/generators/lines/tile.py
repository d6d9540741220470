"""How the tile of a program lies in a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tile:
    """How a tile lies."""

    kind: Literal["flat", "rows", "columns"]
    masks: frozenset[str] = frozenset()
    """Of `o`, `r` and `i`, those that may lie outside."""

    @property
    def axis(self) -> int:
        """Of the tile, the axis that is reduced."""
        return 1 if self.kind == "rows" else 0

    def lift(self, name: str, group: str) -> str:
        """A vector along `o`, `r` or `i` as it stands in the tile."""
        if self.kind == "flat" or (self.kind == "columns" and group == "o"):
            return name
        first = {"rows": "o", "columns": "r"}[self.kind]
        return f"{name}[:, None]" if group == first else f"{name}[None, :]"

    def lift_row(self, name: str) -> str:
        """A row's value in the tile."""
        return self.lift(name, "o" if self.kind == "rows" else "i")
