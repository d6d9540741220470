"""Rules on what the machine code of a version shows."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.planning.outcomes import signature_of


def _nothing_to_see(context: GateContext) -> str:
    if context.proposal is None:
        return "version 0 was proposed by nobody"
    signed = {row.method for row in context.methods.signatures}
    wanted = [name for name in context.proposal.methods if name in signed]
    if not wanted:
        return f"no page states what machine code shows of {', '.join(context.proposal.methods)}"
    note = context.machine_note(context.version)
    if note is None:
        return "the machine code was not looked at"
    shown = {name: signature_of(name, note) for name in wanted}
    if all(said.startswith("unverifiable") for said in shown.values()):
        return "; ".join(f"{name}: {said}" for name, said in shown.items())
    return ""


@rule("method-absent", "proposal", lapses=_nothing_to_see)
def method_absent(context: GateContext) -> Iterator[Broken]:
    """Declare only a method that the machine code shows.

    What it checks: the kernel is compiled for the run's GPU, without running it. If a page states by which instructions
    a declared method is recognized, at least as many of them are in a kernel's function. A method without such a
    signature, or code that cannot be compiled or disassembled here, is `unverifiable`, which the report says.

    Why: the log says which methods helped, so it must not name one that is not in the kernel.

    Fix: change the code until its instructions show the method, or declare the method that the change really is.
    """
    proposal, note = context.proposal, context.machine_note(context.version)
    if proposal is None or note is None:
        return
    for name in proposal.methods:
        if signature_of(name, note) != "absent":
            continue
        target = int(note.target.strip("sm_af") or 0)
        row = next((r for r in context.methods.signatures if r.method == name and target in r.targets), None)
        wanted = " or ".join(one.text for one in row.opcodes) if row else "its instructions"
        where = f" ({row.citation.reference})" if row else ""
        message = f"{name} is declared, but for {note.target} no kernel of it has {wanted}{where}"
        fix = f"Change the code until it compiles to {wanted}, or declare the method that the change really is."
        yield broken(context.kernel_file, message, fix, line=1)
