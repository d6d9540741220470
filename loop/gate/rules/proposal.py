"""Rules on what a proposal changes: its version, its parent, its kernel and its methods."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.comments import code_without_comments
from loop.gate.context import GateContext
from loop.gate.numbers.accounting import integers
from loop.gate.numbers.plain_text import hidden_characters
from loop.gate.rule import Broken, broken, rule
from loop.gate.texts import Text, stated_texts
from loop.planning.methods import REWRITE
from loop.proposals import knobs, method_kinds
from loop.proposals.programs import shape
from loop.proposals.proposal import Proposal


@rule("addressed", "proposal")
def addressed(context: GateContext) -> Iterator[Broken]:
    """Address the open version, and start from a parent that passed.

    What it checks: `version` is the version that is open, and `parent` is a version that passed the gate.

    Why: a proposal answers one request, and its kernel is compared with its parent.

    Fix: take both numbers from `kopt run next`.
    """
    proposal, file = context.proposal, context.proposal_file
    if proposal is None:
        return
    if proposal.version != context.version:
        message = f"it is for version {proposal.version}, but version {context.version} is open"
        yield broken(file, message, f"Hand in a proposal with `version: {context.version}`.")
    passed = [state.number for state in context.state.versions[: context.version] if state.passed]
    if proposal.parent not in passed:
        message = f"its parent is version {proposal.parent}, which did not pass"
        choices = ", ".join(f"v{number}" for number in passed) or "none has passed yet"
        yield broken(file, message, f"Start from one of these: {choices}.")


@rule("invisible-character", "proposal")
def invisible_character(context: GateContext) -> Iterator[Broken]:
    """Write nothing that a reader cannot see.

    What it checks: no text of a proposal, and no comment, string or name of its kernel, has a character without a
    width inside a word or a number of Latin letters or digits, nor one that turns the order of letters round. Joiners
    of other scripts and of emoji are no such characters.

    Why: what a reader takes for one number, a program reads as another.

    Fix: remove the character.
    """
    proposal, seen = context.proposal, set[tuple[str, int, str]]()
    if proposal is None:
        return
    quotes = [
        Text(f"{context.proposal_file}#evidence.selected[{n}].quote", one.quote)
        for n, one in enumerate(proposal.evidence.selected)
    ]
    for text in (*stated_texts(context), *quotes):
        for line, character in hidden_characters(text.text):
            place = (text.place, line + text.before, character)
            if place not in seen:
                seen.add(place)
                message = f"it has {character}, which nobody sees"
                yield broken(text.place, message, "Remove it.", line + text.before)


@rule("kernel-unchanged", "proposal")
def kernel_unchanged(context: GateContext) -> Iterator[Broken]:
    """Change what the kernel does.

    What it checks: the syntax tree (Python) or the tokens and machine code (CUDA) differ from the parent's. Comments,
    white space, docstrings and names of local variables are no change, nor is in Python what does nothing: branches
    that are never taken, values that nobody reads, functions that nobody calls, loops of one turn, `+ 0`.

    Why: a difference in time between two equal programs is noise.

    Fix: change what the program does, or hand in nothing.
    """
    fix = "Make the declared change in the code."
    if context.change is not None and context.change.same:
        message = f"it is the same program as v{context.parent}: {context.change.why}"
        yield broken(context.kernel_file, message, fix, line=1)
    elif context.proposal is not None and _both_cuda(context) and context.same_machine_code:
        # Names of local variables are known for certain only in Python; for CUDA the machine code decides.
        message = f"its machine code is the same as that of v{context.parent}, instruction by instruction"
        yield broken(context.kernel_file, message, fix, line=1)


def _both_cuda(context: GateContext) -> bool:
    names = [context.kernel_name(context.parent) if context.parent is not None else None, context.kernel_file]
    return all(name is not None and name.endswith(".cu") for name in names)


@rule("unknown-method", "proposal")
def unknown_method(context: GateContext) -> Iterator[Broken]:
    """Declare only methods that have a page in a wiki of the run.

    What it checks: each id under `methods` and `skipped` is the id of a method page, or `rewrite` for a change of
    language; the page is as it was when the run started, and describes no defect.

    Why: methods are compared between versions and runs, so each has exactly one name.

    Fix: take an id from the list in `kopt run next`. A new method needs a page before the run starts.
    """
    proposal = context.proposal
    if proposal is None:
        return
    file = f"{context.proposal_file}#methods"
    for name in (*proposal.methods, *(one.method for one in proposal.skipped)):
        if name == REWRITE:
            continue
        method = context.methods.by_id.get(name)
        if method is None:
            near = context.methods.nearest(name)
            fix = f"Name one of {', '.join(near)}." if near else "Take an id from the request's list of methods."
            yield broken(file, f"no wiki of this run has a page on the method {name!r}", fix)
        elif why := context.unpinned(*method.page.split("/", 1)):
            yield broken(file, f"{name}: {why}", "Start a new run to use new pages.")
        elif method.defect and name in proposal.methods:
            message = f"{name} is a defect of kernels, not something that is done to one"
            yield broken(file, message, "Name the method that removes it.")


@rule("discipline", "proposal")
def discipline(context: GateContext) -> Iterator[Broken]:
    """Change what the declared methods change: under `single`, exactly one.

    What it checks: under the discipline `single` a proposal declares one method, under `budget` as many as the rule
    `budget` allows. The diff is held against them: launch settings (num_warps, maxnreg, launch bounds), pipeline
    stages, tile sizes, cache hints, precision settings, masks that are left out, the order of tiles (a swizzle,
    quotients of a program's number) and the code itself are told apart. What no declared method changes is a second
    change, and so is a setting that `single_change` names beside them; nothing of what a method changes is no change by
    it, and a value that `single_change` says a setting gets (`BLOCK to 2048`) is in the code, as is each name with an
    underscore that it has. Where loops, accesses, grid and calls are the parent's, only arithmetic differs, and that is
    no method but those of arithmetic. A new kernel function brings its own settings. A kernel that moves to another
    language declares `rewrite`, and no other kernel does.

    Why: with two changes at once nobody knows which one helped.

    Fix: keep one method, and leave the other for the next version.
    """
    proposal = context.proposal
    if proposal is None:
        return
    file = f"{context.proposal_file}#methods"
    if context.record.discipline == "single" and len(proposal.methods) != 1:
        message = f"{len(proposal.methods)} methods are declared under `single`: {', '.join(proposal.methods)}"
        yield broken(file, message, "Keep one of them, and undo what belongs to the others.")
    before = context.kernel_name(proposal.parent)
    moved = before is not None and before.endswith(".cu") != (proposal.language == "cuda")
    if not moved:
        yield from _held_against_methods(context, proposal)
    if moved and REWRITE not in proposal.methods:
        message = f"the language changes from {before} to {proposal.language}, which is the method `rewrite`"
        yield broken(file, message, "Declare `rewrite`, and change nothing else in this version.")
    if not moved and REWRITE in proposal.methods:
        message = "`rewrite` is declared, but the language stays the same"
        fix = "It is a move between Python and CUDA. Triton in place of PyTorch's operations is `kernel_fusion`, say."
        yield broken(file, message, f"Declare the method that the change really is. {fix}")


def _held_against_methods(context: GateContext, proposal: Proposal) -> Iterator[Broken]:
    """The diff and the words of a proposal against the methods that it declares."""
    language = "cuda" if (context.kernel_name(proposal.parent) or "").endswith(".cu") else "python"
    before = context.kernel(proposal.parent)
    found = knobs.differing(before, proposal.kernel, language) if before is not None else ()
    declared, own = ", ".join(proposal.methods), method_kinds.owned(proposal.methods, language)
    if "tile sizes" in own and any(one.kind == "tile sizes" for one in found):
        own.add("launch settings")  # a tile of another size is shared among another number of warps
    for one in found:
        if one.kind not in own:
            differ = "differs" if one.kind == "the code" else "differ"
            message = f"{one.kind} {differ} from v{proposal.parent} ({one.example}), which {declared} does not change"
            fix = "Undo that change, and make it in the next version; or declare the method that it is."
            yield broken(context.kernel_file, message, fix)
    old_code = code_without_comments(before or "", context.kernel_name(proposal.parent) or "kernel.py")
    code = code_without_comments(proposal.kernel, context.kernel_file)
    for name, method in method_kinds.signs(old_code, code, proposal.methods):
        message = f"the code has {name} now, which is {method} and not {declared}"
        yield broken(context.kernel_file, message, "Leave it for the next version, or declare the method that it is.")
    for method in proposal.methods:
        wanted = method_kinds.needed((method,), language)
        if found and not wanted & {one.kind for one in found} and {one.kind for one in found} <= own:
            kinds_found = [one.kind for one in found]
            differ = "differs" if kinds_found == ["the code"] else "differ"
            message = f"only {' and '.join(kinds_found)} {differ} from v{proposal.parent}: that is not {method}"
            yield broken(context.kernel_file, message, "Declare the method that the change really is.")
    kinds = {one.kind for one in found}
    why = shape.another(proposal.methods, before, proposal.kernel, language, kinds) if before is not None else ""
    if why and kinds <= own:
        yield broken(
            context.kernel_file, f"{why}: that is not {declared}", "Declare the method that the change really is."
        )
    constants, metrics = set(integers(code)), profile_metrics().all
    for name, value in knobs.told(proposal.hypothesis.single_change, proposal.kernel):
        if Decimal(value) not in constants:
            message = f"single_change says that {name} becomes {value}, and the kernel has no {value}"
            fix = "Make that change, or leave it out of the sentence."
            yield broken(f"{context.proposal_file}#hypothesis.single_change", message, fix)
    for name in knobs.identifiers(proposal.hypothesis.single_change):
        if name not in f"{before} {proposal.kernel}" and name not in context.methods.by_id and name not in metrics:
            message = f"single_change names {name}, which neither v{proposal.parent} nor the kernel has"
            fix = "Make that change, or leave it out of the sentence."
            yield broken(f"{context.proposal_file}#hypothesis.single_change", message, fix)
    for one in knobs.spoken(proposal.hypothesis.single_change):
        if one.kind not in own:
            message = f"single_change names a second change, {one.example}, which {declared} does not make"
            yield broken(f"{context.proposal_file}#hypothesis.single_change", message, "Leave it for the next version.")
