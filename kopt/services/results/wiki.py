"""JSON of `kopt ingest`, `kopt wiki lint`, `kopt wiki stats` and `kopt wiki propose`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbs.common.json_model import JsonModel
from wiki.page import Problem

if TYPE_CHECKING:
    from kopt.services.runs.wiki_proposal import ProposedPage


class ProblemData(JsonModel):
    """Something wrong with a page."""

    wiki: str
    path: str
    line: int
    rule: str
    message: str
    error: bool

    @classmethod
    def of(cls, wiki: str, problem: Problem) -> ProblemData:
        """From the internal form."""
        return cls(wiki=wiki, **problem.__dict__)


class IngestData(JsonModel):
    """`kopt ingest`"""

    wikis: list[dict[str, str]]
    """Name and folder of each."""
    pages_read: int
    pages_removed: int
    pages: int
    passages: int
    specs: int
    embedded: int
    carried: int
    """Vectors that came with kopt and were not computed."""
    generation: int
    seconds: float
    problems: list[ProblemData]


class LintData(JsonModel):
    """`kopt wiki lint`"""

    pages: int
    problems: list[ProblemData]
    fixed: list[str]


class StatsData(JsonModel):
    """`kopt wiki stats`"""

    wikis: list[dict[str, Any]]


class ProposeData(JsonModel):
    """`kopt wiki propose`"""

    run: str
    page: str
    """Id of the proposed page."""
    file: str
    """Where it was written; empty where it was only printed."""
    markdown: str
    receipts: list[str]
    """Hashes of the receipts that it draws on."""
    left_out: list[str]
    """Versions whose receipts do not count, and why."""
    problems: list[ProblemData]
    """What `kopt wiki lint` finds in the page alone."""

    @classmethod
    def of(cls, made: ProposedPage, file: str) -> ProposeData:
        """From the internal form."""
        return cls(
            run=made.run,
            page=made.id,
            file=file,
            markdown=made.text,
            receipts=list(made.receipts),
            left_out=list(made.left_out),
            problems=[ProblemData.of("", problem) for problem in made.problems],
        )
