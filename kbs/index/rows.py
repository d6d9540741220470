"""Specs and table rows of an index."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from kbs.evidence.spec import Source, Spec
from kbs.evidence.table_rows import AdviceRow, CostRow, MeasuredRow, TableRow, ThresholdRow
from kbs.index.sqlite_file import IndexFile, stored_citation

_ROW_KINDS: dict[str, type[Any]] = {
    "cost": CostRow,
    "advice": AdviceRow,
    "threshold": ThresholdRow,
    "measured": MeasuredRow,
}


class Rows(IndexFile):
    """What an index holds of specs and rows; `kbs.index.store.Store` is one."""

    def put_rows(self, page: int, specs: Sequence[Spec], rows: Sequence[TableRow]) -> None:
        """Add the specs and rows of a page, given by its row."""
        self.db.executemany(
            "INSERT INTO specs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(page, s.citation.line_start, s.product, s.metric, s.value, s.unit, s.qualifier, s.confidence),
                    *(json.dumps(asdict(s.source)), s.citation.quote, int(s.recommended)),
                )
                for s in specs
            ],
        )
        self.db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", [(page, *_row_values(row)) for row in rows])

    def specs(self, product: str | None = None, metric: str | None = None) -> list[Spec]:
        """Specs of visible pages, the latest wiki's first, then in the order of their page. Each knows what it takes
        the place of."""
        found = self._specs(product, metric)
        earlier: dict[tuple[str, str, str], list[tuple[int, Spec]]] = {}
        for rank, _, spec in found:
            if spec.recommended:
                earlier.setdefault(spec.key, []).append((rank, spec))
        shown = []
        for rank, hidden, spec in found:
            if hidden:
                continue
            replaced = tuple(
                other for below, other in earlier.get(spec.key, ()) if below < rank and spec.overrides(other)
            )
            shown.append(replace(spec, overridden=replaced) if replaced and spec.recommended else spec)
        return shown

    def spec_products(self) -> set[str]:
        """The products of which visible pages state specs."""
        query = "SELECT DISTINCT s.product FROM specs s JOIN pages p ON p.id = s.page WHERE NOT p.hidden"
        return {str(product) for (product,) in self.db.execute(query)}

    def withdrawn(self) -> list[Spec]:
        """Specs of hidden pages in whose place no visible page states any value, the latest wiki's first."""
        found = self._specs(None, None)
        stated = {spec.key for _, hidden, spec in found if spec.recommended and not hidden}
        return [spec for _, hidden, spec in found if hidden and spec.recommended and spec.key not in stated]

    def _specs(self, product: str | None, metric: str | None) -> list[tuple[int, bool, Spec]]:
        """(rank of the wiki, whether its page is hidden, spec), the latest wiki's first."""
        where = ["1"]
        values: list[str] = []
        for column, value in (("product", product), ("metric", metric)):
            if value is not None:
                where.append(f"s.{column} = ?")
                values.append(value)
        rows = self.db.execute(
            "SELECT s.product, s.metric, s.value, s.unit, s.qualifier, s.confidence, s.source, s.recommended, s.line,"
            " s.quote, p.wiki, p.path, w.revision, w.rank, p.hidden FROM specs s JOIN pages p ON p.id = s.page"
            f" JOIN wikis w ON w.name = p.wiki WHERE {' AND '.join(where)} ORDER BY w.rank DESC, p.path, s.line",
            values,
        )
        return [(int(rank), bool(hidden), _spec(*row)) for *row, rank, hidden in rows]

    def rows(
        self, kind: str, subject: str | None = None, page_id: str | None = None, *, hidden: bool = False
    ) -> list[Any]:
        """Rows of a kind (`cost`, `advice`, `threshold`, `measured`) about a subject, in the order of their page.
        `hidden`: of the pages that later wikis override."""
        where, values = ["r.kind = ?", f"p.hidden = {int(hidden)}"], [kind]
        if subject is not None:
            where.append("r.subject = ?")
            values.append(subject)
        if page_id is not None:
            where.append("p.page_id = ?")
            values.append(page_id)
        found = self.db.execute(
            "SELECT r.data, r.line, r.quote, p.wiki, p.path, w.revision FROM rows r JOIN pages p ON p.id = r.page"
            f" JOIN wikis w ON w.name = p.wiki WHERE {' AND '.join(where)} ORDER BY w.rank DESC, p.path, r.line",
            values,
        )
        made = []
        for data, line, quote, wiki, path, revision in found:
            fields = json.loads(data)
            if "dims" in fields:
                fields["dims"] = tuple(fields["dims"])
            made.append(_ROW_KINDS[kind](**fields, citation=stored_citation(wiki, path, line, line, revision, quote)))
        return made


@functools.lru_cache(8192)
def _spec(
    product: str, metric: str, value: str, unit: str, qualifier: str, confidence: str, source: str, recommended: int,
    line: int, quote: str, wiki: str, path: str, revision: str,
) -> Spec:  # fmt: skip
    """A row of the table: a question about what bounds a kernel reads hundreds of them, and the next one the same."""
    return Spec(
        product=product,
        metric=metric,
        value=value,
        unit=unit,
        qualifier=qualifier,
        confidence=confidence,
        source=Source(**json.loads(source)),
        citation=stored_citation(wiki, path, line, line, revision, quote),
        recommended=bool(recommended),
    )


def _row_values(row: TableRow) -> tuple[str, int, str, str, str]:
    kind = next(name for name, made in _ROW_KINDS.items() if isinstance(row, made))
    fields = asdict(row)
    del fields["citation"]
    subject = {"cost": "operation", "advice": "bottleneck", "threshold": "symptom", "measured": "operation"}[kind]
    return kind, row.citation.line_start, fields[subject], json.dumps(fields), row.citation.quote
