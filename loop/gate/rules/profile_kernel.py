"""The profile is of this kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.profiling.profile import function_name
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


def _none(context: GateContext) -> str:
    state = context.opened
    if state is not None and state.profiled is not None and state.profiled.grade != "full":
        return f"the profile is {state.profiled.grade}: {state.profiled.why or context.record.profile_why}"
    return ""


@rule("profile-kernel", "The profile is of this version's kernel.", "version", lapses=_none)
def profile_kernel(context: GateContext) -> Iterator[Broken]:
    """The launch that the profile speaks of is a function of the kernel's file, or ran in its evaluation, and the
    file is no copy of another version's profile. Profile the version again with `kopt run resume`."""
    path = context.in_version("profile.csv")
    launch, text = context.launch(context.version), context.kernel(context.version)
    if launch is None or text is None:
        return
    mend = "Remove the file, and let `kopt run resume` profile this version."
    receipt = context.receipt(context.in_version("receipt.json"))
    ran = {function_name(kernel.name) for kernel in receipt.kernels} if receipt is not None else set()
    written = set(re.findall(r"[A-Za-z_]\w*", text))
    if launch.function not in written | ran:
        message = f"it is of {launch.function}, which v{context.version} neither defines nor ran"
        yield Broken(file=path, line=0, message=message, mend=mend)
    for other in range(context.version):
        if context.hash(context.in_version("profile.csv", other)) == context.hash(path):
            yield Broken(file=path, line=0, message=f"it is a copy of the profile of v{other}", mend=mend)
