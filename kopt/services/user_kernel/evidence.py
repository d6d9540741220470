"""Checks what is said of the user's own files against the files, for answers and for `kopt cite`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from evaluator.source.source_file import read_source
from evaluator.store.store import FOLDER, find_receipt
from kbs.common.errors import KoptError
from kbs.evidence.checking import NOTHING_CLAIMED, Checker, Status
from kbs.evidence.citation import CitationLine, EvidenceKind, SpecClaim, find_citations
from kbs.evidence.quantities import parse_profiler_unit
from kbs.evidence.units import Number, parse_number, parse_unit
from kopt.services.user_kernel.files import Report, counter_at, field_at, file_hash, read_report, unit_of_field

if TYPE_CHECKING:
    from pathlib import Path

    from kbs.evidence.file_evidence import FileEvidence

_DIGITS = 3
"""Significant digits that a rounded figure must have, if the file has as many."""

_FIELD_SCALES = {"us": Decimal(1), "B/s": Decimal(10**9), "%": Decimal(100)}
"""How many of an item's unit a receipt's number is, by that unit."""
_FLOAT = Decimal("1e-12")
"""Receipts hold binary floating point, in which a product is rounded."""


def checkers(known: Sequence[Report], home: Path | None = None) -> Mapping[EvidenceKind, Checker]:
    """Checkers of citation lines of profiles and receipts, for these files, and for the receipts that are kept in
    KOPT_HOME."""

    def profile(cited: CitationLine) -> tuple[Status, str, str]:
        found = _named(cited, "profile", known)
        if isinstance(found, str):
            return Status.NOT_FOUND, found, ""
        counter = counter_at(found, cited.reference.part)
        if isinstance(counter, str):
            return Status.NOT_FOUND, counter, ""
        name = cited.reference.part.rpartition("[")[0]
        unit = parse_profiler_unit(counter.written_unit)
        stated = None if counter.amount is None or unit is None else (counter.amount, unit.scale, unit.dimension)
        return _compared(cited, (name, counter.ncu), counter.shown, stated)

    def receipt(cited: CitationLine) -> tuple[Status, str, str]:
        found = _named(cited, "receipt", known)
        if isinstance(found, str) and home is not None:
            found = _kept(cited.reference.target, home)
        if isinstance(found, str):
            return Status.NOT_FOUND, found, ""
        place = cited.reference.part
        number = field_at(found, place)
        if isinstance(number, str):
            return Status.NOT_FOUND, number, ""
        written, name = unit_of_field(place), place.rpartition(".")[2]
        unit = parse_unit(written) if written else None
        stated = (number, unit.scale if unit else Decimal(1), unit.dimension if unit else "")
        return _compared(cited, (name,), f"{number} {written}".strip(), stated)

    return {EvidenceKind.PROFILE: profile, EvidenceKind.RECEIPT: receipt}


def _named(cited: CitationLine, kind: str, known: Sequence[Report]) -> Report | str:
    """The file that a reference names by the hash, or the beginning of it."""
    target = cited.reference.target
    for report in known:
        if report.kind == kind and report.hash.startswith(target):
            return report
    return f"no {kind} with the hash {target} was given; give its file with --profile FILE"


def _kept(id: str, home: Path) -> Report | str:
    """A receipt that `kopt bench` kept."""
    path = find_receipt(home, id)
    if path is None:
        return f"{home / FOLDER} has no receipt {id}, and none was given; give its file with --profile FILE"
    try:
        found = read_report(path)
    except KoptError as error:
        return f"{path}: {error.message}"
    return found if found.hash.startswith(id) else f"{path} is no longer the receipt {id}"


def _compared(
    cited: CitationLine, names: Sequence[str], says: str, stated: tuple[Decimal, Decimal, str] | None
) -> tuple[Status, str, str]:
    """What a line claims, held against what the file states: number, scale of its unit, and dimension."""
    if cited.malformed:
        return Status.MISMATCH, cited.malformed, says
    claim = cited.claim
    if claim is None:
        return (Status.MISMATCH, "a figure has no words to quote", says) if cited.quote else (
            Status.OK, NOTHING_CLAIMED, says,
        )  # fmt: skip
    if claim.subject not in names:
        return Status.MISMATCH, f"the line is about {claim.subject}, and the reference about {names[0]}", says
    if f"{claim.value} {claim.unit}".strip() == says:
        return Status.OK, "", says
    number = parse_number(claim.value)
    scaled = _scaled(claim, stated[2]) if stated is not None else None
    if number is None or stated is None or scaled is None:
        return Status.MISMATCH, f"the file states {says}", says
    return (Status.OK, "", says) if _rounds(stated[0] * stated[1], number, scaled) else (
        Status.MISMATCH, f"the file states {says}", says,
    )  # fmt: skip


def _scaled(claim: SpecClaim, dimension: str) -> Decimal | None:
    """How many of the file's unit one of the claim's is; None where they measure different things."""
    ncu = parse_profiler_unit(claim.unit)
    if ncu is not None and ncu.dimension == dimension:
        return ncu.scale
    unit = parse_unit(claim.unit) if claim.unit else None
    return unit.scale if unit is not None and unit.dimension == dimension else None


def _rounds(value: Decimal, number: Number, scale: Decimal) -> bool:
    if number.value * scale == value:
        return True
    enough = number.digits >= min(_DIGITS, len(value.normalize().as_tuple().digits))
    return enough and abs(number.value * scale - value) <= number.last_place * scale / 2


@dataclass
class FileCheck:
    """The files of one question: what an answer says of them is looked up in them again."""

    report: Report | None = None
    path: Path | None = None
    """Of the profile or receipt."""
    sources: tuple[Path, ...] = ()
    """Of kernel and reference."""
    rows: frozenset[tuple[str, str]] = frozenset()
    """(place, what it states) of the count of the reference."""
    ceilings: frozenset[tuple[str, str]] = frozenset()
    """(place, what it states) of ceilings that were measured."""

    def why_not(self, item: FileEvidence) -> str:
        """Why a file does not state what the item says; "" where it does."""
        if item.kind in ("profile", "receipt"):
            return self._in_report(item)
        if item.kind == "source":
            return self._in_source(item)
        known = self.rows if item.kind == "count" else self.ceilings
        return "" if (item.place, item.states) in known else f"{item.reference} does not state it"

    def _in_report(self, item: FileEvidence) -> str:
        if self.report is None or self.path is None:
            return f"no profile was given that states {item.name}"
        if self.report.kind == "profile" and file_hash(self.path) != self.report.hash:
            return f"{self.path.name} has changed since it was read"
        [cited] = find_citations(item.line)
        checker = checkers([self.report])[EvidenceKind(item.kind)]
        status, why, says = checker(cited)
        if status is not Status.OK or cited.claim is None:
            return f"{item.reference}: {why or 'it states nothing'}"
        if self.report.kind == "profile":
            counter = counter_at(self.report, item.place)
            same = not isinstance(counter, str) and (counter.value, counter.unit) == (item.value, item.unit)
            return "" if same else f"{item.reference} states {says}"
        number, scale = field_at(self.report, item.place), _FIELD_SCALES.get(item.unit)
        if isinstance(number, str) or scale is None or item.value is None:
            return f"{item.reference} states {says}"
        near = abs(number * scale - item.value) <= abs(item.value) * _FLOAT
        return "" if near else f"{item.reference} states {says}"

    def _in_source(self, item: FileEvidence) -> str:
        line = int(item.place.removeprefix("L"))
        for path in self.sources:
            if path.name != item.file:
                continue
            source = read_source(path, "kernel")
            if source.hash == item.hash:
                lines = source.text.splitlines()
                stands = line <= len(lines) and lines[line - 1].strip() == item.states
                return "" if stands and item.name in item.states else f"line {line} does not say so"
        return f"{item.file} has changed since it was read"
