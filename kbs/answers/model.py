"""The parts of an answer: sections, claims and arithmetic steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import AliasChoices, Field

from kbs.common.json_model import JsonDataclass, JsonNumber
from kbs.evidence.citation import Citation
from kbs.evidence.file_evidence import FileEvidence
from kbs.hardware.thresholds import Judgement
from kbs.index.search import Hit

if TYPE_CHECKING:
    from kbs.experience.entry import Entry

FINAL = frozenset({"unknown_product", "wrong_premise"})
"""Reasons of refusals that are sure, whatever the user's files or sections near the question say."""


class ClaimKind(StrEnum):
    """How a claim is backed, and so how it is checked."""

    SPEC = "spec"
    """A hardware value; its text is the left side of a citation line."""
    STATEMENT = "statement"
    """Words of the cited lines."""
    DERIVED = "derived"
    """The result of arithmetic whose steps are shown and whose inputs are cited."""
    GIVEN = "given"
    """Arithmetic on numbers of the question alone, and the bytes of an element."""
    RECORD = "record"
    """What a row of a table says: advice, or a measurement."""
    MEASURED = "measured"
    """What the kernel's own profile or receipt states, or arithmetic on that."""
    COUNTED = "counted"
    """What the kernel's reference must move and compute, as it was counted or declared, or arithmetic on that."""
    READ = "read"
    """What is in the kernel's file."""
    EXPERIENCE = "experience"
    """What a record of the experience log says, or what several come to."""
    ABSENCE = "absence"
    """That something is not known, or not published."""


OWN = frozenset({ClaimKind.MEASURED, ClaimKind.COUNTED, ClaimKind.READ})
"""Kinds that rest on the user's own files."""


@dataclass(frozen=True)
class Step(JsonDataclass):
    """One line of arithmetic: `expression = value unit`."""

    name: str
    """What is computed: bytes, operations, intensity, ridge point, minimum time …"""
    expression: str
    value: JsonNumber
    """In base units: B, FLOP, FLOP/byte, s, B/s, FLOP/s; a share as a part of 1."""
    unit: str
    shown: str
    """The whole line, as printed; recomputed before it is shown."""


@dataclass(frozen=True)
class Claim(JsonDataclass):
    """One thing that an answer says."""

    text: str
    kind: ClaimKind
    citations: tuple[Citation, ...] = ()
    derivation: tuple[Step, ...] = ()
    subject: Annotated[str, Field(exclude=True)] = ""
    """Product or technique id that it is about, where that is one."""
    note: str = ""
    """Beside the text: how far the value can be trusted, and what its page has it from."""
    evidence: Annotated[
        tuple[FileEvidence, ...],
        Field(validation_alias=AliasChoices("exhibits", "evidence"), serialization_alias="exhibits"),
    ] = ()
    """What it rests on in the user's own files."""
    judgements: Annotated[tuple[Judgement, ...], Field(exclude=True)] = ()
    """Thresholds of cited rows that it says are reached, or not."""


@dataclass(frozen=True)
class Section:
    """Claims under a heading."""

    title: str
    claims: tuple[Claim, ...]


@dataclass
class Answer:
    """The whole answer. `sections[0]`, without a title, is the direct answer."""

    question: str
    form: str = ""
    """The form of answer that the question was read to want."""
    sections: list[Section] = field(default_factory=list)
    abstained: bool = False
    reason: str = ""
    """Why it abstained, as a stable word: unknown_product, wrong_premise, unpublished, nothing_relevant …"""
    gaps: list[str] = field(default_factory=list)
    """What is not known, said to the user; those of an abstention are logged for the wiki."""
    hits: Sequence[Hit] = ()
    read: list[str] = field(default_factory=list)
    """What was read otherwise than it was written: typing errors, and what the question before said."""
    asked: list[str] = field(default_factory=list)
    """What the search asked for vectors, and how."""
    warnings: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """What the question leaves open and the user's own files tell, said to the user."""
    experiments: list[Entry] = field(default_factory=list)
    """Records of the experience log that it speaks of."""
    dropped: int = 0
    """Claims that did not stand up to the check and were left out."""

    @property
    def claims(self) -> list[Claim]:
        """All claims in order."""
        return [claim for section in self.sections for claim in section.claims]

    @property
    def direct(self) -> str:
        """The first line."""
        return self.sections[0].claims[0].text if self.sections and self.sections[0].claims else ""

    def add(self, title: str, claims: Sequence[Claim]) -> None:
        """Append a section, unless it is empty."""
        if claims:
            self.sections.append(Section(title, tuple(claims)))


@dataclass(frozen=True)
class KernelPart:
    """What is to be said of the user's own kernel, to stand before what the wiki says."""

    direct: tuple[Claim, ...]
    """The answer; empty if the files do not give one."""
    sections: tuple[Section, ...]
    gaps: tuple[str, ...]
    """What cannot be said of it, and why."""
    taken: tuple[str, ...]
    """What was taken from the files, since the question leaves it open."""
