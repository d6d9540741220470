"""Finds constants in a kernel's code whose names are hardware specs: `NUM_SMS = 132`,
`L2_BYTES = 50 * 1024 * 1024`, `#define HBM_BANDWIDTH_GBS 3350`.

What a kernel chooses (tiles, stages, its own shared memory) is not a spec. All words of a name must name the hardware;
what is asked of the device while the kernel runs is not a constant.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal

from evaluator.source.cpp_tokens import Kind, Token, lex
from kbs.evidence.units import parse_quantity, parse_unit
from kbs.evidence.vocabulary import Vocabulary, words
from loop.gate.spec_scanner import FEWEST_SMS, RATES, UNIT_KEYS, FoundSpec

_NOBODY_CHOOSES = frozenset({"l2_capacity"})
"""Capacities that no kernel chooses, unlike shared memory, registers and sizes of memory."""
_FILLERS = frozenset({"num", "n", "number", "of", "total", "max", "gpu", "device", "hw", "hardware", "k"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SUFFIX = re.compile(r"(?<=[\d.])(?:[uU]?[lL]{0,2}|[fF])\b")
_DEFINE = re.compile(r"define[ \t]+(\w{1,80})[ \t]+(\S[^\n]{0,200})")
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_MOST_BITS = 64
_UNITS = {
    "TB/s": ("TB/s", "GB/s", "B/s"),
    "GB/s": ("GB/s", "B/s"),
    "TFLOPS": ("TFLOPS", "GFLOPS", "FLOPS"),
    "MB": ("MB", "B"),
}
"""Unit of a metric → units that a constant without a unit in its name may have."""


def hardware_constants(text: str, name: str, terms: Vocabulary) -> Iterator[FoundSpec]:
    """The hardware constants of a kernel's file; none if it cannot be read."""
    said: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for line, constant, expression in _python(text) if name.endswith(".py") else _cuda(text):
        if constant not in said:
            said[constant] = _says(constant, terms)
        metrics, units = said[constant]
        value = _value(expression) if metrics else None
        if value is None or value <= 1 or (terms.metrics[metrics[0]].unit == "SM" and value < FEWEST_SMS):
            continue
        found = (parse_quantity(f"{value:f}", unit, capacity=binary) for unit in units for binary in (False, True))
        readings = tuple(dict.fromkeys(one for one in found if one is not None))
        shown = f"{constant} = {expression if isinstance(expression, str) else ast.unparse(expression)}"
        yield FoundSpec(line, shown[:80], metrics, readings, "", shown[:200])


def _python(text: str) -> Iterator[tuple[int, str, ast.expr]]:
    """(line, name, expression) of each assignment to a name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        target = node.target if isinstance(node, ast.AnnAssign) else target
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
            value = value.args[0]  # tl.constexpr(132)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant | ast.BinOp):
            yield target.lineno, target.id, value


def _cuda(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, name, expression) of each initializer and macro."""
    tokens = lex(text).tokens
    for at, token in enumerate(tokens):
        if token.kind is Kind.DIRECTIVE:
            macro = _DEFINE.fullmatch(token.text.strip())
            if macro:
                yield token.line, macro[1], _SUFFIX.sub("", macro[2])
        elif token.kind is Kind.NAME and at + 1 < len(tokens) and tokens[at + 1].text in ("=", "{"):
            yield token.line, token.text, _initializer(tokens[at + 2 : at + 42])


def _initializer(tokens: tuple[Token, ...]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.text in (";", ",", "}") or token.kind not in (Kind.NUMBER, Kind.PUNCTUATION):
            break
        parts.append(_SUFFIX.sub("", token.text.replace("'", "")) if token.kind is Kind.NUMBER else token.text)
    return " ".join(parts).replace("< <", "<<")


def _value(expression: str | ast.expr) -> Decimal | None:
    """The value of an expression of numbers; None for any other."""
    try:
        node = ast.parse(expression.strip(), mode="eval").body if isinstance(expression, str) else expression
        found = Decimal(repr(_computed(node))).normalize()
        return found if found.is_finite() else None
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _computed(node: ast.expr) -> float:
    """Raises `ValueError` if it is not a number."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]  # the type was looked at
        return value
    if isinstance(node, ast.BinOp):
        left, right = _computed(node.left), _computed(node.right)
        if type(node.op) in _OPERATIONS:
            return _OPERATIONS[type(node.op)](left, right)
        if isinstance(node.op, ast.LShift | ast.Pow) and 0 <= right <= _MOST_BITS and abs(left) <= 1 << _MOST_BITS:
            return left * 2**right if isinstance(node.op, ast.LShift) else float(left**right)
    raise ValueError


def _says(constant: str, terms: Vocabulary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(metrics that a name may mean, units that its value may have); empty if it means none."""
    spoken = words(_HUMP.sub("_", constant).replace("_", " "))
    for length in (3, 2, 1):
        unit = UNIT_KEYS.get(" ".join(spoken[-length:])) if len(spoken) > length else None
        if unit is not None and (known := parse_unit(unit)) is not None:
            metrics = [id for id in _metrics(spoken[:-length], terms) if _is_hardware(id, known.dimension, terms)]
            if metrics:
                return tuple(metrics), (unit,)
    metrics = [id for id in _metrics(spoken, terms) if _is_hardware(id, "", terms)]
    if not metrics:
        return (), ()
    unit = terms.metrics[metrics[0]].unit
    if unit != "SM" and len(spoken) < 2:
        return (), ()  # `bandwidth = 64` is that of a matrix
    return tuple(metrics), _UNITS.get(unit, (unit,))


def _metrics(spoken: list[str], terms: Vocabulary) -> list[str]:
    """Metrics that a name means, without words such as `num` and `max`, and without a product before them."""
    plain = [word for word in spoken if word not in _FILLERS]
    for cut in range(min(3, len(plain))):
        if cut and not terms.resolve("product", " ".join(plain[:cut])):
            continue
        rest = " ".join(plain[cut:])
        counted = [f"number of {rest}"] if len(plain) < len(spoken) else []
        for said in (rest, *counted):
            found = terms.resolve("metric", said)
            if found:
                return list(found)
    return []


def _is_hardware(id: str, unit: str, terms: Vocabulary) -> bool:
    """Whether only hardware has the metric. `unit` is the dimension of the unit in the name; empty for none."""
    metric = terms.metrics[id]
    known = None if metric.text else parse_unit(metric.unit, capacity=metric.capacity)
    if known is None or (unit and unit != known.dimension):
        return False
    if known.dimension == "hertz":
        return bool(unit)
    return known.dimension in RATES or known.dimension == "multiprocessors" or id in _NOBODY_CHOOSES
