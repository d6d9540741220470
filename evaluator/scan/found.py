"""Hazards that are being collected while a text is read."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from evaluator.scan.hazards import Hazard, Severity


class Found:
    """One hazard of a kind and name, where it stands first."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        self._hazards: dict[tuple[str, str, Severity], Hazard] = {}

    def add(self, id_: str, severity: Severity, what: str, line: int) -> None:
        """`what` was found in `line` (from 1), which is quoted where the lines are known."""
        quoted = self._lines[line - 1].strip()[:100] if 0 < line <= len(self._lines) else ""
        evidence = f"{what}: {quoted}" if quoted else what
        hazard = Hazard(id=id_, severity=severity, evidence=evidence, line=line)
        before = self._hazards.setdefault((id_, what, severity), hazard)
        if line < before.line:
            self._hazards[id_, what, severity] = hazard

    def at(self, node: ast.AST, id_: str, severity: Severity, what: str) -> None:
        """The same, where a node of a syntax tree stands."""
        self.add(id_, severity, what, getattr(node, "lineno", 0))

    @property
    def hazards(self) -> list[Hazard]:
        """What was found, in the order of lines."""
        return sorted(self._hazards.values(), key=lambda hazard: hazard.line)
