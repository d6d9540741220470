"""Calls of a candidate that was right: inputs laid out or shaped otherwise, other modes, and without its kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import GIVEN, Case, Cases, agree
from evaluator.correctness.reference import LARGE, Values
from evaluator.receipt.findings import Findings
from evaluator.sandbox.shared_buffers import laid_out
from evaluator.sandbox.worker_process import WorkerLostError
from evaluator.scan.hazards import Severity
from kbs.common.errors import KoptError

_WIDER = 24
"""Columns that lie beside those of an input that is a part of a wider one."""
_MODES = {"inference": "given, under torch.inference_mode()", "thread": "given, in another thread"}
_FRESH = 4
"""Number of the first draw of inputs that no call of the protocol's has."""


@dataclass(eq=False)
class OtherWays:
    """The last calls of one workload; `first` is the case that it gives."""

    protocol: Any
    """The `Protocol` that makes them; its module imports this one."""
    kernel: KernelProcess
    first: Case

    def __post_init__(self) -> None:
        self.cases: Cases = self.protocol.cases
        self.found: Findings = self.protocol.found

    def run(self) -> None:
        """All of them, until one is wrong; where a call was wrong before, only whether strides change anything."""
        sound = self.protocol.sound()
        fresh = self.cases.case(GIVEN, _FRESH) if sound else None  # memory that is used again holds none of its results
        self.first = fresh or self.first
        if self.protocol.plan.strided:
            moves, self.cases.moves = self.cases.moves, []  # strides of results may follow those of the inputs there
            self._strided(judged=sound)
            self.cases.moves = moves
        if self.protocol.plan.name != "verdict" or not sound or self.cases.bytes > LARGE:
            return
        for step in (self._modes, self._shaped, self._alone):
            if self.protocol.sound():
                step()

    def _strided(self, *, judged: bool) -> None:
        """The same numbers in other layouts. Many honest kernels ask for contiguous inputs: who is wrong on every
        second element of longer rows has not looked at strides, which is a note. Who is right there, or refuses by
        raising, looks at them, and must be right on the others or refuse them too."""
        specs = self.first.values.specs
        layouts = {
            "every second element of longer rows": [_wider(spec, 2, 0) for spec in specs],
            "inputs with their last dimensions swapped in memory": [_transposed(spec) for spec in specs],
            "inputs that are columns of wider ones": [_wider(spec, 1, _WIDER) for spec in specs],
        }
        if self.cases.shape.written or not any(map(any, layouts.values())):
            self.found.skipped("strided inputs", "no input of two or more dimensions is only read")
            return
        for n, (what, strides) in enumerate(layouts.items()):
            if not any(strides) or not self.cases.takes(self.first, strides):
                judged = judged and n > 0
                continue
            try:
                called = self.protocol.call(self.kernel, self.first, strides=strides)
            except CandidateError as error:
                self.found.hazard("noncontiguous_inputs", Severity.NOTE, f"it raised: {error}")
                continue
            right = self.protocol.is_right(called, self.first)
            if not right:
                self.found.hazard("noncontiguous_inputs", Severity.NOTE, "its result is wrong on them")
                judged = judged and n > 0
            if judged:
                self.protocol.judge(f"given, {what}", called, self.first)
            if not right:
                return

    def _shaped(self) -> None:
        """The same numbers in one dimension more or less before the last, where the reference's results are the same
        numbers then. Many honest kernels take the first dimension for the rows: wrong results are a note."""
        if self.cases.shape.written or self.cases.state:
            return
        shape = self.cases.shape
        for values in _reshaped(self.first.values):
            try:
                own = self.cases.reference.run(values, "native")
            except KoptError:
                continue
            if [t.numel() for t in own.tensors] != [t.numel() for t in self.first.native]:
                continue
            flat = [[t.flatten() for t in tensors] for tensors in (self.first.native, own.tensors)]
            if not agree(*flat) or [t.shape for t in own.tensors] == [t.shape for t in self.first.native]:
                continue
            label = f"given, inputs of {max(t.dim() for t in values.tensors)} dimensions"
            told = self.first.distribution._replace(name=label)
            wide = [t.reshape(n.shape) for t, n in zip(self.first.reference, own.tensors, strict=True)]
            case = replace(self.first, distribution=told, values=values, reference=wide, native=own.tensors)
            self.cases.shape = replace(shape, returned=own.specs, result=own.tree)
            try:
                called = self.protocol.call(self.kernel, case)
                if [one["shape"] for one in called.returned] != [spec["shape"] for spec in own.specs]:
                    self.found.skipped(label, "the candidate returns another shape")
                elif not self.protocol.is_right(called, case):
                    said = f"{label}: its result is wrong, of the right shape"
                    self.found.hazard("at_this_size_only", Severity.NOTE, said)
            except CandidateError as error:
                self.found.skipped(label, f"the candidate raises: {error}")
            finally:
                self.cases.shape = shape

    def _modes(self) -> None:
        """Fresh inputs in a mode of PyTorch's and in a thread that no other call has."""
        for n, way in enumerate(self.protocol.draw.sample(sorted(_MODES), len(_MODES))):
            case = self.cases.case(GIVEN, _FRESH + 1 + n)
            if case is None:
                return
            try:
                called = self.protocol.call(self.kernel, case, way=way)
            except CandidateError as error:
                self.found.skipped(_MODES[way], f"the candidate raises: {error}")
                continue
            self.protocol.judge(_MODES[way], called, case)

    def _alone(self) -> None:
        """Whether it is right without its own kernels, which launches in Triton's interpreter then leave out, and wrong
        without the processes that it started: others did the work."""
        if self.cases.own_reference:
            return
        case = self.cases.case(GIVEN, _FRESH + 1 + len(_MODES))
        earlier = self.first.native
        if case is None or all(self.cases.compare(case, n, other).passed for n, other in enumerate(earlier)):
            return
        if any(hazard.id == "processes_left" for hazard in self.found.hazards) and self._right(case, "alone") is False:
            severity = Severity.NOTE if self.protocol.allow_library else Severity.REJECT
            self.found.hazard("library_call", severity, "it gives no result without the processes that it started")
        elif self.cases.reference.device.type == "cpu" and self._right(case, "idle"):
            self.protocol.own = False

    def _right(self, case: Case, way: str) -> bool | None:
        """Whether a call gives right results; None where nothing follows from it."""
        try:
            called = self.protocol.call(self.kernel, case, way=way)
        except (CandidateError, WorkerLostError):
            return False
        if not self.protocol.computed(called) or (way == "idle" and not called.reply["idle"]):
            return None
        return bool(self.protocol.is_right(called, case))


def _transposed(spec: dict[str, Any]) -> list[int] | None:
    """Strides of the same shape with its last two dimensions swapped in memory; contiguous ones, where they are swapped
    already."""
    plain = torch.empty(spec["shape"], device="meta")
    if plain.dim() < 2 or plain.shape[-1] < 2 or plain.shape[-2] < 2:
        return None
    if laid_out(spec)["stride"] is not None:
        return list(plain.stride())
    return list(plain.transpose(-1, -2).contiguous().transpose(-1, -2).stride())


def _wider(spec: dict[str, Any], step: int, more: int) -> list[int] | None:
    """Strides of the same shape as a part of a wider tensor's columns: each `step`-th, and `more` beside them."""
    shape = spec["shape"]
    if len(shape) < 2 or min(shape) < 2 or laid_out(spec)["stride"] is not None:
        return None
    steps = torch.empty([*shape[:-1], step * shape[-1] + more], device="meta").stride()
    return [*steps[:-1], step]


def _reshaped(values: Values) -> Iterator[Values]:
    """The same numbers with one dimension more before the last, then with one less, in all inputs of the most
    dimensions."""
    most = max((t.dim() for t in values.tensors), default=0)
    for fewer in (False, True):
        if most < 2 + fewer:
            continue
        tensors = [_with_dimensions(t, fewer=fewer) if t.dim() == most else t for t in values.tensors]
        specs = [
            {**spec, "shape": list(t.shape), "stride": None} for spec, t in zip(values.specs, tensors, strict=True)
        ]
        yield Values(values.tree, specs, tensors)


def _with_dimensions(tensor: torch.Tensor, *, fewer: bool) -> torch.Tensor:
    if fewer:
        return tensor.flatten(0, 1)
    size = tensor.shape[0]
    part = next((p for p in range(2, math.isqrt(size) + 1) if size % p == 0), 1)
    return tensor.reshape(part, size // part, *tensor.shape[1:])
