"""The reference in its worker: it makes inputs, correct results, and PyTorch's own at the problem's precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.sandbox.replies import checked_reply
from evaluator.sandbox.shared_buffers import SharedRow, SharedTensor, contiguous, laid_out, shared_tensors
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.worker.memory import tensors as memory
from kbs.common.errors import KoptError, UsageError

LARGE = 1 << 30
"""Bytes above which memory is lent for one use and then given back."""


@dataclass
class Values:
    """Arguments: their tree, and the tensors in it, copied into this process's own memory."""

    tree: dict[str, Any]
    specs: list[dict[str, Any]]
    """Name, shape, dtype and stride of each tensor."""
    tensors: list[torch.Tensor] = field(default_factory=list)

    def with_tensors(self, tensors: list[torch.Tensor]) -> Values:
        """The same tree with other contents."""
        return Values(self.tree, self.specs, tensors)


@dataclass
class Results:
    """What the reference computed."""

    specs: list[dict[str, Any]]
    """Shape, dtype, and which argument's storage a returned tensor shares (`alias`)."""
    tensors: list[torch.Tensor]
    tree: dict[str, Any]
    """How what it returned is built."""
    mutated: list[int]
    """Numbers of the arguments that it wrote."""
    reused: bool = False
    """Whether a returned tensor lies in the memory of one that the first run returned, which still stands."""


@dataclass
class Shape:
    """What the reference's first run told of the problem."""

    returned: list[dict[str, Any]] = field(default_factory=list)
    """Shapes of what is returned, with the argument that each shares memory with."""
    result: dict[str, Any] = field(default_factory=dict)
    """How what is returned is built, see `evaluator.worker.memory.values.Tree`."""
    written: list[int] = field(default_factory=list)
    """Numbers of the arguments that are results."""
    filled: list[int] = field(default_factory=list)
    """Those of them whose former content does not count."""
    names: list[str] = field(default_factory=list)
    """Names of the outputs: returned ones, then written ones."""


@dataclass(eq=False)
class ReferenceProcess:
    """The reference in its worker, with what it needs to be asked."""

    worker: Worker
    device: torch.device
    load_seconds: float
    call_seconds: float
    keeps: bool = False
    """Whether memory that is lent stays lent, however large."""
    lent: dict[str, list[SharedTensor]] = field(default_factory=dict)
    maker: ReferenceProcess | None = None
    """The process that makes the inputs, where the candidate's own `setup` does: no code of it runs beside the
    reference."""

    def ask(
        self, op: str, seconds: float, lent: Sequence[SharedTensor | SharedRow] = (), **fields: Any
    ) -> dict[str, Any]:
        """A request whose failure is the problem's own fault: raises the error that says so."""
        try:
            reply = checked_reply(self.worker, self.worker.request(op, seconds, [t.buffer for t in lent], **fields))
        except WorkerLostError as error:
            raise KoptError(
                f"the reference did not come to an end ({op}): {error.detail}",
                code="reference_failed",
                hint="Run the reference by itself; give it smaller --dims, or more time with --timeout.",
            ) from error
        if not reply["ok"] and reply["error"]["type"] == "OutOfMemoryError":
            torch.cuda.empty_cache()  # what this process keeps for later
            reply = checked_reply(self.worker, self.worker.request(op, seconds, [t.buffer for t in lent], **fields))
        if not reply["ok"]:
            raise blamed(op, reply["error"])
        return reply

    def load(self, message: dict[str, Any]) -> None:
        """Execute the reference's file."""
        self.ask("load", self.load_seconds, **message)

    def build(self, seed: int) -> tuple[Values, Values]:
        """KernelBench form: (constructor's arguments, weights as constructed)."""
        reply = self.ask("init", self.call_seconds, seed=seed)
        init = self._fetch("init", Values(reply["tree"], reply["tensors"]))
        lent = self.lend("init", init)
        arguments = [t.message for t in lent]
        reply = self.ask("build", self.load_seconds, lent, tree=init.tree, tensors=arguments, seed=seed)
        return init, self._fetch("weights", Values({}, reply["weights"]))

    def set_weights(self, weights: Values) -> None:
        """Load weights that the parent chose."""
        lent = self.lend("weights", weights)
        names = [spec["name"] for spec in weights.specs]
        self.ask("set_weights", self.call_seconds, lent, names=names, tensors=[t.message for t in lent])

    def state(self, weights: Values) -> list[torch.Tensor]:
        """What the weights are now, in the order of `weights`."""
        lent = self.lend("weights", weights)
        names = [spec["name"] for spec in weights.specs]
        self.ask("state", self.call_seconds, lent, names=names, tensors=[t.message for t in lent])
        return [t.tensor.clone() for t in lent]

    def inputs(self, seed: int) -> tuple[Values, list[str]]:
        """(one fresh draw of inputs, names of those that are outputs)."""
        if self.maker is not None:
            return self.maker.inputs(seed)
        reply = self.ask("inputs", self.call_seconds, seed=seed)
        return self._fetch("inputs", Values(reply["tree"], reply["tensors"])), list(reply["outputs"])

    def run(
        self,
        values: Values,
        precision: str,
        written: Sequence[int] = (),
        *,
        mutations: bool = False,
        evaluates: bool = False,
        strides: Sequence[list[int] | None] | None = None,
    ) -> Results:
        """Run the reference: `double`, `native` or `lower` precision; `written` are the arguments that are results.
        `evaluates`: a model is in the mode that `eval()` leaves. `strides` lays the inputs out otherwise."""
        lent = self.lend("inputs" if strides is None else "strided", values, strides)
        how = {"precision": precision, "results": list(written), "mutations": mutations, "evaluates": evaluates}
        tensors = [t.message for t in lent]
        reply = self.ask("reference", self.call_seconds, lent, tree=values.tree, tensors=tensors, **how)
        fetched = self._fetch("results", Values({}, reply["results"]), precision)
        return Results(reply["results"], fetched.tensors, reply["tree"], reply["mutated"], reply["reused"])

    def lend(
        self, purpose: str, values: Values, strides: Sequence[list[int] | None] | None = None
    ) -> list[SharedTensor]:
        """Shared memory that holds the values; kept for the next values of the same shapes and strides."""
        kept = self._memory(purpose, values.specs, strides)
        for shared, tensor in zip(kept, values.tensors, strict=True):
            shared.tensor.copy_(tensor)
        _wait(self.device)
        return kept

    def _memory(
        self, purpose: str, specs: Sequence[dict[str, Any]], strides: Sequence[list[int] | None] | None = None
    ) -> list[SharedTensor]:
        """Used again as long as the shapes are the same: a worker keeps what it has mapped."""
        kept = self.lent.get(purpose)
        layouts = strides or [None] * len(specs)
        wanted = [{**contiguous(spec), "stride": own} for spec, own in zip(specs, layouts, strict=True)]
        if kept is None or [t.spec for t in kept] != wanted:
            self.worker.forget(old.buffer for old in kept or ())
            for old in kept or ():
                old.close()
            kept = self.lent[purpose] = shared_tensors(wanted, self.device)
        return kept

    def _fetch(self, what: str, values: Values, kind: str = "") -> Values:
        for spec in values.specs:
            if spec["dtype"] not in memory.DTYPES:
                raise blamed("fetch", {"type": "UnsupportedValueError", "message": f"a tensor of {spec['dtype']}"})
        lent = self._memory(what + kind, values.specs)
        tensors = [t.message for t in lent]
        self.ask("fetch", self.call_seconds, lent, what=what, tensors=tensors, keeps=self.keeps)
        fetched = values.with_tensors([t.tensor.clone() for t in lent])
        if not self.keeps and sum(t.buffer.size for t in lent) > LARGE:  # free it, on both sides
            del self.lent[what + kind]
            self.worker.forget(t.buffer for t in lent)
            self.ask("map", self.call_seconds)
            for shared in lent:
                shared.close()
        return fetched

    def close(self) -> None:
        """End the worker and let go of the memory."""
        if self.maker is not None:
            self.maker.close()
        for tensors in self.lent.values():
            for shared in tensors:
                shared.close()
        self.worker.close()


def copied(values: Values, device: torch.device) -> list[SharedTensor]:
    """The values in shared memory of their own."""
    lent = shared_tensors([laid_out(spec) for spec in values.specs], device)
    for shared, tensor in zip(lent, values.tensors, strict=True):
        shared.tensor.copy_(tensor)
    _wait(device)
    return lent


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


_NO_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "memoryerror")
"""What CUDA, PyTorch's CPU allocator, the system and Python say."""


def blamed(op: str, error: dict[str, Any]) -> KoptError:
    """The named error for what the reference, its inputs or its sizes got wrong."""
    said = f"{error['type']}: {error['message']}".strip()
    if any(words in said.lower() for words in _NO_MEMORY):
        return KoptError(
            f"the reference ran out of memory: {said}",
            code="out_of_memory",
            hint="Give smaller --dims; the float64 oracle needs twice the memory of an fp32 problem.",
        )
    if error["type"] in ("ModuleNotFoundError", "ImportError"):
        return UsageError(
            f"the reference cannot be imported: {said}",
            code="missing_import",
            hint="Install it in the interpreter that runs the kernels, or name another with --python.",
        )
    if error["type"] == "InputsError":
        return UsageError(
            error["message"], code="inputs_invalid", hint="See `kopt bench --help` for what --inputs takes."
        )
    if error["type"] == "UnsupportedValueError":
        return UsageError(
            f"an input or result cannot be examined: {error['message']}",
            code="value_unsupported",
            hint="Inputs and results are dense tensors, numbers, text, and lists or dicts of these.",
        )
    if op == "inputs" or (op == "init" and error["type"] == "TypeError"):
        return UsageError(
            f"the inputs cannot be made: {said}",
            code="dims_do_not_fit",
            hint="Check --dims against the names and sizes that setup, get_inputs or the inputs file take.",
        )
    last = [line for line in error["traceback"].splitlines() if line.strip()][-3:]
    return UsageError(
        f"the reference fails by itself: {said}",
        code="reference_failed",
        hint="Fix the reference, or the --dims that it gets. " + " | ".join(line.strip() for line in last[:2]),
    )
