"""run.json stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from kbs.common import canonical_json as canonical
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("record", "run.json is as the run was begun with.", "proposal", always=True)
def record(context: GateContext) -> Iterator[Broken]:
    """Problem, tolerances, device, wikis, limits and discipline are fixed for the whole run: its first event has
    the hash of run.json. Whoever wants another problem begins another run; `kopt run extend` gives more iterations."""
    created = context.state.created
    if created is None or context.hash("run.json") == created.record:
        if context.bytes_of("run.json") is not None and not _is(context):
            message = "this process goes by another record than run.json"
            yield Broken(file="run.json", line=0, message=message, mend="Begin the command again.")
        return
    message = "it is gone" if context.bytes_of("run.json") is None else "it was changed after the run began"
    mend = "Restore it: `git checkout -- run.json` in the run's folder. For another problem begin another run."
    yield Broken(file="run.json", line=0, message=message, mend=mend)


def _is(context: GateContext) -> bool:
    made = canonical.dumps(context.record.model_dump(mode="json"))
    return hashlib.sha256(made).hexdigest() == context.hash("run.json")
