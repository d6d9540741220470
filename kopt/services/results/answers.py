"""Data of `kopt ask` and `kopt search`: claims with their citations, passages, and what the user's files say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kbs.answers.model import Answer, Claim
from kbs.common.json_model import JsonModel
from kbs.index.search import Hit

if TYPE_CHECKING:
    from evaluator.profiling.profile import Launch
    from kopt.services.user_kernel.analysis import UserKernel
    from kopt.services.user_kernel.claims import Counted
    from kopt.services.user_kernel.files import Measured


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
    def of(cls, answer: Answer, text: str, own: UserKernel | None) -> AskData:
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
    passages: list[PassageData]


class MeasuredData(JsonModel):
    """The launch or receipt that the answer is about."""

    report: str
    hash: str
    """SHA-256 of the file's bytes; of a receipt, its id."""
    launch: int
    function: str
    why: str
    """Why this launch."""
    device: str
    grade: Literal["full", "degraded"]
    """`degraded`: a receipt, which has no counters."""
    duration_us: float | None
    dram_bytes: float | None
    """Read and written; null where they were not counted."""
    dims: dict[str, int]
    """Of a receipt; a profile does not have them."""


class HeadroomShareData(JsonModel):
    """The achieved bytes a second as a part of a rate."""

    against: str
    share: float


class CountedData(JsonModel):
    """What the reference must move and compute, under the roofline of one GPU."""

    gpu: str
    """Name of the product; empty where none is named."""
    bytes: int
    flop: dict[str, int]
    """By metric of the peak rate."""
    intensity: dict[str, float]
    """FLOP/byte by metric."""
    ridge: dict[str, float]
    bound: Literal["memory-bound", "compute-bound", ""]
    """Empty where it is not known."""
    floor_seconds: float | None
    """At the cited peaks."""
    target_seconds: float | None
    """90 % of the nearest ceiling."""


class KernelData(JsonModel):
    """What is null or empty could not be had; the answer's `gaps` say why."""

    gpu: str
    """Product id; empty where the profile and the question name none, or several."""
    file: str
    form: str
    backend: str
    entry: str
    defines: list[str]
    """GPU kernels that the file defines."""
    measured: MeasuredData | None
    bottleneck: str
    """Class, as `kopt diagnose` says it; empty without a profile."""
    binding: str
    """Metric of the resource that binds."""
    symptoms: list[str]
    """Ids, the weightiest first."""
    headroom: list[HeadroomShareData]
    dims: dict[str, int]
    """At which the reference was counted; empty for its own sizes."""
    counted: list[CountedData]

    @classmethod
    def of(cls, own: UserKernel) -> KernelData:
        """From the internal form."""
        made = own.diagnosed.diagnosis if own.diagnosed else None
        room = made.headroom if made else ()
        return cls(
            gpu=own.product,
            file=own.kernel.source.name if own.kernel else "",
            form=own.recognised.form.value if own.recognised else "",
            backend=own.recognised.backend.value if own.recognised else "",
            entry=own.recognised.entry if own.recognised else "",
            defines=list(own.kernel.kernels) if own.kernel else [],
            measured=_measured(own.measured) if own.measured else None,
            bottleneck=made.bottleneck.value if made else "",
            binding=made.binding.metric if made and made.binding else "",
            symptoms=[finding.symptom.id for finding in made.symptoms] if made else [],
            headroom=[HeadroomShareData(against=h.against, share=float(h.share)) for h in room],
            dims=own.dims,
            counted=[_counted(one) for one in own.counted],
        )


def _measured(measured: Measured) -> MeasuredData:
    launch: Launch = measured.launch
    duration, read, written = (launch.value(id) for id in ("duration", "dram_bytes_read", "dram_bytes_written"))
    return MeasuredData(
        report=measured.report.name,
        hash=measured.report.hash,
        launch=launch.number,
        function=launch.function,
        why=measured.chosen.why,
        device=launch.device,
        grade=measured.grade,
        duration_us=None if duration is None else float(duration),
        dram_bytes=None if read is None or written is None else float(read + written),
        dims=measured.dims,
    )


def _counted(one: Counted) -> CountedData:
    placed = one.placed
    return CountedData(
        gpu=one.product,
        bytes=one.demand.bytes,
        flop=one.demand.flop,
        intensity={metric: float(value) for metric, value in placed.intensity.items()},
        ridge={metric: float(value) for metric, value in placed.ridge.items()},
        bound=placed.bound,
        floor_seconds=None if placed.floor is None else float(placed.floor),
        target_seconds=None if placed.target is None else float(placed.target),
    )
