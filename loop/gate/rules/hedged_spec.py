"""Hardware specs are said plainly."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.texts import hedged


@rule("hedged-spec", "No hardware spec is hedged.", "proposal", always=True)
def hedged_spec(context: GateContext) -> Iterator[Broken]:
    """“About”, “approximately”, “should be”, “similar product” beside a spec say that it was not looked up. State the
    value as its source does, with the citation, or UNKNOWN."""
    for text, spec in hedged(context):
        message = f"“{spec.hedge}” stands beside {spec.text}: “{spec.sentence[:160]}”"
        mend = "Say the value as its source states it, and cite the line."
        yield Broken(file=text.file, line=spec.line, message=message, mend=mend)
