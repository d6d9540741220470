"""`kopt spec`: hardware values with their citation lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import spec_words

if TYPE_CHECKING:
    from rich.console import Console

    from kbs.evidence.spec import Spec
    from kbs.evidence.vocabulary import Vocabulary
    from kopt.services.engine import Engine
    from kopt.services.knowledge.specs import FoundSpecs
    from kopt.services.results.answering.citations import ProductData


@command("spec", reads_wikis=True, paged=True)
def spec(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GPU [METRIC] | compare GPU GPU...",
            autocompletion=spec_words,
            help="A GPU, a GPU and a metric, or `compare` and GPUs.",
        ),
    ] = None,
    qualifier: Annotated[str, typer.Option("--qualifier", help="Only rows of this qualifier, such as dense.")] = "",
    every: Annotated[
        bool, typer.Option("--all", help="Include values that other sources state and the page does not recommend.")
    ] = False,
    list_gpus: Annotated[
        bool, typer.Option("--list", help="List the GPUs that the wikis have pages about; with words, those so called.")
    ] = False,
) -> Reply:
    """Look up hardware values. Each is printed with the line that states it; a missing one is UNKNOWN, never a guess.

    All values of a GPU are a table on a terminal; elsewhere each is a line that `kopt cite` checks.

    kopt spec h100-sxm · kopt spec h100-sxm hbm_bandwidth · kopt spec compare h100-sxm h200 · kopt spec --list
    """
    from kbs.common.errors import ExitCode
    from kopt.services.knowledge.specs import ask_specs
    from kopt.services.results.answering.citations import SpecData

    asked = list(words or ())
    with engine() as eng:
        if list_gpus or not asked:
            return _gpus(eng, asked)
        compare = asked[0] == "compare"
        gpus, metric = (_each(asked[1:], eng.terms), "") if compare else _first(asked, eng.terms)
        found, answered = ask_specs(eng, gpus, metric, qualifier, others=every, compare=compare)
        terms, warnings = eng.terms, list(eng.warnings)
        data = SpecData.of(found, terms)

    def show(console: Console) -> None:
        fits = console.is_terminal and console.width >= _TABLE
        table = fits and not metric and not compare and bool(found.specs)
        if compare:
            _show_comparison(console, found, terms)
        elif table:
            _show_tables(console, found, terms)
        print_lines(_lines(found, terms, rows=not compare and not table, wide=not console.is_terminal))(console)

    return Reply(data, show, ExitCode.OK if answered else ExitCode.ABSTAINED, warnings)


def _first(words: Sequence[str], terms: Vocabulary) -> tuple[list[str], str]:
    """([the GPU that the first words name], the metric that the others do): `h100 sxm hbm bandwidth`."""
    count = _length(words, terms)
    return [" ".join(words[:count])], " ".join(words[count:])


def _each(words: Sequence[str], terms: Vocabulary) -> list[str]:
    """The GPUs that words name, each in as many as it takes: `h100 sxm vs h200`, `h100,h200`."""
    left = [part for word in words for part in word.split(",") if part.strip() and part.casefold() not in _BETWEEN]
    found: list[str] = []
    while left:
        count = _length(left, terms)
        found.append(" ".join(left[:count]))
        left = left[count:]
    return found


def _length(words: Sequence[str], terms: Vocabulary) -> int:
    """How many of the first words name a GPU together; 1 where none do."""
    return next((n for n in range(len(words), 1, -1) if terms.resolve("product", " ".join(words[:n]))), 1)


def _gpus(eng: Engine, called: Sequence[str]) -> Reply:
    """The GPUs whose names have every word."""
    from kopt.services.knowledge.specs import documented
    from kopt.services.results.answering.citations import SpecData

    data = SpecData.of_gpus(documented(eng), eng.terms)
    data.gpus = [gpu for gpu in data.gpus if all(_in_name(word, gpu) for word in called)]
    lines = [f"{gpu.gpu:<16} {gpu.name:<18} {gpu.page}" for gpu in data.gpus]
    none = f"No GPU with a page is called {' '.join(called)}. `kopt spec --list` lists all."
    return Reply(data, print_lines(lines or [none]), warnings=list(eng.warnings))


def _in_name(word: str, gpu: ProductData) -> bool:
    return any(word.casefold() in name.casefold() for name in (gpu.gpu, gpu.name, *gpu.aliases, *gpu.families))


def _lines(found: FoundSpecs, terms: Vocabulary, *, rows: bool, wide: bool) -> Iterator[str]:
    """A citation line for each value, and what is missing. `wide`: its source stands on the same line."""
    for row in found.specs if rows else ():
        note = "" if row.recommended else ", not recommended"
        says = f"{row.confidence}{note}; {row.source.title}, {row.source.place}"
        yield from [f"{row.citation_line(terms)}  ({says})"] if wide else [row.citation_line(terms), f"    {says}"]
    for gap in found.gaps:
        if gap in found.unknown or "UNKNOWN" in gap or not found.specs:
            yield gap


_TABLE = 56
"""Columns of a terminal in which a table still has whole words; where there are fewer, each value is a line."""
_BETWEEN = frozenset({"and", "with", "to", "vs", "vs.", "versus"})
"""Words that people put between the GPUs of a comparison."""
_WHOLE = len("source-reported")
"""Columns of the longest confidence, which a narrow terminal must not cut."""


def _show_tables(console: Console, found: FoundSpecs, terms: Vocabulary) -> None:
    """A table for each GPU: metric, value, its confidence and line, and the number of its source below."""
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    from kbs.common.visible_text import visible
    from kopt.cli.terminal.links import opens_links, page_links

    link = page_links() if opens_links(sys.stdout) else None
    for product in found.products:
        specs = [spec for spec in found.specs if spec.product == product]
        if not specs:
            continue
        page = specs[0].citation
        console.print(f"{terms.products[product].name}  {page.wiki}/{page.path}:L{page.line_start}", markup=False)
        table = Table("metric", "value", box=None, pad_edge=False, header_style="bold")
        table.add_column("confidence", min_width=_WHOLE)
        table.add_column("line", no_wrap=True)
        table.add_column("source", no_wrap=True)
        sources: dict[str, dict[str, None]] = {}
        for row in specs:
            name = terms.metrics[row.metric].name + (f" ({row.qualifier})" if row.qualifier else "")
            value = _value(row)
            sources.setdefault(row.source.title, {})[row.source.place] = None
            number = list(sources).index(row.source.title) + 1
            confidence = row.confidence if row.recommended else f"{row.confidence}, not recommended"
            place = row.citation
            other = f"{place.wiki}/{place.path}:" if (place.wiki, place.path) != (page.wiki, page.path) else ""
            cells = (name, value, confidence, f"{other}L{place.line_start}", f"[{number}]")
            row_text = [Text(visible(cell)) for cell in cells]
            if link is not None and (address := link(place.reference)):
                row_text[3].stylize(Style(link=address))
            table.add_row(*row_text)
        console.print(table)
        console.print("\nSources", style="bold", markup=False)
        for number, (title, places) in enumerate(sources.items(), start=1):
            console.print(f"  [{number}] {title}: {'; '.join(filter(None, places))}", markup=False)
        console.print("")
    console.print(
        f"`kopt spec {found.products[0]} METRIC` prints the line of a value that `kopt cite` checks.", markup=False
    )


def _value(row: Spec) -> str:
    return f"{row.value} {row.unit}".strip() if row.published else "not published"


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
            cells.append(f"{_value(row)} [L{row.citation.line_start}]" if row else "UNKNOWN")
        name = terms.metrics[metric].name + (f" ({qualifier})" if qualifier else "")
        table.add_row(*(Text(visible(cell)) for cell in (name, *cells)))
    console.print(table)
    for product in found.products:
        page = next((one.citation for one in found.specs if one.product == product), None)
        if page:
            console.print(f"{terms.products[product].name}: {page.wiki}/{page.path}", markup=False)
