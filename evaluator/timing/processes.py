"""Starting the processes that run the candidate and what it is compared with: spawned, loaded, given their weights."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from evaluator.correctness import weights
from evaluator.correctness.candidate import CandidateError, Contender
from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import Oracle
from evaluator.receipt.findings import NotTried
from evaluator.receipt.plan import SeedSchedule
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.fork_server import ForkServer, Lineage
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
        self._lineages: dict[str, Lineage] = {}

    @property
    def limits(self) -> Limits:
        """What each process may use."""
        request = self.request
        return Limits(request.memory_limit, request.process_limit, 8 << 30, self.device.type == "cpu")

    def _lineage(self, server: ForkServer, name: str) -> Lineage:
        if name not in self._lineages:
            self._lineages[name] = server.lineage(name)
        return self._lineages[name]

    def _contender(self, worker: Worker, index: int, places: int) -> Contender:
        draw = random.Random(self.seeds.seed("memory", index))
        return Contender(worker, self.device, self.request.load_seconds, self.request.call_seconds, draw, places)

    def start_oracle(self, dims: dict[str, int]) -> Oracle:
        """A process that has loaded the reference. Raises `UsageError` and `KoptError` as the reference makes them."""
        files = messages.files_of_oracle(self.request, self.recognised, dims)
        worker = self.server.spawn("oracle", self.limits, files, self.reading)
        oracle = Oracle(worker, self.device, self.request.load_seconds, self.request.call_seconds)
        try:
            oracle.load(messages.oracle_message(self.request, self.recognised, dims))
        except BaseException:
            oracle.close()
            raise
        return oracle

    def spawn_candidate(self, index: int, places: int = 2) -> Contender:
        """A process for the candidate, in which nothing of it has run yet. Raises `WorkerLostError`."""
        files = messages.files_of_candidate(self.request)
        lineage = self._lineage(self.server, "candidate")
        worker = self.server.spawn("candidate", self.limits, files, self.reading, lineage=lineage)
        self.workers.append(worker)
        return self._contender(worker, index, places)

    def load_candidate(self, contender: Contender, cases: Cases, dims: dict[str, int]) -> None:
        """Load the candidate and give it the reference's weights.

        Raises `CandidateError`, `WorkerLostError`, and `UnplacedError` where it has no place for the weights.
        """
        reply = contender.load(messages.candidate_message(self.request, self.recognised, dims))
        for name in reply["patched"][:5]:
            cases.found.hazard("patched", Severity.REJECT, f"{name} was replaced when the file was loaded")
        if reply["unfilled"]:
            why = f"what fills it did not compile: {reply['unfilled']}"
            skipped = NotTried(what="shared memory filled beforehand", why=why[:500].replace("\n", " "))
            if skipped not in cases.found.not_tried:
                cases.found.not_tried.append(skipped)
        if self.recognised.form is not Form.KERNELBENCH:
            return
        own = contender.build(cases.init, self.seeds.seed("weights", 0))
        if cases.weights.specs:
            names = weights.matched(cases.weights.specs, own)
            if isinstance(names, str):
                raise UnplacedError(names)
            self.names = names
            contender.set_weights(cases.weights, names)

    def start_baseline(self, how: str, cases: Cases, dims: dict[str, int], index: int, places: int = 1) -> Contender:
        """The reference, `eager` or `compile`d, the incumbent, or a library's `module:callable`, in its own process.

        Raises `CandidateError` and `WorkerLostError`.
        """
        if how == "incumbent":
            return self._start_incumbent(cases, dims, index, places)
        files = messages.files_of_oracle(self.request, self.recognised, dims)
        worker = self.baselines.spawn(
            "baseline", self.limits, files, self.reading, lineage=self._lineage(self.baselines, how.replace("/", "-"))
        )
        contender = self._contender(worker, index, places)
        try:
            contender.load(messages.baseline_message(self.request, self.recognised, dims, how))
            if self.recognised.form is Form.KERNELBENCH:
                contender.build(cases.init, self.seeds.seed("weights", 0))
                if cases.weights.specs and ":" not in how:
                    contender.set_weights(cases.weights, [spec["name"] for spec in cases.weights.specs])
        except BaseException:
            contender.close()
            raise
        return contender

    def _start_incumbent(self, cases: Cases, dims: dict[str, int], index: int, places: int) -> Contender:
        """The incumbent, as isolated as a candidate, with a compilers' folder of its own."""
        request = self.request.of_incumbent()
        recognised = request.recognised()
        files = messages.files_of_candidate(request)
        lineage = self._lineage(self.server, "incumbent")
        worker = self.server.spawn("incumbent", self.limits, files, self.reading, lineage=lineage)
        contender = self._contender(worker, index, places)
        try:
            contender.load(messages.candidate_message(request, recognised, dims))
            if recognised.form is Form.KERNELBENCH:
                own = contender.build(cases.init, self.seeds.seed("weights", 0))
                names = weights.matched(cases.weights.specs, own) if cases.weights.specs else []
                if isinstance(names, str):
                    raise CandidateError("weights", {"type": "the incumbent", "message": names})
                if names:
                    contender.set_weights(cases.weights, names)
        except BaseException:
            contender.close()
            raise
        return contender


def check_incumbent(request: Request, recognised: Recognised) -> None:
    """UsageError `incumbent_missing` where a baseline asks for one that is not there, and `incumbent_form` where it
    takes its arguments otherwise than the candidate."""
    if request.incumbent is None:
        if any(baseline.how == "incumbent" for baseline in request.baselines):
            raise UsageError(
                "a baseline is the incumbent, and none was given", code="incumbent_missing", hint="Give --against FILE."
            )
        return
    try:
        form = request.of_incumbent().recognised().form
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
