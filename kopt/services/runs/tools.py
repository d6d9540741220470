"""The tools of a run: measuring, profiling, diagnosing, step 0, searching, machine code.

torch is imported when something is measured, and not before.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.diagnosis.binding_resource import dominant_stall
from evaluator.diagnosis.from_receipt import launch_of
from evaluator.diagnosis.symptoms import Finding
from evaluator.external.record import ExternalReceipt
from evaluator.profiling.profile import Chosen, read_profile
from evaluator.receipt.environment import gpu_capability
from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import CitedPeak
from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.sass.compile import Machine, machine_code
from evaluator.sass.sass import Function, judge
from evaluator.sass.tools import Target, read_target
from evaluator.source.source_file import SourceFile
from kbs.answers.kernel_roofline import place
from kbs.common.errors import ConfigurationError, KoptError
from kbs.experience.experiment import dtype_name
from kbs.experience.transfer.operators import operation_of
from kopt.services.bench.evaluation import evaluate_and_keep
from kopt.services.diagnosis import NO_TASK, Diagnosed, Remedy, Task, diagnose_launch, task_of
from kopt.services.engine import Engine
from kopt.services.gpus import BANDWIDTH, cited_peak
from kopt.services.plots.run import paint
from kopt.services.results.telling.diagnosis import lines
from kopt.services.roofline import demand_of, roofline
from kopt.services.runs.devices.choice import ALONE, Choice
from kopt.services.runs.devices.several import Several
from kopt.services.runs.machine import environment_of
from kopt.services.runs.own_benchmark import run_benchmark
from kopt.services.runs.proposers.generating import families
from kopt.services.runs.request import make_request, parent_file
from kopt.services.work_counts import ProblemWork, count, declared_work, operators
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.pages import Drawing
from loop.planning import instructions
from loop.planning.methods import Methods, read_methods
from loop.planning.step0 import SPECS, EnvNote, spec_notes, targets_of, trusted, unknown_targets
from loop.search.variant import Variant
from loop.tools import DiagnosisNote, FoundPassage, InstructionNote, MachineNote, Named, Search, TakenProfile, Targets

if TYPE_CHECKING:
    from evaluator.work import Work

HITS = 6
"""Passages that a query brings."""
NO_COUNTERS = ("no_ncu", "no_counter_permission", "counters_in_use", "no_profiler")
"""Codes of errors that say that ncu cannot count here."""


@dataclass
class RunTools:
    """`loop.tools.Tools` of one run; a context manager, which ends the processes that it started."""

    engine: Engine
    folder: RunFolder
    record: RunRecord
    choice: Choice = ALONE
    """Where candidates are measured quickly."""
    _servers: dict[str, ForkServer] = field(default_factory=dict, repr=False)
    _last: tuple[tuple[str, str, Target], Machine] | None = field(default=None, repr=False)

    def __enter__(self) -> RunTools:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the fork servers, and the processes of further devices."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.several.close)
            while self._servers:
                stack.callback(self._servers.popitem()[1].close)

    def _server(self, kind: str) -> ForkServer:
        build = self.record.build
        if kind not in self._servers:
            self._servers[kind] = ForkServer(kind, build.python, passed_environment(build.variables))
        return self._servers[kind]

    # --- measuring --------------------------------------------------------------------------------------------------

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        """The request to evaluate a kernel of this run; `parent` is the text of the kernel that it must beat."""
        name = self.record.reference.name
        reference = SourceFile(name=name, text=_text(self.folder.root / name))
        inputs = self.record.inputs
        content = None if inputs is None else (self.folder.root / inputs.name).read_bytes()
        problem = self.record.problem
        if Path(kernel_name).suffix != Path(self.record.kernel.name).suffix:
            # Another language: what was said of version 0 does not hold.
            problem = problem.model_copy(update={"backend": None, "entry": None})
        candidate = SourceFile(name=kernel_name, text=kernel_text)
        if self.record.problem_of(candidate.hash) != self.record.problem_hash:
            # Version 0 is the library itself: it may call it, and is compared with nothing.
            problem = problem.model_copy(update={"allow_library": True, "baselines": ()})
        return make_request(
            candidate,
            reference,
            None if inputs is None or content is None else (inputs.name, content),
            problem,
            self.record.device,
            parent=None if parent is None else parent_file(parent),
            build=self.record.build,
        )

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        """A sealed receipt; its plan and itself are kept under KOPT_HOME too."""
        begun = self.several.begun(schedule)
        if begun is not None:
            return begun
        asked = request.model_copy(update={"peak": self._peak})
        server = self._server("cpu" if request.device == "cpu" else "cuda")
        home, progress = self.engine.settings.home, self.engine.progress
        return evaluate_and_keep(asked, server, home, None, progress, schedule)[0]

    def ahead(self, asked: Sequence[tuple[Request, SeedSchedule]]) -> None:
        """Begin several evaluations, where this machine has devices for them; `evaluate` then waits for its own."""
        self.several.ahead(asked)

    @cached_property
    def several(self) -> Several:
        """Further devices, which are opened when they are needed."""
        return Several(self.choice, self.folder, self.record, self.engine, lambda: self._peak)

    @cached_property
    def _peak(self) -> CitedPeak | None:
        return cited_peak(self.engine, self.record.device_name) if self.record.device_name else None

    def benchmark(self, kernel_text: str, kernel_name: str) -> ExternalReceipt | None:
        """What the user's own benchmark printed; None if there is none, or it cannot take this kernel."""
        asked = self.record.benchmark
        if asked is None:
            return None
        self.engine.progress("your own benchmark", 0, 1)
        return run_benchmark(asked, self.record, kernel_text, kernel_name, self.engine.settings.home)

    # --- profiling --------------------------------------------------------------------------------------------------

    def profile(self, request: Request) -> TakenProfile:
        """One call under ncu with every section, or why not."""
        if self.record.profile != "full":
            return TakenProfile(self.record.profile, "", None, self.record.profile_why)
        from evaluator.profiling.collect import take_profile

        alone = request.model_copy(update={"incumbent": None, "baselines": ()})
        try:
            taken = take_profile(alone, server=self._server("cuda"), metrics="full", progress=self.engine.progress)
        except ConfigurationError as error:
            if error.code not in NO_COUNTERS:
                raise
            return TakenProfile("degraded", "", None, error.message)
        return TakenProfile("full", taken.csv, taken.report, "")

    def diagnose(self, csv: str, receipt: Receipt, name: str) -> DiagnosisNote:
        """From the counters where there are any, else from the receipt's time; `unknown` where there is neither."""
        if csv:
            chosen, grade = read_profile(csv.encode(), name).choose(), "full"
        elif receipt.timing is not None and receipt.timing.workloads[0].candidate.summary is not None:
            chosen, grade = Chosen(launch_of(receipt), "the receipt's first workload"), "degraded"
        else:
            why = "no time is taken on the CPU" if self.record.device == "cpu" else "no time was taken"
            return DiagnosisNote(
                bottleneck="unknown", resource="", dominant_stall="", headroom=(), symptoms=(),
                text=f"{name}: unknown\n  {why}, and no counters were read: nothing says what bounds it\n",
            )  # fmt: skip
        found = diagnose_launch(self.engine, chosen.launch, self.record.gpu, grade=grade, task=self._task(chosen))
        return _note(name, chosen, found)

    def _task(self, chosen: Chosen) -> Task:
        """What the kernel has to do; nothing where that cannot be counted."""
        problem, _ = self._problem
        if problem.work is None and "bytes" not in problem.declared:
            return NO_TASK
        return task_of(self.engine, chosen.launch, self.record.gpu, problem)

    # --- step 0 -----------------------------------------------------------------------------------------------------

    @cached_property
    def _problem(self) -> tuple[ProblemWork, str]:
        """(what the reference must move and compute, why it could not be counted)."""
        kernel = self.folder.version(0) / self.record.kernel.name
        request = self.request(_text(kernel), kernel.name, None)
        recognised = request.recognised()
        declared = declared_work(request, recognised)
        if len(declared) == 2:
            return ProblemWork(None, declared), ""
        try:
            return ProblemWork(count(self.engine, request, recognised, declared), declared), ""
        except KoptError as error:
            return ProblemWork(None, declared), error.message

    def families(self) -> tuple[tuple[Variant, ...], str]:
        """(families of whole kernels for the run's reference, why there are none)."""
        return self._families

    @cached_property
    def _families(self) -> tuple[tuple[Variant, ...], str]:
        kernel = self.folder.version(0) / self.record.kernel.name
        return families(self.engine, self.request(_text(kernel), kernel.name, None), self.record.gpu)

    def targets(self) -> Targets:
        """Specs with their citations, and what they leave the problem."""
        problem, _ = self._problem
        counted = operators(problem.work) if problem.work else {}
        wanted, why = self._instructions(problem.work)
        return self._targets().model_copy(
            update={"operators": counted, "instructions": wanted, "instructions_why": why}
        )

    def _instructions(self, work: Work | None) -> tuple[tuple[InstructionNote, ...], str]:
        """(what the machine code should show, why nothing is known of that)."""
        if self._target is None:
            return (), "no GPU is named, or no page states its compute capability"
        if work is None:
            return (), "the operations of the reference were not counted"
        operations = {operation_of(operators(work))} - {""}
        if any(row.pipe == "tensor" for row in work.operations):
            operations.add(instructions.PRODUCT)
        types = (*(row.dtype for row in work.operations), *(row.dtype for row in (*work.read, *work.written)))
        dtypes = {"fp8" if name.startswith("float8") else dtype_name(name) for name in types}
        found = instructions.expected(self._methods.instructions, operations, dtypes, self._target.number)
        named = f"{' and '.join(sorted(operations)) or 'this operation'} in {' and '.join(sorted(dtypes))}"
        return found, "" if found else f"no page states any for {named} on {self._target.name}"

    def _targets(self) -> Targets:
        engine, gpu = self.engine, self.record.gpu
        problem, why = self._problem
        if not gpu:
            missing = "no GPU is named, and none is present whose specs a page states"
            if problem.work is None:
                return unknown_targets(f"{missing}; {why}" if why else missing)
            demand = demand_of(problem, None, engine.terms, [])
            placed = place(demand, None, {}, None)
            return unknown_targets(
                missing, (), placed.steps, bytes=demand.bytes, operations=sum(demand.flop.values()) or None
            )
        specs = trusted(engine.specs(), self.record.least_confidence)
        listed = engine.terms.metric_groups[SPECS].metrics
        if problem.work is None and "bytes" not in problem.declared:
            found = unknown_targets(
                why or "operations alone do not say how many bytes must move",
                spec_notes(specs, gpu, listed, engine.terms),
            )
        else:
            made = roofline(engine, gpu, specs, problem, None)
            needed = (BANDWIDTH, *made.placed.demand.flop)
            notes = spec_notes(specs, gpu, (*needed, *listed), engine.terms)
            found = targets_of(made.placed, notes, made.gpu, made.notes)
        if found.gaps:
            engine.log_gap(f"step 0 of {self.record.id}", "not_in_wiki", found.gaps)
        return found

    def environment(self) -> EnvNote:
        """The machine and the programs that matter to a run."""
        return environment_of(self.record)

    # --- looking up -------------------------------------------------------------------------------------------------

    def search(self, about: str, text: str) -> Search:
        """Ask the knowledge base; each passage is cited with the hash of its lines."""
        from kbs.index.search import Query

        wanted = Query(count=HITS, records=0)  # the log is asked by circumstances, and by queries about experience
        found = self.engine.with_store(lambda store: self.engine.search(store, text, wanted), vectors=True)
        hits = tuple(
            FoundPassage(
                reference=f"{hit.passage.citation.reference}@{hit.passage.citation.hash[:16]}",
                title=" > ".join((hit.passage.title, *hit.passage.trail)),
                text=hit.passage.text,
                score=round(float(hit.score), 4),
            )
            for hit in found.hits
        )
        return Search.model_validate(
            {"about": about, "text": text, "hits": hits, "degraded": "; ".join(found.degraded)}
        )

    # --- machine code -----------------------------------------------------------------------------------------------

    def machine_code(self, kernel_text: str, kernel_name: str, methods: tuple[str, ...]) -> MachineNote:
        """Compile for the run's GPU and look at the opcodes; a note with the reason where that cannot be done.

        It has the methods that are named, and every other one that a page gives a signature for on this target.
        """
        target = self._target
        if target is None:
            return _no_machine_code("", "no GPU is named: nothing says what to compile for")
        try:
            made = self._compiled(kernel_text, kernel_name, target)
        except KoptError as error:
            return _no_machine_code(target.exact, error.message)
        if made.compile_error:
            return _no_machine_code(target.exact, f"it does not compile for {target.exact}: {made.compile_error[:500]}")
        if not any(one.kernel for one in made.functions):
            return _no_machine_code(target.exact, "it has no kernel of its own")
        known = self._methods
        signed = sorted({row.method for row in known.signatures if target.number in row.targets})
        asked = dict.fromkeys((*methods, *signed))
        opcodes = sum((Counter(one.opcodes) for one in made.functions if one.kernel), Counter[str]())
        return MachineNote(
            target=target.exact,
            functions={one.label: one.code for one in made.functions},
            methods={method: _verdict(method, known, target.number, made.functions) for method in asked},
            opcodes=dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
            why="",
        )

    @cached_property
    def _methods(self) -> Methods:
        return read_methods(self.engine.library)

    def _compiled(self, kernel_text: str, kernel_name: str, target: Target) -> Machine:
        """The machine code; of the kernel that was compiled last, as it was found then."""
        asked = (kernel_text, kernel_name, target)
        if self._last is None or self._last[0] != asked:
            found = machine_code(self._server("cuda"), self.request(kernel_text, kernel_name, None), target)
            self._last = (asked, found)
        return self._last[1]

    @cached_property
    def _target(self) -> Target | None:
        """The architecture of the run's GPU: as its page states it, else of the one that is present."""
        if self.record.device != "cpu":
            found = read_target(gpu_capability() or "")
            if found is not None:
                return found
        if not self.record.gpu:
            return None
        specs = self.engine.with_store(lambda store: store.specs(self.record.gpu, "compute_capability"), vectors=False)
        self.engine.tell_overrides(spec.citation for spec in specs if spec.recommended)
        stated = {target for spec in specs if spec.recommended and (target := read_target(spec.value))}
        return stated.pop() if len(stated) == 1 else None

    # --- pictures ---------------------------------------------------------------------------------------------------

    def pictures(self, drawing: Drawing) -> dict[str, bytes]:
        """PNG and SVG of what a run came to; nothing where matplotlib is not installed."""
        return paint(drawing)


def _note(name: str, chosen: Chosen, found: Diagnosed) -> DiagnosisNote:
    """A diagnosis as a run keeps it; its text is what `kopt diagnose` prints."""
    made, stall = found.diagnosis, dominant_stall(chosen.launch)
    bound = made.binding
    resource = ""
    if bound is not None:
        value = None if bound.counter.value is None else float(bound.counter.value)
        resource = f"{bound.name}, {bound.arithmetic or f'{value} {bound.counter.unit}'.strip()} ({bound.counter.ncu})"
    return DiagnosisNote(
        bottleneck=made.bottleneck.value,
        resource=resource,
        dominant_stall="" if stall is None else stall.name,
        headroom=tuple(f"{one.against}: {' ; '.join(one.arithmetic)}" for one in made.headroom),
        symptoms=tuple(_symptom(one, found.remedies.get(one.symptom.id, ())) for one in made.symptoms),
        text="\n".join(lines(name, chosen, found)) + "\n",
    )


def _symptom(finding: Finding, remedies: Sequence[Remedy]) -> Named:
    judged = []
    for judgement in finding.judgements:
        if judgement.holds:
            row = judgement.row
            value = judgement.arithmetic or f"{float(judgement.value):g} {judgement.unit}".strip()
            threshold = f"{row.test} {f'{row.value} {row.unit}'.strip()}"
            judged.append(f"{row.metric}: {value}, {threshold} <- {judgement.rows[0].citation.reference}")
    return Named(
        id=finding.symptom.id,
        name=finding.symptom.name,
        text="\n".join(judged),
        techniques=tuple(f"{one.technique}: {one.because} <- {one.citation.reference}" for one in remedies),
    )


def _no_machine_code(target: str, why: str) -> MachineNote:
    return MachineNote(target=target, functions={}, opcodes={}, why=why)


def _verdict(method: str, known: Methods, target: int, functions: tuple[Function, ...]) -> str:
    """The best that any function shows: present before unverifiable before absent."""
    found = [judge(method, known.signatures, target, one) for one in functions if one.kernel]
    order = {"present": 0, "unverifiable": 1, "absent": 2}
    best = min(found, key=lambda one: (order[one.verdict], -one.count), default=None)
    if best is None:
        return "unverifiable: the machine code has no kernel"
    if best.verdict == "present":
        listed = ", ".join(f"{opcode} {count}" for opcode, count in list(best.found.items())[:4])
        return f"{best.text} ({listed})"
    return best.text


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as error:
        raise KoptError(
            f"cannot read {path} of the run: {error}",
            code="artifact_damaged",
            hint="Restore the file from the run's git repository.",
        ) from error
