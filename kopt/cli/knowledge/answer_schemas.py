"""JSON of `kopt ask` and `kopt search`: claims with their citations, and passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kbs.answers.model import Answer, Claim
from kbs.evidence.file_evidence import Exhibit
from kbs.index.search import Hit
from kopt.cli.data import Data
from kopt.cli.knowledge.citation_schemas import CitationData
from kopt.cli.knowledge.kernel_schemas import KernelData

if TYPE_CHECKING:
    from kopt.services.user_kernel.analysis import OwnKernel


class StepData(Data):
    """One line of arithmetic."""

    name: str
    expression: str
    value: float
    """In base units: B, FLOP, FLOP/byte, s, or a bare ratio."""
    unit: str
    shown: str


class ExhibitData(Data):
    """What a claim rests on in the user's own files or in the experience log."""

    kind: Literal["profile", "receipt", "ceiling", "count", "source", "log", "tally"]
    """`log`: a record of the experience log; `tally`: what several come to."""
    file: str
    hash: str
    """SHA-256 of the file's bytes; of a receipt or a record, its id; of ceilings, when they were measured."""
    place: str
    """Metric and launch, field, figure, row of the count, or line; of a tally, the command that counts the same."""
    states: str
    """As it stands there, with its unit."""
    value: float | None
    unit: str
    reference: str
    """`log/<id>`, which `kopt cite` checks; `profile/<hash>#<metric>[<launch>]` or `receipt/<id>#<field>`, which it
    checks with --profile FILE; else file and place."""

    @classmethod
    def of(cls, exhibit: Exhibit) -> ExhibitData:
        """From the internal form."""
        fields = {name: getattr(exhibit, name) for name in cls.model_fields}
        return cls(**{**fields, "value": None if exhibit.value is None else float(exhibit.value)})


class ClaimData(Data):
    """One thing that the answer says."""

    text: str
    kind: Literal["spec", "statement", "derived", "record", "measured", "counted", "read", "experience", "absence"]
    """`measured`, `counted` and `read` rest on the user's own profile, reference and kernel; `experience` on
    the log."""
    citations: list[CitationData]
    derivation: list[StepData]
    note: str
    exhibits: list[ExhibitData]

    @classmethod
    def of(cls, claim: Claim) -> ClaimData:
        """From the internal form."""
        return cls(
            text=claim.text,
            kind=claim.kind.value,
            citations=[CitationData.of(citation) for citation in claim.citations],
            derivation=[
                StepData(name=s.name, expression=s.expression, value=float(s.value), unit=s.unit, shown=s.shown)
                for s in claim.derivation
            ],
            note=claim.note,
            exhibits=[ExhibitData.of(exhibit) for exhibit in claim.exhibits],
        )


class PassageData(Data):
    """A passage that was found."""

    wiki: str
    path: str
    line_start: int
    line_end: int
    score: float
    page: str
    """Id of the page."""
    headings: list[str]
    text: str
    stages: dict[str, float]
    """Score of each stage: cosine, words, identifier, names."""

    @classmethod
    def of(cls, hit: Hit) -> PassageData:
        """From the internal form."""
        cited = hit.passage.citation
        return cls(
            wiki=cited.wiki,
            path=cited.path,
            line_start=cited.line_start,
            line_end=cited.line_end,
            score=round(hit.score, 4),
            page=hit.passage.page_id,
            headings=list(hit.passage.trail),
            text=hit.passage.text,
            stages={
                "cosine": round(hit.cosine, 4),
                "words": round(hit.words, 4),
                "identifier": hit.identifier,
                "names": round(hit.names, 4),
            },
        )


class AskData(Data):
    """`kopt ask`"""

    question: str
    answer: str
    """The whole answer as text, without colour."""
    intent: str
    abstained: bool
    reason: str
    """Why it abstained; empty where it answered."""
    claims: list[ClaimData]
    passages: list[PassageData]
    experiments: list[dict[str, Any]]
    """Records of the experience log that the answer cites, each as `kopt log show` has it."""
    gaps: list[str]
    dropped: int
    """Claims that failed their check and were left out."""
    taken: list[str]
    """What the question leaves open and the user's own files told."""
    kernel: KernelData | None
    """What the files say of the kernel; null where none were given."""

    @classmethod
    def of(cls, answer: Answer, text: str, own: OwnKernel | None) -> AskData:
        """From the internal form."""
        return cls(
            question=answer.question,
            answer=text,
            intent=answer.intent,
            abstained=answer.abstained,
            reason=answer.reason,
            claims=[ClaimData.of(claim) for claim in answer.claims],
            passages=[PassageData.of(hit) for hit in answer.hits],
            experiments=_experiments(answer),
            gaps=answer.gaps,
            dropped=answer.dropped,
            taken=answer.taken,
            kernel=KernelData.of(own) if own is not None else None,
        )


def _experiments(answer: Answer) -> list[dict[str, Any]]:
    cited = {exhibit.hash for claim in answer.claims for exhibit in claim.exhibits if exhibit.kind == "log"}
    if not cited:
        return []
    from kopt.cli.log.schemas import EntryData

    entries = {one.experiment.id: one for one in answer.experiments if one.experiment.id in cited}
    return [EntryData.of(one).model_dump(mode="json") for one in entries.values()]


class SearchData(Data):
    """`kopt search`"""

    query: str
    terms: list[str]
    """The words that were looked for."""
    passages: list[PassageData]
