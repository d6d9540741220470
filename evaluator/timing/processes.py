"""Starting the processes that run the candidate and what it is compared with: spawned, loaded, given their weights."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.correctness import weights
from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import ReferenceProcess, Values, copied
from evaluator.receipt.findings import Findings, NotTried
from evaluator.receipt.plan import SeedSchedule
from evaluator.recording import tolerance
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.fork_server import CacheScope, ForkServer
from evaluator.sandbox.shared_buffers import SharedTensor
from evaluator.sandbox.worker_process import Worker
from evaluator.source.forms import Form, Recognised
from evaluator.source.python_source import names_called, texts_in
from evaluator.worker.loading.cpu_mode import USUAL
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import UsageError

COMPILE_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")
"""What `torch.compile` imports at its first use, for seconds."""


class UnplacedError(Exception):
    """The candidate has no place for the reference's weights; the text says which."""


@dataclass(eq=False)
class Starter:
    """Starts the processes of one request.

    The candidate's processes share a folder for compiler caches; so do the processes of each baseline.
    """

    request: Request
    recognised: Recognised
    server: ForkServer
    baselines: ForkServer
    """The server that forks baselines; it may be the same."""
    seeds: SeedSchedule

    def __post_init__(self) -> None:
        self.device = torch.device(self.request.device)
        self.reading: Sequence[str] = messages.readable(self.request, self.recognised)
        self.workers: list[Worker] = []
        """Every candidate process that was started."""
        self.names: list[str] = []
        """The candidate's names for the reference's weights."""
        self._cache_scopes: dict[str, CacheScope] = {}

    @property
    def limits(self) -> Limits:
        """What each process may use."""
        request = self.request
        return Limits(request.memory_limit, request.process_limit, 8 << 30, self.device.type == "cpu")

    def start_reference(self, dims: dict[str, int]) -> ReferenceProcess:
        """A process that has loaded the reference. Raises `UsageError` and `KoptError` as the reference makes them."""
        files = messages.reference_files(self.request, self.recognised, dims)
        reference = self._oracle("reference", files)
        try:
            reference.load(messages.reference_message(self.request, self.recognised, dims))
            if self.recognised.setup_from == "candidate" and self.request.inputs is None:
                reference.maker = self._oracle("inputs", messages.candidate_files(self.request))
                reference.maker.load(messages.inputs_message(self.request, self.recognised, dims))
        except BaseException:
            reference.close()
            raise
        return reference

    def _oracle(self, name: str, files: dict[str, bytes]) -> ReferenceProcess:
        """A process of the problem's side, with nothing loaded."""
        worker = self.server.spawn(name, self.limits, files, self.reading)
        return ReferenceProcess(worker, self.device, self.request.load_seconds, self.request.call_seconds)

    def cases(
        self, reference: ReferenceProcess, found: Findings, *, own_reference: bool = False, first_index: int = 0
    ) -> Cases:
        """The cases that a started reference makes; what is found goes to `found`."""
        source = self.request.reference
        texts = texts_in(source.name, source.text) if source else ()
        called = names_called(source.name, source.text) if source else frozenset[str]()
        return Cases(self.seeds, reference, found, tolerance(self.request), own_reference, first_index, texts, called)

    def spawn_candidate(self, index: int, places: int = 2) -> KernelProcess:
        """A process for the candidate in which none of its code has run yet. Raises `WorkerLostError`."""
        name = messages.module_name(random.Random(self.seeds.seed("module", index)))
        kernel = self._spawn(self.server, "candidate", messages.candidate_files(self.request, name), index, places)
        kernel.module = name
        self.workers.append(kernel.worker)
        return kernel

    def load_candidate(
        self, kernel: KernelProcess, cases: Cases, dims: dict[str, int], stand_ins: Sequence[int] = USUAL
    ) -> None:
        """Load the candidate and give it the reference's weights. On the CPU one of `stand_ins`, drawn from its own
        seed, is the GPU that it is told of.

        Raises `CandidateError`, `WorkerLostError`, and `UnplacedError` where it has no place for the weights.
        """
        message = messages.candidate_message(self.request, self.recognised, dims, kernel.module)
        reply = kernel.load({**message, "stand_in": kernel.draw.choice(stand_ins)})
        cases.found.behaviour(reply)
        if reply["unfilled"]:
            why = f"what fills it did not compile: {reply['unfilled']}"
            skipped = NotTried(what="shared memory filled beforehand", why=why[:500].replace("\n", " "))
            if skipped not in cases.found.not_tried:
                cases.found.not_tried.append(skipped)
        if self.recognised.form is Form.KERNELBENCH:
            self.names = self._build(kernel, cases)

    def start_baseline(self, how: str, cases: Cases, dims: dict[str, int], index: int) -> KernelProcess:
        """A process that has loaded a baseline.

        That is the reference, `eager` or `compile`d, the parent kernel (`incumbent`), which is as isolated as a
        candidate, or a library's `module:callable`. Raises `CandidateError` and `WorkerLostError`.
        """
        request, recognised = self.request, self.recognised
        if how == "incumbent":
            request = self.request.of_parent()
            recognised = request.recognised()
            message = messages.candidate_message(request, recognised, dims)
            kernel = self._spawn(self.server, "parent", messages.candidate_files(request), index, 1)
        else:
            files = messages.reference_files(request, recognised, dims)
            message = messages.baseline_message(request, recognised, dims, how)
            scope = how.replace("/", "-")
            kernel = self._spawn(self.baselines, "baseline", files, index, 1, scope=scope)
        try:
            kernel.load(message)
            if recognised.form is Form.KERNELBENCH:
                if ":" in how:
                    kernel.build(cases.init, self.seeds.seed("weights", 0))
                else:
                    self._build(kernel, cases)
        except UnplacedError as error:
            kernel.close()
            raise CandidateError("weights", {"type": "the incumbent", "message": str(error)}) from error
        except BaseException:
            kernel.close()
            raise
        return kernel

    def _spawn(
        self, server: ForkServer, name: str, files: dict[str, bytes], index: int, places: int, *, scope: str = ""
    ) -> KernelProcess:
        """A process for a kernel; `index` is its number among all of the evaluation's."""
        scope = scope or name
        if scope not in self._cache_scopes:
            self._cache_scopes[scope] = server.cache_scope(scope)
        worker = server.spawn(name, self.limits, files, self.reading, cache_scope=self._cache_scopes[scope])
        rng = random.Random(self.seeds.seed("memory", index))
        return KernelProcess(worker, self.device, self.request.load_seconds, self.request.call_seconds, rng, places)

    def _build(self, kernel: KernelProcess, cases: Cases) -> list[str]:
        """KernelBench form: construct the model and load the reference's weights; its names for them."""
        own = kernel.build(cases.init, self.seeds.seed("weights", 0))
        if not cases.weights.specs:
            return []
        names = weights.matched(cases.weights.specs, own)
        if isinstance(names, str):
            raise UnplacedError(names)
        kernel.set_weights(cases.weights, names)
        return names


@contextmanager
def job_of(
    starter: Starter, cases: Cases, inputs: Values, dims: dict[str, int]
) -> Iterator[tuple[dict[str, Any], list[SharedTensor]]]:
    """(the message for `Worker.do_sanitize` or `Worker.do_profile` but for the tool, the tensors that it names): the
    candidate, its weights and one draw of inputs."""
    request, recognised = starter.request, starter.recognised
    groups = {"init": cases.init, "weights": cases.weights, "inputs": inputs}
    host = torch.device("cpu")
    lent = {name: copied(values, host) for name, values in groups.items()}
    built = recognised.form is Form.KERNELBENCH
    job = {
        "load": messages.candidate_message(request, recognised, dims),
        "build": {"tree": cases.init.tree, "seed": starter.seeds.seed("weights", 0)} if built else None,
        "names": starter.names,
        "tree": inputs.tree,
        **{name: [t.message for t in tensors] for name, tensors in lent.items()},
    }
    every = [t for tensors in lent.values() for t in tensors]
    try:
        yield job, every
    finally:
        for shared in every:
            shared.close()


def check_parent_baseline(request: Request, recognised: Recognised) -> None:
    """UsageError `incumbent_missing` where a baseline asks for one that is not there, and `incumbent_form` where it
    takes its arguments otherwise than the candidate."""
    if request.incumbent is None:
        if any(baseline.how == "incumbent" for baseline in request.baselines):
            raise UsageError(
                "a baseline is the incumbent, and none was given", code="incumbent_missing", hint="Give --against FILE."
            )
        return
    try:
        form = request.of_parent().recognised().form
    except UsageError as error:
        said = f"the kernel to compare with, {request.incumbent.name}: {error.message}"
        raise UsageError(said, code=error.code, hint=error.hint) from error
    if form is not recognised.form:
        raise UsageError(
            f"{request.incumbent.name} is of the form {form.value}, and the candidate of the form"
            f" {recognised.form.value}: they do not take the same arguments",
            code="incumbent_form",
            hint="Compare each with the reference, in an evaluation of its own.",
        )
