"""One experiment with its masks and joins applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kbs.experience.experiment import Experiment, Join, Mask, Provenance

_BLOCK = ("outcome", "speedup", "receipt", "provenance", "attribution", "metrics_before", "metrics_after")
"""Fields that belong together: they come from one record, never from several."""
OWN, SHIPPED_WITH_KOPT = "own", "shipped with kopt"
_OWN = ("kind", "schema_version", "id", "time", "run", "iteration", "dims", *_BLOCK)


@dataclass(frozen=True)
class Entry:
    """One experiment of the log."""

    experiment: Experiment
    masked: bool = False
    why: str = ""
    """Why it was masked, or unmasked, last; empty if it never was."""
    ids: tuple[str, ...] = ()
    """Every id that names it, the experiment's own first; more than one where records were joined."""
    shipped: bool = False
    """Whether it is of the base log, and of no file of the user's."""

    @property
    def origin(self) -> str:
        """Where it comes from: `own`, or `shipped with kopt`."""
        return SHIPPED_WITH_KOPT if self.shipped else OWN

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", (self.experiment.id,))


def joined(experiments: Iterable[Experiment]) -> Experiment:
    """The one experiment that several records are of; whatever their order, the same one.

    Its id is the oldest. What was measured and found comes from the oldest measured record, or the oldest one; words
    that it leaves empty come from the others, the oldest first.
    """
    found = sorted(experiments, key=lambda one: (one.id, one.model_dump_json()))
    base = next((one for one in found if one.provenance is Provenance.MEASURED), found[0])
    filled = {
        name: next((value for one in found if (value := getattr(one, name))), getattr(base, name))
        for name in Experiment.model_fields
        if name not in _OWN and not getattr(base, name)
    }
    if not base.run:
        of_run = next((one for one in found if one.run), base)
        filled |= {"run": of_run.run, "iteration": of_run.iteration}
    return base.model_copy(update={**filled, "id": found[0].id})


def groups(joins: Iterable[Join]) -> dict[str, tuple[str, ...]]:
    """Id → all ids that name the same experiment, sorted; ids that no join names are not there."""
    leader: dict[str, str] = {}

    def find(id: str) -> str:
        while leader.setdefault(id, id) != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    for join in joins:
        first = find(join.joined[0])
        for other in join.joined[1:]:
            found = find(other)
            first, found = min(first, found), max(first, found)
            leader[found] = first
    members: dict[str, list[str]] = {}
    for id in sorted(leader):
        members.setdefault(find(id), []).append(id)
    return {id: tuple(group) for group in members.values() for id in group}


def entry_of(experiments: Sequence[Experiment], masks: Iterable[Mask], ids: Iterable[str] = ()) -> Entry:
    """The entry of records that are of one experiment, with the masks that any of their ids has."""
    one = joined(experiments)
    last = max(masks, key=lambda mask: (mask.id, mask.model_dump_json()), default=None)
    named = dict.fromkeys((one.id, *sorted({*ids, *(each.id for each in experiments)})))
    return Entry(one, bool(last and last.masked), last.why if last else "", tuple(named))
