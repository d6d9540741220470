"""Hardware specs have a source."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.texts import unsourced


@rule(
    "unsourced-spec",
    "Every hardware spec rests on a citation that stands, a measurement, or shown arithmetic.",
    "proposal",
    always=True,
)
def unsourced_spec(context: GateContext) -> Iterator[Broken]:
    """A number with a unit beside a hardware name, in prose, a table, JSON or a comment of the kernel, and a constant
    that a proposer gives such a name (`NUM_SMS = 132`), is looked for in the cited lines of the same look and of
    README.md and plan.md, in profiles and receipts, and in arithmetic on its line. Comments that stood in the
    user's own kernel are not read. What a kernel uses or chooses is no spec: say so (`uses 48 KB of shared memory`),
    and what the device can be asked is no constant. `kopt spec GPU METRIC` gives the citation line of a spec."""
    for text, spec in unsourced(context):
        what = " or ".join(context.terms.metrics[id].name for id in spec.metrics) or "a hardware value"
        message = f"{spec.text} ({what}) has no source: “{spec.sentence[:160]}”"
        mend = "Add `<metric>: <value> <unit> <- <wiki>/<path>:L<line>`, take the number out, or say UNKNOWN."
        yield Broken(file=text.file, line=spec.line, message=message, mend=mend)
