"""What every result has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar, Literal, Self

from kbs.common.json_model import JsonModel
from kopt.python.results.display import Block, Items, Paragraph, html, markdown, plain
from kopt.python.session import OPTION

Status = Literal["ok", "abstained", "rejected"]


class Result(JsonModel):
    """The data of a command, with what stands beside `data` in the object that its `--json` prints."""

    status: Status
    """`ok`; `abstained`: the evidence does not say; `rejected`: a citation fails, or a kernel is not accepted."""
    warnings: list[str]
    """What you should know of: wikis that are left out, an index that is not up to date …"""

    _function: ClassVar[str]
    """The function of `import kopt` that gives it."""

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
            yield Items([self._in_python(one) for one in self.warnings])

    def _in_python(self, text: str, quoted: Collection[str] = ()) -> str:
        """What kopt says, with the function's parameters in place of a command's options: `dims=`, `long=True`.

        Options that stand in what is `quoted` are left as they are.
        """
        import kopt

        own = inspect.signature(getattr(kopt, self._function)).parameters

        def parameter(found: re.Match[str]) -> str:
            of = own.get(found[1].replace("-", "_"))
            if of is None or any(found[0] in one for one in quoted):
                return found[0]
            return f"{of.name}={True if of.default is False else ''}"

        return OPTION.sub(parameter, text)

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _repr_markdown_(self) -> str:
        return markdown(self._shown())

    def __str__(self) -> str:
        return plain(self._shown())

    def __repr__(self) -> str:
        first = plain(self._blocks()).partition("\n")[0]
        return f"<{type(self).__name__} {self.status}: {first[:200]}>"
