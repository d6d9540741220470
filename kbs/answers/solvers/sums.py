"""Sums with the numbers of the question alone: a time that repeats, the bytes of a tensor; and the limit that a number
of bytes is."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.specs import USES
from kbs.evidence.units import Quantity, format_number, format_seconds, parse_number, parse_unit
from kbs.hardware.roofline import usable
from kbs.questions.forms import Form
from kbs.questions.question import Question
from kbs.questions.sums import Repeated, extent, limit_given, moved, repeated

_FORMS = (Form.CALCULATION, Form.VALUE, Form.TOPIC)
_BYTES = re.compile(
    r"\bhow (?:big|large|much (?:memory|space|vram|ram|storage))\b|\bhow many (?:bytes|[kmgt]i?b)\b|\bsize of\b"
    r"|\bmemory (?:footprint|needed|required|usage)\b|\b(?:bytes|memory) (?:does|do|of|for)\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:how (?:much|long|many)|total|altogether|overall|add(?:s|ed)? up|overhead|time)\b", re.IGNORECASE
)
_LIMIT = "shared_memory_per_block"


def total_time(question: Question, knowledge: Knowledge) -> Part | None:
    """Something that is done so many times and takes so long each time: how long it takes in all."""
    del knowledge
    found = repeated(question.read)
    if found is None or not _TOTAL.search(question.read):
        return None
    return Part((_repeated(found),), (*USES, "operation"), _FORMS, whole=question.form in _FORMS)


def _repeated(found: Repeated) -> Claim:
    expression = f"{found.count} × {found.time} {found.unit}"
    total = found.count * found.time
    scale = {"ns": Decimal("1e-9"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1)}[found.unit]
    unit, value = found.unit, total
    for larger, than in (("µs", "ns"), ("ms", "µs"), ("s", "ms")):
        if unit == than and value >= 1000:
            unit, value = larger, value / 1000
    shown = f"{expression} = {format_number(value)} {unit}"
    step = Step("time", expression, total * scale, "s", shown)
    return Claim(f"{format_number(value)} {unit} in all: {shown}.", ClaimKind.GIVEN, derivation=(step,))


def tensor_bytes(question: Question, knowledge: Knowledge) -> Part | None:
    """The bytes of a tensor of the sizes and the element type that the question gives."""
    if not question.dtype or not _BYTES.search(question.read):
        return None
    sizes = extent(question.read)
    if len(sizes) < 2:
        return None
    dtype = knowledge.vocabulary.dtypes[question.dtype]
    total = math.prod(sizes) * dtype.bytes
    expression = " × ".join([*(str(size) for size in sizes), f"{dtype.bytes} B"])
    unit, scale = next(((u, s) for u, s in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)) if total >= s), ("kB", 10**3))
    value = f"{format_number(Decimal(total) / scale)} {unit}"
    shown = f"{expression} = {value}"
    step = Step("bytes", expression, Decimal(total), "B", shown)
    text = f"{value} in {dtype.name}, which has {dtype.bytes} B an element: {shown}."
    claim = Claim(text, ClaimKind.GIVEN, derivation=(step,))
    return Part((claim,), (*USES, "operation"), _FORMS, whole=True)


_RATE = re.compile(
    r"\bbandwidth\b|\bthroughput\b|\b[GT]B/s\b|\bmemory[- ]bound\b|\bhow (?:fast|close)\b|\befficien\w+", re.IGNORECASE
)


def rate(question: Question, knowledge: Knowledge) -> Part | None:
    """Bytes and the time that they took: the rate, and what share of each GPU's bandwidth that is."""
    found = moved(question.read)
    if found is None or not _RATE.search(question.read):
        return None
    amount, time = (_quantity(text) for text in found)
    if amount is None or time is None or not time.base:
        return None
    reached = amount.base / time.base
    value = f"{format_number(reached / 10**9)} GB/s"
    expression = " / ".join(found)
    step = Step("rate", expression, reached, "B/s", f"{expression} = {value}")
    claims = [Claim(f"{found[0]} in {found[1]} are {value}: {step.shown}.", ClaimKind.GIVEN, derivation=(step,))]
    facts = []
    for product in question.products:
        peak = usable(knowledge.about(product), product, "hbm_bandwidth", knowledge.vocabulary)
        top = peak.base(knowledge.vocabulary) if peak is not None else None
        if peak is None or not top:
            continue
        of_peak, least = f"{expression} / {peak.value} {peak.unit} × 100", f"{found[0]} / {peak.value} {peak.unit}"
        shown = f"{of_peak} = {format_number(reached / top * 100)}", f"{least} = {format_seconds(amount.base / top)}"
        steps = (
            Step("share of the bandwidth", of_peak, reached / top * 100, "%", shown[0]),
            Step("least time", least, amount.base / top, "s", shown[1]),
        )
        text = (
            f"That is {format_number(reached / top * 100)} % of the {peak.value} {peak.unit} of"
            f" {knowledge.name(product)} ({shown[0]}), at which it would take {format_seconds(amount.base / top)}:"
            f" {shown[1]}."
        )
        claims.append(Claim(text, ClaimKind.DERIVED, (peak.citation,), steps, subject=product))
        facts.append(knowledge.spec_claim(peak))
    uses = (*USES, "operation", "number")
    forms = (*_FORMS, Form.YES_NO, Form.REASON)
    return Part(tuple(claims), uses, forms, parts({"Hardware facts": facts}), whole=question.form in _FORMS)


def _quantity(text: str) -> Quantity | None:
    """A number with its unit."""
    value, _, name = text.partition(" ")
    number, unit = parse_number(value), parse_unit(name)
    return Quantity(number, unit) if number is not None and unit is not None else None


def named_limit(question: Question, knowledge: Knowledge) -> Part | None:
    """The limit of which compute capability a number of bytes in the message of a compiler or driver is."""
    limit = limit_given(question.read)
    if limit is None:
        return None
    having = [
        spec
        for spec in knowledge.specs
        if spec.metric == _LIMIT and spec.recommended and knowledge.capability(spec.product) in ("", spec.product)
        and spec.base(knowledge.vocabulary) == limit
    ]  # fmt: skip
    if not having:
        return None
    names = knowledge.names([spec.product for spec in having])
    kib = f"{limit} B / 1024 B = {format_number(Decimal(limit) / 1024)}"
    metric = knowledge.vocabulary.metrics[_LIMIT].name
    text = f"{limit} bytes are {format_number(Decimal(limit) / 1024)} KB, the {metric} of {names}."
    step = Step("limit", f"{limit} B / 1024", Decimal(limit), "B", kib)
    claim = Claim(text, ClaimKind.DERIVED, tuple(spec.citation for spec in having), (step,))
    asked = (Form.VALUE, Form.DEFINITION, Form.TOPIC, Form.CALCULATION, Form.YES_NO)
    return Part((claim,), (*USES, "identifier", "symptom"), asked)
