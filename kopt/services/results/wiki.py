"""JSON of `kopt ingest`, `kopt wiki lint`, `kopt wiki stats` and `kopt wiki propose`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kbs.common.json_model import JsonModel


class ProblemData(JsonModel):
    """Something wrong with a page of a wiki. `Problem` does not name the wiki; a proposed page has none."""

    wiki: str = ""
    path: str
    line: int
    rule: str
    message: str
    error: bool


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
    """`kopt wiki propose`: the page with the file that it was written to."""

    run: str
    page: str = Field(validation_alias="id")
    """Id of the proposed page."""
    file: str = ""
    """Where it was written; empty where it was only printed."""
    markdown: str = Field(validation_alias="text")
    receipts: list[str]
    """Hashes of the receipts that it draws on."""
    left_out: list[str]
    """Versions whose receipts do not count, and why."""
    problems: list[ProblemData]
    """What `kopt wiki lint` finds in the page alone."""
