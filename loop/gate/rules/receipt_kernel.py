"""The receipt is of this kernel."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("receipt-kernel", "The receipt is of this kernel file, byte for byte.", "version")
def receipt_kernel(context: GateContext) -> Iterator[Broken]:
    """The hash of the candidate in the receipt is the SHA-256 of the version's kernel file. A kernel that was edited
    after it was measured is another kernel: hand it in as a proposal."""
    name, receipt = context.kernel_name(context.version), context.receipt(context.in_version("receipt.json"))
    if name is None or receipt is None:
        return
    path = context.in_version(name)
    if context.hash(path) != receipt.candidate.hash:
        message = f"its hash is {(context.hash(path) or '')[:16]}, and the receipt is of {receipt.candidate.hash[:16]}"
        mend = f"Restore {path} from the run's git repository; hand a changed kernel in as a proposal."
        yield Broken(file=path, line=0, message=message, mend=mend)
