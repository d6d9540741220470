"""A kernel in its worker: every call gets fresh inputs and filled outputs, and only memory decides about its result."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from evaluator.correctness.reference import Shape, Values, _wait, copied
from evaluator.receipt.findings import UNSUPPORTED
from evaluator.sandbox.replies import checked_reply
from evaluator.sandbox.shared_buffers import SharedRow, SharedTensor, contiguous, laid_out, shared_tensors
from evaluator.sandbox.worker_process import Worker

NAN = {
    torch.float64: 0x7FF8_6B6F_7074_DEAD,
    torch.float32: 0x7FC0_DEAD,
    torch.float16: 0x7E5A,
    torch.bfloat16: 0x7FDA,
}
"""NaNs of a payload that no arithmetic makes: what still has these bits was not written."""
_INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
_GUARD = 0xA5
_PIECE = 1 << 26
"""Elements that are counted together: a count takes eight bytes for each."""


@dataclass
class Called:
    """What one call returned and changed."""

    outputs: list[torch.Tensor]
    """Copies of the results, in the order of the reference's: returned tensors, then written arguments."""
    returned: list[dict[str, Any]]
    """What the worker says of each returned value: type, shape, dtype, stride, alias."""
    unwritten: list[int]
    """For each output, elements that still hold the fill."""
    guards: list[str]
    """Names of tensors beside which memory was written."""
    changed: list[str]
    """Names of inputs that were written, though the reference leaves them alone."""
    moved: bool
    """Whether the inputs lay elsewhere than in the call before."""
    seconds: float
    reply: dict[str, Any] = field(default_factory=dict)
    """The worker's own answer: operators, patched names, threads."""


@dataclass(frozen=True)
class SampleOptions:
    """How a timed call is made."""

    spin_us: float
    """Length of the spin kernel before it."""


class CandidateError(Exception):
    """The candidate raised, or did not load: its own words."""

    def __init__(self, stage: str, error: dict[str, Any]) -> None:
        super().__init__(f"{error['type']}: {error['message']}")
        self.stage = stage
        self.error = error


def failed_at(error: CandidateError) -> tuple[str, str]:
    """(at which stage, in what words) a candidate failed, as a finding has it."""
    if error.error.get("unsupported"):
        return UNSUPPORTED, str(error.error["unsupported"])
    return ("compile" if error.error["compile"] and error.stage == "load" else error.stage), str(error)


@dataclass
class _Memory:
    """Where one call's arguments and results lie."""

    arguments: list[SharedTensor]
    results: list[SharedTensor]

    def close(self) -> None:
        for shared in (*self.arguments, *self.results):
            shared.close()


@dataclass(eq=False)
class KernelProcess:
    """The process of a candidate or baseline, and the memory that it is lent."""

    worker: Worker
    device: torch.device
    load_seconds: float
    call_seconds: float
    draw: random.Random
    places: int = 2
    """How many sets of memory its arguments and results are drawn from."""
    module: str = field(default="candidate", init=False)
    """Name of its file and module."""
    weight_names: list[str] = field(default_factory=list, init=False)
    """Its names for the reference's weights, in their order."""
    _places: list[_Memory] = field(default_factory=list, init=False)
    _shapes: Any = field(default=None, init=False)
    _last: int = field(default=-1, init=False)

    def ask(
        self, op: str, seconds: float, lent: Sequence[SharedTensor | SharedRow] = (), **fields: Any
    ) -> dict[str, Any]:
        """A request; raises `CandidateError` when the candidate raised, `WorkerLostError` when it ended."""
        reply = checked_reply(self.worker, self.worker.request(op, seconds, [t.buffer for t in lent], **fields))
        if not reply["ok"]:
            raise CandidateError(op, reply["error"])
        return reply

    def load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute or compile the candidate's file."""
        return self.ask("load", self.load_seconds, **message)

    def build(self, init: Values, seed: int) -> list[dict[str, Any]]:
        """KernelBench form: construct the model; name and shape of its weights."""
        lent = copied(init, self.device)
        reply = self.ask("build", self.load_seconds, lent, tree=init.tree, tensors=[t.message for t in lent], seed=seed)
        for shared in lent:
            shared.close()
        return list(reply["weights"])

    def set_weights(self, weights: Values, names: Sequence[str]) -> None:
        """Load the reference's weights under the candidate's names for them."""
        self.weight_names = list(names)
        lent = copied(weights, self.device)
        self.ask("set_weights", self.call_seconds, lent, names=list(names), tensors=[t.message for t in lent])
        for shared in lent:
            shared.close()

    def state(self, weights: Values) -> list[torch.Tensor]:
        """What it now has under its names for `weights`; NaN, or whatever stood there, where it has nothing."""
        lent = copied(weights, self.device)
        for shared in lent:
            fill(shared.tensor, self.draw)
        tensors = [t.message for t in lent]
        self.ask("state", self.call_seconds, lent, names=self.weight_names, tensors=tensors)
        found = [t.tensor.clone() for t in lent]
        for shared in lent:
            shared.close()
        return found

    def call(
        self,
        values: Values,
        shape: Shape,
        *,
        watch: bool = False,
        late: bool = False,
        keep: bool = False,
        plain: bool = False,
        evaluates: bool = False,
        strides: Sequence[list[int] | None] | None = None,
        way: str = "",
        sample: SampleOptions | None = None,
        seconds: float | None = None,
    ) -> Called:
        """One call, timed on the device where `sample` says how; `seconds` in place of the usual limit.

        `shape` is what the reference returns and writes. `watch` counts operators.
        `late` brings the inputs on the current stream only when
        the call is already under way, on a GPU. `keep` holds the result until the next call has come to its end, which
        then tells whether it is still the same. `plain` calls as a user does: with gradients enabled, on tensors of
        PyTorch's own memory instead of the buffers, which the worker copies. `strides` lays the inputs out otherwise
        than their maker did. `evaluates` puts a model into the mode that `eval()` leaves. `way`: see
        `evaluator.worker.process.child.Worker._called`.
        """
        place, moved = self._place(values, shape.returned, strides)
        for n, shared in enumerate(place.arguments):
            shared.buffer.base.fill_(_GUARD)
            if n in shape.filled:
                fill(shared.tensor, self.draw)
            else:
                shared.tensor.copy_(values.tensors[n])
        for shared in place.results:
            shared.buffer.base.fill_(_GUARD)
            fill(shared.tensor, self.draw)
        _wait(self.device)
        lent = [*place.arguments, *place.results]
        asked = {"watch": watch, "late": late, "keep": keep, "plain": plain, "evaluates": evaluates, "way": way}
        how: dict[str, Any] = asked if sample is None else asdict(sample)
        how |= {} if sample is not None else {"written": list(shape.written)}
        how |= {"tensors": [t.message for t in place.arguments], "returns": [t.message for t in place.results]}
        how["result"] = shape.result
        limit = self.call_seconds if seconds is None else seconds
        reply = self.ask("call" if sample is None else "sample", limit, lent, tree=values.tree, **how)
        outputs = [t.tensor.clone() for t in place.results] + [place.arguments[n].tensor.clone() for n in shape.written]
        filled_too = [True] * len(place.results) + [n in shape.filled for n in shape.written]
        return Called(
            outputs=outputs,
            returned=reply.get("returned", []),
            unwritten=[_unwritten(o) if was else 0 for o, was in zip(outputs, filled_too, strict=True)],
            guards=self._overwritten(place, values),
            changed=[
                values.specs[n]["name"]
                for n, shared in enumerate(place.arguments)
                if n not in shape.written and not same_bits(shared.tensor, values.tensors[n])
            ],
            moved=moved,
            seconds=float(reply["seconds"]),
            reply=reply,
        )

    def row(self, values: Values, shape: Shape, calls: int, seconds: float, *, state: bool) -> tuple[int, str, bool]:
        """Up to so many calls on the same arguments, until the time is over: how many were made, what stopped them, and
        whether a result lay in the memory of the first.

        Their results are not read. `state`: the weights are set back before each.
        """
        place, _ = self._place(values, shape.returned, None)
        for n, shared in enumerate(place.arguments):
            if n in shape.filled:
                fill(shared.tensor, self.draw)
            else:
                shared.tensor.copy_(values.tensors[n])
        _wait(self.device)
        tensors = [t.message for t in place.arguments]
        how: dict[str, Any] = {"written": list(shape.written), "calls": calls, "within": seconds, "state": state}
        how["result"] = shape.result
        limit = self.call_seconds + 2 * seconds
        reply = self.ask("row", limit, place.arguments, tree=values.tree, tensors=tensors, **how)
        return int(reply["calls"]), str(reply["stopped"]), bool(reply["reused"])

    def _place(
        self, values: Values, returned: Sequence[dict[str, Any]], strides: Sequence[list[int] | None] | None
    ) -> tuple[_Memory, bool]:
        """One of the sets of memory, drawn at random: of two, a result remembered by address is wrong half of the
        time."""
        layouts = strides or [None] * len(values.specs)
        arguments = [
            laid_out(spec) if own is None else {**contiguous(spec), "stride": own}
            for spec, own in zip(values.specs, layouts, strict=True)
        ]
        results = [contiguous(spec) for spec in returned]
        shapes = (arguments, results)
        if shapes != self._shapes:
            self.release()
            self._shapes = shapes
            self._last = -1
        while len(self._places) < self.places:
            self._places.append(_Memory(shared_tensors(arguments, self.device), shared_tensors(results, self.device)))
        chosen = self.draw.randrange(self.places)
        moved = chosen != self._last
        self._last = chosen
        return self._places[chosen], moved

    def _overwritten(self, place: _Memory, values: Values) -> list[str]:
        names = [spec["name"] for spec in values.specs] + [f"result {n}" for n in range(len(place.results))]
        return [
            name
            for name, shared in zip(names, (*place.arguments, *place.results), strict=True)
            if any(bool((guard != _GUARD).any()) for guard in shared.guards())
        ]

    def kernels(self, values: Values) -> list[dict[str, Any]]:
        """Device kernels of one call, where the last call's memory still stands."""
        place = self._places[max(self._last, 0)]
        tensors = [t.message for t in place.arguments]
        reply = self.ask("kernels", self.call_seconds + 30, place.arguments, tree=values.tree, tensors=tensors)
        return list(reply["kernels"])

    def release(self) -> None:
        """Let go of the memory that calls work on; the next call makes it anew."""
        for place in self._places:
            self.worker.forget(t.buffer for t in (*place.arguments, *place.results))
            place.close()
        self._places, self._shapes = [], None

    def close(self) -> None:
        """End the process and let go of its memory."""
        self.worker.close()
        self.release()


def fill(tensor: torch.Tensor, draw: random.Random) -> None:
    """Fill with what no computation writes: a NaN of known payload, or random bits for integers."""
    if tensor.is_complex():
        fill(torch.view_as_real(tensor), draw)
        return
    bits = tensor.view(_INTEGERS[tensor.element_size()])
    if tensor.dtype in NAN:
        bits.fill_(NAN[tensor.dtype])
    else:
        bits.fill_(draw.randrange(2) if tensor.dtype is torch.bool else draw.randrange(120) + 5)


def _unwritten(output: torch.Tensor) -> int:
    """Elements that still have the bits of the fill; counted for floats alone, since an integer may equal its fill."""
    if output.is_complex():
        return _unwritten(torch.view_as_real(output))
    if not output.numel() or output.dtype not in NAN:
        return 0
    bits = output.view(_INTEGERS[output.element_size()]).flatten()
    return sum(int((piece == NAN[output.dtype]).sum()) for piece in torch.split(bits, _PIECE))


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, element type and bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    kind = _INTEGERS.get(a.element_size(), torch.uint8)
    return torch.equal(a.contiguous().view(-1).view(kind), b.contiguous().view(-1).view(kind))
