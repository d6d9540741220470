"""Rules on what was measured of a version: its receipt and its profile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.profiling.profile import function_name
from evaluator.receipt.verdict import Verdict
from evaluator.store.seal import verify
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule


@rule("receipt-seal", "version")
def receipt_seal(context: GateContext) -> Iterator[Broken]:
    """Keep the receipt byte for byte as kopt sealed it.

    What it checks: hash and seal of the receipt are right, with the key of this KOPT_HOME, and so are those of the
    record of the user's own benchmark, if there is one.

    Why: the receipt is the only proof of what was measured.

    Fix: restore the file from the run's git repository, or have the version measured again.
    """
    external = context.folder.relative(context.folder.external(context.version))
    for path in (context.in_version("receipt.json"), external):
        data = context.bytes_of(path)
        found = verify(data, context.key) if data is not None else None
        if found is None or found.ok:
            continue
        fix = f"Restore the receipt that kopt wrote: `git checkout -- {path}` in the run's folder."
        yield broken(path, found.detail, fix)


@rule("receipt-recorded", "version")
def receipt_recorded(context: GateContext) -> Iterator[Broken]:
    """Keep the receipt that the journal recorded for the accepted attempt.

    What it checks: the receipt has the id that the journal names.

    Why: one evaluation decides; a luckier one of the same kernel must not replace it.

    Fix: restore the receipt that the journal names.
    """
    path, state = context.in_version("receipt.json"), context.opened
    receipt = context.receipt(path)
    recorded = state.result if state is not None else None
    if receipt is not None and recorded is not None and receipt.id != recorded.receipt:
        message = f"its id is {receipt.id[:16]}, but the journal has {recorded.receipt[:16]}"
        yield broken(path, message, "Restore it from the attempt's folder or from git.")


@rule("receipt-kernel", "version")
def receipt_kernel(context: GateContext) -> Iterator[Broken]:
    """Keep the kernel file that was measured.

    What it checks: the hash of the candidate in the receipt is the SHA-256 of the version's kernel file.

    Why: a kernel that was edited after its measurement is another kernel.

    Fix: restore the kernel file, and hand in the changed kernel as a proposal.
    """
    name, receipt = context.kernel_name(context.version), context.receipt(context.in_version("receipt.json"))
    if name is None or receipt is None:
        return
    path = context.in_version(name)
    hash = context.hash(path) or ""
    if hash != receipt.candidate.hash:
        message = f"its hash is {hash[:16]}, but the receipt is of {receipt.candidate.hash[:16]}"
        fix = f"Restore {path} from the run's git repository; hand in a changed kernel as a proposal."
        yield broken(path, message, fix)


@rule("receipt-problem", "version")
def receipt_problem(context: GateContext) -> Iterator[Broken]:
    """Measure the run's problem, under the plan `verdict`, with secret seeds.

    What it checks: the receipt has the problem hash of run.json, the plan `verdict`, and seeds that were secret. Where
    version 0 is the library itself, because the user had a reference alone, its receipt, and no other, has the hash of
    the problem that allows libraries.

    Why: a kernel that is correct for other sizes, another reference or a looser tolerance may be wrong here, and a
    kernel that could know its inputs proves nothing.

    Fix: have the version measured again with `kopt run resume`.
    """
    path = context.in_version("receipt.json")
    receipt = context.receipt(path)
    if receipt is None:
        return
    fix = "Have the version measured again in this run."
    wanted = context.record.problem_of(receipt.candidate.hash)
    if receipt.problem.hash != wanted:
        message = f"its problem is {receipt.problem.hash[:16]}, but the run's is {wanted[:16]}"
        yield broken(path, message, fix)
    if receipt.plan.name != "verdict":
        yield broken(path, f"its plan is `{receipt.plan.name}`, which accepts nothing", fix)
    if receipt.plan.seed_origin != "secret":
        yield broken(path, f"its seeds are {receipt.plan.seed_origin}: the kernel may have been written for them", fix)


@rule("not-accepted", "version")
def not_accepted(context: GateContext) -> Iterator[Broken]:
    """Keep only kernels that the evaluator accepted.

    What it checks: the verdict in the receipt is `accepted`, and the journal has an accepted attempt.

    Why: a kernel that is wrong, or whose measurement cannot be trusted, is not a version.

    Fix: correct the kernel, and hand it in as another attempt.
    """
    path, state = context.in_version("receipt.json"), context.opened
    receipt = context.receipt(path)
    if receipt is not None and receipt.verdict is not Verdict.ACCEPTED:
        message = f"the verdict is {receipt.verdict}: {receipt.reason}"
        yield broken(path, message, "Correct the kernel, and hand it in as another attempt.")
    if state is None or state.accepted is None:
        message = f"the journal has no accepted attempt of v{context.version}"
        yield broken("journal.jsonl", message, "Hand in a kernel that the evaluator accepts.")


@rule("profile-grade", "version")
def profile_grade(context: GateContext) -> Iterator[Broken]:
    """Profile each version as fully as the run was started with.

    What it checks: a run that takes full profiles has one for each version, or its journal says why not. If HINTS.md
    says `no ncu`, there is none.

    Why: the next proposal starts from this profile.

    Fix: let `kopt run resume` profile the version.
    """
    state = context.opened
    if state is None or state.profiled is None:
        message = f"v{context.version} was not profiled"
        yield broken("journal.jsonl", message, "Let `kopt run resume` profile it.")
        return
    grade, no_ncu = state.profiled.grade, context.hints.no_ncu
    if context.record.profile == "full" and grade != "full" and not state.profiled.why and not no_ncu:
        message = f"the profile is {grade}, the run's grade is full, and the journal has no reason"
        yield broken("journal.jsonl", message, "Profile the version again.")
    path = context.in_version("profile.csv")
    if no_ncu and context.bytes_of(path) is not None:
        yield broken(path, "HINTS.md says `no ncu`, but this is a profile of ncu", "Remove it, or change HINTS.md.")


def _no_full_profile(context: GateContext) -> str:
    state = context.opened
    if state is not None and state.profiled is not None and state.profiled.grade != "full":
        return f"the profile is {state.profiled.grade}: {state.profiled.why or context.record.profile_why}"
    return ""


@rule("profile-kernel", "version", lapses=_no_full_profile)
def profile_kernel(context: GateContext) -> Iterator[Broken]:
    """Profile this version's kernel.

    What it checks: the profiled launch is a function in the kernel's file or ran in its evaluation, and the file is not
    a copy of another version's profile.

    Why: a diagnosis of another kernel leads the next proposal astray.

    Fix: profile the version again with `kopt run resume`.
    """
    path = context.in_version("profile.csv")
    launch, text = context.launch(context.version), context.kernel(context.version)
    if launch is None or text is None:
        return
    fix = "Remove the file, and let `kopt run resume` profile this version."
    receipt = context.receipt(context.in_version("receipt.json"))
    ran = {function_name(kernel.name) for kernel in receipt.kernels} if receipt is not None else set()
    written = set(re.findall(r"[A-Za-z_]\w*", text))
    if launch.function not in written | ran:
        yield broken(path, f"it is of {launch.function}, which v{context.version} neither defines nor ran", fix)
    for other in range(context.version):
        if context.hash(context.in_version("profile.csv", other)) == context.hash(path):
            yield broken(path, f"it is a copy of the profile of v{other}", fix)


def _no_limit(context: GateContext) -> str:
    asked = context.hints.cap("registers") is not None or context.hints.cap("shared memory") is not None
    if asked and context.launch(context.version) is None:
        return "HINTS.md limits registers or shared memory, and there is no profile to read them from"
    return "" if asked else "HINTS.md limits neither registers nor shared memory"


@rule("hint-limit", "version", lapses=_no_limit)
def hint_limit(context: GateContext) -> Iterator[Broken]:
    """Stay within the registers and shared memory that HINTS.md allows.

    What it checks: the profiled launch takes no more than the directives `registers: N` (per thread) and
    `shared memory: N KiB` (per block) allow.

    Why: the user may need the rest for something else.

    Fix: use less, or ask the user to change HINTS.md.
    """
    launch = context.launch(context.version)
    if launch is None:
        return
    shared = [launch.value("static_shared_memory"), launch.value("dynamic_shared_memory")]
    used = sum(value for value in shared if value is not None) if any(shared) else None
    for limit, value, unit in (
        (context.hints.cap("registers"), launch.value("registers"), "registers per thread"),
        (context.hints.cap("shared memory"), used, "bytes of shared memory per block"),
    ):
        if limit is not None and value is not None and value > limit:
            message = f"the kernel takes {value:f} {unit}, but HINTS.md allows {limit:f}"
            yield broken(context.in_version("profile.csv"), message, f"Use fewer {unit}.")
