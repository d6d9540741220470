"""Sources of the numbers in a run: measurements, citations and shown arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from evaluator.external.record import ExternalReceipt
from evaluator.profiling.profile import Launch, Profile
from evaluator.receipt.receipt import Receipt
from kbs.evidence.checking import CheckedCitation, Checker, Status, check_line, stands_in
from kbs.evidence.citation import CitationLine, EvidenceKind, Reference, find_citations
from kbs.evidence.quantities import Stated
from kbs.evidence.spec import same_text
from kbs.evidence.units import NUMBER, Number, Quantity, parse_quantity
from kbs.evidence.vocabulary import words
from loop.gate.context import GateContext
from loop.gate.numbers import wording
from loop.gate.numbers.figures import (
    COUNT,
    Equation,
    Figures,
    equations,
    exact,
    plain_number,
    sentences,
    written_numbers,
)

PROFILE_UNITS: Mapping[str, tuple[str, Decimal]] = {
    "us": ("seconds", Decimal("1e-6")),
    "B": ("bytes", Decimal(1)),
    "B/s": ("bytes per second", Decimal(1)),
    "Hz": ("hertz", Decimal(1)),
    "%": ("percent", Decimal("0.01")),
}
"""Unit of a profile → dimension of the vocabulary, and its scale."""
_COUNTED = ("multiprocessors", "threads", "warps", "blocks", "registers", "sectors", "cycles", "banks", "barriers")
_SUFFIXES: tuple[tuple[str, str, Decimal], ...] = (
    ("_us", "seconds", Decimal("1e-6")),
    ("_ms", "seconds", Decimal("1e-3")),
    ("seconds", "seconds", Decimal(1)),
    ("gb_per_s", "bytes per second", Decimal("1e9")),
    ("tflop_per_s", "floating-point operations per second", Decimal("1e12")),
    ("_mhz", "hertz", Decimal("1e6")),
    ("bytes", "bytes", Decimal(1)),
    ("memory", "bytes", Decimal(1)),
    ("operations", "floating-point operations", Decimal(1)),
    ("of_ceiling", "percent", Decimal(1)),
    ("of_peak", "percent", Decimal(1)),
    ("noise", "percent", Decimal(1)),
)
"""Suffix of a receipt's field → dimension and scale of its values."""
MAX_LINES = 12
"""A citation of more lines cites a text, and is not a source of its numbers."""
ELEMENT_BYTES = 16
"""The widest element, or vector of elements, that one instruction loads."""
_OF_SIZES = ("bytes", "floating-point operations")
_COUNTABLE = frozenset({"", "bytes", "floating-point operations", "percent", "ratio", *_COUNTED})
"""Dimensions that a product of sizes and counts may have."""
_FIGURE = re.compile(r"figures\[(?P<number>\d{1,4})\](?:\.value)?")
"""A figure that the user's own benchmark printed."""
_LOGGED = frozenset({"seconds", "percent", "ratio", "bytes", ""})
"""Dimensions of what a record of the log may state: what was measured there."""
_SKIPPED = frozenset({"series", "text", "problem", "seed", "output_tail", "peak"})
"""Fields of a receipt that are text, settings, or citations."""


def measured(profiles: Sequence[Profile], receipts: Sequence[Receipt]) -> Figures:
    """Everything that profiles and receipts state."""
    figures = Figures()
    for profile in profiles:
        for launch in profile.launches:
            for quantity in launch_figures(launch):
                figures.add(quantity)
    for receipt in receipts:
        for quantity in _stated(_ById(receipt.id, receipt))[0]:
            figures.add(quantity)
    return figures


@dataclass(frozen=True)
class _ById:
    """A receipt, equal to another of its id, which is the hash of the content."""

    id: str
    receipt: Receipt = field(compare=False)


@lru_cache(maxsize=64)
def _stated(of: _ById) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """(every figure of a receipt, those that say how many times faster something was)"""
    document = of.receipt.model_dump(mode="json", exclude={"plan"})
    timed = {name: part for name, part in document.items() if name != "correctness"}  # its ratios are those of errors
    return tuple(receipt_figures(document, "")), tuple(_ratios(timed, inside=False))


def launch_figures(launch: Launch) -> Iterator[Quantity]:
    """Every value of a launch, as written and in the vocabulary's units; a plain count may count anything."""
    for counter in launch.counters.values():
        if counter.amount is None:
            continue
        yield exact(counter.amount, "")
        if counter.value is None:
            continue
        known = PROFILE_UNITS.get(counter.unit)
        if known is not None:
            # Keep the digits of the report: a value with three digits cannot be quoted with six.
            scale = counter.value / counter.amount * known[1] if counter.amount else known[1]
            yield exact(counter.amount, known[0], scale)
            if known[0] == "bytes":
                yield exact(counter.value, "")
        elif not counter.unit:
            for dimension in _COUNTED:
                yield exact(counter.amount, dimension)


def receipt_figures(value: object, key: str) -> Iterator[Quantity]:
    """Every number of a receipt's JSON, in the unit of its field."""
    if isinstance(value, dict):
        for name, child in value.items():
            if name not in _SKIPPED:
                yield from receipt_figures(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from receipt_figures(child, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = Decimal(repr(value)) if abs(value) < 1e40 else None
        if number is None or not number.is_finite():
            return
        yield exact(number, "")
        for suffix, dimension, scale in _SUFFIXES:
            if key.endswith(suffix):
                yield exact(number, dimension, scale)


def baseline_figures(receipt: Receipt) -> Iterator[Quantity]:
    """Every number of a receipt that was measured of a program to compare with."""
    for workload in receipt.timing.workloads if receipt.timing is not None else ():
        for one in workload.baselines.values():
            yield from receipt_figures(one.model_dump(mode="json"), "")


@dataclass(frozen=True)
class Checked:
    """A citation that was checked against the pinned wikis or the evidence of this run."""

    cited: CitationLine
    result: CheckedCitation
    unpinned: str
    """Why its page cannot be cited in this run; empty if it can."""
    external: bool = False
    """Whether it is what the user's own benchmark printed, which kopt did not measure: no source of a spec."""

    @property
    def ok(self) -> bool:
        """Whether it is valid."""
        return self.result.status is Status.OK and not self.unpinned


def check_citations(text: str, context: GateContext) -> list[Checked]:
    """Check every citation in a text."""
    return [check_citation(cited, context) for cited in find_citations(text)]


def check_citation(cited: CitationLine, context: GateContext) -> Checked:
    """Check that a citation's page is pinned, and that its lines exist and say what is claimed."""
    reference = cited.reference
    unpinned = ""
    if reference.of_lines and reference.line_start:
        unpinned = context.unpinned(reference.wiki, reference.target)
    checkers: dict[EvidenceKind, Checker] = {
        EvidenceKind.RECEIPT: lambda one: _held(one, _receipt_says(one.reference, context)),
        EvidenceKind.PROFILE: lambda one: _held(one, _profile_says(one.reference, context)),
        EvidenceKind.LOG: lambda one: _held(one, _record_says(one.reference, context)),
    }
    if unpinned:
        there = CheckedCitation(cited.line, cited.text, reference.text, Status.NOT_FOUND, unpinned, "")
        return Checked(cited, there, unpinned)
    printed = reference.kind is EvidenceKind.RECEIPT and any(
        one.id.startswith(reference.target) for one in context.externals.values()
    )
    return Checked(cited, check_line(cited, context.wikis, context.terms, checkers), unpinned, printed)


def _held(cited: CitationLine, found: tuple[Status, str, str]) -> tuple[Status, str, str]:
    """What was found, compared with the value or the words that the citation line states."""
    status, _, value = found
    claim = cited.claim
    said = cited.quote or (f"{claim.value} {claim.unit}".strip() if claim is not None else "")
    if status is not Status.OK or not said or same_text(said, value) or stands_in(said, value):
        return found
    figures = Figures()
    for stated in _quantities(value):
        figures.add(stated)
    stated_there = _quantities(said)
    if stated_there and all(figures.has([one]) for one in stated_there):
        return found
    return Status.MISMATCH, f"“{said[:120]}” is not what it says: {value[:120]}", value


def _quantities(text: str) -> list[Quantity]:
    """Numbers of a short text, with their units if it has any."""
    with_units = [reading for sentence in sentences(text) for one in sentence.stated for reading in one.readings]
    if with_units:
        return with_units
    found = [plain_number(match[0]) for match in re.finditer(NUMBER, text)]
    return [one for one in found if one is not None]


def _receipt_says(reference: Reference, context: GateContext) -> tuple[Status, str, str]:
    known: list[Receipt | ExternalReceipt] = [*context.receipts.values(), *context.externals.values()]
    found = [one for one in known if len(reference.target) >= 8 and one.id.startswith(reference.target)]
    if not found:
        return Status.NOT_FOUND, f"no receipt of this run up to now has the id {reference.target[:16]}", ""
    value: object = found[0].model_dump(mode="json")
    for part in reference.part.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return Status.NOT_FOUND, f"the receipt has no field {reference.part}", ""
    if isinstance(found[0], ExternalReceipt) and (place := _FIGURE.fullmatch(reference.part)):
        figure = found[0].figures[int(place["number"])]
        value = f"{figure.value:g} {figure.unit}".strip()
    return Status.OK, "", str(value)[:400]


def _record_says(reference: Reference, context: GateContext) -> tuple[Status, str, str]:
    """A record that a search of this run found, or that this run wrote; no other record is a source."""
    wanted = f"log/{reference.target.upper()}"
    for version in range(context.reached, -1, -1):
        for search in context.searches_of(version):
            for hit in search.hits:
                if hit.reference == wanted:
                    return Status.OK, "", hit.text
            if wanted in search.why.split(", "):
                return Status.OK, "", search.why
    for state in context.state.versions:
        if state.recorded is not None and state.recorded.record == reference.target.upper():
            return Status.OK, "", f"v{state.number}: {state.recorded.outcome}"
    return Status.NOT_FOUND, "no search of this run found this record of the experience log", ""


def _profile_says(reference: Reference, context: GateContext) -> tuple[Status, str, str]:
    for state in context.state.versions:
        path = context.in_version("profile.csv", state.number)
        hash = context.hash(path) if state.number <= context.reached else None
        if hash is None or len(reference.target) < 8 or not hash.startswith(reference.target):
            continue
        launch = context.launch(state.number)
        counter = find_counter(launch, reference.part) if launch else None
        if counter is None:
            return Status.NOT_FOUND, f"{path} has no value of {reference.part}", ""
        return Status.OK, "", counter
    return Status.NOT_FOUND, f"no profile.csv of this run begins with the hash {reference.target[:16]}", ""


def find_counter(launch: Launch, name: str) -> str | None:
    """A launch's value of a metric, by our id or the name in Nsight Compute."""
    from kbs.hardware.profile_metrics import profile_metrics

    known = profile_metrics().all.get(name)
    found = launch.counter(known.ncu[0] if known else name)
    return found.shown if found else None


def ratios(receipts: Sequence[Receipt]) -> Figures:
    """How many times faster something was, as receipts state it."""
    figures = Figures()
    for receipt in receipts:
        for number in _stated(_ById(receipt.id, receipt))[1]:
            figures.add(number)
    return figures


def _ratios(value: object, *, inside: bool) -> Iterator[Quantity]:
    if isinstance(value, dict):
        for name, child in value.items():
            if name not in _SKIPPED:
                yield from _ratios(child, inside=inside or "ratio" in name or "speedup" in name)
    elif isinstance(value, list):
        for child in value:
            yield from _ratios(child, inside=inside)
    elif inside and isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6:
        number = Decimal(repr(value))
        yield exact(number, "")
        yield exact(1 / number, "")


def cited_figures(one: Checked, context: GateContext) -> Iterator[tuple[Figures, str, str]]:
    """(figures, the GPU that they are of if one alone, the line that says so) of each line of a valid citation.

    Notes may be quoted; what they say is no source of a number. A receipt may quote the candidate, and its figures
    count as measured. A record of the log is a source of times and ratios, and of no spec.
    """
    figures, reference, claim = Figures(), one.cited.reference, one.cited.claim
    quantity: Quantity | None
    if not one.ok or reference.kind is EvidenceKind.NOTE:
        return
    if not reference.wiki:
        if claim is not None and (one.external or reference.kind is EvidenceKind.LOG):
            for quantity in _claimed(claim.value, claim.unit):
                if quantity.unit.dimension in _LOGGED:
                    figures.add(quantity)
        if reference.kind is EvidenceKind.LOG:
            for number in written_numbers(one.result.says):
                figures.add(number)
        yield figures, "", ""
        return
    specs = context.wikis.specs(reference.wiki, reference.target)
    on_lines = [s for s in specs if reference.line_start <= s.citation.line_start <= reference.line_end]
    products = {spec.product for spec in (on_lines or specs)}
    product = products.pop() if len(products) == 1 else ""
    lines = one.result.says.split("\n")
    for spec in on_lines:
        quantity, own = spec.quantity(context.terms), Figures()
        if quantity is not None:
            own.add(quantity, (spec.metric,))
            own.add(Quantity(quantity.number, COUNT), (spec.metric,))
            place = spec.citation.line_start - reference.line_start
            yield own, product, lines[place] if place < len(lines) else one.result.says
    if claim is not None:
        for quantity in _claimed(claim.value, claim.unit):
            figures.add(quantity, metrics_of(claim.subject, context))
        yield figures, product, one.result.says
    if not on_lines and reference.line_end - reference.line_start < MAX_LINES:
        for line in lines:
            stated = Figures()
            stated.add_text(line)
            for number in written_numbers(line):
                stated.add(number)
            yield stated, product, line


def _claimed(value: str, unit: str) -> Iterator[Quantity]:
    for capacity in (False, True):
        found = parse_quantity(value, unit, capacity=capacity)
        if found is not None:
            yield found


def metrics_of(subject: str, context: GateContext) -> list[str]:
    """Metrics that the subject of a claim may name."""
    tokens = words(subject)
    for cut in range(len(tokens)):
        found = context.terms.resolve("metric", " ".join(tokens[cut:]))
        if found:
            return found
    return []


@dataclass(frozen=True)
class Shown:
    """A correct equation, and what its result may be used for."""

    equation: Equation
    grounded: bool
    """Whether it starts from at least one quantity, and each of them has a source."""
    counted: bool
    """Whether it starts from bare numbers: sizes and counts, which need no source."""


def is_element(stated: Stated) -> bool:
    """Whether it is the width of an element or a vector, which needs no source."""
    return stated.dimension == "bytes" and stated.readings[0].base <= ELEMENT_BYTES


def derived(text: str, given: Sequence[Figures], is_size: Callable[[Decimal], bool] = lambda _: False) -> list[Shown]:
    """Every correct equation in a text, in order; a result may be the input of a later one. Bytes and operations that
    follow from sizes of the run, for which `is_size` holds, need no source."""
    figures, found = Figures(), list[Shown]()
    for equation in equations(text):
        if not equation.holds:
            continue
        facts = [
            one
            for one in equation.inputs
            if not is_element(one) and not (one.dimension in _OF_SIZES and is_size(one.readings[0].base))
        ]
        grounded = bool(facts) and all(any(g.has(one.readings) for g in (*given, figures)) for one in facts)
        counted = not facts and all(result.unit.dimension in _COUNTABLE for result in equation.results)
        counted = counted or (not facts and _follows(equation, (*given, figures), is_size))
        found.append(Shown(equation, grounded, counted))
        for result in equation.results if grounded or counted else ():
            figures.add(result)
            figures.add(
                Quantity(Number(result.base, result.number.digits, result.number.last_place * result.unit.scale), COUNT)
            )
    return found


def _follows(equation: Equation, known: Sequence[Figures], is_size: Callable[[Decimal], bool]) -> bool:
    """Whether an intensity follows from numbers each of which is known, `3932160 / 192512 = 20.4 FLOP/byte`, or from
    sizes of the run alone."""
    if {result.unit.dimension for result in equation.results} != {"floating-point operations per byte"}:
        return False
    left = equation.text.partition("=")[0]
    inputs = [one for match in re.finditer(NUMBER, left) if (one := plain_number(match[0])) is not None]
    return bool(inputs) and (
        all(one.number.digits > 2 and any(figures.has([one]) for figures in known) for one in inputs)
        or all(one.base <= wording.SMALL or is_size(one.base) for one in inputs)
    )


def wiki_specs(context: GateContext) -> Iterator[tuple[tuple[Quantity, ...], str]]:
    """Every spec of the pinned wikis as quantity and metric."""
    for wiki, pinned in context.record.wikis.items():
        for path in pinned.pages:
            for spec in context.wikis.specs(wiki, path):
                quantity = spec.quantity(context.terms)
                if quantity is not None:
                    yield (quantity,), spec.metric
