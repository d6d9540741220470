"""The kernel is right."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.receipt.verdict import Verdict
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("not-accepted", "The evaluator accepted the kernel.", "version")
def not_accepted(context: GateContext) -> Iterator[Broken]:
    """A version that is wrong, or whose measurement cannot be believed, is no version: the verdict in its receipt
    must be `accepted`, and the journal must have it so. Mend the kernel in a new attempt."""
    path, state = context.in_version("receipt.json"), context.opened
    receipt = context.receipt(path)
    if receipt is not None and receipt.verdict is not Verdict.ACCEPTED:
        message = f"the verdict is {receipt.verdict}: {receipt.reason}"
        yield Broken(file=path, line=0, message=message, mend="Mend the kernel, and hand it in as another attempt.")
    if state is None or state.accepted is None:
        message = f"the journal has no accepted attempt of v{context.version}"
        yield Broken(file="journal.jsonl", line=0, message=message, mend="Hand in a kernel that the evaluator accepts.")
