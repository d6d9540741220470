"""Nothing stands there from later versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule

_VERSION = re.compile(r"^(?:v(?P<folder>\d{1,6})/|(?:trajectory|profiles)/v(?P<file>\d{1,6})[-.])")


@rule("later-artifact", "No artifact of a version that was not opened yet is there.", "proposal", always=True)
def later_artifact(context: GateContext) -> Iterator[Broken]:
    """A version is written when it is its turn, from evidence of the versions before it. Remove what stands there for a
    later one, and hand it in as a proposal."""
    latest = len(context.state.versions) - 1
    attempts = {state.number: len(state.attempts) for state in context.state.versions}
    seen: set[str] = set()
    for path in context.listed(context.folder.root):
        found = _VERSION.match(path)
        number = int(found["folder"] or found["file"]) if found else -1
        tried = re.match(r"^v\d+/attempts/a(\d{1,6})/", path)
        # The attempt that is looked at as a proposal has no event yet.
        early = tried is not None and number <= latest and int(tried[1]) > attempts.get(number, 0) + 1
        shown = path.split("/", 1)[0] if number > latest and found and found["folder"] else path
        if (number > latest or early) and shown not in seen:
            seen.add(shown)
            message = f"it belongs to {'a later attempt' if early else f'version {number}'}, and v{latest} is open"
            yield Broken(file=shown, line=0, message=message, mend="Remove it, and hand it in when its turn has come.")
