"""The experience log: experiments, masks and joins are appended and never changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from kbs.common.errors import UsageError
from kbs.common.ulid import new_ulid
from kbs.experience.entry import Entry
from kbs.experience.experiment import MAX_WORDS, Experiment, Join, Mask
from kbs.experience.files import LogFiles, Problem, first_problem
from kbs.experience.index import ExperienceIndex
from kbs.experience.ranking.recommend import Advice, recommend
from kbs.experience.ranking.similarity import Situation

if TYPE_CHECKING:
    from kbs.experience.transfer.import_export import Import


@dataclass(frozen=True)
class Added:
    """What became of records that were handed in."""

    added: tuple[Experiment, ...]
    there: tuple[tuple[Experiment, Entry], ...]
    """Those that the log has already, each with the entry that says so."""
    file: str = ""
    """Name of the file that they were appended to; empty if nothing was."""


def now_utc() -> str:
    """The time as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ExperienceLog:
    """The log in `folder`; `home` is KOPT_HOME, where its index stands. `search` finds so many experiments that fit
    a text, the best first: `kopt.services.knowledge.log_search` asks the store. `shipped`: the base log, if it counts.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        search: Callable[[str, int], list[Entry]] | None = None,
        shipped: Path | None = None,
    ) -> None:
        self.files = LogFiles(folder, shipped)
        self.home = home
        self.search = search or (lambda _text, _count: [])

    def index(self) -> ExperienceIndex:
        """The index, up to date once it is entered with `with`."""
        return ExperienceIndex(self.files, self.home)

    def append(self, experiments: Iterable[Experiment]) -> Added:
        """Append experiments, all of them or none; those that the log has already are left out.

        The same experiment: same id, same receipt, or same run and iteration. What was appended is on the disk, and
        found by the next question.
        """
        given = list(experiments)
        found = self._held_against(given)
        if not found.added:
            return found
        with self.files.appending() as put:
            found = self._held_against(given)  # another process may have been faster
            return replace(found, file=put(found.added) if found.added else "")

    def _held_against(self, experiments: Sequence[Experiment]) -> Added:
        """Which of the experiments the log does not have."""
        added: list[Experiment] = []
        there: list[tuple[Experiment, Entry]] = []
        fresh: dict[object, Experiment] = {}
        with self.index() as index:
            for one in experiments:
                known = index.same(one)
                keys: list[object] = [one.id, *filter(None, (one.receipt, one.run and (one.run, one.iteration)))]
                twin = next((fresh[key] for key in keys if key in fresh), None)
                if known or twin:
                    there.append((one, known or Entry(twin or one)))
                    continue
                added.append(one)
                fresh.update(dict.fromkeys(keys, one))
        return Added(tuple(added), tuple(there))

    def advise(self, asked: Situation, count: int = 5, without: Collection[str] = ()) -> Advice:
        """What the experiments that are not masked say of a situation; `without`: ids of those to leave out too."""
        with self.index() as index:
            return recommend(asked, index.trials().without(without), datetime.now(UTC), count)

    def get(self, id: str) -> Entry | None:
        """The experiment that an id names; None if there is none."""
        with self.index() as index:
            return index.get(id)

    def mask(self, id: str, masked: bool, why: str) -> tuple[Entry, bool]:
        """Leave an experiment out, or count it again: (the entry as it is now, whether it was otherwise before).

        Its mask comes after those that it has, whatever the clocks of other writers say. Raises `UsageError`:
        `log_unknown`, `log_ambiguous`, `log_shipped`, `no_reason`, `reason_invalid`, `mask_final`.
        """
        if not why.strip():
            raise UsageError("no reason is given", code="no_reason", hint="Say why in a few words, with --why.")
        with self.index() as index:
            entry = find(index, id)
            last = index.last_mask(entry)
        if entry.shipped:
            raise UsageError(
                f"{entry.experiment.reference} ships with kopt, and is never changed",
                code="log_shipped",
                hint="The setting `base_log = false` (KOPT_BASE_LOG) leaves out all records that ship with kopt.",
            )
        if entry.masked == masked:
            return entry, False
        target = entry.experiment.id
        try:
            mask_id = new_ulid(last)
        except ValueError as error:
            raise UsageError(
                f"no mask can come after {last}: it has the greatest id that there is",
                code="mask_final",
                hint="Take its line out of the log's file by hand; kopt never does.",
            ) from error
        try:
            note = Mask(id=mask_id, time=now_utc(), target=target, masked=masked, why=why)
        except ValidationError as error:
            raise UsageError(
                f"the reason cannot be kept: {first_problem(error)}",
                code="reason_invalid",
                hint=f"Say why in at most {MAX_WORDS} characters.",
            ) from error
        self.files.append([note])
        return replace(entry, masked=masked, why=note.why), True

    def merge(self) -> list[Join]:
        """State which records are of one experiment: those with one receipt, and those of one iteration of one run."""
        with self.index() as index:
            found = index.duplicates()
        joins = [join for why, ids in found for join in _joins(ids, why)]
        if joins:
            self.files.append(joins)
        return joins

    def take(self, found: Import) -> Added:
        """Append what was imported, and state there what was masked and joined where it comes from.

        A file joins no experiments of this log with each other.
        """
        added = self.append(found.experiments)
        fresh = {one.id for one in added.added}
        notes: list[Mask | Join] = [
            Mask(id=new_ulid(), time=now_utc(), target=id, masked=masked, why=why)
            for id, masked, why in found.masked
            if id in fresh
        ]
        with self.index() as index:
            for ids in found.joined:
                theirs = [id for id in ids if id in fresh or index.get(id) is None]
                if ids[0] in fresh:
                    notes += _joins(theirs, "joined where they were imported from")
        if notes:
            self.files.append(notes)
        return added

    def problems(self) -> list[Problem]:
        """All in the folder that is not a record: lines that cannot be read, lines that were torn off."""
        with self.index() as index:
            found = index.problems()
        aside = [Problem(name, 0, "a line that was torn off was set aside here") for name in self.files.torn()]
        return [*found, *self.files.unnamed(), *self.files.tails(), *aside]


def _joins(ids: Sequence[str], why: str) -> list[Join]:
    """The statements that ids, which may be more than one of them can hold, are of one experiment."""
    return [
        Join(id=new_ulid(), time=now_utc(), joined=(ids[0], *ids[start : start + 999]), why=why)
        for start in range(1, len(ids), 999)
    ]


def find(index: ExperienceIndex, id: str) -> Entry:
    """The experiment of an id, of `log/<id>`, or of the beginning of an id that is enough.

    Raises `UsageError`: `log_unknown`, `log_ambiguous`.
    """
    wanted = id.strip().removeprefix("log/").upper()
    found = index.named(wanted) if len(wanted) >= 4 else []
    entry = index.get(found[0]) if len(found) == 1 else None
    if entry is not None:
        return entry
    if found:
        listed = ", ".join(found[:5])
        raise UsageError(
            f"{id[:60]!r} begins several ids", code="log_ambiguous", hint=f"Such as {listed}. Give more of it."
        )
    raise UsageError(
        f"the log has no record {id[:60]!r}", code="log_unknown", hint="`kopt log list` and `kopt log search` show ids."
    )
