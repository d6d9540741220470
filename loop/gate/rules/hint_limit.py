"""Limits of HINTS.md on resources."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


def _none(context: GateContext) -> str:
    asked = context.hints.cap("registers") is not None or context.hints.cap("shared memory") is not None
    if asked and context.launch(context.version) is None:
        return "HINTS.md limits registers or shared memory, and there is no profile to read them from"
    return "" if asked else "HINTS.md limits neither registers nor shared memory"


@rule(
    "hint-limit", "The kernel keeps to the registers and shared memory that HINTS.md allows.", "version", lapses=_none
)
def hint_limit(context: GateContext) -> Iterator[Broken]:
    """Directives `registers: N` and `shared memory: N KiB` in HINTS.md are limits of a thread and of a block; the
    launch in the profile says what the kernel takes. Use less, or have the user change HINTS.md."""
    launch = context.launch(context.version)
    if launch is None:
        return
    registers = launch.value("registers")
    shared = [launch.value("static_shared_memory"), launch.value("dynamic_shared_memory")]
    taken = {"registers": registers, "shared memory": sum(v for v in shared if v is not None) if any(shared) else None}
    for kind, value in taken.items():
        limit = context.hints.cap("registers" if kind == "registers" else "shared memory")
        if limit is not None and value is not None and value > limit:
            unit = "registers a thread" if kind == "registers" else "bytes of shared memory a block"
            message = f"the kernel takes {value:f} {unit}, and HINTS.md allows {limit:f}"
            yield Broken(file=context.in_version("profile.csv"), line=0, message=message, mend=f"Use fewer {unit}.")
