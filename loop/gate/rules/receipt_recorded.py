"""The receipt is the journal's."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("receipt-recorded", "The receipt is the one that the journal has for the accepted attempt.", "version")
def receipt_recorded(context: GateContext) -> Iterator[Broken]:
    """One evaluation decides; another receipt of the same kernel, a luckier one, does not stand in its place.
    Restore the receipt that the journal names."""
    path, state = context.in_version("receipt.json"), context.opened
    receipt = context.receipt(path)
    accepted = state.accepted if state is not None else None
    recorded = accepted.evaluated if accepted is not None else None
    if receipt is not None and recorded is not None and receipt.id != recorded.receipt:
        message = f"its id is {receipt.id[:16]}, and the journal has {recorded.receipt[:16]}"
        yield Broken(file=path, line=0, message=message, mend="Restore it from the attempt's folder or from git.")
