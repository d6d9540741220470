"""What a rule of the gate is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from loop.gate.context import GateContext

Stage = Literal["proposal", "version", "final"]
STAGES: tuple[Stage, ...] = ("proposal", "version", "final")
"""In their order: what holds for a proposal holds for the version that is made of it too."""


class Broken(BaseModel):
    """A place where a rule is broken."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    file: str
    """Path below the run's folder; of a proposal that is not kept yet `proposal.json`, `kernel.py` or `kernel.cu`."""
    line: int = Field(ge=0)
    """Line of the file from 1; 0 where it is about the file as a whole."""
    message: str
    """What is wrong."""
    mend: str
    """What to do about it."""


Check = Callable[["GateContext"], Iterator[Broken]]
Lapses = Callable[["GateContext"], str]


@dataclass(frozen=True)
class Rule:
    """Something that must hold, under a stable id."""

    id: str
    title: str
    """What must hold, in a sentence."""
    stage: Stage
    """`proposal`: before anything runs, and again for the version. `version`: of a version that was measured.
    `final`: of the end of a run."""
    explain: str
    """Why it is asked, what is looked at, and how to keep it."""
    check: Check
    lapses: Lapses
    """Why it cannot be asked in this run; empty where it can."""
    always: bool = False
    """Asked at the end of a run too: it is about the folder as a whole."""


def _never(_: GateContext) -> str:
    return ""


def rule(
    id: str, title: str, stage: Stage, *, lapses: Lapses = _never, always: bool = False
) -> Callable[[Check], Rule]:
    """Make a rule of the function that finds what breaks it; the function's docstring explains it."""

    def made(check: Check) -> Rule:
        explain = " ".join((check.__doc__ or "").split())
        assert explain, id
        return Rule(id, title, stage, explain, check, lapses, always)

    return made
