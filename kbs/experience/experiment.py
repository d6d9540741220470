"""A record of the experience log: one iteration on one kernel, what was changed, and the result.

Names are brought to those of the vocabulary when a record is built (`memory`, `memory bound` and `memory_bound` are
`memory-bound`), so that two records of one thing say the same. Where the vocabulary has no name, the words stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kbs.common.ulid import PATTERN as ULID_PATTERN
from kbs.evidence.vocabulary import vocabulary, words
from kbs.hardware.profile_metrics import profile_metrics

SCHEMA_VERSION: Literal[1] = 1
MAX_WORDS = 4000
"""Longest text of a field, in characters. Longer ones are refused, not cut."""
MAX_FIGURE = 60
"""Characters of a metric's number."""
MAX_NAME = 200
"""Characters of a name."""
MAX_DIMS = 32
"""Sizes of an experiment."""
MAX_PARAMETERS = 32
"""Settings of its methods."""
MAX_SIZE = 2**40
"""Each of them is below it."""


class Outcome(StrEnum):
    """What came of an experiment."""

    SUCCESS = "success"
    """Right, and faster than what it was compared with."""
    NEUTRAL = "neutral"
    """Right, and neither faster nor slower as far as was measured."""
    REGRESSION = "regression"
    """Right, and slower."""
    INCORRECT = "incorrect"
    """It gave wrong results."""
    REJECTED = "rejected"
    """The evaluation or the gate did not let it pass: a cheat, a refused problem, a broken rule."""
    FAILED = "failed"
    """It did not compile, crashed, or gave no result in time."""
    UNMEASURED = "unmeasured"
    """Nobody says that it was wrong, and no time of it was compared."""


NO_TRIAL = (Outcome.REJECTED, Outcome.UNMEASURED)
"""Outcomes that speak neither for nor against a method."""
UNMAPPED = "unmapped"
"""In place of a method where the words of an imported record name none that is known."""
CPU = "cpu"
"""In place of a GPU, where a kernel ran on the CPU."""


class Provenance(StrEnum):
    """How much stands behind a record."""

    MEASURED = "measured"
    """There is a receipt of it."""
    REPORTED = "reported"
    """Somebody said so."""


OUTCOMES = {
    "incorrect": Outcome.INCORRECT,
    "cheating": Outcome.REJECTED,
    "task_refused": Outcome.REJECTED,
    "compile_error": Outcome.FAILED,
    "crashed": Outcome.FAILED,
    "timeout": Outcome.FAILED,
    "not_supported_here": Outcome.UNMEASURED,
}
"""Verdict of a receipt → outcome, for those that say that a candidate is not to be believed."""


def outcome_of(verdict: str, improvement: str) -> Outcome:
    """The outcome that a receipt's verdict and improvement state. Raises ValueError for a verdict that is none."""
    if verdict != "accepted":
        if verdict not in OUTCOMES:
            raise ValueError(f"{verdict!r} is not a verdict of a receipt")
        return OUTCOMES[verdict]
    if improvement in ("not_timed", "not_compared", "unstable"):
        return Outcome.UNMEASURED
    return {"faster": Outcome.SUCCESS, "slower": Outcome.REGRESSION}.get(improvement, Outcome.NEUTRAL)


# --- names ------------------------------------------------------------------------------------------------------------

_MAKER = re.compile(r"^(?:nvidia|amd|tesla|geforce|\s)+")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_UNKNOWN = ("", "unknown", "n/a", "na", "none", "null", "-", "?")
_TIME = re.compile(r"[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}Z")


@lru_cache(maxsize=4096)
def bottleneck_name(name: str) -> str:
    """Id of the bottleneck class, `memory-bound` for `memory`; empty for `unknown`.

    Raises ValueError for what is none.
    """
    plain = name.strip().lower()
    if plain in _UNKNOWN:
        return ""
    for form in (plain, f"{plain} bound"):
        found = vocabulary().resolve("bottleneck", form)
        if len(found) == 1:
            return found[0]
    known = ", ".join(vocabulary().bottlenecks)
    raise ValueError(f"{name[:60]!r} is not a bottleneck class; those are {known}")


@lru_cache(maxsize=4096)
def gpu_name(name: str) -> str:
    """Id of a product (`h200-sxm` for `NVIDIA H200`) or of a family where the name leaves the product open (`h100`).

    Only a name that is known as a whole is taken for a product's; any other stays, in lower case.
    """
    plain = " ".join(name.split()).lower()
    if plain in _UNKNOWN:
        return ""
    short = _MAKER.sub("", plain)
    whole = [one for one in vocabulary().find(short, "product") if (one.start, one.end) == (0, len(words(short)))]
    products = list(dict.fromkeys(one.id for one in whole if one.kind == "product"))
    if len(products) == 1:
        return products[0]
    families = list(dict.fromkeys(one.id for one in whole if one.kind == "family"))
    return families[0] if not products and len(families) == 1 else plain


@lru_cache(maxsize=4096)
def op_name(name: str) -> str:
    """Id of the operation, of a kernel's name or a file's too; empty if it names none, or more than one."""
    names, name = vocabulary(), re.sub(r"\.(?:py|cu)$", "", name)
    whole = names.resolve("operation", name)
    if len(whole) == 1:
        return whole[0]
    found = list(dict.fromkeys(mention.id for mention in names.find(name, "operation")))
    return found[0] if len(found) == 1 else ""


@lru_cache(maxsize=4096)
def backend_name(name: str) -> str:
    """Id of the language, such as `triton`; another name stays, in lower case."""
    found = vocabulary().resolve("language", name)
    return found[0] if len(found) == 1 else " ".join(name.lower().split())


@lru_cache(maxsize=4096)
def dtype_name(name: str) -> str:
    """Id of the element type (`bf16` for `torch.bfloat16`); another name stays, in lower case."""
    found = vocabulary().resolve("dtype", name)
    return found[0] if len(found) == 1 else " ".join(name.lower().split())


@lru_cache(maxsize=4096)
def stall_name(name: str) -> str:
    """Id of the symptom that a stall is (`stall-long-scoreboard`); another name stays, in lower case."""
    plain = " ".join(name.split()).lower()
    if plain in _UNKNOWN:
        return ""
    for form in (plain, f"stall {plain}", f"{plain} stall"):
        found = [id for id in vocabulary().resolve("symptom", form) if id.startswith("stall-")]
        if len(found) == 1:
            return found[0]
    return plain


@lru_cache(maxsize=4096)
def method_name(name: str) -> str:
    """A method as the registry writes it: `vectorized_access` for `Vectorized access`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


@lru_cache(maxsize=4096)
def metric_name(name: str) -> str:
    """Id of the profile's metric (`dram_throughput` for its Nsight Compute names and labels); another name stays."""
    known, plain = profile_metrics(), name.strip()
    if plain in known.by_ncu:
        return known.by_ncu[plain].id
    spelled = plain.lower().replace(" ", "_").replace("-", "_")
    if spelled in known.all:
        return spelled
    labelled = known.by_label.get(plain, [])
    return labelled[0].id if len(labelled) == 1 else plain


# --- fields -----------------------------------------------------------------------------------------------------------


def _text(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def is_unicode(value: str) -> bool:
    """Whether the text can be written down: it holds no half of a pair of surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def _fit(value: str) -> str:
    if not is_unicode(value):
        raise ValueError("the text is not Unicode: it holds half a pair of surrogates")
    return value


def _decimal(value: str) -> str:
    if not _DECIMAL.fullmatch(value):
        raise ValueError(f"{value[:40]!r} is not a decimal number")
    return value


def _utc(value: str) -> str:
    """Of one spelling, since times are compared as texts."""
    try:
        datetime.strptime(value if _TIME.fullmatch(value) else "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{value[:40]!r} is not a time in UTC, such as 2026-11-21T14:25:35Z") from None
    return value


def _measurements(value: object) -> object:
    """Names of the vocabulary in place of their other names; of two that mean the same the preferred one is kept."""
    if not isinstance(value, Mapping):
        return value
    found: dict[object, tuple[int, object]] = {}
    for name, figure in value.items():
        id = metric_name(name) if isinstance(name, str) else name
        known = profile_metrics().all.get(id) if isinstance(id, str) else None
        rank = known.ncu.index(name) + 1 if known and name in known.ncu else 0
        if id not in found or rank < found[id][0]:
            found[id] = (rank, str(figure) if _number(figure) else figure)
    return {id: figure for id, (_, figure) in found.items()}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unique(value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in value if part))


Ulid = Annotated[str, Field(pattern=ULID_PATTERN)]
UtcTime = Annotated[str, AfterValidator(_utc)]
"""`2026-11-21T14:25:35Z`"""
Words = Annotated[str, BeforeValidator(_text), Field(max_length=MAX_WORDS), AfterValidator(_fit)]
Name = Annotated[str, BeforeValidator(_text), Field(max_length=MAX_NAME), AfterValidator(_fit)]
Key = Annotated[Name, Field(min_length=1)]
Size = Annotated[int, Field(strict=True, gt=0, lt=MAX_SIZE)]
Figure = Annotated[str, Field(max_length=MAX_FIGURE), AfterValidator(_decimal)]
Figures = Annotated[dict[Key, Figure], BeforeValidator(_measurements), Field(max_length=500)]
"""Metric → decimal number in the unit that the profile's vocabulary gives the metric."""
Reason = Annotated[Words, Field(min_length=1)]
"""Why a record is masked, counts again, or is joined."""
Receipt = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Speedup(_Part):
    """Time before over time after: above 1 it became faster."""

    median: Positive
    low: Positive | None = None
    """Lower end of its 95 % interval; None if none was reported."""
    high: Positive | None = None
    """Upper end of it."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and not self.low <= self.median <= self.high:
            raise ValueError("the median lies outside its interval")
        return self


class Movement(_Part):
    """How a metric was expected to move."""

    metric: Annotated[Name, AfterValidator(metric_name), Field(min_length=1)]
    """A metric of the profile, or `time`."""
    direction: Literal["up", "down"]
    size: Words = ""
    """How far, in words or figures."""


class Attribution(_Part):
    """What leaving one method out showed."""

    method: Annotated[Name, AfterValidator(method_name), Field(min_length=1)]
    found: Literal["effective", "ineffective", "implementation_failed", "unverifiable"]
    speedup: Speedup | None = None
    """Time without the method over time with it; None if it was not measured."""


class Experiment(_Part):
    """One iteration, also one that failed."""

    kind: Literal["experiment"] = "experiment"
    schema_version: Literal[1] = SCHEMA_VERSION
    id: Ulid
    """Sorts by the time at which the record was written."""
    time: UtcTime
    """When the experiment was made."""
    run: Name = ""
    """Id of its run; empty if it belongs to none."""
    iteration: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] | None = None
    """Number of it within the run."""
    kernel: Name
    """Name of the kernel."""
    op: Annotated[Name, AfterValidator(op_name)] = ""
    """Operation of the vocabulary; empty if it is none."""
    backend: Annotated[Name, AfterValidator(backend_name)] = ""
    """`triton`, `cuda`, or another's name."""
    gpu: Annotated[Name, AfterValidator(gpu_name)] = ""
    """Id of the product or of the family, or the device's own name; `cpu`; empty if nobody said."""
    capability: Annotated[str, Field(pattern=r"^(?:[0-9]{1,3}\.[0-9])?$")] = ""
    """Compute capability, `9.0`."""
    dims: Annotated[dict[Key, Size], Field(max_length=MAX_DIMS)] = {}
    """Sizes of the workload."""
    dtype: Annotated[Name, AfterValidator(dtype_name)] = ""
    """Element type."""
    bottleneck_before: Annotated[Name, AfterValidator(bottleneck_name)] = ""
    """Class before the change; empty if it is not known."""
    bottleneck_after: Annotated[Name, AfterValidator(bottleneck_name)] = ""
    """Class after it."""
    dominant_stall: Annotated[Name, AfterValidator(stall_name)] = ""
    """The greatest warp stall before the change."""
    metrics_before: Figures = {}
    metrics_after: Figures = {}
    methods: Annotated[tuple[Annotated[Name, AfterValidator(method_name)], ...], AfterValidator(_unique)] = ()
    """Methods of the registry that were applied; `unmapped` where words name none of them."""
    parameters: Annotated[dict[Key, Name], Field(max_length=MAX_PARAMETERS)] = {}
    """Settings of the methods, as they were written: `tile_size` → `16`."""
    optimization: Annotated[Words, Field(min_length=1)]
    """What was changed, in words."""
    hypothesis: Words = ""
    """Why it should help."""
    expected: Annotated[tuple[Movement, ...], Field(max_length=20)] = ()
    """What was to move."""
    observed: Words = ""
    """What moved."""
    outcome: Outcome
    speedup: Speedup | None = None
    """Over the version that it was made from; None if no time was compared."""
    attribution: Annotated[tuple[Attribution, ...], Field(max_length=20)] = ()
    """What each method brought; empty if none was left out for a test."""
    receipt: Receipt = ""
    """Hash of its receipt; empty if there is none."""
    evidence: Annotated[tuple[Words, ...], Field(max_length=100)] = ()
    """References that it rested on."""
    lesson: Words = ""
    """What to remember."""
    source: Name = ""
    """Where a record that was imported came from: the file, and its id there."""
    provenance: Provenance

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (self.provenance is Provenance.MEASURED) != bool(self.receipt):
            raise ValueError("a record is `measured` exactly where it names a receipt")
        if self.run and self.iteration is None:
            raise ValueError("a record of a run says which iteration it is")
        if not self.kernel:
            raise ValueError("the kernel has no name")
        ratio = self.speedup
        if self.provenance is Provenance.MEASURED and self.outcome is Outcome.SUCCESS:
            if ratio is None or ratio.low is None:
                raise ValueError("a measured success has a speedup with its interval")
            if ratio.low <= 1:
                raise ValueError("a measured success has an interval above 1")
        if ratio is not None and self.outcome is Outcome.SUCCESS and ratio.median <= 1:
            raise ValueError(f"the outcome is success, and the speedup is {ratio.median:g}")
        if ratio is not None and self.outcome in (Outcome.INCORRECT, Outcome.FAILED, Outcome.UNMEASURED):
            why = "none was measured" if self.outcome is Outcome.UNMEASURED else "a wrong result has none"
            raise ValueError(f"the outcome is {self.outcome}, and there is a speedup: {why}")
        return self

    @property
    def reference(self) -> str:
        """The printed form, `log/<id>`."""
        return f"log/{self.id}"


class Mask(_Part):
    """A decision that a record is to be left out, or that it counts again. The latest one of a target holds."""

    kind: Literal["mask"] = "mask"
    schema_version: Literal[1] = SCHEMA_VERSION
    id: Ulid
    time: UtcTime
    target: Ulid
    """The experiment."""
    masked: bool
    """False: it counts again."""
    why: Reason


class Join(_Part):
    """The statement that several records are of one experiment. Each of their ids goes on to name it."""

    kind: Literal["join"] = "join"
    schema_version: Literal[1] = SCHEMA_VERSION
    id: Ulid
    time: UtcTime
    joined: Annotated[tuple[Ulid, ...], Field(min_length=2, max_length=1000)]
    """The experiments."""
    why: Reason
    """`one receipt`, or `one iteration of one run`."""


Record = Annotated[Experiment | Mask | Join, Field(discriminator="kind")]
"""What a line of the log holds."""
