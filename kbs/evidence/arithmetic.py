"""Recomputes written arithmetic: `66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte`.

Numbers may carry units and powers of ten; `×`, `·` and `*` multiply, `/` or `÷` divides, and `+`, `-` and brackets are
known.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException, localcontext
from functools import cache

from kbs.evidence.units import NUMBER, Number, parse_number, parse_unit
from kbs.evidence.vocabulary import vocabulary

MAX_LENGTH = 400
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def equation_holds(text: str) -> bool | None:
    """Whether `<expression> = <result>` is right to the last place that the result shows.

    None if the text is not such an equation of numbers.
    """
    if len(text) > MAX_LENGTH:
        return None
    left, sign, right = text.partition("=")
    if not sign or "=" in right:
        return None
    claimed = _with_unit(right.strip().rstrip("."))
    value = _evaluate(left)
    if claimed is None or value is None:
        return None
    number, scale = claimed
    return abs(value - number.value * scale) <= number.last_place * scale / 2


def quantities(text: str) -> list[tuple[Decimal, Decimal]]:
    """Each number of a text in base units, and half of its last written place: what rounds to it lies so near."""
    found = []
    for match in _quantity().finditer(text.replace("−", "-").replace("÷", "/")):
        number = parse_number(match["number"])
        unit = parse_unit(match["unit"]) if match["unit"] else None
        if number is not None:
            scale = unit.scale if unit else Decimal(1)
            found.append((number.value * scale, number.last_place * scale / 2))
    return found


@cache
def _quantity() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?P<number>{NUMBER})\s*(?P<unit>{_unit_pattern()})?(?![\w])")


def _unit_pattern() -> str:
    spellings = sorted(vocabulary().unit_spellings, key=len, reverse=True)
    return "(?:[kKMGTPE]i?)?(?:" + "|".join(re.escape(s) for s in spellings if s not in ("x", "×")) + ")"


def _with_unit(text: str) -> tuple[Number, Decimal] | None:
    match = re.fullmatch(rf"(?P<number>{NUMBER})\s*(?P<unit>\S.*)?", text)
    if match is None:
        return None
    number = parse_number(match["number"])
    unit = parse_unit(match["unit"]) if match["unit"] else None
    if number is None or (match["unit"] and unit is None):
        return None
    return number, unit.scale if unit else Decimal(1)


def _evaluate(text: str) -> Decimal | None:
    """The value of an expression in base units; None if it is none."""

    def quantity(match: re.Match[str]) -> str:
        number = parse_number(match["number"])
        unit = parse_unit(match["unit"]) if match["unit"] else None
        if number is None:
            return match.group(0)
        return f"({number.value * (unit.scale if unit else 1):f})"

    written = text.replace("−", "-").replace("÷", "/").strip()
    expression = _quantity().sub(quantity, written)
    expression = re.sub(r"[×·]", "*", expression)
    if re.search(r"[^\d.()+\-*/\s]", expression):
        return None
    try:
        with localcontext() as context:
            context.prec = 40
            return _value(ast.parse(expression.strip(), mode="eval").body, 0)
    except (SyntaxError, DecimalException, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, depth: int) -> Decimal:
    if depth > 60:
        raise ValueError("too deeply nested")
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return Decimal(str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, depth + 1), _value(node.right, depth + 1))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, depth + 1)
    raise ValueError("not arithmetic")
