"""JSON of `kopt ingest` and of the commands `kopt wiki …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field

from kbs.common.json_model import JsonModel
from kbs.evidence.checking import Status


class ProblemData(JsonModel):
    """Something wrong with a page of a wiki. `Problem` does not name the wiki; a proposed page has none."""

    wiki: str = ""
    path: str
    line: int
    rule: str
    message: str
    error: bool


class IngestData(JsonModel):
    """`kopt ingest`"""

    wikis: list[dict[str, str]]
    """Name and folder of each."""
    pages_read: int
    pages_removed: int
    pages: int
    passages: int
    records: int
    """Records of the experience log, masked ones too."""
    specs: int
    embedded: int
    carried: int
    """Vectors that came with kopt and were not computed."""
    generation: int
    seconds: float
    problems: list[ProblemData]


class LintData(JsonModel):
    """`kopt wiki lint`"""

    pages: int
    problems: list[ProblemData]
    fixed: list[str]


class StatsData(JsonModel):
    """`kopt wiki stats`"""

    wikis: list[dict[str, Any]]


class AlikePairData(JsonModel):
    """Two sections that say nearly the same."""

    cosine: float
    """Of the vectors of their text."""
    first: str
    """What cites the section: `gpu-wiki/kernel/softmax.md:L23-L30`."""
    first_heading: str
    second: str
    second_heading: str


class AlikeData(JsonModel):
    """`kopt wiki alike`"""

    pairs: list[AlikePairData]
    """The nearest first."""
    total: int
    """Pairs found, those too that --limit leaves out."""
    compared: int
    """Sections that were compared."""


class TrustedWikiData(JsonModel):
    """A wiki that a workspace may bring in."""

    folder: str
    name: str
    """Empty where there is no wiki now."""
    problem: str
    """Why it could not be used now; empty where it can."""
    named_here: bool
    """Whether the working folder's `kopt.toml` names it."""


class TrustData(JsonModel):
    """`kopt wiki trust` and `kopt wiki distrust`"""

    trusted: list[TrustedWikiData]
    """All that are trusted now."""
    changed: str
    """The folder that was trusted, or is trusted no longer; empty with --list."""
    overrides: list[str]
    """What the wiki that was trusted overrides of the wikis before it: pages and values, with their lines."""


class ProposeData(JsonModel):
    """`kopt wiki propose`: the page with the file that it was written to, and the branch that it was put on."""

    run: str = ""
    """The run that it was made from; empty for a page from a file."""
    page: str = Field(validation_alias="id")
    """Id of the proposed page."""
    file: str = ""
    """Where it was written; empty where it was only printed, or put on a branch."""
    wiki: str = ""
    """The wiki in whose repository the branch is; empty where there is none."""
    branch: str = ""
    commit: str = ""
    markdown: str = Field(validation_alias="text")
    receipts: list[str] = Field(default_factory=list)
    """Hashes of the receipts that it draws on."""
    left_out: list[str] = Field(default_factory=list)
    """Versions whose receipts do not count, and why."""
    problems: list[ProblemData]
    """What `kopt wiki lint` finds in the page alone; on a branch, among the pages of the wiki."""

    def on_branch(self, wiki: str, branch: str, commit: str, problems: Sequence[object]) -> Self:
        """This page, now on a branch of a wiki's repository; `problems`: what the lint finds there."""
        found = [ProblemData(wiki=wiki, **vars(one)) for one in problems]
        return self.model_copy(update={"wiki": wiki, "branch": branch, "commit": commit, "problems": found})


class RefData(JsonModel):
    """Something that refers to a page."""

    by: Literal["page", "run", "log"]
    place: str
    """A line of a page, the name of a run, or `log/<id>`."""
    cites: str
    """The reference to lines of the page; empty for a link to the page."""
    status: Status
    """`stale` where the cited lines read otherwise now or the record is masked, `not found` where there are none."""
    detail: str
    files: tuple[str, ...]
    """The files of the run that cite it."""


class ConflictData(JsonModel):
    """A file, or a proposal, that cannot be merged."""

    path: str
    """In the repository; of a proposal its branch."""
    kind: Literal["both changed", "both added", "deleted here", "deleted there", "not text", "proposed twice"]
    detail: str
    todo: str
    """What to do about it."""


class StaleData(JsonModel):
    """A reference to a page that holds no longer since the page was changed."""

    page: str
    """The page that was changed: its path in the wiki."""
    gone: bool
    """Whether the page is not there any more."""
    ref: RefData


class AcceptData(JsonModel):
    """`kopt wiki accept`"""

    page: str
    wiki: str
    branch: str
    """Of the proposal."""
    commit: str
    """The new tip of the main branch; empty where the proposal was not accepted, and nothing was changed."""
    problems: list[ProblemData]
    """What the lint finds in the page, and errors that it causes elsewhere."""
    conflicts: list[ConflictData]
    stale: list[StaleData]


class RejectData(JsonModel):
    """`kopt wiki reject`"""

    page: str
    wiki: str
    branch: str
    ref: str
    """Where the proposal is kept, with the reason."""
    commit: str


class WikiSyncData(JsonModel):
    """`kopt wiki sync`"""

    wiki: str
    repository: str
    """Its top folder."""
    branch: str
    """The main branch."""
    remote: str
    """What it was synced with, such as `origin/main`."""
    pulled: int
    """Commits that came from the remote's main branch."""
    pushed: int
    """Commits that were given to it."""
    proposals_in: list[str]
    """Branches of proposals that came, new or with more commits."""
    proposals_out: list[str]
    """Those that were pushed."""
    decided: list[str]
    """Those whose branch was removed here or at the remote, since they were accepted or rejected."""
    conflicts: list[ConflictData]
    problems: list[ProblemData]
    """What the lint finds in what this clone would push; errors stop the push."""
    stale: list[StaleData]


class NewPageData(JsonModel):
    """`kopt wiki new`"""

    page: str = Field(validation_alias="id")
    """Its id."""
    wiki: str = ""
    """The wiki that it was written into; empty where it was only printed."""
    file: str = ""
    """Where it was written; empty where it was only printed."""
    markdown: str = Field(validation_alias="text")
    todo: list[ProblemData]
    """What is to be filled in, as `kopt wiki lint` tells of it."""


class GapData(JsonModel):
    """A question that was refused, however often it was asked."""

    asked: str
    """As it was put last."""
    count: int
    first: str
    last: str
    reasons: dict[str, int]
    """Why, and how often for that."""
    missing: list[str]
    """What was looked for and not found, newest first."""


class GapsData(JsonModel):
    """`kopt wiki gaps`"""

    questions: list[GapData]
    """The newest first."""
    total: int
    """Questions, those that --limit leaves out too."""
    refusals: int
    """How often these were refused."""
    unreadable: int
    """Lines of the log that are not in its form."""


class RefsData(JsonModel):
    """`kopt wiki refs`"""

    wiki: str
    path: str
    title: str
    start: int
    """First line that was asked for; 0 for the whole page."""
    end: int
    refs: list[RefData] = Field(validation_alias="found")
    stale: int
    """How many of them are not `ok`."""


class CommitData(JsonModel):
    """A commit that changed a page."""

    hash: str
    time: str
    author: str
    subject: str
    """The first line of its message."""
    path: str
    """The page's path in the repository then: it may have been renamed since."""


class PublishData(JsonModel):
    """`kopt wiki publish`"""

    folder: str
    wikis: list[str]
    pages: int
    files: int
    changed: int
    """Files that are new or have other bytes than before."""
    removed: int
    left_out: list[str]
    """Pages that cannot be read, and pictures that are not published, each with its place and why."""


class HistoryData(JsonModel):
    """`kopt wiki history`"""

    wiki: str
    path: str
    commits: list[CommitData]
    """The newest first."""
    changed: bool
    """Whether the page differs from its newest commit, or is in none."""
