"""Sums that are written down as they are done, so that a reader can do them again."""

from __future__ import annotations

from decimal import Decimal, localcontext

from kbs.evidence.units import format_number
from kbs.hardware.thresholds import DIGITS, plain

ONE = Decimal(1)


def equation(expression: str, value: Decimal) -> tuple[str, Decimal]:
    """`expression = value`, and the value as it is written: what follows must use no other. Not negative."""
    with localcontext() as context:
        context.prec = max(40, value.adjusted() + 2)
        large = value.adjusted() >= DIGITS
        rounded = value.quantize(ONE) if large else Decimal(format_number(value, DIGITS).replace(",", ""))
    return f"{expression} = {plain(rounded)}", rounded
