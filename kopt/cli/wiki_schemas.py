"""JSON of `kopt ingest`, `kopt wiki lint` and `kopt wiki stats`."""

from __future__ import annotations

from typing import Any

from kopt.cli.data import Data
from wiki.page import Problem


class ProblemData(Data):
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


class IngestData(Data):
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


class LintData(Data):
    """`kopt wiki lint`"""

    pages: int
    problems: list[ProblemData]
    fixed: list[str]


class StatsData(Data):
    """`kopt wiki stats`"""

    wikis: list[dict[str, Any]]
