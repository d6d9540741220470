"""The final measurement is sealed."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.store.seal import verify
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("final-receipt", "The final receipt is sealed, of the restored kernel, and of the run's problem.", "final")
def final_receipt(context: GateContext) -> Iterator[Broken]:
    """The reported speed rests on a measurement after the restore, against version 0. Its receipt keeps to the
    rules of a version's. Measure again with `kopt run final`."""
    final, mend = context.state.final, "Measure again with `kopt run final`."
    path = next((p for p in final.files if p.endswith("receipt.json")), "") if final is not None else ""
    data = context.bytes_of(path) if path else None
    if final is None or data is None:
        yield Broken(file=path or "journal.jsonl", line=0, message="there is no receipt of the end", mend=mend)
        return
    found, receipt = verify(data, context.key), context.receipt(path)
    if not found.ok or receipt is None:
        yield Broken(file=path, line=0, message=found.detail, mend=mend)
        return
    name = context.kernel_name(context.version)
    kernel = context.hash(context.in_version(name)) if name else None
    for wrong, message in (
        (receipt.id != final.receipt, "it is not the receipt that the journal has"),
        (receipt.candidate.hash != kernel, f"it is not of the kernel of v{context.version}"),
        (receipt.problem.hash != context.record.problem_hash, "it is of another problem than the run's"),
        (receipt.plan.name != "verdict", "its plan accepts nothing"),
    ):
        if wrong:
            yield Broken(file=path, line=0, message=message, mend=mend)
