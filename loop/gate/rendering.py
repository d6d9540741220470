"""What kopt renders from a run's structured files, rendered again to be compared."""

from __future__ import annotations

from kbs.common.errors import KoptError
from loop import pages
from loop.gate.context import GateContext


def render_version(context: GateContext) -> dict[str, bytes]:
    """Rendered files of the version by name; none where what they are made of is damaged, which has a rule of its
    own."""
    try:
        return pages.rendered(context.folder, context.record, context.state, context.version)
    except KoptError:
        return {}


def render_end(context: GateContext) -> dict[str, bytes]:
    """Rendered files of the end of a run by path, without pictures."""
    try:
        top = pages.run_files(context.folder, context.record, context.state)
        end = pages.final_files(context.folder, context.record, context.state)
    except KoptError:
        return {}
    return {**top, **end}
