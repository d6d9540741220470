"""`kopt spec`: hardware values with their citation lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from kbs.answers.knowledge import Knowledge
    from kbs.evidence.spec import Spec
    from kbs.index.store import Store
    from kopt.services.engine import Engine


def spec(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GPU [METRIC] | compare GPU GPU...", help="A GPU, a GPU and a metric, or `compare` and GPUs."
        ),
    ] = None,
    qualifier: Annotated[str, typer.Option("--qualifier", help="Only rows of this qualifier, such as dense.")] = "",
    every: Annotated[
        bool, typer.Option("--all", help="Also what other sources print and the page does not recommend.")
    ] = False,
    list_gpus: Annotated[bool, typer.Option("--list", help="List the GPUs that the wikis have pages about.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Look hardware values up. Each is printed with the line that states it; a missing one is UNKNOWN, never a guess.

    kopt spec h100-sxm · kopt spec h100-sxm hbm_bandwidth · kopt spec compare h100-sxm h200 · kopt spec --list
    """

    def work() -> Reply:
        from kopt.cli.support import engine

        with engine() as eng:
            reply = eng.with_store(
                lambda store: _reply(eng, store, list(words or ()), qualifier, every, list_gpus), vectors=False
            )
            reply.warnings = [*eng.warnings, *reply.warnings]
            return reply

    deliver("spec", json, debug, work)


def _reply(eng: Engine, store: Store, words: list[str], qualifier: str, every: bool, list_gpus: bool) -> Reply:
    from kbs.answers.knowledge import Knowledge
    from kbs.common.errors import ExitCode, UsageError
    from kopt.services.results.citations import ProductData, SpecData, SpecRowData

    terms = eng.terms
    knowledge = Knowledge(store, terms, lambda question: eng.search(store, question.text, {}, 1))
    if list_gpus or not words:
        gpus = [
            ProductData(
                gpu=product,
                name=terms.products[product].name,
                aliases=list(terms.products[product].aliases),
                families=list(terms.products[product].families),
                page=next(s.citation.path for s in knowledge.specs if s.product == product),
            )
            for product in knowledge.documented
        ]

        def show_list(console: Console) -> None:
            for gpu in gpus:
                console.print(f"{gpu.gpu:<16} {gpu.name:<18} {gpu.page}", markup=False)

        return Reply(SpecData(specs=[], gpus=gpus, gaps=[]), show_list)
    compare = words[0] == "compare"
    names, metric_words = (words[1:], []) if compare else (words[:1], words[1:])
    if compare and len(names) < 2:
        raise UsageError(
            "compare needs at least two GPUs",
            code="compare_needs_two",
            hint="Such as: kopt spec compare h100-sxm h200-sxm",
        )
    products, unknown = _products(names, knowledge)
    gaps = list(unknown)
    metrics = _metrics(" ".join(metric_words), knowledge)
    wanted = _qualifier(qualifier, knowledge)
    specs = []
    for product in products:
        rows = [
            row
            for metric in metrics or terms.metrics
            for row in [*knowledge.of(product, metric), *(knowledge.others(product, metric) if every else ())]
            if wanted is None or row.qualifier == wanted
        ]
        specs += (
            rows
            if metrics
            else sorted(rows, key=lambda row: (row.citation.wiki, row.citation.path, row.citation.line_start))
        )
        missing = [metric for metric in metrics if not any(row.metric == metric for row in rows)]
        gaps += [
            f"{terms.products[product].name} {terms.metrics[metric].name}: UNKNOWN (gpu-wiki not found)"
            for metric in missing
        ]
    gaps += [
        f"{terms.products[s.product].name} {terms.metrics[s.metric].name}: its vendor publishes no value"
        for s in specs
        if not s.published
    ]
    published = [s for s in specs if s.published]
    if gaps and not published:
        eng.log_gap(" ".join(["spec", *words]), "not_in_wiki" if not specs else "unpublished", gaps)

    def show(console: Console) -> None:
        if compare:
            _show_comparison(console, knowledge, products, specs)
        else:
            for row in specs:
                note = "" if row.recommended else ", not recommended"
                console.print(
                    f"{row.citation_line(terms)}  ({row.confidence}{note}; {row.source.title}, {row.source.place})",
                    markup=False,
                )
        for gap in gaps:
            if gap in unknown or "UNKNOWN" in gap or not specs:
                console.print(gap, markup=False)

    data = SpecData(specs=[SpecRowData.of(s, terms) for s in specs], gpus=[], gaps=gaps)
    answered = published and (len(products) > 1 or not compare)
    return Reply(data, show, ExitCode.OK if answered else ExitCode.ABSTAINED)


def _products(names: list[str], knowledge: Knowledge) -> tuple[list[str], list[str]]:
    """Product ids of names; a family gives its members. An unknown name is a gap that names the nearest known ones."""
    terms = knowledge.vocabulary
    products: list[str] = []
    gaps: list[str] = []
    for name in names:
        found = terms.resolve("product", name)
        have = [product for product in found if product in knowledge.documented]
        products += have
        if not found:
            near = terms.nearest_products(name, knowledge.documented)
            hint = f"; the nearest known ones are {', '.join(near)}" if near else "; see kopt spec --list"
            gaps.append(f"{name}: no GPU of this name is known{hint}")
        elif not have:
            gaps.append(
                f"{terms.products[found[0]].name}: UNKNOWN (gpu-wiki not found); there is no page hardware/{found[0]}"
            )
    return list(dict.fromkeys(products)), gaps


def _metrics(text: str, knowledge: Knowledge) -> list[str]:
    from kbs.common.errors import UsageError

    if not text:
        return []
    terms = knowledge.vocabulary
    found = terms.resolve("metric", text) or [
        metric for group in terms.resolve("metric group", text) for metric in terms.metric_groups[group].metrics
    ]
    if not found:
        near = terms.nearest_metrics(text) or list(terms.metrics)[:6]
        raise UsageError(
            f"{text!r} is no metric", code="metric_unknown", hint=f"The nearest known ones are {', '.join(near)}."
        )
    return found


def _qualifier(text: str, knowledge: Knowledge) -> str | None:
    from kbs.common.errors import UsageError
    from kbs.evidence.spec import canonical_qualifier

    if not text:
        return None
    found = canonical_qualifier(text, knowledge.vocabulary)
    if found is None:
        known = ", ".join(knowledge.vocabulary.qualifiers)
        raise UsageError(f"{text!r} is no qualifier", code="qualifier_unknown", hint=f"Known ones are {known}.")
    return found


def _show_comparison(console: Console, knowledge: Knowledge, products: list[str], specs: list[Spec]) -> None:
    from rich.table import Table
    from rich.text import Text

    from kbs.common.visible_text import visible

    terms = knowledge.vocabulary
    table = Table("metric", *(terms.products[product].name for product in products), box=None, pad_edge=False)
    keys = dict.fromkeys((s.metric, s.qualifier) for metric in terms.metrics for s in specs if s.metric == metric)
    for metric, qualifier in keys:
        cells = []
        for product in products:
            row = next((s for s in specs if (s.product, s.metric, s.qualifier) == (product, metric, qualifier)), None)
            cells.append(f"{row.value} {row.unit}".strip() + f" [L{row.citation.line_start}]" if row else "UNKNOWN")
        name = terms.metrics[metric].name + (f" ({qualifier})" if qualifier else "")
        table.add_row(*(Text(visible(cell)) for cell in (name, *cells)))
    console.print(table)
    for product in products:
        page = next((s.citation for s in specs if s.product == product), None)
        if page:
            console.print(f"{terms.products[product].name}: {page.wiki}/{page.path}", markup=False)
