"""Reads the tables of a page that kopt understands, recognized by their headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from markdown_it.token import Token

from kbs.evidence.citation import Citation
from kbs.evidence.opcodes import Pattern, pattern, target_number
from kbs.evidence.spec import ABSENT, CONFIDENCES, UNPUBLISHED, Source, Spec, canonical_qualifier
from kbs.evidence.table_rows import (
    AdviceRow,
    CostRow,
    InstructionRow,
    MeasuredRow,
    MethodRow,
    SignatureRow,
    ThresholdRow,
)
from kbs.evidence.units import parse_number, parse_unit
from kbs.evidence.vocabulary import Vocabulary
from wiki.page import FrontMatter, Problem

SPEC_HEADER = ("metric", "value", "unit", "qualifier", "confidence", "source")
COST_HEADER = ("operation", "cost", "count", "dims", "dtype", "note")
THRESHOLD_HEADER = ("symptom", "metric", "test", "value", "unit", "source")
ADVICE_HEADER = ("technique", "bottleneck", "because", "source")
MEASURED_HEADER = ("operation", "gpu", "dtype", "shape", "metric", "value", "unit", "what", "source")
SIGNATURE_HEADER = ("method", "targets", "opcodes", "at least", "unclear", "source")
INSTRUCTION_HEADER = ("operation", "dtype", "targets", "instruction", "opcodes", "source")
METHOD_HEADER = (
    *("method", "title", "axis", "priority", "architectures", "languages", "features", "triggers"),
    *("conflicts", "complements"),
)
HEADERS = (
    *(SPEC_HEADER, COST_HEADER, THRESHOLD_HEADER, ADVICE_HEADER, MEASURED_HEADER, SIGNATURE_HEADER),
    *(INSTRUCTION_HEADER, METHOD_HEADER),
)
ANY = "any"
"""In a row of instructions: operations that multiply no matrices, or all element types."""
COSTS = ("read", "write", "vector FLOP", "tensor FLOP")
AXES = ("compute", "memory", "latency", "any")
TESTS = ("<", "<=", ">", ">=")
DISAGREEMENT = "where sources disagree"
"""The section whose spec rows are not the recommended ones."""
DERIVED = "derived"
"""What a source cell begins with when the value was calculated."""

_LINK_TEXT = re.compile(r"^\[(?P<text>[^\]]+)\]\([^)]*\)$")


Row = Spec | CostRow | AdviceRow | ThresholdRow | MeasuredRow | SignatureRow | InstructionRow | MethodRow


def read_table(
    path: str,
    tokens: list[Token],
    trail: tuple[str, ...],
    meta: FrontMatter,
    cite: Callable[[int], Citation],
    vocabulary: Vocabulary,
) -> tuple[list[Row], list[Problem]]:
    """Read one table (its tokens from table_open to table_close): its rows, and what is wrong with rows left out.

    An ordinary table gives nothing.
    """
    rows: list[Row] = []
    problems: list[Problem] = []
    header, *body = list(_cells(tokens)) or [(0, [])]
    names = tuple(cell.lower() for cell in header[1])
    readers: dict[tuple[str, ...], Callable[[dict[str, str], Citation, _Context], Row]] = {
        SPEC_HEADER: _spec,
        COST_HEADER: _cost,
        THRESHOLD_HEADER: _threshold,
        ADVICE_HEADER: _advice,
        MEASURED_HEADER: _measured,
        SIGNATURE_HEADER: _signature,
        INSTRUCTION_HEADER: _instruction,
        METHOD_HEADER: _method,
    }
    reader = readers.get(names)
    if reader is None:
        return rows, problems
    context = _Context(trail, meta, vocabulary)
    for line, cells in body:
        row = dict(zip(names, cells, strict=False))
        try:
            rows.append(reader(row, cite(line), context))
        except RowError as error:
            problems.append(Problem(path, line, error.rule, str(error)))
    return rows, problems


def read_by_row(header: str) -> bool:
    """Whether a table with this first line is read row by row."""
    return header_names(header) in HEADERS


def header_names(line: str) -> tuple[str, ...]:
    """The column names of a table with this first line."""
    return tuple(cell.strip().lower() for cell in line.strip().strip("|").split("|"))


class RowError(Exception):
    """A row that cannot be used; `rule` names the lint rule that it breaks."""

    def __init__(self, message: str, rule: str = "table-row") -> None:
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True)
class _Context:
    trail: tuple[str, ...]
    meta: FrontMatter
    vocabulary: Vocabulary

    def source(self, cell: str) -> Source:
        """The source that a cell names: `<id> <place>`, or `derived: <arithmetic>`."""
        first, _, place = cell.strip().partition(" ")
        id = first.rstrip(",:;")
        if id.lower() == DERIVED:
            return Source(DERIVED, "calculated on the page", "", DERIVED, "", place.strip())
        for entry in self.meta.sources:
            if entry.id == id:
                return Source(id, entry.title, entry.url, entry.kind, entry.accessed.isoformat(), place.strip())
        raise RowError(f"the source cell {cell!r} begins with no source id of the front matter", "undefined-source")

    def known(self, id: str, terms: object, what: str) -> str:
        assert hasattr(terms, "__contains__")
        if id not in terms:
            raise RowError(f"{id!r} is no {what} of the vocabulary", "vocabulary")
        return id


def _cells(tokens: list[Token]) -> list[tuple[int, list[str]]]:
    """(1-based line, cell texts) of every row, the header first."""
    rows: list[tuple[int, list[str]]] = []
    for token in tokens:
        if token.type == "tr_open" and token.map:
            rows.append((token.map[0] + 1, []))
        elif token.type == "inline" and rows:
            rows[-1][1].append(token.content.strip())
    return rows


def _number(text: str) -> Decimal:
    number = parse_number(text)
    if number is None:
        raise RowError(f"{text!r} is not a number")
    return number.value


def _spec(row: dict[str, str], citation: Citation, context: _Context) -> Spec:
    vocabulary = context.vocabulary
    if context.meta.kind != "hardware":
        raise RowError("only a hardware page can state specs")
    metrics = [m for m in vocabulary.metrics.values() if row["metric"] in (m.name, m.id)]
    if not metrics:
        raise RowError(f"{row['metric']!r} is not a metric of the vocabulary", "vocabulary")
    metric = metrics[0]
    qualifier = canonical_qualifier(row["qualifier"], vocabulary)
    if qualifier is None:
        raise RowError(f"{row['qualifier']!r} is not a qualifier of the vocabulary", "vocabulary")
    if row["confidence"] not in CONFIDENCES:
        raise RowError(f"the confidence {row['confidence']!r} is none of {', '.join(CONFIDENCES)}", "vocabulary")
    value, unit = row["value"], row["unit"]
    if not value:
        raise RowError("the value is empty; write `unpublished` for a gap")
    if not metric.text and value not in (UNPUBLISHED, ABSENT):
        _number(value)
        parsed = parse_unit(unit, capacity=metric.capacity)
        usual = parse_unit(metric.unit, capacity=metric.capacity)
        if parsed is None or usual is None or parsed.dimension != usual.dimension:
            raise RowError(f"{unit!r} is not an unit of {metric.name} (which is given in {metric.unit})", "unit")
    product = context.meta.product or context.meta.id.rsplit("/", 1)[-1]
    recommended = not any(heading.lower().strip() == DISAGREEMENT for heading in context.trail)
    return Spec(
        product=product,
        metric=metric.id,
        value=value,
        unit=unit,
        qualifier=qualifier,
        confidence=row["confidence"],
        source=context.source(row["source"]),
        citation=citation,
        recommended=recommended,
    )


def _cost(row: dict[str, str], citation: Citation, context: _Context) -> CostRow:
    operation = context.known(row["operation"], context.vocabulary.operations, "operation")
    if row["cost"] not in COSTS:
        raise RowError(f"the cost {row['cost']!r} is none of {', '.join(COSTS)}")
    try:
        if Decimal(row["count"]) < 0:
            raise RowError(f"the count {row['count']} is negative")
        _number(row["count"])  # not infinite, and of a size that can be calculated with
    except InvalidOperation:
        raise RowError(f"the count {row['count']!r} is not a number") from None
    dims = tuple(row["dims"].split())
    for dim in dims:
        context.known(dim, context.vocabulary.operations[operation].dims, f"dimension of {operation}")
    if row["dtype"]:
        context.known(row["dtype"], context.vocabulary.dtypes, "dtype")
    return CostRow(operation, row["cost"], row["count"], dims, row["dtype"], row.get("note", ""), citation)


def _threshold(row: dict[str, str], citation: Citation, context: _Context) -> ThresholdRow:
    symptom = context.known(row["symptom"], context.vocabulary.symptoms, "symptom")
    if row["test"] not in TESTS:
        raise RowError(f"the test {row['test']!r} is none of {' '.join(TESTS)}")
    _number(row["value"])
    if row["unit"] and parse_unit(row["unit"]) is None:
        raise RowError(f"{row['unit']!r} is not an unit of the vocabulary", "unit")
    context.source(row["source"])
    return ThresholdRow(
        symptom, row["metric"].strip("`"), row["test"], row["value"], row["unit"], row["source"], citation
    )


def _advice(row: dict[str, str], citation: Citation, context: _Context) -> AdviceRow:
    link = _LINK_TEXT.match(row["technique"])
    technique = context.known(link["text"] if link else row["technique"], context.vocabulary.techniques, "technique")
    bottleneck = context.known(row["bottleneck"], context.vocabulary.bottlenecks, "bottleneck")
    context.source(row["source"])
    return AdviceRow(technique, bottleneck, row["because"], row["source"], citation)


def _measured(row: dict[str, str], citation: Citation, context: _Context) -> MeasuredRow:
    if row["operation"]:
        context.known(row["operation"], context.vocabulary.operations, "operation")
    _number(row["value"])
    context.source(row["source"])
    return MeasuredRow(**{k: row[k] for k in MEASURED_HEADER}, citation=citation)


def _signature(row: dict[str, str], citation: Citation, context: _Context) -> SignatureRow:
    if context.meta.kind != "method":
        raise RowError("only a method page can state signatures")
    own = context.meta.id.rsplit("/", 1)[-1]
    if row["method"] != own:
        raise RowError(f"the method {row['method']!r} is not {own!r}, the last part of the page's id")
    targets, opcodes = _targets(row["targets"]), _patterns(row["opcodes"])
    if not targets or not opcodes:
        raise RowError("a signature needs a target and an opcode")
    if not re.fullmatch(r"[1-9]\d{0,5}", row["at least"]):
        raise RowError(f"{row['at least']!r} is not a count from 1 on")
    context.source(row["source"])
    return SignatureRow(
        method=own,
        targets=targets,
        opcodes=opcodes,
        least=int(row["at least"]),
        unclear=_patterns(row["unclear"]),
        source=row["source"],
        citation=citation,
    )


def _instruction(row: dict[str, str], citation: Citation, context: _Context) -> InstructionRow:
    if context.meta.kind != "method":
        raise RowError("only a method page can state instructions to expect")
    targets, opcodes = _targets(row["targets"]), _patterns(row["opcodes"])
    if not targets or not opcodes or not row["instruction"]:
        raise RowError("an instruction needs a name, a target and an opcode")
    context.source(row["source"])
    return InstructionRow(
        method=context.meta.id.rsplit("/", 1)[-1],
        operations=_ids(row["operation"], context.vocabulary.operations, "operation", context),
        dtypes=_ids(row["dtype"], context.vocabulary.dtypes, "dtype", context),
        targets=targets,
        instruction=row["instruction"],
        opcodes=opcodes,
        source=row["source"],
        citation=citation,
    )


def _method(row: dict[str, str], citation: Citation, context: _Context) -> MethodRow:
    terms = context.vocabulary
    if context.meta.kind == "method":
        raise RowError("a method page is one method, whose facts stand in its front matter")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", row["method"]) or not row["title"]:
        raise RowError("a method needs an id and a title")
    if row["axis"] not in AXES:
        raise RowError(f"the axis {row['axis']!r} is none of {', '.join(AXES)}")
    if not re.fullmatch("[1-5]", row["priority"]):
        raise RowError(f"the priority {row['priority']!r} is not 1 to 5")
    known = {
        "architectures": terms.architectures,
        "languages": terms.languages,
        "features": terms.features,
        "triggers": terms.symptoms,
    }
    ids = {key: tuple(context.known(id, known[key], key[:-1]) for id in row[key].split()) for key in known}
    return MethodRow(
        method=row["method"],
        title=row["title"],
        axis=row["axis"],
        priority=int(row["priority"]),
        architectures=ids["architectures"],
        languages=ids["languages"],
        features=ids["features"],
        triggers=ids["triggers"],
        conflicts=tuple(row["conflicts"].split()),
        complements=tuple(row["complements"].split()),
        line=citation.line_start,
    )


def _ids(cell: str, terms: object, what: str, context: _Context) -> tuple[str, ...]:
    """Ids of the vocabulary; none for `any`."""
    if not cell:
        raise RowError(f"the {what} is empty; write `{ANY}` for any")
    return () if cell == ANY else tuple(context.known(word, terms, what) for word in cell.split())


def _targets(cell: str) -> tuple[int, ...]:
    targets = []
    for word in cell.replace("`", "").split():
        number = target_number(word)
        if number is None or word != f"sm_{number}":
            raise RowError(f"{word!r} is not a target such as sm_90")
        targets.append(number)
    return tuple(targets)


def _patterns(cell: str) -> tuple[Pattern, ...]:
    found = []
    for word in cell.replace("`", "").split():
        read = pattern(word)
        if read is None:
            raise RowError(f"{word!r} is not an opcode: a mnemonic, then modifiers that it must have, such as LDG.128")
        found.append(read)
    return tuple(found)
