"""The kernel is another program than its parent."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("kernel-unchanged", "The kernel differs from its parent in what runs.", "proposal")
def kernel_unchanged(context: GateContext) -> Iterator[Broken]:
    """Comments, white space, docstrings and names of local variables are no change: a time that differs for them is
    noise. The syntax trees are compared, and tokens for CUDA. Change what the program does, or hand in nothing."""
    if context.change is not None and context.change.same:
        message = f"it is the program of v{context.parent}: {context.change.why}"
        yield Broken(file=context.kernel_file, line=1, message=message, mend="Make the declared change in the code.")
    elif context.proposal is not None and _both_cuda(context) and context.same_machine_code:
        # Names of locals are known for certain in Python alone; for CUDA the machine code decides.
        message = f"its machine code is that of v{context.parent}, instruction by instruction"
        yield Broken(file=context.kernel_file, line=1, message=message, mend="Make the declared change in the code.")


def _both_cuda(context: GateContext) -> bool:
    names = [context.kernel_name(context.parent) if context.parent is not None else None, context.kernel_file]
    return all(name is not None and name.endswith(".cu") for name in names)
