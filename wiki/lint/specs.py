"""Single spec rows: what they rest on, whether they can be true, and whether they say enough."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbs.evidence.spec import Spec
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


@rule("unsupported-verified", "Something is called verified without a vendor's document or a measurement of one's own.")
def unsupported_verified(view: WikiView) -> Iterator[Finding]:
    """Every verified row whose source is second-hand, and every verified page without a first-hand source."""
    for page in view.pages:
        if page.meta.confidence == "verified" and not any(s.kind in _FIRST_HAND for s in page.meta.sources):
            message = "a verified page needs a vendor's document or a measurement among its sources"
            yield Finding(page.path, front_matter_line(page, "confidence"), message)
    for page, spec, line in rows(view):
        if spec.confidence == "verified" and spec.source.kind not in _FIRST_HAND:
            message = f"verified needs a vendor's document or a measurement; {spec.source.id} is a {spec.source.kind}"
            yield Finding(page.path, line, message)


@rule("out-of-range", "A value is physically implausible.")
def out_of_range(view: WikiView) -> Iterator[Finding]:
    """Every value outside the range that the vocabulary gives for its metric."""
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


@rule("dense-or-sparse", "A tensor throughput does not say whether it is dense or sparse.")
def dense_or_sparse(view: WikiView) -> Iterator[Finding]:
    """Every such value; a row under "Where sources disagree" may say it beside its source."""
    for page, spec, line in rows(view):
        metric = view.vocabulary.metrics[spec.metric]
        said = spec.qualifier if spec.recommended else f"{spec.qualifier} {spec.source.place}"
        if metric.sparsity and spec.base(view.vocabulary) is not None and not re.search(r"dense|sparse|sparsity", said):
            yield Finding(page.path, line, f"{metric.name} must say dense or sparse 2:4 in its qualifier")


@rule("duplicate-spec", "A page recommends two values for one metric and qualifier.")
def duplicate_spec(view: WikiView) -> Iterator[Finding]:
    """Every recommended row that repeats the metric and qualifier of one above it."""
    first: dict[tuple[str, str, str], int] = {}
    for page, spec, line in rows(view):
        if spec.recommended:
            above = first.setdefault((page.path, spec.metric, spec.qualifier), line)
            if above != line:
                name = view.vocabulary.metrics[spec.metric].name + (f" ({spec.qualifier})" if spec.qualifier else "")
                yield Finding(page.path, line, f"line {above} recommends a value for {name} already")
