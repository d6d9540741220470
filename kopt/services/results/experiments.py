"""JSON of `kopt log`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import AliasPath, Field

from kbs.common.json_model import JsonModel
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment
from kbs.experience.ranking.recommend import Recommendation, Similar, Warned
from kbs.experience.stats import Effect

if TYPE_CHECKING:
    from kbs.experience.log import Added, ExperienceLog
    from kbs.experience.transfer.import_export import Import


class EntryData(JsonModel):
    """An experiment of the log; what it is cited by stands first."""

    reference: str = Field(validation_alias=AliasPath("experiment", "reference"))
    """`log/<id>`, by which it is cited."""
    ids: list[str]
    """Every id that names it; more than one where records were joined."""
    origin: str
    """`own`, or `shipped with kopt`."""
    masked: bool
    why: str
    """Why it was masked, or unmasked, last."""
    experiment: Experiment


class LogListData(JsonModel):
    """`kopt log list`, `kopt log search`"""

    folder: str
    entries: list[EntryData]
    total: int
    """Experiments that the filters let through, also those that are not shown."""
    shipped: int
    """Of these, those that ship with kopt."""

    @classmethod
    def of(cls, log: ExperienceLog, entries: Sequence[Entry], total: int, shipped: int) -> Self:
        """Of records of a log."""
        shown = [EntryData.from_domain(one) for one in entries]
        return cls(folder=str(log.files.root), entries=shown, total=total, shipped=shipped)


class LogShowData(JsonModel):
    """`kopt log show`"""

    entry: EntryData


class AddData(JsonModel):
    """`kopt log add`"""

    entry: EntryData
    added: bool
    """False: it was there already."""
    file: str
    """File that it was appended to; empty where it was there."""


class MaskData(JsonModel):
    """`kopt log mask`, `kopt log unmask`"""

    entry: EntryData
    changed: bool
    """False: it was so already."""


class JoinData(JsonModel):
    """Records that are of one experiment."""

    ids: list[str]
    why: str


class MergeData(JsonModel):
    """`kopt log merge`"""

    joined: list[JoinData]


class SyncData(JsonModel):
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


class ExportData(JsonModel):
    """`kopt log export`"""

    file: str
    """Empty: standard output."""
    format: str
    experiments: int


class ImportCounts(JsonModel):
    """Each record of a file is added, was there, or is left out."""

    records: int
    added: int
    there: int
    """In the log already, or in the file before."""
    left_out: int
    outcomes: dict[str, int]
    """Of the records that were read, each once."""
    methods: dict[str, int]
    """How many of them name a method; `unmapped` where their words name none that is known."""


class ImportData(JsonModel):
    """`kopt log import`"""

    added: list[str]
    """Ids."""
    there: list[str]
    """Ids of entries that said the same already."""
    left_out: list[str]
    """Records that cannot be kept, each with its place and the reason."""
    problems: list[str]
    """All that could not be read: records, then single fields."""
    counts: ImportCounts

    @classmethod
    def of(cls, taken: Import, result: Added) -> Self:
        """What was read, and what became of it."""
        counts = ImportCounts(
            records=len(taken.experiments) + taken.repeated + len(taken.left_out),
            added=len(result.added),
            there=len(result.there) + taken.repeated,
            left_out=len(taken.left_out),
            outcomes=dict(Counter(one.outcome.value for one in taken.experiments)),
            methods=dict(Counter(method for one in taken.experiments for method in one.methods).most_common()),
        )
        return cls(
            added=[one.id for one in result.added],
            there=[entry.experiment.id for _, entry in result.there],
            left_out=list(taken.left_out),
            problems=list(taken.problems),
            counts=counts,
        )


class LogStatsData(JsonModel):
    """`kopt log stats`"""

    folder: str
    experiments: int
    masked: int
    """Masked ones, which no count below holds."""
    by: dict[str, list[Effect]]
    """`method`, `op` and `gpu`."""
    shipped: int
    """Of the experiments, those that ship with kopt."""
    duplicates: int
    """Groups of records that are of one experiment and not joined yet."""
    problems: list[str]


class RecommendData(JsonModel):
    """`kopt log recommend`: the advice, with how the question was understood in front."""

    asked: dict[str, str | dict[str, int]]
    """How the words were read."""
    recommended: list[Recommendation]
    failures: list[Warned]
    """Known failures."""
    why: str
    """Why nothing is recommended; empty where something is."""
    considered: int
    """Similar records."""
    nearest: list[Similar]
    """The most similar records beside those above, such as attempts that nobody timed."""
    shipped: list[str]
    """Of all these records, `log/<id>` of those that ship with kopt."""
