"""The kinds of receipts that there are."""

from __future__ import annotations

from typing import Literal

from evaluator.external.record import ExternalReceipt
from evaluator.receipt.document import EXTERNAL_KIND, KIND, read
from evaluator.receipt.receipt import Receipt

Evidence = Literal["measured", "external"]
"""Of what a receipt is the record: `measured` by kopt, or `external`, printed by a command of the user's."""
KINDS: dict[str, type[Receipt | ExternalReceipt]] = {KIND: Receipt, EXTERNAL_KIND: ExternalReceipt}
"""What stands in a document's `kind`, and its model."""


def parse(data: bytes) -> Receipt | ExternalReceipt:
    """Read a receipt of any kind. Raises `UsageError` (`receipt_invalid`) for anything else, or what was changed."""
    return read(data, KINDS)
