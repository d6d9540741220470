"""The replies of workers, checked for their form: untrusted code could have written them.

Whether a reply is true is another question; kopt reads most of what counts from memory instead.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from evaluator.sandbox.worker_process import Worker, WorkerLostError
from kbs.common.canonical_json import Seconds


def _whole(text: str) -> str:
    text.encode("utf-8")  # raises for half of a surrogate pair, which no receipt can hold
    return text


Text = Annotated[str, AfterValidator(_whole)]
"""Text that can be written down."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class TensorReply(_Part):
    """A tensor that stays in the worker until it is fetched."""

    name: Text = ""
    shape: list[NonNegativeInt]
    dtype: Text
    stride: list[int] | None = None
    alias: NonNegativeInt | None = None
    within: NonNegativeInt | None = None


class ReturnedReply(_Part):
    """Something that a candidate returned."""

    type: Text
    exact: bool
    shape: list[NonNegativeInt] | None = None
    dtype: Text | None = None
    stride: list[int] | None = None
    device: Text | None = None
    alias: NonNegativeInt | None = None
    within: NonNegativeInt | None = None


class DeedReply(_Part):
    """Something that the candidate's code did, by Python's audit events."""

    id: Literal[
        "scans_memory",
        "reads_frames",
        "dynamic_code",
        "starts_processes",
        "signals_processes",
        "network",
        "writes_files",
        "loads_libraries",
        "raw_memory",
    ]
    said: Text
    line: NonNegativeInt


class CallsReply(_Part):
    """How often something ran."""

    name: Text
    calls: NonNegativeInt


class OperatorReply(CallsReply):
    """An operator of PyTorch that ran."""

    bytes: NonNegativeInt


class KernelReply(CallsReply):
    """A kernel that ran on the device."""

    microseconds: float = Field(ge=0, allow_inf_nan=False)


Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SampleReply(_Part):
    """One timed sample, in microseconds."""

    us: Number
    enqueue_us: Number
    late: bool


class TrafficReply(_Part):
    """A tensor that one call of the reference reads or writes."""

    name: Text
    what: Text
    shape: list[NonNegativeInt]
    dtype: Text
    bytes: NonNegativeInt
    factors: list[NonNegativeInt]
    exact: bool


class WorkReply(CallsReply):
    """Operations of one kind."""

    pipe: Literal["tensor", "vector", "integer"]
    dtype: Text
    factors: list[NonNegativeInt]


class CountReply(_Part):
    """What one call of the reference must do."""

    run: Literal["fake", "real", "none"]
    why: Text
    reads: list[TrafficReply]
    writes: list[TrafficReply]
    operations: list[WorkReply]
    unknown: list[CallsReply]
    """Operators whose operations nobody knows."""
    opaque: list[Text]


class RunReply(_Part):
    """What a tool did: its exit code, and the end of what it printed."""

    code: int | None
    """None where it did not run, or did not end."""
    text: Text


class ProfileReply(RunReply):
    """What came of a run under ncu: names of files in the worker's folder, empty where there are none."""

    report: Text
    csv: Text


class BinaryReply(_Part):
    """A kernel that Triton compiled; the binary and the assembler's log lie in the worker's folder."""

    name: Text
    shared: NonNegativeInt
    num_warps: NonNegativeInt
    num_stages: NonNegativeInt
    signature: dict[Text, Text]
    constants: dict[Text, Text]


class FailureReply(_Part):
    """What was raised."""

    type: Text
    message: Text
    traceback: Text
    compile: bool
    usage: bool
    unsupported: Text = ""
    """Why the interpreter could not run it, where the fault is not the candidate's."""


class Reply(_Part):
    """An answer, with every field that one of `evaluator.worker.process.child` can have. What was not asked for is
    empty."""

    ok: bool
    seconds: Seconds = 0.0
    error: FailureReply | None = None
    unfilled: Text = ""
    patched: list[Text] = []
    deeds: list[DeedReply] = []
    threads: NonNegativeInt = 0
    processes: NonNegativeInt = 0
    returned: list[ReturnedReply] = []
    misbuilt: Text = ""
    others: list[dict[str, Any]] = []
    reused: bool = False
    calls: NonNegativeInt = 0
    operators: list[OperatorReply] = []
    blinded: bool = False
    own: bool = True
    idle: bool = False
    kernels: list[KernelReply] = []
    runs: list[RunReply] = []
    sample: SampleReply | None = None
    profile: ProfileReply | None = None
    times: list[Number] = []
    l2_bytes: NonNegativeInt = 0
    flush_bytes: NonNegativeInt = 0
    tree: dict[str, Any] = {}
    tensors: list[TensorReply] = []
    weights: list[TensorReply] = []
    results: list[TensorReply] = []
    mutated: list[NonNegativeInt] = []
    binaries: list[BinaryReply] = []
    skipped: NonNegativeInt = 0
    stopped: Text = ""
    failed: list[Text] = []
    outputs: list[Text] = []
    count: CountReply | None = None
    graph: dict[str, Any] = {}
    captured: bool = False
    why: Text = ""

    @model_validator(mode="after")
    def _failed_with_an_error(self) -> Self:
        if self.ok == (self.error is not None):
            raise ValueError("an answer has an error exactly where it is not ok")
        return self


def checked_reply(worker: Worker, reply: dict[str, Any]) -> dict[str, Any]:
    """The answer with every field that one can have. Ends the worker and raises `WorkerLostError` where it is none."""
    try:
        return Reply.model_validate(reply).model_dump()
    except (ValidationError, RecursionError) as error:
        why = "its answer does not have the form of one"
        worker.kill("protocol", why)
        raise WorkerLostError("protocol", why) from error
