"""Rules on spec rows: what they rest on, whether they are plausible, and whether pages agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kbs.evidence.spec import Spec, same_text
from kbs.evidence.units import parse_unit
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.page import VENDOR_SOURCES, Page

_FIRST_HAND = (*VENDOR_SOURCES, "measurement")


def rows(view: WikiView) -> Iterator[tuple[Page, Spec, int]]:
    """Every spec row with its page and line."""
    for page in view.pages:
        for spec in page.specs:
            yield page, spec, spec.citation.line_start


@rule("unsupported-verified", alone=True)
def unsupported_verified(view: WikiView) -> Iterator[Finding]:
    """Call a value verified only with first-hand evidence.

    Checks that verified pages and spec rows rest on a vendor's document or on a measurement.

    Why: targets may be limited to verified specs, which must then be exactly that.

    Example: a spec row marked `verified` whose source is a blog post.
    """
    for page in view.pages:
        if page.meta.confidence == "verified" and not any(s.kind in _FIRST_HAND for s in page.meta.sources):
            message = "a verified page needs a vendor's document or a measurement among its sources"
            yield Finding(page.path, front_matter_line(page, "confidence"), message)
    for page, spec, line in rows(view):
        if spec.confidence == "verified" and spec.source.kind not in _FIRST_HAND:
            message = f"verified needs a vendor's document or a measurement; {spec.source.id} is a {spec.source.kind}"
            yield Finding(page.path, line, message)


@rule("out-of-range", alone=True)
def out_of_range(view: WikiView) -> Iterator[Finding]:
    """Keep values within the plausible range of their metric.

    Checks each spec value against the range that the vocabulary gives for its metric.

    Why: a wrong unit or a slipped digit gives a roofline that looks fine and is wrong.

    Example: a DRAM bandwidth of `3.35 GB/s` instead of `3.35 TB/s`.
    """
    for page, spec, line in rows(view):
        metric = view.vocabulary.metrics[spec.metric]
        usual = parse_unit(metric.unit, capacity=metric.capacity)
        base = spec.base(view.vocabulary)
        if metric.range is None or usual is None or base is None:
            continue
        low, high = metric.range
        if not low <= base / usual.scale <= high:
            message = f"{metric.name} must be between {low:g} and {high:g} {metric.unit}, not {spec.value} {spec.unit}"
            yield Finding(page.path, line, message)


@rule("dense-or-sparse", alone=True)
def dense_or_sparse(view: WikiView) -> Iterator[Finding]:
    """Say whether a tensor throughput is dense or sparse.

    Checks the qualifier of every tensor throughput. A row under "Where sources disagree" may say it beside its source.

    Why: the sparse figure is twice the dense one, and vendors often print it alone.

    Example: `1979 TFLOPS` for BF16 with an empty qualifier instead of `sparse 2:4`.
    """
    for page, spec, line in rows(view):
        metric = view.vocabulary.metrics[spec.metric]
        said = spec.qualifier if spec.recommended else f"{spec.qualifier} {spec.source.place}"
        if metric.sparsity and spec.base(view.vocabulary) is not None and not re.search(r"dense|sparse|sparsity", said):
            yield Finding(page.path, line, f"{metric.name} must say dense or sparse 2:4 in its qualifier")


@rule("duplicate-spec", alone=True)
def duplicate_spec(view: WikiView) -> Iterator[Finding]:
    """Recommend one value per metric and qualifier.

    Checks that no page recommends two values for one metric and qualifier.

    Why: a calculation needs one value; the others belong under "Where sources disagree".

    Example: two rows `memory_size` with different values in one table.
    """
    first: dict[tuple[str, str, str], int] = {}
    for page, spec, line in rows(view):
        if spec.recommended:
            above = first.setdefault((page.path, spec.metric, spec.qualifier), line)
            if above != line:
                name = view.vocabulary.metrics[spec.metric].name + (f" ({spec.qualifier})" if spec.qualifier else "")
                yield Finding(page.path, line, f"line {above} recommends a value for {name} already")


_COUNTS = ("threads", "warps", "blocks", "registers", "multiprocessors", "barriers")
"""Dimensions of what there is no half of."""
_RESULT = re.compile(r"=\s*(\d[\d,.]*\d|\d)")


@rule("value-of-row", alone=True)
def value_of_row(view: WikiView) -> Iterator[Finding]:
    """Let the value of a row be what its source cell derives.

    Checks rows whose source is `derived:`: a result of the arithmetic there, rounded, is the value. A count of threads,
    warps, blocks, registers or SMs is a whole number, of threads a multiple of 16, and an allocation unit a power of
    two.

    Why: the value is used, and the arithmetic is what a reader checks.

    Example: `155.8` beside `derived: 60 SM x 1,024 FLOP per clock x 2.58 GHz = 158.5`.
    """
    for page, spec, line in rows(view):
        quantity = spec.quantity(view.vocabulary)
        if quantity is None:
            continue
        value = float(quantity.number.value)
        if quantity.unit.dimension in _COUNTS and value != round(value):
            yield Finding(page.path, line, f"{spec.value} {spec.unit} is no whole number")
        if quantity.unit.dimension == "threads" and value % 16:
            yield Finding(page.path, line, f"{spec.value} threads are no whole warps")
        if spec.metric.endswith("allocation_unit") and value > 0 and not math.log2(value).is_integer():
            yield Finding(page.path, line, f"{spec.value} {spec.unit} is no power of two")
        results = [float(found[1].replace(",", "")) for found in _RESULT.finditer(spec.source.place)]
        if spec.source.id == "derived" and results and not any(_rounds(value, one) for one in results):
            yield Finding(page.path, line, f"{spec.value} is not what the row derives: {spec.source.place[:120]}")


def _rounds(value: float, result: float) -> bool:
    """Whether a value is a result, rounded, in the same or another multiple of its unit."""
    return any(abs(value * scale - result) <= 0.006 * result for scale in (1, 1000, 0.001))


Key = tuple[str, str, str]


@rule("contradiction")
def contradiction(view: WikiView) -> Iterator[Finding]:
    """Recommend the same value on every page.

    Checks the values that a product page recommends against earlier pages of the product and against the page of its
    compute capability.

    Why: two pages that disagree give two answers to one question.

    Example: 228 KB of shared memory on the product page, 227 KB on the page of its compute capability.
    """
    recommended: dict[Key, tuple[str, Spec]] = {}
    for page in view.pages:
        for spec in page.specs:
            if spec.recommended:
                recommended.setdefault((spec.product, spec.metric, spec.qualifier), (page.path, spec))
    for page in view.pages:
        target = _target(page.specs)
        for spec in page.specs if page.product else ():
            if not spec.recommended:
                continue
            for product in (spec.product, target):
                path, other = recommended.get((product, spec.metric, spec.qualifier), (page.path, spec))
                if path != page.path and _differ(spec, other, view):
                    at = f"{path}:{other.citation.line_start}"
                    name = view.vocabulary.metrics[spec.metric].name
                    message = f"{name} is {_said(spec)} here and {_said(other)} on {at}"
                    yield Finding(page.path, spec.citation.line_start, message)


def _target(specs: tuple[Spec, ...]) -> str:
    """The product id of a page's compute capability, such as cc-9-0; empty if it states none."""
    stated = next((s.value for s in specs if s.metric == "compute_capability" and s.recommended), "")
    return f"cc-{stated.replace('.', '-')}" if stated else ""


def _differ(a: Spec, b: Spec, view: WikiView) -> bool:
    if not (a.published and b.published) or (a.value, a.unit) == (b.value, b.unit):
        return False
    first, second = a.base(view.vocabulary), b.base(view.vocabulary)
    if first is None or second is None:
        return not same_text(a.value, b.value)
    return first != second


def _said(spec: Spec) -> str:
    return f"{spec.value} {spec.unit}".strip()
