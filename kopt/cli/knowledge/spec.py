"""`kopt spec`: hardware values with their citation lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines

if TYPE_CHECKING:
    from rich.console import Console

    from kbs.evidence.vocabulary import Vocabulary
    from kopt.services.engine import Engine
    from kopt.services.knowledge.specs import FoundSpecs


@command("spec", reads_wikis=True)
def spec(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GPU [METRIC] | compare GPU GPU...", help="A GPU, a GPU and a metric, or `compare` and GPUs."
        ),
    ] = None,
    qualifier: Annotated[str, typer.Option("--qualifier", help="Only rows of this qualifier, such as dense.")] = "",
    every: Annotated[
        bool, typer.Option("--all", help="Include values that other sources state and the page does not recommend.")
    ] = False,
    list_gpus: Annotated[bool, typer.Option("--list", help="List the GPUs that the wikis have pages about.")] = False,
) -> Reply:
    """Look up hardware values. Each is printed with the line that states it; a missing one is UNKNOWN, never a guess.

    kopt spec h100-sxm · kopt spec h100-sxm hbm_bandwidth · kopt spec compare h100-sxm h200 · kopt spec --list
    """
    from kbs.common.errors import ExitCode
    from kopt.services.knowledge.specs import ask_specs
    from kopt.services.results.answering.citations import SpecData

    asked = list(words or ())
    with engine() as eng:
        if list_gpus or not asked:
            return _gpus(eng)
        compare = asked[0] == "compare"
        gpus, metric = (asked[1:], "") if compare else (asked[:1], " ".join(asked[1:]))
        found, answered = ask_specs(eng, gpus, metric, qualifier, others=every, compare=compare)
        terms, warnings = eng.terms, list(eng.warnings)
        data = SpecData.of(found, terms)

    def show(console: Console) -> None:
        if compare:
            _show_comparison(console, found, terms)
        print_lines(_lines(found, terms, rows=not compare))(console)

    return Reply(data, show, ExitCode.OK if answered else ExitCode.ABSTAINED, warnings)


def _gpus(eng: Engine) -> Reply:
    from kopt.services.knowledge.specs import documented
    from kopt.services.results.answering.citations import SpecData

    data = SpecData.of_gpus(documented(eng), eng.terms)
    lines = [f"{gpu.gpu:<16} {gpu.name:<18} {gpu.page}" for gpu in data.gpus]
    return Reply(data, print_lines(lines), warnings=list(eng.warnings))


def _lines(found: FoundSpecs, terms: Vocabulary, *, rows: bool) -> Iterator[str]:
    for row in found.specs if rows else ():
        note = "" if row.recommended else ", not recommended"
        yield f"{row.citation_line(terms)}  ({row.confidence}{note}; {row.source.title}, {row.source.place})"
    for gap in found.gaps:
        if gap in found.unknown or "UNKNOWN" in gap or not found.specs:
            yield gap


def _show_comparison(console: Console, found: FoundSpecs, terms: Vocabulary) -> None:
    from rich.table import Table
    from rich.text import Text

    from kbs.common.visible_text import visible

    table = Table("metric", *(terms.products[product].name for product in found.products), box=None, pad_edge=False)
    keys = dict.fromkeys((s.metric, s.qualifier) for metric in terms.metrics for s in found.specs if s.metric == metric)
    rows = {(s.product, s.metric, s.qualifier): s for s in reversed(found.specs)}
    for metric, qualifier in keys:
        cells = []
        for product in found.products:
            row = rows.get((product, metric, qualifier))
            cells.append(f"{row.value} {row.unit}".strip() + f" [L{row.citation.line_start}]" if row else "UNKNOWN")
        name = terms.metrics[metric].name + (f" ({qualifier})" if qualifier else "")
        table.add_row(*(Text(visible(cell)) for cell in (name, *cells)))
    console.print(table)
    for product in found.products:
        page = next((one.citation for one in found.specs if one.product == product), None)
        if page:
            console.print(f"{terms.products[product].name}: {page.wiki}/{page.path}", markup=False)
