"""The receipt is sealed."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.store.seal import verify
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("receipt-seal", "The receipt is byte for byte as kopt sealed it, with this KOPT_HOME's key.", "version")
def receipt_seal(context: GateContext) -> Iterator[Broken]:
    """A receipt says what was measured; an edit of it breaks its hash or its seal. Restore the file from the run's git
    repository, or have the version measured again."""
    path = context.in_version("receipt.json")
    data = context.bytes_of(path)
    found = verify(data, context.key) if data is not None else None
    if found is not None and not found.ok:
        mend = "Restore the receipt that kopt wrote: `git checkout -- " + path + "` in the run's folder."
        yield Broken(file=path, line=0, message=found.detail, mend=mend)
