"""Where receipts and plans are kept: `KOPT_HOME/receipts`, or the file that the user names."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Literal

from evaluator.external.record import ExternalReceipt
from evaluator.receipt.document import EXTERNAL_KIND, KIND, SealedDocument, read, render
from evaluator.receipt.plan import Plan
from evaluator.receipt.receipt import Receipt
from kbs.common import canonical_json as canonical
from kbs.common.errors import UsageError
from kbs.common.files import make_folder, write_error, write_whole

FOLDER = "receipts"
"""In KOPT_HOME."""
Evidence = Literal["measured", "external"]
"""Of what a receipt is the record: `measured` by kopt, or `external`, printed by a command of the user's."""
KINDS: dict[str, type[Receipt | ExternalReceipt]] = {KIND: Receipt, EXTERNAL_KIND: ExternalReceipt}
"""What stands in a document's `kind`, and its model."""


def parse(data: bytes) -> Receipt | ExternalReceipt:
    """Read a receipt of any kind. Raises `UsageError` (`receipt_invalid`) for anything else, or what was changed."""
    return read(data, KINDS)


def save_plan(home: Path, plan: Plan) -> Path:
    """Write a plan before its run: `receipts/<first 16 hex digits of its hash>.plan.json`. Raises `KoptError`."""
    path = home / FOLDER / f"{plan.hash[:16]}.plan.json"
    make_folder(path.parent)
    write_whole(path, canonical.dumps(plan.model_dump(mode="json")))
    return path


def save_receipt(home: Path, receipt: SealedDocument, chosen: Path | None = None) -> Path:
    """Write a receipt to the file that the user chose, else to `receipts/<first 16 hex digits of its id>.json`.

    A chosen file that is there is overwritten only if it is a receipt; one in KOPT_HOME only if it has the same id.
    Raises `KoptError`, and `UsageError` (`receipt_exists`) for a file that is not to be overwritten.
    """
    path = chosen if chosen is not None else home / FOLDER / f"{receipt.id[:16]}.json"
    if chosen is None:
        make_folder(path.parent)
    _check_free(path, None if chosen is not None else receipt.id)
    write_whole(path, render(receipt))
    return path


def find_receipt(home: Path, id: str) -> Path | None:
    """The kept receipt whose id this is, or begins so with eight digits or more; None where there is none, or several
    begin so."""
    if not re.fullmatch("[0-9a-f]{8,64}", id):
        return None
    found = [path for path in (home / FOLDER).glob(f"{id[:16]}*.json") if re.fullmatch("[0-9a-f]{16}", path.stem)]
    return found[0] if len(found) == 1 else None


def receipt_file(home: Path, named: Path) -> Path:
    """The file that a user names by its path, or by the id of a kept receipt or eight and more digits of it."""
    return named if named.exists() else find_receipt(home, str(named)) or named


def check_chosen(chosen: Path) -> None:
    """Refuse a place for the receipt before the run, not after it. Raises as `save_receipt` does."""
    _check_free(chosen, None)
    if not chosen.parent.is_dir():
        raise UsageError(
            f"there is no folder {chosen.parent} for the receipt",
            code="receipt_folder",
            hint="Make the folder, or choose another file with --receipt.",
        )


def read_receipt(path: Path) -> bytes:
    """The bytes of a receipt's file, for `parse` and `verify`. Raises `UsageError`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unreadable(path, "it is no file")
        with path.open("rb") as stream:
            data = stream.read(canonical.MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no file {path}",
            code="file_not_found",
            hint="Give the path of a receipt, or the id of one that is kept.",
        ) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if len(data) > canonical.MAX_BYTES:
        raise UsageError(
            f"{path} is no receipt: it is larger than {canonical.MAX_BYTES // 2**20} MiB",
            code="receipt_invalid",
            hint="Give the JSON file that `kopt bench` wrote.",
        )
    return data


def _check_free(path: Path, id: str | None) -> None:
    """Refuse to overwrite what is no receipt, or, where `id` is given, a receipt of another id."""
    try:
        if not path.exists():
            return
        if path.is_dir():
            raise _taken(path, "a folder")
        if not path.is_file():
            raise _taken(path, "no ordinary file")
    except OSError as error:
        raise write_error(error, path) from error
    try:
        there = parse(read_receipt(path))
    except UsageError as error:
        raise _taken(path, "there, and no receipt that kopt could read") from error
    if id is not None and there.id != id:
        raise _taken(path, "another receipt")


def _taken(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is {what}: it is not overwritten",
        code="receipt_exists",
        hint="Choose another file with --receipt, or move that one away.",
    )


def _unreadable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} cannot be read: {why}", code="file_unreadable", hint="Give a receipt that you have permission to read."
    )
