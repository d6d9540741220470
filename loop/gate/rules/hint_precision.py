"""HINTS.md sets the least precision."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.spec_scanner import code_without_comments

_NAMES = {
    "fp64": r"float64|double|fp64",
    "fp32": r"float32|\bfloat\b|fp32",
    "tf32": r"tf32",
    "fp16": r"float16|\bhalf2?\b|__half2?|fp16",
    "bf16": r"bfloat16|bf16|__nv_bfloat16",
    "fp8": r"float8\w*|fp8\w*|e4m3\w*|e5m2\w*",
}
_ORDER = tuple(_NAMES)


@rule("hint-precision", "The kernel names no element type below the precision that HINTS.md asks for.", "proposal")
def hint_precision(context: GateContext) -> Iterator[Broken]:
    """A directive `precision: TYPE` in HINTS.md forbids to compute in a coarser type. Types that the parent names
    already are let pass: inputs may have them. Keep the type, or have the user change HINTS.md."""
    asked = context.hints.values("precision")
    proposal = context.proposal
    if not asked or proposal is None or asked[0] not in _ORDER:
        return
    before = context.kernel(proposal.parent) or ""
    code = code_without_comments(proposal.kernel, context.kernel_file)
    for type in _ORDER[_ORDER.index(asked[0]) + 1 :]:
        pattern = re.compile(_NAMES[type], re.IGNORECASE)
        found = pattern.search(code)
        if found and not pattern.search(
            code_without_comments(before, context.kernel_name(proposal.parent) or "kernel.py")
        ):
            line = code.count("\n", 0, found.start()) + 1
            message = f"it names {found[0]}, and HINTS.md asks for {asked[0]} at least"
            yield Broken(file=context.kernel_file, line=line, message=message, mend=f"Compute in {asked[0]} or better.")
