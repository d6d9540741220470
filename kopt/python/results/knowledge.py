"""What `kopt.ask`, `kopt.search`, `kopt.spec` and `kopt.cite` return."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbs.evidence.checking import Status
from kopt.python.results.display import Block, Items, Paragraph, Table, Verbatim
from kopt.python.results.result import Result
from kopt.services.results.answering.answers import AskData, SearchData
from kopt.services.results.answering.citations import CiteData, SpecData

_ITEM = re.compile(r" {2}(?:- |\d+\. )?(?=\S)")
_PREVIEW = 160
"""Characters of a passage that are shown."""

AskData.model_rebuild()  # it names a class that stands below it, which is not looked for from here


class Answer(Result, AskData):
    """An answer: its claims with their citations, and the passages that were found."""

    _function = "ask"

    def _blocks(self) -> Iterator[Block]:
        if self.evidence is not None:
            yield Verbatim(self.answer)
            return
        items: list[str] = []
        first, quoted = True, [one.text for one in self.passages]
        for said in [*self.answer.split("\n"), ""]:
            line = said if " <- " in said else self._in_python(said, quoted)  # a citation line is what `cite` reads
            item = _ITEM.match(line)
            if item:
                items.append(line[item.end() :])
                continue
            if items:
                yield Items(items)
                items = []
            if line:
                yield Paragraph(line, strong=first)
                first = False


class Passages(Result, SearchData):
    """Passages of pages and records of the log, the best first."""

    _function = "search"

    def _blocks(self) -> Iterator[Block]:
        if not self.passages:
            yield Paragraph("nothing found", strong=True)
            return
        yield Paragraph(f"{len(self.passages)} passages for: {self.query}", strong=True)
        yield Table(
            ("reference", "score", "headings", "text"),
            [
                (one.reference, f"{one.score:.3f}", " > ".join(one.headings), _line(one.text)[:_PREVIEW])
                for one in self.passages
            ],
        )


class Specs(Result, SpecData):
    """Hardware values, each with the line that states it; or the GPUs that have a page."""

    _function = "spec"

    def _blocks(self) -> Iterator[Block]:
        found = f"{len(self.gpus)} GPUs" if self.gpus else f"{len(self.specs)} found, {len(self.gaps)} missing"
        yield Paragraph(found, strong=True)
        if self.gpus:
            yield Table(("gpu", "name", "page"), [(one.gpu, one.name, one.page) for one in self.gpus])
        if self.specs:
            yield Table(
                ("citation line", "confidence", "source"),
                [
                    (
                        row.citation_line,
                        row.confidence if row.recommended else f"{row.confidence}, not recommended",
                        f"{row.source.title}, {row.source.place}",
                    )
                    for row in self.specs
                ],
            )
        if self.gaps:
            yield Items(self.gaps)


class Citations(Result, CiteData):
    """Citations, and whether each holds."""

    _function = "cite"

    def _blocks(self) -> Iterator[Block]:
        yield Paragraph(f"{self.ok} ok, {self.failed} failed", strong=True)
        if self.citations:
            yield Table(
                ("status", "citation", "why"),
                [
                    (one.status.value, one.text or one.reference, _why(one.detail, one.says, one.status))
                    for one in self.citations
                ],
            )


def _why(detail: str, says: str, status: Status) -> str:
    if status is Status.OK:
        return ""
    return f"{detail}; the line says: {says}" if says else detail


def _line(text: str) -> str:
    return " ".join(text.split())
