"""What every result has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from kbs.common.json_model import JsonModel
from kopt.python.results.display import Block, Items, Paragraph, html, markdown, plain

Status = Literal["ok", "abstained", "rejected"]


class Result(JsonModel):
    """The data of a command, with what stands beside `data` in the object that its `--json` prints."""

    status: Status
    """`ok`; `abstained`: the evidence does not say; `rejected`: a citation fails, or a kernel is not accepted."""
    warnings: list[str]
    """What you should know of: wikis that are left out, an index that is not up to date …"""

    @classmethod
    def made(cls, data: JsonModel, status: Status, warnings: Sequence[str]) -> Self:
        """From the data of the command, which has been checked already."""
        return cls.model_construct(**dict(data), status=status, warnings=list(warnings))

    def _blocks(self) -> Iterator[Block]:
        """What a person reads."""
        raise NotImplementedError

    def _shown(self) -> Iterator[Block]:
        yield from self._blocks()
        if self.warnings:
            yield Paragraph("Warnings")
            yield Items(self.warnings)

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _repr_markdown_(self) -> str:
        return markdown(self._shown())

    def __str__(self) -> str:
        return plain(self._shown())

    def __repr__(self) -> str:
        first = plain(self._blocks()).partition("\n")[0]
        return f"<{type(self).__name__} {self.status}: {first[:200]}>"
