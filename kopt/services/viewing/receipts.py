"""Receipts: those that are kept in KOPT_HOME, and those that runs hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluator.external.record import ExternalReceipt
from evaluator.receipt.receipt import Receipt
from evaluator.store.seal import Verification, load_key, verify
from evaluator.store.store import FOLDER, find_receipt, parse, read_receipt
from kbs.common.errors import KoptError, UsageError
from kbs.common.visible_text import visible
from kopt.services.viewing.runs import KnownRun, unsafe
from loop.run.driver import read_run


@dataclass(frozen=True)
class ReceiptLine:
    """A receipt, in a line."""

    id: str
    created: str
    candidate: str
    external: bool
    """Whether a command of the user's printed it."""
    verdict: str = ""
    improvement: str = ""
    device: str = ""
    median_us: float | None = None
    ratio: tuple[float, float, float] | None = None
    """Median, lower and upper bound of the baseline's time over the candidate's."""
    against: str = ""
    problem: str = ""
    """Why it cannot be read; `candidate` is the file's name then."""


@dataclass(frozen=True)
class ShownReceipt:
    """A receipt, and what its bytes are worth."""

    receipt: Receipt | ExternalReceipt
    verified: Verification
    line: ReceiptLine
    external: bool
    run: KnownRun | None
    """The run that holds it; None for one that is kept in KOPT_HOME."""


def kept_receipts(home: Path, most: int) -> tuple[list[ReceiptLine], int]:
    """(the receipts in KOPT_HOME that were written last, how many there are)."""
    files = [path for path in (home / FOLDER).glob("*.json") if re.fullmatch("[0-9a-f]{16}", path.stem)]
    timed: list[tuple[float, Path]] = []
    for path in files:
        try:
            timed.append((path.stat().st_mtime, path))
        except OSError:  # gone meanwhile, or a link that leads nowhere
            continue
    lines = [_line_of(path) for _, path in sorted(timed, reverse=True)[:most]]
    return sorted(lines, key=lambda line: line.created, reverse=True), len(files)


def find_anywhere(home: Path, id: str, runs: Iterable[KnownRun]) -> ShownReceipt:
    """A receipt by its id, or eight and more digits that it begins with: one in KOPT_HOME, else one that a run holds.

    Raises `UsageError` (`not_found`, `receipt_invalid`).
    """
    if not re.fullmatch("[0-9a-f]{8,64}", id):
        raise _unknown(id)
    kept, run = find_receipt(home, id), None
    if kept is None:
        kept, run = next(((path, run) for run in runs for path in _of_run(run, id)), (None, None))
    if kept is None:
        raise _unknown(id)
    data = read_receipt(kept)
    found = parse(data)
    if not found.id.startswith(id):
        raise _unknown(id)
    return ShownReceipt(found, verify(data, load_key(home)), _line(found), isinstance(found, ExternalReceipt), run)


def _unknown(id: str) -> UsageError:
    return UsageError(
        f"no receipt {visible(id)[:80]} is kept here, and no known run holds it",
        code="not_found",
        hint="It may have been measured on another machine; `kopt bench` writes receipts.",
    )


def _of_run(run: KnownRun, id: str) -> list[Path]:
    """Where a run has a receipt of this id: a final measurement, or an attempt."""
    try:
        if unsafe(run.folder):
            return []
        state = read_run(run.folder.root).state
    except KoptError:
        return []
    places = [
        run.folder.candidate(version.number, attempt.number, one.branch) / "receipt.json"
        for version in state.versions
        for attempt in version.attempts
        if (one := attempt.evaluated) is not None and one.receipt.startswith(id)
    ]
    places += [run.folder.version(version.number) / "receipt.json" for version in state.versions
               if version.result is not None and version.result.receipt.startswith(id)]  # fmt: skip
    places += [run.folder.root / path for final in state.finals if final.receipt.startswith(id)
               for path in final.files if path.endswith("/receipt.json")]  # fmt: skip
    return [path for path in places if path.is_file()]


def _line_of(path: Path) -> ReceiptLine:
    try:
        return _line(parse(read_receipt(path)))
    except UsageError as error:
        return ReceiptLine(path.stem, "", path.name, False, problem=error.message)


def _line(found: Receipt | ExternalReceipt) -> ReceiptLine:
    if isinstance(found, ExternalReceipt):
        return ReceiptLine(found.id, found.created, found.candidate.name, True)
    timing, ratio = found.timing, found.timing.ratio if found.timing else None
    summary = timing.workloads[0].candidate.summary if timing else None
    return ReceiptLine(
        found.id,
        found.created,
        found.candidate.name,
        False,
        found.verdict.value,
        found.improvement.value,
        found.environment.device_name or found.environment.device,
        summary.median_us if summary else None,
        (ratio.median, ratio.ci_low, ratio.ci_high) if ratio else None,
        timing.against if timing else "",
    )
