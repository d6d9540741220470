"""JSON of `kopt ask` and `kopt search`: claims with their citations, and passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbs.answers.model import Answer, Claim
from kbs.common.json_model import JsonModel
from kbs.index.search import Hit
from kopt.cli.knowledge.kernel_schemas import KernelData

if TYPE_CHECKING:
    from kopt.services.user_kernel.analysis import OwnKernel


class PassageData(JsonModel):
    """A passage that was found: flat, without what was embedded, its scores rounded."""

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


class AskData(JsonModel):
    """`kopt ask`: the claims in one list, without sections, beside the text that a person reads."""

    question: str
    answer: str
    """The whole answer as text, without colour."""
    intent: str
    abstained: bool
    reason: str
    """Why it abstained; empty where it answered."""
    claims: list[Claim]
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
            claims=answer.claims,
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
    return [EntryData.from_domain(one).model_dump(mode="json") for one in entries.values()]


class SearchData(JsonModel):
    """`kopt search`"""

    query: str
    terms: list[str]
    """The words that were looked for."""
    passages: list[PassageData]
