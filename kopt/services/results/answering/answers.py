"""Data of `kopt ask` and `kopt search`: claims with their citations, passages, and what the user's files say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasPath, BeforeValidator, Field

from kbs.answers.model import Answer, Claim
from kbs.common.json_model import JsonModel
from kbs.evidence.passage import LOG
from kbs.index.search import Hit
from kopt.services.results.answering.evidence import EvidenceData
from kopt.services.results.answering.wording import WordingData

if TYPE_CHECKING:
    from evaluator.diagnosis.symptoms import Finding
    from kopt.services.user_kernel.analysis import UserKernel


Score = Annotated[float, AfterValidator(lambda score: round(score, 4))]


class PassageData(JsonModel):
    """A passage or record that was found: flat, without what was embedded, its scores rounded."""

    reference: str
    """What cites it: wiki/path:Lx-Ly, or log/ID."""
    wiki: str
    """`log` for a record of the experience log."""
    path: str
    """Path of the page; a record's id."""
    line_start: int
    line_end: int
    """Both 0 for a record."""
    score: Score
    page: str
    """Id of the page."""
    headings: list[str]
    text: str
    stages: dict[str, Score]
    """Score of each stage: cosine, asked, words, identifier, names."""
    found_by: str
    """`vectors`, `words`, or both."""

    @classmethod
    def of(cls, hit: Hit) -> PassageData:
        """From the internal form."""
        passage = hit.passage
        cited = passage.cited
        return cls(
            reference=passage.reference,
            wiki=cited.wiki if cited else LOG,
            path=cited.path if cited else passage.page_id.removeprefix(f"{LOG}/"),
            line_start=cited.line_start if cited else 0,
            line_end=cited.line_end if cited else 0,
            score=hit.score,
            page=passage.page_id,
            headings=list(passage.trail),
            text=passage.text,
            stages=hit.stages,
            found_by=hit.found_by,
        )


class AskData(JsonModel):
    """`kopt ask`: the claims in one list, without sections, beside the text that a person reads."""

    question: str
    answer: str
    """The whole answer as text, without colour."""
    form: str
    """The form of answer that the question was read to want: value, yes-no, comparison, reason, remedy …"""
    read: list[str]
    """What was read otherwise than it was written."""
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
    inherited: list[str]
    """What a follow-up took from the question before, with --continue: `operation softmax`."""
    evidence: EvidenceData | None
    """The claims with ids, sources and quoted lines; null without --evidence."""
    wording: WordingData | None
    """What a model made of the claims; null without --model."""

    @classmethod
    def of(
        cls,
        answer: Answer,
        text: str,
        own: UserKernel | None,
        *,
        inherited: Sequence[str] = (),
        evidence: EvidenceData | None = None,
        wording: WordingData | None = None,
    ) -> AskData:
        """From the internal form."""
        return cls(
            question=answer.question,
            answer=text,
            form=answer.form,
            read=answer.read,
            abstained=answer.abstained,
            reason=answer.reason,
            claims=answer.claims,
            passages=[PassageData.of(hit) for hit in answer.hits],
            experiments=_experiments(answer),
            gaps=answer.gaps,
            dropped=answer.dropped,
            taken=answer.taken,
            kernel=KernelData.from_domain(own) if own is not None else None,
            inherited=list(inherited),
            evidence=evidence,
            wording=wording,
        )


def _experiments(answer: Answer) -> list[dict[str, Any]]:
    cited = {item.hash for claim in answer.claims for item in claim.evidence if item.kind == "log"}
    if not cited:
        return []
    from kopt.services.results.experiments import EntryData

    entries = {one.experiment.id: one for one in answer.experiments if one.experiment.id in cited}
    return [EntryData.from_domain(one).model_dump(mode="json") for one in entries.values()]


class SearchData(JsonModel):
    """`kopt search`"""

    query: str
    terms: list[str]
    """The words that were looked for."""
    asked: list[str]
    """What was asked for vectors, and how: Chroma, or in its absence all vectors one by one."""
    passages: list[PassageData]


class MeasuredData(JsonModel):
    """The launch or receipt that the answer is about."""

    report: str = Field(validation_alias=AliasPath("report", "name"))
    hash: str = Field(validation_alias=AliasPath("report", "hash"))
    """SHA-256 of the file's bytes; of a receipt, its id."""
    launch: int = Field(validation_alias=AliasPath("launch", "number"))
    function: str = Field(validation_alias=AliasPath("launch", "function"))
    why: str = Field(validation_alias=AliasPath("chosen", "why"))
    """Why this launch."""
    device: str = Field(validation_alias=AliasPath("launch", "device"))
    grade: Literal["full", "degraded"]
    """`degraded`: a receipt, which has no counters."""
    duration_us: float | None = Field(validation_alias=AliasPath("launch", "duration_us"))
    dram_bytes: float | None = Field(validation_alias=AliasPath("launch", "dram_bytes"))
    """Read and written; null where they were not counted."""
    dims: dict[str, int]
    """Of a receipt; a profile does not have them."""


class HeadroomShareData(JsonModel):
    """The achieved bytes a second as a part of a rate."""

    against: str
    share: float


class CountedData(JsonModel):
    """What the reference must move and compute, under the roofline of one GPU."""

    gpu: str = Field(validation_alias="product")
    """Name of the product; empty where none is named."""
    bytes: int = Field(validation_alias=AliasPath("demand", "bytes"))
    flop: dict[str, int] = Field(validation_alias=AliasPath("demand", "flop"))
    """By metric of the peak rate."""
    intensity: dict[str, float] = Field(validation_alias=AliasPath("placed", "intensity"))
    """FLOP/byte by metric."""
    ridge: dict[str, float] = Field(validation_alias=AliasPath("placed", "ridge"))
    bound: Literal["memory-bound", "compute-bound", ""] = Field(validation_alias=AliasPath("placed", "bound"))
    """Empty where it is not known."""
    floor_seconds: float | None = Field(validation_alias=AliasPath("placed", "floor"))
    """At the cited peaks."""
    target_seconds: float | None = Field(validation_alias=AliasPath("placed", "target"))
    """90 % of the nearest ceiling."""


def _symptom_id(finding: Finding | str) -> str:
    return finding if isinstance(finding, str) else finding.symptom.id


class KernelData(JsonModel):
    """What is null or empty could not be had; the answer's `gaps` say why."""

    gpu: str = Field(validation_alias="product")
    """Product id; empty where the profile and the question name none, or several."""
    file: str = Field("", validation_alias=AliasPath("kernel", "source", "name"))
    form: str = Field("", validation_alias=AliasPath("recognised", "form"))
    backend: str = Field("", validation_alias=AliasPath("recognised", "backend"))
    entry: str = Field("", validation_alias=AliasPath("recognised", "entry"))
    defines: Annotated[list[str], BeforeValidator(list)] = Field([], validation_alias=AliasPath("kernel", "kernels"))
    """GPU kernels that the file defines."""
    measured: MeasuredData | None
    bottleneck: str = Field("", validation_alias=AliasPath("diagnosed", "diagnosis", "bottleneck"))
    """Class, as `kopt diagnose` says it; empty without a profile."""
    binding: str = Field("", validation_alias=AliasPath("diagnosed", "diagnosis", "binding", "metric"))
    """Metric of the resource that binds."""
    symptoms: list[Annotated[str, BeforeValidator(_symptom_id)]] = Field(
        [], validation_alias=AliasPath("diagnosed", "diagnosis", "symptoms")
    )
    """Ids, the weightiest first."""
    headroom: list[HeadroomShareData] = Field([], validation_alias=AliasPath("diagnosed", "diagnosis", "headroom"))
    dims: dict[str, int]
    """At which the reference was counted; empty for its own sizes."""
    counted: list[CountedData]
