"""JSON of `kopt cite` and `kopt show`: citations, checked ones, cited lines."""

from __future__ import annotations

from kbs.common.json_model import JsonModel
from kbs.evidence.checking import CheckedCitation


class CiteData(JsonModel):
    """`kopt cite`"""

    citations: list[CheckedCitation]
    ok: int
    failed: int


class ShowData(JsonModel):
    """`kopt show` and `kopt wiki show`; of `log/<id>`, `kopt show` has the data of `kopt log show`"""

    reference: str
    page: str
    title: str
    lines: list[tuple[int, str]]
    """Line numbers and lines; for `kopt show` the cited ones."""
    hash: str
    revision: str
