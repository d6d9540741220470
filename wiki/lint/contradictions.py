"""Pages agree with one another: about a product, and about the limits of its compute capability."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.spec import Spec, same_text
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView

Key = tuple[str, str, str]


@rule("contradiction", "Two pages recommend different values of one metric.")
def contradiction(view: WikiView) -> Iterator[Finding]:
    """Every recommended value that an earlier page, or the page of the compute capability, gives otherwise."""
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
    """The product id of a page's compute capability, such as cc-9-0; empty where it states none."""
    stated = next((s.value for s in specs if s.metric == "compute_capability" and s.recommended), "")
    return f"cc-{stated.replace('.', '-')}" if stated else ""


def _differ(a: Spec, b: Spec, view: WikiView) -> bool:
    if not (a.published and b.published):
        return False
    first, second = a.base(view.vocabulary), b.base(view.vocabulary)
    if first is None or second is None:
        return not same_text(a.value, b.value)
    return first != second


def _said(spec: Spec) -> str:
    return f"{spec.value} {spec.unit}".strip()
