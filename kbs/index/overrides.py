"""What a later wiki overrides of earlier ones, where it matters to what is shown.

Several wikis are read together: a page takes the place of an earlier wiki's page of the same id, and a hardware value
that of an earlier one of the same product, metric and qualifier. Whoever shows such a value says what it replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from kbs.evidence.citation import Citation
from kbs.evidence.passage import LOG
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import CostRow, ThresholdRow
from kbs.evidence.vocabulary import Vocabulary
from kbs.index.store import Store

_LISTED = 5
"""Values that are named of a page that is gone with all of them."""


def spec_notes(specs: Iterable[Spec], vocabulary: Vocabulary) -> list[str]:
    """What these specs take the place of, one sentence a value."""
    return [
        f"the wiki {spec.citation.wiki} overrides a value of {old.citation.wiki}: {_cited(spec, vocabulary)},"
        f" in place of {_cited(old, vocabulary)}"
        for spec in specs
        for old in spec.overridden
    ]


def _cited(spec: Spec, vocabulary: Vocabulary) -> str:
    """The citation line, and how far the value can be trusted where that is not the best."""
    doubt = "" if spec.confidence == "verified" else f" ({spec.confidence})"
    return f"{spec.citation_line(vocabulary)}{doubt}"


def override_notes(
    store: Store, vocabulary: Vocabulary, cited: Iterable[Citation], missing: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """What the cited lines take the place of, and what earlier wikis state of what is `missing`: (product, metric).

    Empty where the lines override nothing, whatever the wikis override elsewhere.
    """
    if sum(kind != LOG for _, kind, *_ in store.wikis()) < 2:
        return []
    lines = list(dict.fromkeys((c.wiki, c.path, n) for c in cited for n in range(c.line_start, c.line_end + 1)))
    notes: list[str] = []
    if lines:
        notes += _replaced(store, vocabulary, lines)
    wanted = set(missing)
    if wanted:
        lost = [spec for spec in store.withdrawn() if (spec.product, spec.metric) in wanted]
        notes += withdrawal_notes(store, vocabulary, lost)
    return list(dict.fromkeys(notes))


def named_unknown(texts: Iterable[str], products: Iterable[str], vocabulary: Vocabulary) -> set[tuple[str, str]]:
    """(product, metric) of these products that the texts say is not known, by its name or with its whole page."""
    said = " ".join(texts)
    return {
        (product, metric)
        for product in products
        for metric, named in vocabulary.metrics.items()
        if named.name in said or f"hardware/{product}" in said
    }


def _replaced(store: Store, vocabulary: Vocabulary, lines: Sequence[tuple[str, str, int]]) -> Iterator[str]:
    specs = {_line(spec.citation): spec for spec in store.specs()}
    pages = store.overridden_pages()
    rows = {_line(row.citation): row for row in _table_rows(store, hidden=False)} if pages else {}
    hidden = _table_rows(store, hidden=True) if pages else []
    for line in lines:
        spec = specs.get(line)
        if spec is not None:
            yield from spec_notes([spec], vocabulary)
            continue
        for wiki, path in pages.get(line[:2], ()):
            row = rows.get(line)
            old = [
                other
                for other in hidden
                if row is not None and _line(other.citation)[:2] == (wiki, path) and _key(other) == _key(row)
            ]
            if any(_stated(other) == _stated(row) for other in old if row is not None):
                continue  # the same row stands there too
            was = "".join(f"; there: {_stated(other)} <- {other.citation.reference}" for other in old[:1])
            yield f"the page {line[1]} of {line[0]} is used in place of {wiki}'s {path}{was}"


def withdrawal_notes(store: Store, vocabulary: Vocabulary, lost: Iterable[Spec]) -> Iterator[str]:
    """That values are gone with the pages that later wikis override, one sentence a page."""
    by = {old: used for used, replaced in store.overridden_pages().items() for old in replaced}
    for (wiki, path), of_page in groupby(lost, lambda spec: (spec.citation.wiki, spec.citation.path)):
        used = by.get((wiki, path))
        if used is None:
            continue
        yield withdrawal(used, wiki, list(of_page), vocabulary)


def cost_notes(store: Store, operation: str) -> Iterator[str]:
    """That the cost of an operation is gone with a page that a later wiki overrides."""
    if not operation or store.rows("cost", operation):
        return
    by = {old: used for used, replaced in store.overridden_pages().items() for old in replaced}
    for row in store.rows("cost", operation, hidden=True)[:1]:
        at = row.citation
        used = by.get((at.wiki, at.path))
        if used is not None:
            yield (
                f"the page {used[1]} of {used[0]} is used in place of {at.wiki}'s, and does not state the cost of"
                f" {operation}, as {at.reference} does"
            )


def withdrawal(used: tuple[str, str], wiki: str, lost: Sequence[Spec], vocabulary: Vocabulary) -> str:
    """That the page `used`, (wiki, path), states none of the values that `wiki` has."""
    listed = "; ".join(spec.citation_line(vocabulary) for spec in lost[:_LISTED])
    more = f"; and {len(lost) - _LISTED} more" if len(lost) > _LISTED else ""
    return f"the page {used[1]} of {used[0]} is used in place of {wiki}'s, and does not state: {listed}{more}"


def _line(citation: Citation) -> tuple[str, str, int]:
    return citation.wiki, citation.path, citation.line_start


def _table_rows(store: Store, *, hidden: bool) -> list[ThresholdRow | CostRow]:
    """The rows that numbers of a diagnosis or of an operation's cost rest on."""
    return [*store.rows("threshold", hidden=hidden), *store.rows("cost", hidden=hidden)]


def _key(row: ThresholdRow | CostRow) -> tuple[str, ...]:
    if isinstance(row, CostRow):
        return "cost", row.operation, row.cost, *row.dims
    return "threshold", row.symptom, row.metric, row.source


def _stated(row: ThresholdRow | CostRow) -> str:
    if isinstance(row, CostRow):
        return " x ".join((row.count, *row.dims)) + f" {row.cost}{f' of {row.dtype}' if row.dtype else ''}"
    return f"{row.test} {row.value} {row.unit}".rstrip()
