"""The JSON that commands print under `data`. `kopt schema COMMAND` publishes these models as JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from kbs.answers.model import Answer, Claim
from kbs.checking import CheckedCitation
from kbs.citation import Citation
from kbs.search import Hit
from kbs.spec import Spec
from kbs.units import parse_number
from kbs.vocabulary import Vocabulary
from kopt.cli.data import Data
from kopt.cli.device_schemas import CeilingsData, NoiseData
from kopt.cli.external_schemas import ExternalData
from kopt.cli.occupancy_schemas import OccupancyData
from kopt.cli.profile_schemas import DiagnoseData, ProfileData
from kopt.cli.roofline_schemas import RooflineData
from kopt.cli.sass_schemas import SassData
from kopt.cli.timing_schemas import CeilingData, PhysicsData, TimingData
from wiki.page import Problem

if TYPE_CHECKING:
    from evaluator.receipt import Receipt


class CitationData(Data):
    """Where a claim stands, with what is needed to check it again."""

    wiki: str
    path: str
    line_start: int
    line_end: int
    revision: str
    """Revision of the wiki: SHA-256 of the sorted list of paths and content hashes."""
    hash: str
    """SHA-256 of the cited lines."""
    quote: str

    @classmethod
    def of(cls, citation: Citation) -> CitationData:
        """From the internal form."""
        return cls(**{name: getattr(citation, name) for name in cls.model_fields})


class StepData(Data):
    """One line of arithmetic."""

    name: str
    expression: str
    value: float
    """In base units: B, FLOP, FLOP/byte, s, or a bare ratio."""
    unit: str
    shown: str


class ClaimData(Data):
    """One thing that the answer says."""

    text: str
    kind: Literal["spec", "statement", "derived", "record", "absence"]
    citations: list[CitationData]
    derivation: list[StepData]
    note: str

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
    gaps: list[str]
    dropped: int
    """Claims that failed their check and were left out."""

    @classmethod
    def of(cls, answer: Answer, text: str) -> AskData:
        """From the internal form."""
        return cls(
            question=answer.question,
            answer=text,
            intent=answer.intent,
            abstained=answer.abstained,
            reason=answer.reason,
            claims=[ClaimData.of(claim) for claim in answer.claims],
            passages=[PassageData.of(hit) for hit in answer.hits],
            experiments=[],
            gaps=answer.gaps,
            dropped=answer.dropped,
        )


class SearchData(Data):
    """`kopt search`"""

    query: str
    terms: list[str]
    """The words that were looked for."""
    passages: list[PassageData]


class SourceData(Data):
    """Where a page has a value from."""

    id: str
    title: str
    url: str
    kind: str
    accessed: str
    place: str


class SpecRowData(Data):
    """A hardware value."""

    gpu: str
    metric: str
    value: float | int | str | None
    """None where the vendor publishes no value."""
    unit: str
    qualifier: str
    confidence: str
    citation: CitationData
    citation_line: str
    source: SourceData
    recommended: bool
    """False for what another source prints and the page does not recommend."""

    @classmethod
    def of(cls, spec: Spec, vocabulary: Vocabulary) -> SpecRowData:
        """From the internal form."""
        number = None if vocabulary.metrics[spec.metric].text else parse_number(spec.value)
        value: float | int | str | None = spec.value if spec.published else None
        if number is not None:
            value = int(number.value) if number.value == number.value.to_integral_value() else float(number.value)
        return cls(
            gpu=spec.product,
            metric=spec.metric,
            value=value,
            unit=spec.unit,
            qualifier=spec.qualifier,
            confidence=spec.confidence,
            citation=CitationData.of(spec.citation),
            citation_line=spec.citation_line(vocabulary),
            source=SourceData(**spec.source.__dict__),
            recommended=spec.recommended,
        )


class ProductData(Data):
    """A GPU that the wiki has a page about."""

    gpu: str
    name: str
    aliases: list[str]
    families: list[str]
    page: str


class SpecData(Data):
    """`kopt spec`"""

    specs: list[SpecRowData]
    gpus: list[ProductData]
    """With `--list`."""
    gaps: list[str]


class CheckedData(Data):
    """One citation, checked."""

    line: int
    """Line of the checked text; 0 for a citation of a JSON document."""
    text: str
    reference: str
    status: Literal["ok", "not found", "stale", "mismatch"]
    detail: str
    says: str
    """What the cited lines say now."""
    said: str
    """What they said when they were cited, where that is known and differs."""

    @classmethod
    def of(cls, checked: CheckedCitation) -> CheckedData:
        """From the internal form."""
        fields = {name: getattr(checked, name) for name in cls.model_fields}
        return cls(**{**fields, "status": checked.status.value})


class CiteData(Data):
    """`kopt cite`"""

    citations: list[CheckedData]
    ok: int
    failed: int


class ProblemData(Data):
    """Something wrong with a page."""

    wiki: str
    path: str
    line: int
    rule: str
    message: str
    error: bool

    @classmethod
    def of(cls, wiki: str, problem: Problem) -> ProblemData:
        """From the internal form."""
        return cls(wiki=wiki, **problem.__dict__)


class IngestData(Data):
    """`kopt ingest`"""

    wikis: list[dict[str, str]]
    """Name and folder of each."""
    pages_read: int
    pages_removed: int
    pages: int
    passages: int
    specs: int
    embedded: int
    carried: int
    """Vectors that came with kopt and were not computed."""
    generation: int
    seconds: float
    problems: list[ProblemData]


class ShowData(Data):
    """`kopt show` and `kopt wiki show`"""

    reference: str
    page: str
    title: str
    lines: list[tuple[int, str]]
    """Line numbers and lines; for `kopt show` the cited ones."""
    hash: str
    revision: str


class LintData(Data):
    """`kopt wiki lint`"""

    pages: int
    problems: list[ProblemData]
    fixed: list[str]


class StatsData(Data):
    """`kopt wiki stats`"""

    wikis: list[dict[str, Any]]


class HazardData(Data):
    """Something that speaks against a measurement, or that a reader may want to look at."""

    id: str
    severity: Literal["reject", "note"]
    evidence: str
    line: int
    """Line of the candidate's file; 0 where it was not found in the text."""


class BenchData(Data):
    """`kopt bench`"""

    evidence: Literal["measured"]
    """By kopt. `external` is what a command of the user's printed (`--bench-command`)."""
    verdict: str
    """accepted, incorrect, cheating, compile_error, crashed, timeout or task_refused."""
    improvement: str
    """faster, same, slower, unstable, not_compared or not_timed."""
    reason: str
    """The main reason for the verdict, in one sentence."""
    hazards: list[HazardData]
    correctness: list[dict[str, Any]]
    """Every output of every call: the rows of the receipt (`kopt schema receipt`, Trial)."""
    timing: TimingData | None
    """None where no time was taken: on the CPU, or because the candidate was rejected before."""
    ceiling: CeilingData | None
    """Of the first workload; None where none was measured."""
    physics: PhysicsData | None
    """Of the first workload; None where no time was taken."""
    not_checked: list[str]
    """What the receipt does not say, in sentences."""
    receipt: str
    """The receipt's file."""
    environment: dict[str, Any]
    """Machine, device, software and layers of isolation, as in the receipt."""

    @classmethod
    def of(cls, receipt: Receipt, path: Path) -> BenchData:
        """From a receipt and where it was written."""
        content = receipt.model_dump(mode="json", exclude={"timing"})
        kept = ("evidence", "verdict", "improvement", "reason", "correctness", "not_checked", "environment")
        return cls(
            **{name: content[name] for name in kept},
            timing=TimingData.of(receipt.timing, receipt.improvement.value),
            ceiling=None if receipt.ceiling is None else CeilingData(**content["ceiling"]),
            physics=PhysicsData.of(receipt.physics),
            hazards=[HazardData(**hazard) for hazard in content["hazards"]],
            receipt=str(path),
        )


class VerifyData(Data):
    """`kopt bench verify`"""

    receipt: str
    ok: bool
    content: str
    """intact, changed, or not canonical: the same content in other bytes."""
    seal: str
    """own key, foreign key, none or broken."""
    evidence: Literal["measured", "external"] | None
    """Measured by kopt, or printed by a command of the user's. None for what is no receipt."""
    detail: str


class ReplayData(Data):
    """`kopt bench replay`"""

    same: bool
    """Whether the replay came to the same result."""
    differences: list[str]
    environment: list[str]
    """What is different about machine and software; not held against the result."""
    replay: BenchData


class CheckData(Data):
    """One thing that `kopt doctor` looked at."""

    name: str
    status: Literal["ok", "warning", "error", "absent"]
    detail: str
    hint: str


class SettingData(Data):
    """A setting and where it came from."""

    name: str
    value: Any
    origin: str


class DoctorData(Data):
    """`kopt doctor`"""

    home: str
    checks: list[CheckData]
    settings: list[SettingData]


COMMANDS: dict[str, type[Data]] = {
    "ask": AskData,
    "search": SearchData,
    "show": ShowData,
    "spec": SpecData,
    "cite": CiteData,
    "ingest": IngestData,
    "wiki lint": LintData,
    "wiki stats": StatsData,
    "wiki show": ShowData,
    "bench": BenchData,
    "bench verify": VerifyData,
    "bench replay": ReplayData,
    "bench ceilings": CeilingsData,
    "bench noise": NoiseData,
    "sass": SassData,
    "occupancy": OccupancyData,
    "profile": ProfileData,
    "diagnose": DiagnoseData,
    "roofline": RooflineData,
    "doctor": DoctorData,
}


def json_schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command of `COMMANDS` prints under `data`."""
    if command == "bench":
        either: TypeAdapter[Any] = TypeAdapter(Annotated[BenchData | ExternalData, Field(discriminator="evidence")])
        return either.json_schema()
    return COMMANDS[command].model_json_schema()
