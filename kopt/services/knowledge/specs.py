"""Look up hardware values of GPUs in the wikis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kbs.answers.knowledge import Knowledge
from kbs.common.errors import UsageError
from kbs.evidence.spec import Spec, canonical_qualifier
from kbs.index.overrides import override_notes
from kopt.services.engine import Engine


@dataclass(frozen=True)
class Documented:
    """A GPU that the wikis have a page about."""

    product: str
    page: str
    """Path of the page."""


@dataclass(frozen=True)
class FoundSpecs:
    """Hardware values, and what is missing."""

    products: list[str]
    specs: list[Spec]
    unknown: list[str]
    """Names that no product has, or no page is about, each with a hint."""
    gaps: list[str]
    """Everything that is not known: `unknown`, missing values, and values that the vendor does not publish."""
    overrides: list[str] = field(default_factory=list)
    """What the values take the place of in earlier wikis."""

    @property
    def published(self) -> bool:
        """Whether any of the values has a number."""
        return any(spec.published for spec in self.specs)


def documented(engine: Engine) -> list[Documented]:
    """The GPUs that the wikis have pages about."""
    pages: dict[str, str] = {}
    for spec in engine.specs():
        pages.setdefault(spec.product, spec.citation.path)
    return [Documented(product, pages[product]) for product in engine.terms.products if product in pages]


def find_specs(
    engine: Engine, gpus: Sequence[str], metric: str = "", qualifier: str = "", *, others: bool = False
) -> FoundSpecs:
    """The specs of GPUs; `metric` is one, a group of them, or empty for all. `others`: also values of other sources
    that the page does not recommend.

    Raises `UsageError`: `metric_unknown`, `qualifier_unknown`.
    """
    return engine.with_store(
        lambda store: _find(engine.knowledge(store), gpus, metric, qualifier, others), vectors=False
    )


def ask_specs(
    engine: Engine, gpus: Sequence[str], metric: str = "", qualifier: str = "", *, others: bool = False, compare: bool
) -> tuple[FoundSpecs, bool]:
    """(the specs of a GPU, or of several to compare; whether they answer it). What no page states is logged for the
    wiki.

    Raises `UsageError`: `compare_needs_two`, and what `find_specs` raises.
    """
    if compare and len(gpus) < 2:
        raise UsageError(
            "compare needs at least two GPUs",
            code="compare_needs_two",
            hint="Example: kopt spec compare h100-sxm h200-sxm",
        )
    found = find_specs(engine, gpus, metric, qualifier, others=others)
    if found.gaps and not found.published:
        reason = "unpublished" if found.specs else "not_in_wiki"
        asked = ["spec", *(["compare"] if compare else []), *gpus, *([metric] if metric else [])]
        engine.log_gap(" ".join(asked), reason, found.gaps)
    engine.warn(found.overrides)
    return found, found.published and (len(found.products) > 1 or not compare)


def _find(knowledge: Knowledge, gpus: Sequence[str], metric: str, qualifier: str, others: bool) -> FoundSpecs:
    terms = knowledge.vocabulary
    products, unknown = _products(gpus, knowledge)
    metrics, wanted = _metrics(metric, knowledge), _qualifier(qualifier, knowledge)
    asked = dict.fromkeys(product for gpu in gpus for product in terms.resolve("product", gpu))
    specs: list[Spec] = []
    gaps = list(unknown)
    for product in products:
        rows = [
            row
            for each in metrics or terms.metrics
            for row in [*knowledge.of(product, each), *(knowledge.others(product, each) if others else ())]
            if wanted is None or row.qualifier == wanted
        ]
        if not metrics:
            rows.sort(key=lambda row: (row.citation.wiki, row.citation.path, row.citation.line_start))
        specs += rows
        gaps += [
            f"{terms.products[product].name} {terms.metrics[each].name}: UNKNOWN (gpu-wiki not found)"
            for each in metrics
            if not any(row.metric == each for row in rows)
        ]
    gaps += [
        f"{terms.products[one.product].name} {terms.metrics[one.metric].name}: its vendor publishes no value"
        for one in specs
        if not one.published
    ]
    missing = [(product, each) for product in asked for each in metrics or terms.metrics]
    overrides = override_notes(knowledge.store, terms, [row.citation for row in specs], missing)
    return FoundSpecs(products, specs, unknown, gaps, overrides)


def _products(names: Sequence[str], knowledge: Knowledge) -> tuple[list[str], list[str]]:
    """(product ids of names, where a family gives its members; names that are not known, with the nearest ones)."""
    terms = knowledge.vocabulary
    products: list[str] = []
    unknown: list[str] = []
    for name in names:
        found = terms.resolve("product", name)
        have = [product for product in found if product in knowledge.documented]
        products += have
        if not found:
            unknown.append(unknown_gpu(name, knowledge))
        elif not have:
            unknown.append(
                f"{terms.products[found[0]].name}: UNKNOWN (gpu-wiki not found); there is no page hardware/{found[0]}"
            )
    return list(dict.fromkeys(products)), unknown


def unknown_gpu(name: str, knowledge: Knowledge) -> str:
    """That no GPU has a name, with the nearest names that are known."""
    if not name.strip():
        return "no GPU is named; see kopt spec --list"
    near = knowledge.vocabulary.nearest_products(name, knowledge.documented)
    hint = f"; the nearest known ones are {', '.join(near)}" if near else "; see kopt spec --list"
    return f"{name}: no GPU of this name is known{hint}"


def _metrics(text: str, knowledge: Knowledge) -> list[str]:
    if not text:
        return []
    terms = knowledge.vocabulary
    found = terms.resolve("metric", text) or [
        metric for group in terms.resolve("metric group", text) for metric in terms.metric_groups[group].metrics
    ]
    if not found:
        near = terms.nearest_metrics(text) or list(terms.metrics)[:6]
        raise UsageError(
            f"unknown metric {text!r}", code="metric_unknown", hint=f"The nearest known ones are {', '.join(near)}."
        )
    return found


def _qualifier(text: str, knowledge: Knowledge) -> str | None:
    if not text:
        return None
    found = canonical_qualifier(text, knowledge.vocabulary)
    if found is None:
        known = ", ".join(knowledge.vocabulary.qualifiers)
        raise UsageError(f"unknown qualifier {text!r}", code="qualifier_unknown", hint=f"Choose from {known}.")
    return found
