"""One evaluation, from a request to a receipt."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import torch

from evaluator import conclusion, recording
from evaluator.correctness.candidate import CandidateError, KernelProcess, failed_at
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.degenerate_task import TaskExaminer
from evaluator.correctness.protocol import Protocol
from evaluator.correctness.reference import ReferenceProcess, Values
from evaluator.receipt.environment import Environment, WorkerEnvironment, gather
from evaluator.receipt.findings import CandidateOutput, Findings, SanitizerRun
from evaluator.receipt.plan import Plan, SeedSchedule, utc_now
from evaluator.receipt.problem import SourceRecord
from evaluator.receipt.receipt import Receipt, ReceiptContent
from evaluator.receipt.timing import WorkloadTiming
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.devices import crowded, require_gpu
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.worker_process import WorkerLostError
from evaluator.sanitizer import TOOLS, sanitize
from evaluator.scan.hazards import Severity
from evaluator.scan.scan import scan
from evaluator.source.forms import Form, Recognised
from evaluator.source.languages import check_language
from evaluator.timing.benchmark import Benchmark
from evaluator.timing.ceilings import device_clock
from evaluator.timing.processes import COMPILE_MODULES, Starter, UnplacedError, check_parent_baseline, job_of
from evaluator.timing.results import LARGE, timing_of
from evaluator.timing.timed_process import WrongResultError
from evaluator.worker.loading.cpu_mode import STAND_INS
from evaluator.worker.memory.cuda_driver import CudaError
from evaluator.workloads import check_declared, check_dims, other_sizes, workloads
from kbs.common.errors import KoptError, NoGpuError, UsageError

Progress = Callable[[str, int, int], None]
"""(step, done, total)"""
_ROOM = 1 << 30
"""Bytes of inputs and results up to which other sizes may be larger."""
_PATIENCE = 5.0
"""Seconds that a call at larger sizes may take, if it grows with them."""
_SANITIZED = 256 << 20
"""Bytes of inputs and results up to which compute-sanitizer, which is tens of times slower, runs unasked."""


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
    check_language(request.candidate, request.python)
    recognised = request.recognised()
    _check_device(request, recognised)
    check_parent_baseline(request, recognised)
    check_dims(request, recognised)
    check_declared(request)
    seeds = schedule or recording.schedule(request)
    kind = "cpu" if request.device == "cpu" else "cuda"
    try:
        with ExitStack() as own:
            if kind == "cuda":
                own.enter_context(torch.cuda.device(request.device))
            server = server or own.enter_context(ForkServer(kind, request.python, request.environment))
            baselines = server
            if recording.compiles(request, recognised):
                compiling = ForkServer(kind, request.python, request.environment, COMPILE_MODULES)
                baselines = own.enter_context(compiling)
            run = _Evaluation(Starter(request, recognised, server, baselines, seeds), kopt, progress)
            on_plan(run.plan)
            return run.receipt(started)
    except (torch.OutOfMemoryError, CudaError) as error:
        if isinstance(error, CudaError) and "OUT_OF_MEMORY" not in str(error):
            raise
        said = str(error).partition(". GPU")[0][:200]
        raise KoptError(
            f"there is not enough memory on {request.device} for the inputs, the float64 oracle and the comparison:"
            f" {said}",
            code="out_of_memory",
            hint="Give smaller --dims: a problem needs about ten times the bytes of its inputs and outputs.",
        ) from error


def _check_device(request: Request, recognised: Recognised) -> None:
    if request.device == "cpu":
        if recognised.form is Form.SOLVE:
            raise NoGpuError(
                "a .cu kernel runs on an NVIDIA GPU alone",
                code="no_gpu",
                hint="Triton kernels and PyTorch code are checked on the CPU; `kopt ask` and `kopt spec` need no GPU.",
            )
        return
    require_gpu(request.device, "--device cpu checks correctness with Triton's interpreter; nothing is timed there.")


class _Evaluation:
    """One evaluation in progress."""

    def __init__(self, starter: Starter, kopt: str, progress: Progress) -> None:
        self.starter = starter
        self.request = starter.request
        self.recognised = starter.recognised
        self.seeds = starter.seeds
        self.device = starter.device
        self.kopt = kopt
        self.progress = progress
        self.workloads = workloads(self.request)
        self.plan = recording.make_plan(self.request, self.recognised, self.workloads, self.seeds)
        self.found = Findings()
        self.task = TaskExaminer(declared=recording.tolerance(self.request))
        self.lost: WorkerLostError | None = None
        self.output = ""
        self.unplaced = ""
        self.clock = None if self.plan.timing is None else device_clock(self.device)
        self.timings: list[WorkloadTiming] = []
        self.untimed = ""
        """Why an accepted candidate has no times."""
        self.sanitizers: list[SanitizerRun] = []
        self.outputs: tuple[str, ...] = self.request.outputs
        self.shapes: list[list[int]] = []
        """Of the inputs, at the first workload."""
        self.bytes = 0
        """Of the inputs and results, at the first workload."""
        self.unasked: tuple[dict[str, int], ...] = ()
        """Other sizes at which the candidate was right."""

    # --- the work ---------------------------------------------------------------------------------------------------

    def receipt(self, started: float) -> Receipt:
        """Do all of it."""
        hazards = scan(self.request.candidate, self.recognised.backend)
        allowed = {"library_call"} if self.request.allow_library else set[str]()
        self.found.hazards += [
            h.model_copy(update={"severity": Severity.NOTE}) if h.id in allowed else h for h in hazards
        ]
        for n, dims in enumerate(self.workloads):
            self.progress("checking", n, len(self.workloads))
            self._workload(dims)
            if self.lost is not None or self.found.failure is not None or self.unplaced:
                break
        if self.plan.name == "verdict" and self._sound():
            self._other_sizes()
        task = self.task.result() if self.task.cases else None
        verdict, reason = conclusion.verdict(self.found, task, self.sanitizers, self.lost, self.unplaced)
        timing = timing_of(self.plan, self.timings, self.clock)
        first = timing.workloads[0] if timing else None
        return Receipt.of(
            ReceiptContent(
                created=utc_now(),
                problem=recording.problem(
                    self.request, self.recognised, self.workloads, self.outputs, self.found.tolerance_looser
                ),
                candidate=recording.candidate(self.request, self.recognised),
                incumbent=SourceRecord.of(self.request.incumbent) if self.request.incumbent else None,
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
                timing=timing,
                ceiling=first.ceiling if first else None,
                physics=first.physics if first else None,
                not_checked=tuple(
                    conclusion.not_checked(
                        self.request,
                        self.recognised,
                        self.seeds.origin,
                        (*self.workloads, *self.unasked),
                        timing or self.untimed,
                        self.sanitizers,
                        self.starter.workers,
                    )
                ),
                verdict=verdict,
                improvement=conclusion.improvement(verdict, timing),
                reason=" ".join(reason.split())[:1000],
                output_tail=CandidateOutput.tail(self.output),
                seconds=time.monotonic() - started,
            )
        )

    def _workload(self, dims: dict[str, int]) -> None:
        request, recognised = self.request, self.recognised
        reference = self.starter.start_reference(dims)
        try:
            index = 1 + max((t.index for t in self.found.trials), default=-1)
            own = recognised.oracle == "original kernel"
            cases = self.starter.cases(reference, self.found, own_reference=own, first_index=index)
            first = cases.prepare(kernelbench=recognised.form is Form.KERNELBENCH, outputs=self._outputs)
            self.bytes = self.bytes or cases.bytes
            self.shapes = self.shapes or [spec["shape"] for spec in first.values.specs]
            protocol = Protocol(self.plan, dims, self.seeds, cases, self.task, request.allow_library, index)
            if not self.task.told_apart:
                self._tell_apart(cases, first)
            kernel = self._kernel(cases, dims, index)
            benchmark = None
            if self.plan.timing is not None and self.clock is not None:  # on a GPU
                benchmark = Benchmark(self.starter, self.plan.timing, cases, dims, self.seeds, self.clock, index)
            try:
                protocol.run(first, kernel)
            except WorkerLostError as error:
                self.lost = error
            finally:
                if kernel is not None:
                    self.output = kernel.worker.output() or self.output
                    kernel.close()
                    if benchmark is not None:
                        kernel.worker.gone()  # what comes next is timed
            if request.sanitizers and not self.sanitizers:
                self._sanitize(cases, first.values, dims, request.sanitizers)
            inputs = first.values if cases.bytes <= _SANITIZED else None
            del first, protocol  # with all the memory that they hold
            if benchmark is not None and kernel is not None and self._sound():
                take = benchmark.verdict if self.plan.name == "verdict" else benchmark.signal
                self._timed(partial(take, self.request.peak))
                if not self.sanitizers and self._is_rare():
                    if inputs is None:
                        self.found.skipped("compute-sanitizer", "the inputs are too large for it; give smaller --dims")
                    else:
                        self._sanitize(cases, inputs, dims, TOOLS)
        finally:
            reference.close()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _other_sizes(self) -> None:
        """Calls at other sizes, where none were asked for and the reference can be made with some.

        A wrong result stands among the trials. A candidate that raises was made for fewer sizes: the verdict says so,
        as it does where there are no others.
        """
        if len(self.workloads) > 1:
            return
        self.found.at_this_size_only = True
        if self.recognised.oracle == "original kernel":
            return
        usual = statistics.median(trial.seconds for trial in self.found.trials)
        room = min(_ROOM / max(self.bytes, 1), _PATIENCE / max(usual, 1e-3))
        for listed in other_sizes(self.request, self.recognised, max(room, 1.0)):
            for dims in listed:
                if self._tried(dims) or not self._sound():
                    break
            if not self._sound():
                return

    def _tried(self, dims: dict[str, int]) -> bool:
        """Whether the candidate gave a result at these sizes, right or wrong."""
        if any(dims.items() <= known.items() for known in self.unasked):
            return True  # one of several that were others at once
        found = Findings()
        try:
            reference = self.starter.start_reference(dims)
            try:
                why = self._elsewhere(reference, dims, found)
            finally:
                reference.close()
        except (KoptError, torch.OutOfMemoryError, CudaError):
            return False  # the reference takes no such sizes, or there is no memory for it
        if why is None:
            return False
        if why:
            said = ", ".join(f"{name}={size}" for name, size in dims.items())
            if not self.found.raised_at:
                self.found.hazard("at_this_size_only", Severity.NOTE, f"at {said}: {why}")
                self.found.raised_at = said
            return False
        self.found.trials += found.trials
        self.found.hazards += [hazard for hazard in found.hazards if hazard not in self.found.hazards]
        self.found.at_this_size_only = False
        self.unasked = (*self.unasked, dims)
        return True

    def _elsewhere(self, reference: ReferenceProcess, dims: dict[str, int], found: Findings) -> str | None:
        """Why the candidate does not run at these sizes; empty where it does, None where they are no others."""
        index = 1 + max(t.index for t in self.found.trials)
        cases = self.starter.cases(reference, found, first_index=index)
        first = cases.prepare(kernelbench=self.recognised.form is Form.KERNELBENCH, outputs=self._outputs)
        if [spec["shape"] for spec in first.values.specs] == self.shapes:
            return None
        protocol = Protocol(self.plan, dims, self.seeds, cases, self.task, self.request.allow_library, index)
        kernel: KernelProcess | None = None
        try:
            kernel = self.starter.spawn_candidate(index, 1 if crowded(self.device, cases.bytes) else 2)
            self.starter.load_candidate(kernel, cases, dims, range(len(STAND_INS)))
            protocol.once(first, kernel)
            return found.failure[1] if found.failure is not None else ""
        except WorkerLostError as error:
            return error.detail
        except (CandidateError, UnplacedError) as error:
            return str(error)
        finally:
            if kernel is not None:
                kernel.close()

    def _outputs(self, named: Sequence[str], written: Sequence[str]) -> list[str]:
        """Names of the outputs in the forms that write their arguments."""
        found = self.request.written(self.recognised.form, named, written)
        if self.recognised.form in (Form.SOLVE, Form.SETUP):
            self.outputs = tuple(dict.fromkeys([*found, *written]))
        return found

    def _tell_apart(self, cases: Cases, first: Case) -> None:
        """Whether the rule sees the reference at a lower precision, or without its last rows. Refuses nothing."""
        try:
            lower = cases.reference.run(first.values, "lower", cases.shape.written).tensors
        except UsageError:
            lower = []
        self.task.tell_apart(first.reference, first.native, lower)

    def _kernel(self, cases: Cases, dims: dict[str, int], index: int) -> KernelProcess | None:
        """The candidate, loaded, with its weights; None where it did not come so far."""
        kernel: KernelProcess | None = None
        try:
            kernel = self.starter.spawn_candidate(index, 1 if crowded(self.device, cases.bytes) else 2)
            self.starter.load_candidate(kernel, cases, dims)
            return kernel
        except WorkerLostError as error:
            self.lost = error
        except UnplacedError as error:
            self.unplaced = str(error)
        except CandidateError as error:
            self._failed(error)
        if kernel is not None:
            self.output = kernel.worker.output()
            kernel.close()
        return None

    def _failed(self, error: CandidateError) -> None:
        """The candidate raised while it was loaded, or in a timed sample."""
        if error.error["type"] in ("SystemExit", "KeyboardInterrupt"):
            self.found.hazard("exits_early", Severity.REJECT, f"{error.error['type']} raised while it was loaded")
        stage, words = failed_at(error)
        if error.error["type"] in ("ModuleNotFoundError", "ImportError"):
            words += " (install it in the interpreter that runs the kernels, or name another with --python)"
        self.found.failure = (stage, words[:2000])

    # --- time -------------------------------------------------------------------------------------------------------

    def _sound(self) -> bool:
        """Whether nothing speaks against the candidate so far: only then are its times worth their seconds."""
        return (
            self.lost is None
            and self.found.failure is None
            and not self.unplaced
            and all(trial.passed for trial in self.found.trials)
            and all(hazard.severity is not Severity.REJECT for hazard in self.found.hazards)
            and all(run.status != "failed" for run in self.sanitizers)
        )

    def _is_rare(self) -> bool:
        """Whether the last workload's ratio is so large that a second look is due."""
        last = self.timings[-1] if self.timings else None
        ratio = last.baselines[last.against].ratio if last is not None and last.against else None
        return ratio is not None and ratio.median > LARGE and self._sound()

    def _timed(self, take: Callable[[], WorkloadTiming]) -> None:
        """Times, or what the candidate did instead of giving some."""
        self.progress("timing", 0, 1)
        try:
            self.timings.append(take())
        except WrongResultError:
            return  # it stands among the trials
        except CandidateError as error:
            self._failed(error)
        except WorkerLostError as error:
            self.lost = error
        except (KoptError, torch.OutOfMemoryError) as error:
            if isinstance(error, KoptError) and error.code != "out_of_memory":
                raise
            said = error.message if isinstance(error, KoptError) else str(error).partition(". GPU")[0]
            self.untimed = f"there is not enough memory on the GPU: {said}"[:500]

    def _sanitize(self, cases: Cases, inputs: Values, dims: dict[str, int], tools: Sequence[str]) -> None:
        """Tools of compute-sanitizer, on the first workload."""
        why = ""
        if self.device.type == "cpu":
            why = "compute-sanitizer examines GPU kernels, and the CPU was asked for"
        elif self.lost is not None or self.found.failure is not None or self.unplaced:
            why = "the candidate did not get so far"
        if why:
            self.sanitizers = [SanitizerRun(tool=tool, status="not run", detail=why) for tool in tools]
            return
        self.progress("compute-sanitizer", 0, len(tools))
        with job_of(self.starter, cases, inputs, dims) as (job, lent):
            self.sanitizers = sanitize(tools, self.starter, job, lent)

    def _environment(self) -> Environment:
        worker = self.starter.workers[0] if self.starter.workers else None
        versions = {"python": "unknown", **(worker.versions if worker else {})}
        return gather(
            kopt=self.kopt,
            device=self.request.device,
            worker=WorkerEnvironment(executable=self.starter.server.python, **versions),
            variables=self.starter.server.environment,
            layers=worker.layers if worker else [],
            nvcc=messages.nvcc_path(self.request) if self.recognised.form is Form.SOLVE else None,
        )
