"""Rules on proposals of several methods: the budget of each axis, and the kernel without each method."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.store.seal import verify
from kbs.common.errors import KoptError
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.pages.artifacts import VersionFiles
from loop.planning.budget import AXES
from loop.proposals import knobs, method_kinds
from loop.proposals.change import compare


def _single(context: GateContext) -> str:
    return "" if context.record.discipline == "budget" else "the discipline is `single`: one method an iteration"


@rule("budget", "proposal", lapses=_single)
def budget(context: GateContext) -> Iterator[Broken]:
    """Declare no more methods than the parent's time has room for.

    What it checks: under the discipline `budget` a proposal has at most three methods, each of them once, at most as
    many of an axis as `budget` in the request allows, and none that conflicts with another by its page. The budget
    shares three methods among memory, compute and latency in proportion to the time that each could save, at most two
    an axis, none where that is below 5 % of the parent's time. Methods whose page names no axis count together.

    Why: a method for an axis that costs no time brings none, and each method makes it harder to tell what helped.

    Fix: keep the methods of the axis with the largest gap, and leave the others for the next version.
    """
    proposal = context.proposal
    if proposal is None or context.kernel_name(proposal.parent) is None:
        return
    file, known = f"{context.proposal_file}#methods", context.methods.by_id
    try:
        allowed = VersionFiles(context.folder, context.record, proposal.parent).budget
    except KoptError:
        return  # a file of the parent is damaged: another rule says so
    if len(set(proposal.methods)) != len(proposal.methods):
        yield broken(file, "a method is declared twice", "Name each method once.")
    if len(proposal.methods) > max(1, allowed.most):
        message = f"{len(proposal.methods)} methods are declared, and v{proposal.parent} has room for {allowed.most}"
        yield broken(file, message, "Leave out those for which there is the least time to save.")
    for axis in AXES:
        named = [one for one in proposal.methods if one in known and known[one].axis == axis]
        if len(named) > allowed.allowed(axis) and allowed.most:
            gap = next(one.line for one in allowed.axes if one.axis == axis)
            message = f"{', '.join(named)}: {len(named)} methods of the axis {axis}, which has {allowed.allowed(axis)}"
            yield broken(file, f"{message} ({gap})", "Take methods of an axis that has room.")
    for one in proposal.methods:
        against = set(known[one].conflicts) & set(proposal.methods) if one in known else set()
        if against:
            yield broken(file, f"{one} conflicts with {', '.join(sorted(against))} by its page", "Take one of them.")


@rule("ablations", "proposal")
def ablations(context: GateContext) -> Iterator[Broken]:
    """Hand in the kernel without each method, if there are several.

    What it checks: a proposal of several methods has one ablation for each of them, and no branches; a proposal of one
    has none. No ablation is the same program as the kernel or as another ablation. Each is read as the kernel is, as a
    proposal of the methods that are left: it may change nothing that these do not change. And it differs from the
    kernel only in what the method that it leaves out changes.

    Why: without it nobody knows which of the methods helped. Branches have other settings, so that leaving out a method
    of the kernel would say nothing of the branch that wins.

    Fix: add the missing ablation: the kernel's file with that one method undone.
    """
    proposal = context.as_handed_in
    if proposal is None:
        return
    file = f"{context.proposal_file}#ablations"
    given = [one.method for one in proposal.ablations]
    several = len(proposal.methods) > 1 and context.record.discipline == "budget"  # else another rule refuses several
    wanted = list(proposal.methods) if several else []
    for method in dict.fromkeys(wanted):
        if given.count(method) != 1:
            message = f"{given.count(method) or 'no'} ablations of {method}: one is wanted for each of several methods"
            yield broken(file, message, f"Add the kernel without {method}, and with all the others.")
    for method in dict.fromkeys(given):
        if method not in wanted:
            message = f"an ablation of {method}, which is not one of several declared methods"
            yield broken(file, message, "Leave it out.")
    if given and proposal.branches:
        message = "branches and ablations are handed in together"
        yield broken(f"{context.proposal_file}#branches", message, "Leave the branches out.")
    texts = [("the kernel", proposal.kernel), *((f"without {one.method}", one.kernel) for one in proposal.ablations)]
    for place, (one, text) in enumerate(texts):
        for other, second in texts[place + 1 :]:
            if compare(text, second, proposal.language, proposal.language).same:
                yield broken(file, f"{one} and {other} are the same program", "Undo the method in its ablation.")
    for ablation in proposal.ablations if several else ():
        own = method_kinds.owned((ablation.method,), proposal.language)
        for differs in knobs.differing(proposal.kernel, ablation.kernel, proposal.language):
            if differs.kind not in own and ablation.method in wanted:
                message = f"without {ablation.method}: {differs.kind} differ from the kernel's ({differs.example}) too"
                yield broken(file, message, f"Undo {ablation.method}, and nothing else.")


@rule("ablation-measured", "version")
def ablation_measured(context: GateContext) -> Iterator[Broken]:
    """Keep what was measured of the kernel without each method.

    What it checks: for each ablation of the proposal, vK/ablations/METHOD/ has its kernel as it was handed in, and,
    unless the evaluator could not take it, the receipt that the journal recorded: sealed, of that kernel and the run's
    problem, under the plan `verdict`, compared with the version's kernel.

    Why: attribution.json says from these receipts what each method brought.

    Fix: restore the file from the run's git repository, or let `kopt run resume` measure again.
    """
    proposal, state = context.as_handed_in, context.opened
    if proposal is None or state is None or state.accepted is None:
        return
    fix, name = "Restore it from the run's git repository.", context.kernel_name(context.version)
    whole = context.hash(context.in_version(name)) if name else None
    for one in proposal.ablations:
        folder, found = context.in_version(f"ablations/{one.method}"), state.accepted.found("ablation", one.method)
        if found is None:
            yield broken(folder, f"the journal has no ablation of {one.method}", "Let `kopt run resume` measure it.")
            continue
        if context.text(f"{folder}/{name}") != one.kernel:
            yield broken(f"{folder}/{name}", "it is not the kernel that the proposal has without this method", fix)
        if found.receipt is None:
            continue
        path = f"{folder}/receipt.json"
        data, receipt = context.bytes_of(path), context.receipt(path)
        sealed = verify(data, context.key) if data is not None else None
        if receipt is None or sealed is None or not sealed.ok:
            yield broken(path, sealed.detail if sealed else "it is missing", fix)
            continue
        for wrong, message in (
            (receipt.id != found.receipt, "it is not the receipt that the journal has"),
            (receipt.candidate.hash != context.hash(f"{folder}/{name}"), "it is not of the kernel beside it"),
            (receipt.problem.hash != context.record.problem_hash, "it is not of the run's problem"),
            (receipt.plan.name != "verdict", "its plan accepts nothing"),
            (
                receipt.incumbent is None or receipt.incumbent.hash != whole,
                "it is not against the version's kernel",
            ),
        ):
            if wrong:
                yield broken(path, message, fix)
