"""Numbers that a proposer states stand somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.figures import MAX_QUANTITIES, sentences
from loop.gate.number_check import loose_numbers
from loop.gate.rule import Broken, rule
from loop.gate.texts import Text, comment_texts, grounds, kernel_text, proposal_texts

_VERSION = re.compile(r"\bv(\d{1,4})\b")


@rule(
    "loose-number",
    "Every number with a unit, or beside a metric's name, stands in a profile, a receipt, a cited line, or arithmetic.",
    "proposal",
)
def loose_number(context: GateContext) -> Iterator[Broken]:
    """What a proposer writes in hypothesis, evidence and comments is held against the parent's raw profile (and
    those of versions that it names), the run's receipts, the cited lines, and equations that are shown and come out
    right. A number beside a metric's name must be that metric's. Expected movements are predictions and are not
    looked at. Copy the number with its digits, cite it, or show how it is computed."""
    if context.proposal is None:
        return
    found = grounds(context)
    texts = [(text, 0, text.text) for text in proposal_texts(context) if "#hypothesis.expected" not in text.file]
    kernel = kernel_text(context)
    texts += [(kernel, line - 1, comment) for line, comment in comment_texts(kernel)] if kernel else []
    if kernel and sum(len(s.stated) for _, c in comment_texts(kernel) for s in sentences(c)) > MAX_QUANTITIES:
        message = f"its comments state more than {MAX_QUANTITIES:,} numbers with units"
        yield Broken(file=kernel.file, line=1, message=message, mend="Keep those that explain the kernel.")
        return
    for text, before, said in texts:
        named = {int(m[1]) for m in _VERSION.finditer(said)} | {context.proposal.parent}
        launches = [launch for n in sorted(named) if n <= context.version and (launch := context.launch(n)) is not None]
        figures = (found.profiled, found.received, found.cited, found.derived, found.logged)
        for loose in loose_numbers(said, launches, figures, conditions=text.file.endswith("decision_rule")):
            yield _broken(text, loose.line + before, loose.text, loose.metric, loose.is_there)


def _broken(text: Text, line: int, said: str, metric: str, there: str) -> Broken:
    if metric and there:
        message, mend = f"{said}: the profile has {metric} = {there}", "Copy the value as the profile has it."
    elif metric:
        message, mend = (
            f"{said}: the parent's profile has no such value of {metric}",
            "Name what it is, and where it stands.",
        )
    else:
        message = f"{said} stands in no profile, receipt or cited line, and no arithmetic shows it"
        mend = "Copy it from its source, cite the line, show the arithmetic (`a / b = c`), or take it out."
    return Broken(file=text.file, line=line, message=message, mend=mend)
