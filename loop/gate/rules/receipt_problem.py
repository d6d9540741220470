"""The receipt is of the run's problem."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule(
    "receipt-problem",
    "The receipt is of the run's problem, under the plan `verdict`, with the run's secret seeds.",
    "version",
)
def receipt_problem(context: GateContext) -> Iterator[Broken]:
    """A kernel that is right for other sizes, another reference or a looser tolerance is not right here, and a
    candidate that could know the inputs shows nothing. The receipt's problem hash is that of run.json; its plan is
    `verdict` and its seeds were secret. Have the version measured again by `kopt run resume`."""
    path = context.in_version("receipt.json")
    receipt = context.receipt(path)
    if receipt is None:
        return
    mend = "Have the version measured again in this run."
    if receipt.problem.hash != context.record.problem_hash:
        message = f"its problem is {receipt.problem.hash[:16]}, and the run's is {context.record.problem_hash[:16]}"
        yield Broken(file=path, line=0, message=message, mend=mend)
    if receipt.plan.name != "verdict":
        message = f"its plan is `{receipt.plan.name}`, which accepts nothing"
        yield Broken(file=path, line=0, message=message, mend=mend)
    if receipt.plan.seed_origin != "secret":
        message = f"its seeds are {receipt.plan.seed_origin}: the kernel may have been written for them"
        yield Broken(file=path, line=0, message=message, mend=mend)
