"""JSON of `kopt log`."""

from __future__ import annotations

from pydantic import AliasPath, Field

from kbs.common.json_model import JsonModel
from kbs.experience.experiment import Experiment
from kbs.experience.ranking.recommend import Recommendation, Warned
from kbs.experience.stats import Effect


class EntryData(JsonModel):
    """An experiment of the log; what it is cited by stands first."""

    reference: str = Field(validation_alias=AliasPath("experiment", "reference"))
    """`log/<id>`, by which it is cited."""
    ids: list[str]
    """Every id that names it; more than one where records were joined."""
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


class ImportData(JsonModel):
    """`kopt log import`"""

    added: list[str]
    """Ids."""
    there: list[str]
    """Ids of entries that said the same already."""
    problems: list[str]
    """What could not be read, line by line."""


class LogStatsData(JsonModel):
    """`kopt log stats`"""

    folder: str
    experiments: int
    masked: int
    """Masked ones, which no count below holds."""
    by: dict[str, list[Effect]]
    """`method`, `op` and `gpu`."""
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
