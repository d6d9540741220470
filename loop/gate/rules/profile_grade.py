"""The profile has the grade of the run."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("profile-grade", "The profile goes as far as the run was begun with, or the journal says why not.", "version")
def profile_grade(context: GateContext) -> Iterator[Broken]:
    """A run that takes whole profiles has one for each version; one that could not be taken needs its reason. Where
    HINTS.md says `no ncu`, none is taken."""
    state = context.opened
    if state is None or state.profiled is None:
        message = f"v{context.version} was not profiled"
        yield Broken(file="journal.jsonl", line=0, message=message, mend="Let `kopt run resume` profile it.")
        return
    if (
        context.record.profile == "full"
        and state.profiled.grade != "full"
        and not state.profiled.why
        and not context.hints.no_ncu
    ):
        message = f"the profile is {state.profiled.grade}, the run's grade is full, and no reason stands there"
        yield Broken(file="journal.jsonl", line=0, message=message, mend="Profile the version again.")
    if context.hints.no_ncu and context.bytes_of(context.in_version("profile.csv")) is not None:
        message = "HINTS.md says `no ncu`, and this is a profile of ncu"
        yield Broken(
            file=context.in_version("profile.csv"), line=0, message=message, mend="Take it out, or change HINTS.md."
        )
