"""Citations stand."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.checking import Status
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.texts import grounds


@rule("citation", "Every citation resolves, and its lines say what is said of them.", "proposal")
def citation(context: GateContext) -> Iterator[Broken]:
    """Each `claim <- wiki/path:L12` is opened: the page and the lines exist, and state the value with its unit, product
    and qualifier, or hold the quoted words. `kopt cite check` does the same for any file."""
    for text, checked in grounds(context).citations:
        broken = checked.result.status in (Status.NOT_FOUND, Status.MISMATCH) and not checked.unpinned
        if "#evidence.selected" in text.file or not broken:
            continue
        says = f" The lines say: {checked.result.says[:200]}" if checked.result.says else ""
        message = f"{checked.cited.reference.text}: {checked.result.detail}"
        mend = f"Cite the line that says it, or say what it says.{says}"
        yield Broken(file=text.file, line=checked.cited.line, message=message, mend=mend)
