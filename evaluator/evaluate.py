"""One evaluation, from a request to a receipt."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator import messages, recording, weights
from evaluator.buffers import shared_tensor
from evaluator.cases import Case, Cases
from evaluator.contender import CandidateError, Contender
from evaluator.correctness import Protocol
from evaluator.cuda_source import output_pointers, solve_parameters
from evaluator.distributions import DISTRIBUTIONS
from evaluator.environment import WorkerEnvironment, gather
from evaluator.findings import CandidateOutput, Findings, NotTried, SanitizerRun, TaskCheck
from evaluator.hazards import Hazard, Severity
from evaluator.oracle import Oracle
from evaluator.plan import Plan, SeedSchedule, utc_now
from evaluator.receipt import Receipt, ReceiptContent
from evaluator.request import Request
from evaluator.sandbox import ForkServer, Worker, WorkerLostError
from evaluator.sanitize import sanitize
from evaluator.scan import scan
from evaluator.source import Backend, Form, Recognised, recognise
from evaluator.taskcheck import TaskExaminer
from evaluator.verdict import Improvement, Verdict
from evaluator.worker.cuda_driver import CudaError
from evaluator.worker.isolation import Limits
from evaluator.workloads import check_dims, workloads
from kbs.errors import KoptError, NoGpuError, UsageError

Progress = Callable[[str, int, int], None]
"""(step, done, total)"""
_SIGNAL = ("given", "normal", "spikes", "large")
_LOST: dict[str, Verdict] = {"timeout": Verdict.TIMEOUT}


def evaluate(
    request: Request,
    *,
    kopt: str,
    server: ForkServer | None = None,
    on_plan: Callable[[Plan], None] = lambda _: None,
    progress: Progress = lambda *_: None,
    schedule: SeedSchedule | None = None,
) -> Receipt:
    """Examine a candidate. Whatever it does is a verdict; errors are the problem's or the machine's.

    `kopt` is the version to write down. `server` is used and left open; without it one is started. `on_plan` gets the
    plan before any code of the candidate runs. `schedule` makes a replay.
    """
    started = time.monotonic()
    recognised = recognise(
        request.candidate,
        request.reference,
        inputs=request.inputs.name if request.inputs else None,
        entry=request.entry,
        backend=request.backend,
    )
    _check_device(request, recognised)
    check_dims(request, recognised)
    own = server
    try:
        server = server or ForkServer(_kind(request), request.python, request.environment)
        run = _Evaluation(request, recognised, server, schedule or _schedule(request), kopt, progress)
        on_plan(run.plan)
        return run.receipt(started)
    except (torch.OutOfMemoryError, CudaError) as error:
        if isinstance(error, CudaError) and "OUT_OF_MEMORY" not in str(error):
            raise
        raise KoptError(
            f"there is not enough memory on {request.device} for the inputs, the float64 oracle and the comparison",
            code="out_of_memory",
            hint="Give smaller --dims: a problem needs about ten times the bytes of its inputs and outputs.",
        ) from error
    finally:
        if own is None and server is not None:
            server.close()


def _kind(request: Request) -> str:
    return "cpu" if request.device == "cpu" else "cuda"


def _schedule(request: Request) -> SeedSchedule:
    return SeedSchedule.secret() if request.seed is None else SeedSchedule.given(request.seed)


def _check_device(request: Request, recognised: Recognised) -> None:
    if request.device == "cpu":
        if recognised.form is Form.SOLVE:
            raise NoGpuError(
                "a .cu kernel runs on an NVIDIA GPU alone",
                code="no_gpu",
                hint="Triton kernels and PyTorch code are checked on the CPU; `kopt ask` and `kopt spec` need no GPU.",
            )
        return
    index = int(request.device.partition(":")[2] or 0)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        found = f"no more than {count}" if count else "no GPU"
        built = "" if torch.version.cuda else " (this PyTorch is a CPU build)"
        raise NoGpuError(
            f"{request.device} was asked for, and there is {found}{built}",
            code="no_gpu",
            hint="--device cpu checks correctness with Triton's interpreter; nothing is timed there.",
        )


class _Evaluation:
    """The state of one evaluation."""

    def __init__(
        self,
        request: Request,
        recognised: Recognised,
        server: ForkServer,
        seeds: SeedSchedule,
        kopt: str,
        progress: Progress,
    ) -> None:
        self.request = request
        self.recognised = recognised
        self.server = server
        self.seeds = seeds
        self.kopt = kopt
        self.progress = progress
        self.device = torch.device(request.device)
        self.workloads = workloads(request)
        self.plan = self._plan()
        self.found = Findings()
        self.task = TaskExaminer(declared=recording.tolerance(request))
        self.lost: WorkerLostError | None = None
        self.workers: list[Worker] = []
        self.output = ""
        self.unplaced = ""
        self.names: list[str] = []
        self.sanitizers: list[SanitizerRun] = []
        self.outputs: tuple[str, ...] = request.outputs

    def _plan(self) -> Plan:
        verdict = self.request.plan == "verdict"
        names = tuple(d.name for d in DISTRIBUTIONS if verdict or d.name in _SIGNAL)
        repeats = 3 if verdict else 1
        calls = (len(names) + repeats + 3) * len(self.workloads)
        return Plan(
            name=self.request.plan,
            candidate_hash=self.request.candidate.hash,
            reference_hash=self.request.reference.hash if self.request.reference else None,
            distributions=names,
            workloads=self.workloads,
            repeats=repeats,
            strided=verdict,
            sanitizers=self.request.sanitizers,
            seed_commitment=self.seeds.commitment,
            seed_origin=self.seeds.origin,
            device=self.request.device,
            time_limit=self.request.load_seconds + calls * self.request.call_seconds,
            memory_limit=self.request.memory_limit,
            created=utc_now(),
        )

    # --- the work ---------------------------------------------------------------------------------------------------

    def receipt(self, started: float) -> Receipt:
        """Do all of it."""
        hazards = scan(
            self.request.candidate,
            self.recognised.backend,
            entry=self.recognised.entry,
            reference=self.request.reference.name if self.request.reference else "",
            environment=tuple(self.request.environment),
        )
        self.found.hazards += [_allowed(h) if self.request.allow_library else h for h in hazards]
        for n, dims in enumerate(self.workloads):
            self.progress("checking", n, len(self.workloads))
            self._workload(dims)
            if self.lost is not None or self.found.failure is not None or self.unplaced:
                break
        task = TaskCheck(**self.task.result()) if self.task.cases else None
        verdict, reason = self._verdict(task, self.sanitizers)
        return Receipt.of(
            ReceiptContent(
                created=utc_now(),
                problem=recording.problem(
                    self.request, self.recognised, self.workloads, self.outputs, self.found.tolerance_looser
                ),
                candidate=recording.candidate(self.request, self.recognised),
                plan=self.plan,
                seed=self.seeds.reveal(),
                environment=self._environment(),
                correctness=tuple(self.found.trials),
                task_check=task,
                not_tried=tuple(self.found.not_tried),
                kernels=tuple(self.found.kernels),
                library_operations=tuple(self.found.operations),
                hazards=tuple(self.found.hazards),
                sanitizers=tuple(self.sanitizers),
                not_checked=tuple(self._not_checked()),
                verdict=verdict,
                improvement=Improvement.NOT_TIMED,
                reason=" ".join(reason.split())[:1000],
                output_tail=CandidateOutput.tail(self.output),
                seconds=time.monotonic() - started,
            )
        )

    def _limits(self) -> Limits:
        memory = self.request.memory_limit
        return Limits(memory, self.request.process_limit, 8 << 30, self.device.type == "cpu")

    def _workload(self, dims: dict[str, int]) -> None:
        request, recognised = self.request, self.recognised
        reading = messages.readable(request, recognised)
        files = messages.files_of_oracle(request, recognised, dims)
        worker = self.server.spawn("oracle", self._limits(), files, reading)
        oracle = Oracle(worker, self.device, request.load_seconds, request.call_seconds)
        try:
            oracle.load(messages.oracle_message(request, recognised, dims))
            index = 1 + max((t.index for t in self.found.trials), default=-1)
            cases = Cases(
                self.seeds,
                oracle,
                self.found,
                tolerance=recording.tolerance(request),
                own_oracle=recognised.oracle == "original kernel",
                first_index=index,
            )
            first = cases.prepare(kernelbench=recognised.form is Form.KERNELBENCH, outputs=self._outputs)
            protocol = Protocol(
                self.plan,
                dims,
                self.seeds,
                cases,
                self.task,
                allow_library=request.allow_library,
                first_index=index,
            )
            if not self.task.told_apart:
                self._tell_apart(cases, first)
            contender = self._contender(cases, dims, index, reading)
            try:
                protocol.run(first, contender)
            except WorkerLostError as error:
                self.lost = error
            finally:
                if contender is not None:
                    self.output = contender.worker.output() or self.output
                    contender.close()
            if request.sanitizers and not self.sanitizers:
                self.sanitizers = self._sanitize(cases, first, dims, reading)
        finally:
            oracle.close()

    def _outputs(self, named: Sequence[str], written: Sequence[str]) -> list[str]:
        """Names of the outputs in the forms that write their arguments."""
        if self.recognised.form is Form.SOLVE:
            found = output_pointers(
                solve_parameters(self.request.candidate),
                self.request.outputs or tuple(named),
                frozenset(written) if written else None,
            )
        elif self.recognised.form is Form.SETUP:
            found = list(self.request.outputs or named)
        else:
            return []
        self.outputs = tuple(dict.fromkeys([*found, *written]))
        return found

    def _tell_apart(self, cases: Cases, first: Case) -> None:
        """Whether the rule sees the reference at a lower precision, or without its last rows. Refuses nothing."""
        try:
            lower = cases.oracle.run(first.values, "lower", cases.shape.written).tensors
        except UsageError:
            lower = []
        self.task.tell_apart(first.oracle, first.native, lower)

    def _contender(self, cases: Cases, dims: dict[str, int], index: int, reading: Sequence[str]) -> Contender | None:
        """The candidate, loaded, with its weights; None where it did not come so far."""
        request = self.request
        draw = random.Random(self.seeds.seed("memory", index))
        contender: Contender | None = None
        try:
            files = messages.files_of_candidate(request)
            worker = self.server.spawn("candidate", self._limits(), files, reading)
            self.workers.append(worker)
            contender = Contender(worker, self.device, request.load_seconds, request.call_seconds, draw)
            reply = contender.load(messages.candidate_message(request, self.recognised, dims))
            for name in reply["patched"][:5]:
                self.found.hazard("patched", Severity.REJECT, f"{name} was replaced when the file was loaded")
            if reply["unfilled"]:
                why = f"what fills it did not compile: {reply['unfilled']}"
                self.found.not_tried.append(NotTried(what="shared memory filled beforehand", why=why))
            if self.recognised.form is Form.KERNELBENCH:
                self._weights(cases, contender)
            if not self.unplaced:
                return contender
        except WorkerLostError as error:
            self.lost = error
        except CandidateError as error:
            if error.error["type"] in ("SystemExit", "KeyboardInterrupt"):
                self.found.hazard("exits_early", Severity.REJECT, f"{error.error['type']} raised while it was loaded")
            stage = "compile" if error.error["compile"] and error.stage == "load" else error.stage
            self.found.failure = (stage, _loading(error))
        if contender is not None:
            self.output = contender.worker.output()
            contender.close()
        return None

    def _weights(self, cases: Cases, contender: Contender) -> None:
        own = contender.build(cases.init, self.seeds.seed("weights", 0))
        if cases.weights.specs:
            names = weights.matched(cases.weights.specs, own)
            if isinstance(names, str):
                self.unplaced = names
            else:
                self.names = names
                contender.set_weights(cases.weights, names)

    def _sanitize(self, cases: Cases, first: Case, dims: dict[str, int], reading: Sequence[str]) -> list[SanitizerRun]:
        """The tools of compute-sanitizer that were asked for, on the first workload."""
        tools = self.request.sanitizers
        why = ""
        if self.device.type == "cpu":
            why = "compute-sanitizer examines GPU kernels, and the CPU was asked for"
        elif self.lost is not None or self.found.failure is not None or self.unplaced:
            why = "the candidate did not get so far"
        if why:
            return [SanitizerRun(tool=tool, status="not run", detail=why) for tool in tools]
        self.progress("compute-sanitizer", 0, len(tools))
        host = torch.device("cpu")
        groups = {"init": cases.init, "weights": cases.weights, "inputs": first.values}
        lent = {name: [shared_tensor({**s, "stride": None}, host) for s in v.specs] for name, v in groups.items()}
        for name, values in groups.items():
            for shared, tensor in zip(lent[name], values.tensors, strict=True):
                shared.tensor.copy_(tensor)
        job = {
            "load": messages.candidate_message(self.request, self.recognised, dims),
            "build": {"tree": cases.init.tree, "seed": self.seeds.seed("weights", 0)}
            if self.recognised.form is Form.KERNELBENCH
            else None,
            "names": self.names,
            "tree": first.values.tree,
            **{name: [t.message for t in tensors] for name, tensors in lent.items()},
        }
        every = [t for tensors in lent.values() for t in tensors]
        files = messages.files_of_candidate(self.request)
        found = sanitize(tools, self.server, self._limits(), files, reading, job, every)
        for shared in every:
            shared.close()
        return found

    # --- what it comes to -------------------------------------------------------------------------------------------

    def _verdict(self, task: TaskCheck | None, sanitizers: Sequence[SanitizerRun]) -> tuple[Verdict, str]:
        rejects = [h for h in self.found.hazards if h.severity is Severity.REJECT]
        if rejects:
            where = f" (line {rejects[0].line})" if rejects[0].line else ""
            return Verdict.CHEATING, f"{rejects[0].id}: {rejects[0].evidence}{where}"
        if task is not None and task.refused:
            return Verdict.TASK_REFUSED, "the problem is passed without solving it: " + "; ".join(task.reasons)
        if self.lost is not None:
            return _LOST.get(self.lost.kind, Verdict.CRASHED), self.lost.detail
        if self.found.failure is not None:
            stage, words = self.found.failure
            return (Verdict.COMPILE_ERROR if stage == "compile" else Verdict.CRASHED), words
        if self.unplaced:
            return Verdict.INCORRECT, self.unplaced
        failed = [t for t in self.found.trials if not t.passed]
        if failed:
            worst = failed[0]
            detail = worst.detail or f"{worst.got:g} where {worst.expected:g} is right"
            return Verdict.INCORRECT, f"{worst.output} on {worst.distribution} inputs: {detail}"
        unsound = [s for s in sanitizers if s.status == "failed"]
        if unsound:
            return Verdict.INCORRECT, f"{unsound[0].tool}: {unsound[0].detail}"
        calls = len({t.index for t in self.found.trials})
        return Verdict.ACCEPTED, f"right in all {calls} calls, and nothing speaks against it"

    def _not_checked(self) -> list[str]:
        """What a reader may miss in this receipt."""
        said = []
        if self.device.type == "cpu":
            said.append("speed: nothing is timed on the CPU")
            if self.recognised.backend is Backend.TRITON:
                said.append("the compiled kernel: Triton's interpreter ran it, with neither its compiler nor a GPU")
        else:
            said.append("speed: this version of kopt does not time kernels")
            if not self.request.sanitizers:
                said.append("races and memory errors by compute-sanitizer: --sanitize asks for them")
        if not self.request.vary and len(self.workloads) == 1:
            said.append("other sizes: no dims were named as free with --vary, and no --workloads given")
        if self.recognised.oracle == "original kernel":
            said.append("the kernel's meaning: there is no reference, so it is its own oracle")
        if self.seeds.origin != "secret":
            said.append("secrecy of the inputs: their seed was given")
        layers = [layer.name for worker in self.workers[:1] for layer in worker.layers if not layer.applied]
        if layers:
            said.append("isolation: not in force were " + ", ".join(layers))
        return said

    def _environment(self) -> Any:
        worker = self.workers[0] if self.workers else None
        versions = worker.versions if worker else {}
        return gather(
            kopt=self.kopt,
            device=self.request.device,
            worker=WorkerEnvironment(
                executable=self.server.python,
                python=versions.get("python", "unknown"),
                torch=versions.get("torch"),
                cuda=versions.get("cuda"),
                triton=versions.get("triton"),
                numpy=versions.get("numpy"),
            ),
            variables=self.server.environment,
            layers=worker.layers if worker else [],
            nvcc=messages.nvcc_path(self.request) if self.recognised.form is Form.SOLVE else None,
        )


def _allowed(hazard: Hazard) -> Hazard:
    if hazard.id != "library_call":
        return hazard
    return hazard.model_copy(update={"severity": Severity.NOTE})


def _loading(error: CandidateError) -> str:
    words = f"{error.error['type']}: {error.error['message']}"
    if error.error["type"] in ("ModuleNotFoundError", "ImportError"):
        words += " (install it in the interpreter that runs the kernels, or name another with --python)"
    return words[:2000]
