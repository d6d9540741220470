"""Rules on what HINTS.md forbids in the kernel's text. `hint-limit`, which reads the profile, is in `receipts`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from loop.gate.comments import code_without_comments
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.proposals import knobs, method_kinds
from loop.proposals.precision import less_precise
from loop.proposals.programs import shape

_TYPE_NAMES = {
    "fp64": r"float64|double|fp64",
    "fp32": r"float32|\bfloat\b|fp32",
    "tf32": r"tf32",
    "fp16": r"float16|\bhalf2?\b|__half2?|fp16|halftensor",
    "bf16": r"bfloat16|bf16|__nv_bfloat16",
    "fp8": r"float8\w*|fp8\w*|e4m3\w*|e5m2\w*",
}
_BY_PRECISION = tuple(_TYPE_NAMES)
"""The most precise type first."""


@rule("forbidden-method", "proposal")
def forbidden_method(context: GateContext) -> Iterator[Broken]:
    """Use no method that HINTS.md forbids.

    What it checks: no declared method is the subject of a directive `forbid: ID`, as HINTS.md was read last, and the
    code gains no sign of one, whatever it is declared as: `tl.dot` is that of tensor_core, a hint to the caches that no
    declared method makes that of cache_modifier_hint, and a buffer that one kernel writes and another one adds that of
    split_k.

    Why: the user decides which methods may be used.

    Fix: choose another method, or ask the user to change HINTS.md.
    """
    forbidden = {one.value: one for one in context.hints.directives if one.kind == "forbid"}
    for name in context.proposal.methods if context.proposal is not None else ():
        if name in forbidden:
            message = f"{name} is forbidden by HINTS.md ({forbidden[name].canonical})"
            fix = "Choose another method; `kopt run status` shows the directives."
            yield broken(f"{context.proposal_file}#methods", message, fix)
    proposal = context.proposal
    if proposal is None or not forbidden:
        return
    name = context.kernel_name(proposal.parent) or ""
    before = context.kernel(proposal.parent) or ""
    code = code_without_comments(proposal.kernel, context.kernel_file)
    found = list(method_kinds.signs(code_without_comments(before, name), code, ()))
    language = "cuda" if name.endswith(".cu") else "python"
    if name == Path(context.kernel_file).name:
        own = method_kinds.owned([one for one in proposal.methods if one not in forbidden], language)
        differing = knobs.differing(before, proposal.kernel, language)
        found += [
            (f"other {one.kind} ({one.example})", method_kinds.IS_METHOD[one.kind])
            for one in differing
            if one.kind in method_kinds.IS_METHOD and one.kind not in own
        ]
        if partial := shape.splits_a_sum(before, proposal.kernel, language):
            found += [(f"{partial}, partial results that are added later,", one) for one in ("split_k", "stream_k")]
    for sign, method in found:
        if method in forbidden:
            message = f"the code has {sign} now, which is {method}; HINTS.md forbids it"
            yield broken(context.kernel_file, message, "Do without it, or ask the user to change HINTS.md.")


@rule("hint-precision", "proposal")
def hint_precision(context: GateContext) -> Iterator[Broken]:
    """Keep to the precision that HINTS.md asks for.

    What it checks: under a directive `precision: TYPE` the code names no less precise element type. Types that the
    parent already names are allowed, because inputs may have them. Nor does a kernel's function round, add what cancels
    (`s - (s - x)`), see numbers as bits, or compute in the type of its input (`.to(x.dtype.element_ty)` before the
    store, a load without the conversion that the parent has) where the parent does not.

    Why: a kernel that computes less precisely is faster without being better.

    Fix: compute in the type, or ask the user to change HINTS.md.
    """
    asked = context.hints.values("precision")
    proposal = context.proposal
    if not asked or proposal is None or asked[0] not in _BY_PRECISION:
        return
    parent_name = context.kernel_name(proposal.parent) or "kernel.py"
    before = code_without_comments(context.kernel(proposal.parent) or "", parent_name)
    code = code_without_comments(proposal.kernel, context.kernel_file)
    code += "".join(f"\n{one}" for one in knobs.folded_strings(proposal.kernel))
    for type in _BY_PRECISION[_BY_PRECISION.index(asked[0]) + 1 :]:
        pattern = re.compile(_TYPE_NAMES[type], re.IGNORECASE)
        found = pattern.search(code)
        if found and not pattern.search(before):
            line = code.count("\n", 0, found.start()) + 1
            message = f"it names {found[0]}, but HINTS.md asks for {asked[0]} at least"
            yield broken(context.kernel_file, message, f"Compute in {asked[0]} or better.", line)
    language = "cuda" if context.kernel_file.endswith(".cu") else "python"
    if parent_name.endswith(".cu") == (language == "cuda"):
        earlier, own = (
            (before, code_without_comments(proposal.kernel, context.kernel_file))
            if language == "cuda"
            else (context.kernel(proposal.parent) or "", proposal.kernel)
        )
        for line, what in less_precise(earlier, own, language, asked[0]):
            message = (
                f"{what} may be less precise than {asked[0]}, which HINTS.md asks for; v{proposal.parent} has none"
            )
            yield broken(context.kernel_file, message, f"Compute in {asked[0]}, and convert what is stored.", line)
