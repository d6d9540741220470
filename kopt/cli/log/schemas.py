"""JSON of `kopt log`."""

from __future__ import annotations

from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment
from kopt.cli.data import Data


class EntryData(Data):
    """An experiment of the log."""

    reference: str
    """`log/<id>`, by which it is cited."""
    ids: list[str]
    """Every id that names it; more than one where records were joined."""
    masked: bool
    why: str
    """Why it was masked, or unmasked, last."""
    experiment: Experiment

    @classmethod
    def of(cls, entry: Entry) -> EntryData:
        """From the internal form."""
        return cls(
            reference=entry.experiment.reference,
            ids=list(entry.ids or (entry.experiment.id,)),
            masked=entry.masked,
            why=entry.why,
            experiment=entry.experiment,
        )


class LogListData(Data):
    """`kopt log list`, `kopt log search`"""

    folder: str
    entries: list[EntryData]
    total: int
    """Experiments that the filters let through, also those that are not shown."""


class LogShowData(Data):
    """`kopt log show`"""

    entry: EntryData


class AddData(Data):
    """`kopt log add`"""

    entry: EntryData
    added: bool
    """False: it was there already."""
    file: str
    """File that it was appended to; empty where it was there."""


class MaskData(Data):
    """`kopt log mask`, `kopt log unmask`"""

    entry: EntryData
    changed: bool
    """False: it was so already."""


class JoinData(Data):
    """Records that are of one experiment."""

    ids: list[str]
    why: str


class MergeData(Data):
    """`kopt log merge`"""

    joined: list[JoinData]


class SyncData(Data):
    """`kopt log sync`"""

    repository: str
    branch: str
    remote: str
    """Empty where there is none."""
    committed: int
    """Commits of this clone's records."""
    pulled: int
    """Commits taken from the remote."""
    pushed: int
    """Commits given to it."""
    joined: int
    """Joins of records that turned out to be of one experiment."""
    experiments: int
    """In the log now, masked ones too."""
    problems: list[str]
    """Lines that are no records, and lines that were torn off."""


class ExportData(Data):
    """`kopt log export`"""

    file: str
    """Empty: standard output."""
    format: str
    experiments: int


class ImportData(Data):
    """`kopt log import`"""

    added: list[str]
    """Ids."""
    there: list[str]
    """Ids of entries that said the same already."""
    problems: list[str]
    """What could not be read, line by line."""


class EffectData(Data):
    """What is known of one method, operation or GPU."""

    name: str
    experiments: int
    outcomes: dict[str, int]
    success: float
    """Share of successes."""
    success_low: float
    """Ends of its 95 % interval (Wilson)."""
    success_high: float
    timed: int
    """Experiments with a speedup."""
    median: float | None
    """Median speedup."""
    low: float | None
    """Ends of its 95 % interval, by ranks; None where there are fewer than six."""
    high: float | None


class LogStatsData(Data):
    """`kopt log stats`"""

    folder: str
    experiments: int
    masked: int
    """Masked ones, which no count below holds."""
    by: dict[str, list[EffectData]]
    """`method`, `op` and `gpu`."""
    duplicates: int
    """Groups of records that are of one experiment and not joined yet."""
    problems: list[str]


class SimilarData(Data):
    """A record that a recommendation or a warning rests on."""

    reference: str
    similarity: float
    factors: dict[str, float]
    outcome: str
    speedup: float | None


class RecommendationData(Data):
    """A method to try."""

    method: str
    speedup: float
    """What one attempt is expected to bring; attempts without gain count as 1."""
    successes: int
    others: int
    factors: dict[str, float]
    """With --explain: what each factor adds to the logarithm of the expected speedup."""
    records: list[SimilarData]
    """The most similar successes."""
    failed: list[SimilarData]
    """Very similar records in which it failed."""


class WarnedData(Data):
    """A method that failed in similar circumstances."""

    method: str
    failures: int
    successes: int
    records: list[SimilarData]


class RecommendData(Data):
    """`kopt log recommend`"""

    asked: dict[str, str | dict[str, int]]
    """How the words were read."""
    recommended: list[RecommendationData]
    failures: list[WarnedData]
    """Known failures."""
    why: str
    """Why nothing is recommended; empty where something is."""
    considered: int
    """Similar records."""
