"""Rules on the candidates of a proposal: its branches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.journal.folder import MAIN
from loop.proposals.change import compare


@rule("branches", "proposal")
def branches(context: GateContext) -> Iterator[Broken]:
    """Hand in as many different candidates as the run allows.

    What it checks: the kernel and its branches are at most as many as `--branches` allows. Each branch has a name of
    its own, which is not `main`, and no two candidates are the same program.

    Why: each candidate costs a measurement, and of two equal programs the luckier one would win.

    Fix: leave out the branches that promise least, or that change nothing.
    """
    proposal, most = context.as_handed_in, context.record.branches or 1
    if proposal is None or not proposal.branches:
        return
    file = f"{context.proposal_file}#branches"
    if len(proposal.branches) + 1 > most:
        message = f"{len(proposal.branches) + 1} candidates are handed in, and the run allows {most}"
        yield broken(file, message, "Leave out those that promise least.")
    names = [MAIN, *(branch.name for branch in proposal.branches)]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        message = f"two candidates are called {name!r}"
        yield broken(file, message, f"Give each branch another name; {MAIN} is the kernel itself.")
    texts = [(f"the branch {branch.name!r}", branch.kernel) for branch in proposal.branches]
    for (one, text), (other, second) in combinations([("the kernel", proposal.kernel), *texts], 2):
        if compare(text, second, proposal.language, proposal.language).same:
            yield broken(file, f"{one} and {other} are the same program", "Leave one of them out, or change it.")
