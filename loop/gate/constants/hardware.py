"""Finds hardware facts among the constants of a kernel's code.

A constant is one if its name says so (`NUM_SMS = 132`, a default `num_sms=144`, `{"sm_count": 144}`, `PEAK = 3.9e12`),
if a comment on its line does (`BW = 3900 # GB/s`), if it has the value of a spec of the run's GPU, or if it sizes a
grid and follows from no size of the problem. What a kernel chooses (tiles, stages, its own shared memory) is none, nor
is what it asks of the device while it runs."""

from __future__ import annotations

import ast
import copy
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal

from evaluator.source.cpp_tokens import Kind, Token, lex
from kbs.evidence.units import Quantity, parse_quantity, parse_unit
from kbs.evidence.vocabulary import Vocabulary, words
from loop.gate.comments import each_comment
from loop.gate.constants.grids import Named, defaults, of_grids, paired
from loop.gate.numbers.figures import Chosen
from loop.gate.numbers.wording import FEWEST_SMS, RATES, SMALL

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
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_BITS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor, ast.RShift: operator.rshift,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "int": int, "float": float, "round": round, "abs": abs, "min": min, "max": max, "sum": lambda *one: sum(one),
    "math.prod": lambda *one: math.prod(one), "pow": lambda a, b: a**b if 0 <= b <= _MOST_BITS else a,
}  # fmt: skip
_MOST_BITS = 64
_UNITS_OF_SPECS = (
    "SM", "B", "B/s", "GB/s", "TB/s", "FLOPS", "GFLOPS", "TFLOPS", "MHz", "Hz", "threads", "registers", "warps",
)  # fmt: skip
"""What a constant without a unit in its name may be a value of."""
UNIT_KEYS = {
    "tb s": "TB/s", "tbs": "TB/s", "tbps": "TB/s", "gb s": "GB/s", "gbs": "GB/s", "gbps": "GB/s", "tb per s": "TB/s",
    "gb per s": "GB/s", "bytes per s": "B/s", "bytes per second": "B/s", "tflops": "TFLOPS",
    "tflop s": "TFLOPS", "gflops": "GFLOPS", "tops": "TOPS",
    "mhz": "MHz", "ghz": "GHz", "hz": "Hz", "mb": "MB", "kb": "KB", "kib": "KiB", "mib": "MiB",
    "gb": "GB", "gib": "GiB", "bytes": "B", "w": "W", "watts": "W", "cycles": "cycles", "bit": "bit", "bits": "bit",
}  # fmt: skip
_RATES_IN_WORDS = re.compile(
    r"[kKMGT]i?B\s?/\s?s|[kKMGTP]?FLOPS?\b|[kMG]Hz\b|\bSMs?\b|multiprocessors?|\b(?:bandwidth|peak|clock|HBM\d*e?)\b"
    r"|\bL2 (?:size|capacity|bytes)"
    r"|(?:registers|shared memory|smem|threads|warps) (?:per|of an?|an?|each|on an?) (?:SM|multiprocessor)",
    re.IGNORECASE,
)
_OF_THE_DEVICE = frozenset(
    {"peak", "bw", "bandwidth", "roofline", "dram", "hbm", "sm", "sms", "multiprocessors", "cus", "flops", "clock"}
)
"""Words that make a name one of hardware, if its value is no tile size."""
_UNITS = {
    "TB/s": ("TB/s", "GB/s", "B/s"),
    "GB/s": ("GB/s", "B/s"),
    "TFLOPS": ("TFLOPS", "GFLOPS", "FLOPS"),
    "MB": ("MB", "B"),
}
"""Unit of a metric → units that a constant without a unit in its name may have."""


@dataclass(frozen=True)
class FoundSpec:
    """A constant that states something of hardware."""

    line: int
    text: str
    """The name with the value, as written."""
    metrics: tuple[str, ...]
    """Metrics that it may be a value of; empty if nothing says which."""
    readings: tuple[Quantity, ...]
    why: str
    """What makes it one: `its name says so` …"""


def hardware_constants(
    text: str, name: str, terms: Vocabulary, known: Set[Decimal] = frozenset(), chosen: Chosen | None = None
) -> Iterator[FoundSpec]:
    """The hardware constants of a kernel's file; none if it cannot be read.

    `known`: values of the run's GPU, `chosen`: sizes of the run and constants of earlier kernels, which are none.
    """
    python = name.endswith(".py")
    tree = _tree(text) if python else None
    made = _set_once(tree) if tree is not None else {}
    named = list(_python(tree)) if tree is not None else [] if python else list(_cuda(text))
    seen: set[tuple[int, Decimal | None]] = set()
    said: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    commented = _commented(text, name)
    for line, constant, expression in named:
        if constant not in said:
            said[constant] = _says(constant, terms)
        metrics, units = said[constant]
        value = _value(_with(expression, made))
        if value is None or value <= 1:
            continue
        shown = f"{constant} = {expression if isinstance(expression, str) else ast.unparse(expression)}"[:80]
        if metrics and not (terms.metrics[metrics[0]].unit == "SM" and value < FEWEST_SMS):
            found = (parse_quantity(f"{value:f}", unit, capacity=binary) for unit in units for binary in (False, True))
            readings = tuple(dict.fromkeys(one for one in found if one is not None))
            seen.add((line, value))
            yield FoundSpec(line, shown, metrics, readings, "its name says so")
        elif (
            _is_of_the_device(constant, value, chosen)
            or _of_a_product(constant, value, terms, chosen)
            or (line in commented and not is_chosen(value, chosen))
        ):
            why = "its name says so" if line not in commented else f"its comment says so: {commented[line][:80]}"
            seen.add((line, value))
            yield FoundSpec(line, shown, (), tuple(any_unit(value, commented.get(line, ""))), why)
    exactly = chosen.exactly if chosen else frozenset[Decimal]()
    literals = _literals(tree, exactly) if tree is not None else () if python else _cuda_literals(text)
    for line, value, sizes_grid in literals:
        if (line, value) in seen or is_chosen(value, chosen) or value in exactly:
            continue
        if value in known or sizes_grid:
            why = (
                "it sizes a grid, and follows from no size of the problem" if sizes_grid else "it is a spec of this GPU"
            )
            seen.add((line, value))
            yield FoundSpec(line, f"{value:f}", (), tuple(any_unit(value, "")), why)


def _commented(text: str, name: str) -> dict[int, str]:
    """Line → a comment on it, or alone on the line above it, that speaks of hardware."""
    found, lines = dict[int, str](), text.split("\n")
    for line, comment in each_comment(text, name):
        if _RATES_IN_WORDS.search(comment):
            alone = line <= len(lines) and lines[line - 1].lstrip().startswith(("#", "//", "/*"))
            found |= {line: comment, **({line + 1: comment} if alone else {})}
    return found


def _is_of_the_device(name: str, value: Decimal, chosen: Chosen | None) -> bool:
    spoken = set(words(_HUMP.sub("_", name).replace("_", " ")))
    if spoken == {"sm"}:
        return False  # `SM = 90` names an architecture
    counts_sms = bool(spoken & {"sm", "sms", "multiprocessors", "cus"})
    return bool(spoken & _OF_THE_DEVICE) and (
        value >= FEWEST_SMS
        if counts_sms and not spoken & {"block", "tile", "per", "blocks"}
        else not is_chosen(value, chosen)
    )


def _of_a_product(name: str, value: Decimal, terms: Vocabulary, chosen: Chosen | None) -> bool:
    """Whether a name is that of a GPU: `{"h100": 144}`."""
    return not is_chosen(value, chosen) and bool(terms.resolve("product", name.replace("_", " ")))


def is_chosen(value: Decimal, chosen: Chosen | None) -> bool:
    """Whether a value may be a kernel's own choice: small, a power of two, or from the sizes of the run."""
    if value != value.to_integral():
        return value < SMALL * SMALL  # a factor, such as log2(e)
    whole = int(value)
    power = (whole & (whole - 1)) == 0 or (whole & (whole + 1)) == 0  # 127 rounds a quotient up
    return whole <= SMALL or power or (chosen is not None and chosen.has(value))


def any_unit(value: Decimal, comment: str = "") -> Iterator[Quantity]:
    """What a constant without a unit in its name may be a value of."""
    unit = re.search(r"[kKMGT]i?B/s|[kKMGTP]?FLOPS?|[kMG]Hz|[KMG]i?B\b", comment)
    for one in (unit[0],) if unit else _UNITS_OF_SPECS:
        for capacity in (False, True):
            found = parse_quantity(f"{value:f}", one, capacity=capacity)
            if found is not None:
                yield found


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python(tree: ast.Module) -> Iterator[Named]:
    """Every value that is given a name: assignments, defaults, keywords, entries of a dict."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _unwrapped(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
            yield from _unwrapped(node.target, node.value)
        elif isinstance(node, ast.arguments):
            for name, default in defaults(node):
                yield default.lineno, name, _inside(default)
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, node.arg, _inside(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield value.lineno, key.value, _inside(value)


def _unwrapped(target: ast.expr, value: ast.expr) -> Iterator[Named]:
    for line, name, one in paired(target, value):
        yield line, name, _inside(one)


def _inside(value: ast.expr) -> ast.expr:
    """The value in `tl.constexpr(132)` and `int(132)`."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords and not _is_digits(value.args[0]):
        return value.args[0]
    return value


def _literals(tree: ast.Module, sizes: Set[Decimal]) -> Iterator[tuple[int, Decimal, bool]]:
    """(line, value, whether it sizes a grid) of each number, and of each sum or product of numbers.

    A product of `sizes` that is written out is none.
    """
    sizing = of_grids(tree)
    for node, number in literals(tree, sizes):
        yield node.lineno, number, id(node) in sizing


def literals(tree: ast.Module, sizes: Set[Decimal] = frozenset()) -> Iterator[tuple[ast.BinOp | ast.Constant, Decimal]]:
    """(node, value) of each number that is not small, and of each sum or product of numbers but those of `sizes`."""
    made = _set_once(tree)
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Constant) and id(node) not in inner:
            whole = _with(node, made)
            number = _value(whole)
            if number is not None:
                inner |= {id(one) for one in ast.walk(node)}
                if number > SMALL and not (isinstance(whole, ast.BinOp) and _is_product(whole, sizes)):
                    yield node, number


class _With(ast.NodeTransformer):
    def __init__(self, made: Mapping[str, ast.expr]) -> None:
        self.made = made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.made.get(node.id, node)


def _with(expression: str | ast.expr, made: Mapping[str, ast.expr]) -> str | ast.expr:
    """An expression of names and operators with the numbers that the names are given; any other as it is."""
    if isinstance(expression, ast.BinOp | ast.UnaryOp | ast.Call) and made:
        return _With(made).visit(copy.deepcopy(expression))  # type: ignore[no-any-return]  # an expression stays one
    return expression


def _set_once(tree: ast.Module) -> dict[str, ast.expr]:
    """Name → number of those that the file sets once, to a number."""
    set_to: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for _, name, value in paired(target, node.value):  # type: ignore[attr-defined]  # it is an assignment
                set_to.setdefault(name, []).append(value)
    return {
        name: values[0] for name, values in set_to.items() if len(values) == 1 and isinstance(values[0], ast.Constant)
    }


def _is_product(node: ast.expr, sizes: Set[Decimal]) -> bool:
    """Whether only `sizes` are multiplied."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mult) and _is_product(node.left, sizes) and _is_product(node.right, sizes)
    return _value(node) in sizes


def _cuda_literals(text: str) -> Iterator[tuple[int, Decimal, bool]]:
    tokens, grid = lex(text).tokens, False
    for at, token in enumerate(tokens):
        three = [one.text for one in tokens[at : at + 3]]
        grid = (grid or three == ["<"] * 3) and three != [">"] * 3
        if token.kind is Kind.NUMBER:
            value = _value(_SUFFIX.sub("", token.text.replace("'", "")))
            if value is not None and value > SMALL and (grid or not is_place(tokens, at)):
                yield token.line, value, grid


def is_place(tokens: Sequence[Token], at: int) -> bool:
    """Whether a number is the place of an element (`d[34]`, as among operands of inline PTX), and no array's size."""
    before, kinds = [one.text for one in tokens[max(at - 3, 0) : at + 2]], [one.kind for one in tokens[at - 3 : at]]
    return at > 2 and before[2:] == ["[", tokens[at].text, "]"] and kinds[1] is Kind.NAME and kinds[0] is not Kind.NAME


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
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return None


def number_of(expression: str) -> Decimal | None:
    """The value of a number, or of an expression of numbers, of CUDA; None for any other."""
    return _value(_SUFFIX.sub("", expression.replace("'", "")))


def _computed(node: ast.expr) -> float:
    """Raises `ValueError` if it is not a number."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]  # the type was looked at
        return value
    if isinstance(node, ast.BinOp):
        left, right = _computed(node.left), _computed(node.right)
        if type(node.op) in _OPERATIONS:
            return _OPERATIONS[type(node.op)](left, right)
        if type(node.op) in _BITS:
            return float(
                _BITS[type(node.op)](int(left), int(right) if right <= _MOST_BITS or abs(right) < 2**53 else 0)
            )
        if isinstance(node.op, ast.LShift | ast.Pow) and 0 <= right <= _MOST_BITS and abs(left) <= 1 << _MOST_BITS:
            return left * 2**right if isinstance(node.op, ast.LShift) else float(left**right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Invert):
        inner = _computed(node.operand)
        return inner if isinstance(node.op, ast.UAdd) else -inner if isinstance(node.op, ast.USub) else ~int(inner)
    if isinstance(node, ast.Call) and not node.keywords and (made := _FUNCTIONS.get(ast.unparse(node.func))):
        given = (
            node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple) else node.args
        )
        told = [float(one.value) if _is_digits(one) else _computed(one) for one in given]  # type: ignore[attr-defined]  # digits are constants
        return float(made(*told)) if told else 0.0
    raise ValueError


def _is_digits(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip().isdigit()


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
