"""Starting the processes that run the candidate and what it is compared with: spawned, loaded, given their weights."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from evaluator.correctness import weights
from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import ReferenceProcess
from evaluator.receipt.findings import NotTried
from evaluator.receipt.plan import SeedSchedule
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.fork_server import CacheScope, ForkServer
from evaluator.sandbox.worker_process import Worker
from evaluator.scan.hazards import Severity
from evaluator.source.forms import Form, Recognised
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import UsageError

COMPILE_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")
"""What `torch.compile` imports at its first use, for seconds."""


class UnplacedError(Exception):
    """The candidate has no place for the reference's weights; the text says which."""


class Starter:
    """Starts processes for one request. What its candidates' compilers keep is theirs together, and so for each
    baseline."""

    def __init__(
        self,
        request: Request,
        recognised: Recognised,
        server: ForkServer,
        baselines: ForkServer,
        seeds: SeedSchedule,
    ) -> None:
        """`baselines` is the server that baselines come from; it may be the same."""
        self.request = request
        self.recognised = recognised
        self.server = server
        self.baselines = baselines
        self.seeds = seeds
        self.device = torch.device(request.device)
        self.reading: Sequence[str] = messages.readable(request, recognised)
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

    def _cache_scope(self, server: ForkServer, name: str) -> CacheScope:
        if name not in self._cache_scopes:
            self._cache_scopes[name] = server.cache_scope(name)
        return self._cache_scopes[name]

    def _kernel(self, worker: Worker, index: int, places: int) -> KernelProcess:
        draw = random.Random(self.seeds.seed("memory", index))
        return KernelProcess(worker, self.device, self.request.load_seconds, self.request.call_seconds, draw, places)

    def start_reference(self, dims: dict[str, int]) -> ReferenceProcess:
        """A process that has loaded the reference. Raises `UsageError` and `KoptError` as the reference makes them."""
        files = messages.reference_files(self.request, self.recognised, dims)
        worker = self.server.spawn("reference", self.limits, files, self.reading)
        reference = ReferenceProcess(worker, self.device, self.request.load_seconds, self.request.call_seconds)
        try:
            reference.load(messages.reference_message(self.request, self.recognised, dims))
        except BaseException:
            reference.close()
            raise
        return reference

    def spawn_candidate(self, index: int, places: int = 2) -> KernelProcess:
        """A process for the candidate, in which nothing of it has run yet. Raises `WorkerLostError`."""
        files = messages.candidate_files(self.request)
        cache_scope = self._cache_scope(self.server, "candidate")
        worker = self.server.spawn("candidate", self.limits, files, self.reading, cache_scope=cache_scope)
        self.workers.append(worker)
        return self._kernel(worker, index, places)

    def load_candidate(self, kernel: KernelProcess, cases: Cases, dims: dict[str, int]) -> None:
        """Load the candidate and give it the reference's weights.

        Raises `CandidateError`, `WorkerLostError`, and `UnplacedError` where it has no place for the weights.
        """
        reply = kernel.load(messages.candidate_message(self.request, self.recognised, dims))
        for name in reply["patched"][:5]:
            cases.found.hazard("patched", Severity.REJECT, f"{name} was replaced when the file was loaded")
        if reply["unfilled"]:
            why = f"what fills it did not compile: {reply['unfilled']}"
            skipped = NotTried(what="shared memory filled beforehand", why=why[:500].replace("\n", " "))
            if skipped not in cases.found.not_tried:
                cases.found.not_tried.append(skipped)
        if self.recognised.form is not Form.KERNELBENCH:
            return
        own = kernel.build(cases.init, self.seeds.seed("weights", 0))
        if cases.weights.specs:
            names = weights.matched(cases.weights.specs, own)
            if isinstance(names, str):
                raise UnplacedError(names)
            self.names = names
            kernel.set_weights(cases.weights, names)

    def start_baseline(
        self, how: str, cases: Cases, dims: dict[str, int], index: int, places: int = 1
    ) -> KernelProcess:
        """The reference, `eager` or `compile`d, the incumbent, or a library's `module:callable`, in its own process.

        Raises `CandidateError` and `WorkerLostError`.
        """
        if how == "incumbent":
            return self._start_parent(cases, dims, index, places)
        files = messages.reference_files(self.request, self.recognised, dims)
        worker = self.baselines.spawn(
            "baseline",
            self.limits,
            files,
            self.reading,
            cache_scope=self._cache_scope(self.baselines, how.replace("/", "-")),
        )
        kernel = self._kernel(worker, index, places)
        try:
            kernel.load(messages.baseline_message(self.request, self.recognised, dims, how))
            if self.recognised.form is Form.KERNELBENCH:
                kernel.build(cases.init, self.seeds.seed("weights", 0))
                if cases.weights.specs and ":" not in how:
                    kernel.set_weights(cases.weights, [spec["name"] for spec in cases.weights.specs])
        except BaseException:
            kernel.close()
            raise
        return kernel

    def _start_parent(self, cases: Cases, dims: dict[str, int], index: int, places: int) -> KernelProcess:
        """The incumbent, as isolated as a candidate, with a compilers' folder of its own."""
        request = self.request.of_parent()
        recognised = request.recognised()
        files = messages.candidate_files(request)
        cache_scope = self._cache_scope(self.server, "parent")
        worker = self.server.spawn("parent", self.limits, files, self.reading, cache_scope=cache_scope)
        kernel = self._kernel(worker, index, places)
        try:
            kernel.load(messages.candidate_message(request, recognised, dims))
            if recognised.form is Form.KERNELBENCH:
                own = kernel.build(cases.init, self.seeds.seed("weights", 0))
                names = weights.matched(cases.weights.specs, own) if cases.weights.specs else []
                if isinstance(names, str):
                    raise CandidateError("weights", {"type": "the incumbent", "message": names})
                if names:
                    kernel.set_weights(cases.weights, names)
        except BaseException:
            kernel.close()
            raise
        return kernel


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
