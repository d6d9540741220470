"""Parse numbers of Nsight Compute reports, whose decimal and thousands marks depend on the locale."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from kbs.evidence.units import Notation

MISSING = frozenset({"", "n/a", "(!) n/a", "nan", "-nan", "inf", "-inf", "no data", "-", "not collected"})
"""What stands in a cell that has no value, in lower case. It is never zero."""
MAX_DIGITS = 60
_BLANKS = " \u00a0\u2009\u202f'’"  # marks of thousands beside the comma and the point
_INSTANCES = re.compile(r"^(?P<value>[^()]+?)\s*\([^()]*;[^()]*\)$")


@dataclass(frozen=True)
class NumberForm:
    """How a file writes its numbers."""

    decimal: Literal[".", ","] = "."

    @cached_property
    def _notation(self) -> Notation:
        thousands = ("," if self.decimal == "." else ".") + _BLANKS
        return Notation(thousands, self.decimal, loose=True, exponent_digits="{1,3}")

    def parse(self, text: str) -> Decimal | None:
        """The value of a cell; None where it has none, or is a text."""
        cell = text.strip()
        if cell.lower() in MISSING or len(cell) > 4096:
            return None
        instances = _INSTANCES.match(cell)
        cell = instances["value"] if instances else cell
        return self._notation.value(cell) if len(cell) <= MAX_DIGITS else None


def find_number_form(cells: Iterable[str]) -> NumberForm | None:
    """Which mark the numbers of a file have for decimals; the point where nothing speaks for the comma.

    None where one cell can only be read with a point and another only with a comma.
    """
    point, comma = NumberForm("."), NumberForm(",")
    only_point = only_comma = False
    for cell in cells:
        if "." not in cell and "," not in cell:
            continue
        with_point, with_comma = point.parse(cell), comma.parse(cell)
        if with_point is not None and (with_comma is None or _leading_zero(cell, ".")):
            only_point = True
        elif with_comma is not None and (with_point is None or _leading_zero(cell, ",")):
            only_comma = True
    if only_point and only_comma:
        return None
    return comma if only_comma else point


def _leading_zero(cell: str, mark: str) -> bool:
    """`0.123` has decimals: no group of thousands begins with a zero."""
    return re.match(rf"\s*[+-]?0{re.escape(mark)}\d", cell) is not None
