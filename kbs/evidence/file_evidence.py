"""Evidence from the user's own files: what a profile, receipt, kernel or reference count states, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field, computed_field, model_validator

from kbs.common.json_model import JsonDataclass, JsonNumber
from kbs.common.visible_text import visible

Kind = Literal["profile", "receipt", "ceiling", "count", "source", "log", "tally"]


@dataclass(frozen=True)
class FileEvidence(JsonDataclass):
    """One figure or name of a file."""

    kind: Kind
    """`profile`: a metric of a launch; `receipt`: a field; `ceiling`: a rate that `kopt bench ceilings` measured;
    `count`: a tensor or an operator of the reference; `source`: a line of the kernel's file; `log`: a record of the
    experience log; `tally`: how many records there are, and what they come to."""
    file: str
    """Its name."""
    hash: str
    """SHA-256 of the file's bytes; of a receipt or a record, its id."""
    place: str
    """Where in the file: a metric and its launch, a field, a figure's name, a row of the count, a line; of a tally, the
    command that counts the same records."""
    name: Annotated[str, Field(exclude=True)]
    """What is stated: the metric, the field, the tensor; of a record, what was tried; empty if `states` quotes
    it."""
    states: str
    """As it stands there, with its unit."""
    value: JsonNumber | None = None
    """The number in `unit`; None for text, and for a product of sizes."""
    unit: str = ""
    """us, B, B/s, Hz, %, or empty."""
    metric: Annotated[str, Field(exclude=True)] = ""
    """Nsight Compute's name of what it is, by which thresholds ask for it; empty if it has none."""

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def reference(self) -> str:
        """`profile/1f0c9a77…#dram__bytes_read.sum[1]`, which `kopt cite` checks; else the file and the place."""
        if self.kind in ("profile", "receipt"):
            return f"{self.kind}/{self.hash[:16] if self.kind == 'profile' else self.hash}#{self.place}"
        if self.kind == "log":
            return f"log/{self.hash}"
        return f"{self.file}: {self.place}"

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: object) -> object:
        """As it was printed: `reference` follows from the rest, and the name was left out."""
        if not isinstance(given, dict) or "reference" not in given:
            return given
        return {"name": "", **{key: value for key, value in given.items() if key != "reference"}}

    @property
    def line(self) -> str:
        """As sources are printed; of a profile, a receipt or a record it is a citation line."""
        if self.kind in ("profile", "receipt", "log"):
            return (
                f"{self.name}: {self.states} <- {self.reference}"
                if self.name
                else (f'"{self.states}" <- {self.reference}')
            )
        return visible(f"{self.reference}: {self.states}")

    @property
    def texts(self) -> tuple[str, ...]:
        """What it states, in each form in which a sum may have it."""
        return (self.states,) if self.value is None else (self.states, f"{self.value:f} {self.unit}".strip())


class EvidenceCheck(Protocol):
    """The user's files, as the check of an answer needs them."""

    def why_not(self, item: FileEvidence) -> str:
        """Why the file does not state what the item says; "" where it does."""


class NoEvidence:
    """Where no files were given."""

    def why_not(self, item: FileEvidence) -> str:
        """Nothing is in a file that is not there."""
        return f"no file was given that states {item.name}"


def in_order(evidence: Iterable[FileEvidence]) -> tuple[FileEvidence, ...]:
    """Each once."""
    return tuple(dict.fromkeys(evidence))
