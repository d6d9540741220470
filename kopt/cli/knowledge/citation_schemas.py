"""JSON of `kopt cite` and `kopt show`: citations, checked ones, cited lines."""

from __future__ import annotations

from typing import Literal

from kbs.evidence.checking import CheckedCitation
from kbs.evidence.citation import Citation
from kopt.cli.data import Data


class CitationData(Data):
    """Where a claim stands, with what is needed to check it again."""

    wiki: str
    path: str
    line_start: int
    line_end: int
    revision: str
    """Revision of the wiki: SHA-256 of the sorted list of paths and content hashes."""
    hash: str
    """SHA-256 of the cited lines."""
    quote: str

    @classmethod
    def of(cls, citation: Citation) -> CitationData:
        """From the internal form."""
        return cls(**{name: getattr(citation, name) for name in cls.model_fields})


class CheckedData(Data):
    """One citation, checked."""

    line: int
    """Line of the checked text; 0 for a citation of a JSON document."""
    text: str
    reference: str
    status: Literal["ok", "not found", "stale", "mismatch"]
    detail: str
    says: str
    """What the cited lines say now."""
    said: str
    """What they said when they were cited, where that is known and differs."""

    @classmethod
    def of(cls, checked: CheckedCitation) -> CheckedData:
        """From the internal form."""
        fields = {name: getattr(checked, name) for name in cls.model_fields}
        return cls(**{**fields, "status": checked.status.value})


class CiteData(Data):
    """`kopt cite`"""

    citations: list[CheckedData]
    ok: int
    failed: int


class ShowData(Data):
    """`kopt show` and `kopt wiki show`; of `log/<id>`, `kopt show` has the data of `kopt log show`"""

    reference: str
    page: str
    title: str
    lines: list[tuple[int, str]]
    """Line numbers and lines; for `kopt show` the cited ones."""
    hash: str
    revision: str
