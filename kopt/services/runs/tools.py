"""The tools of a run, wired: measuring, profiling, diagnosing, step 0, searching, machine code.

torch is imported when something is measured, and not before.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kbs.common.errors import ConfigurationError, KoptError
from kopt.services.runs.diagnosis_note import diagnosis_note
from kopt.services.runs.request import make_request, parent_file
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.planning.step0 import SPECS, Check, EnvNote, spec_notes, targets_of, trusted, unknown_targets
from loop.tools import DiagnosisNote, FoundPassage, MachineNote, Search, TakenProfile, Targets

if TYPE_CHECKING:
    from evaluator.profiling.profile import Chosen
    from evaluator.receipt.plan import Plan, SeedSchedule
    from evaluator.receipt.receipt import Receipt
    from evaluator.receipt.timing import CitedPeak
    from evaluator.request import Request
    from evaluator.sandbox.fork_server import ForkServer
    from evaluator.sass.sass import Function
    from evaluator.sass.tools import Target
    from evaluator.work import Work
    from kbs.evidence.spec import Spec
    from kopt.services.diagnosis import Task
    from kopt.services.engine import Engine
    from kopt.services.roofline import Declared
    from loop.pages import Drawing
    from loop.planning.methods import Methods

HITS = 6
"""Passages that a query brings."""
NO_COUNTERS = ("no_ncu", "no_counter_permission", "counters_in_use", "no_profiler")
"""Codes of errors that say that ncu cannot count here."""


@dataclass
class Workbench:
    """`loop.tools.Tools` of one run; a context manager, which ends the processes that it started."""

    engine: Engine
    folder: RunFolder
    record: RunRecord
    _servers: dict[str, ForkServer] = field(default_factory=dict, repr=False)

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the fork servers."""
        with contextlib.ExitStack() as stack:
            while self._servers:
                stack.callback(self._servers.popitem()[1].close)

    def _server(self, kind: str) -> ForkServer:
        if kind not in self._servers:
            from evaluator.sandbox.fork_server import ForkServer

            self._servers[kind] = ForkServer(kind)
        return self._servers[kind]

    # --- measuring --------------------------------------------------------------------------------------------------

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        """The request to evaluate a kernel of this run; `parent` is the text of the kernel that it must beat."""
        from evaluator.source.source_file import SourceFile

        name = self.record.reference.name
        reference = SourceFile(name=name, text=_text(self.folder.root / name))
        inputs = self.record.inputs
        content = None if inputs is None else (self.folder.root / inputs.name).read_bytes()
        problem = self.record.problem
        if Path(kernel_name).suffix != Path(self.record.kernel.name).suffix:
            # Another language: what was said of version 0 does not hold.
            problem = problem.model_copy(update={"backend": None, "entry": None})
        return make_request(
            SourceFile(name=kernel_name, text=kernel_text),
            reference,
            None if inputs is None or content is None else (inputs.name, content),
            problem,
            self.record.device,
            parent=None if parent is None else parent_file(parent),
        )

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        """A sealed receipt; its plan and itself are kept under KOPT_HOME too."""
        from evaluator.evaluate import evaluate
        from evaluator.store.seal import ensure_key, seal
        from evaluator.store.store import save_plan, save_receipt
        from kopt import __version__

        home = self.engine.settings.home
        key = ensure_key(home)

        def keep(plan: Plan) -> None:
            save_plan(home, plan)

        kind = "cpu" if request.device == "cpu" else "cuda"
        found = evaluate(
            request.model_copy(update={"peak": self._peak}),
            kopt=__version__,
            server=self._server(kind),
            on_plan=keep,
            progress=self.engine.progress,
            schedule=schedule,
        )
        sealed = seal(found, key)
        save_receipt(home, sealed)
        return sealed

    @cached_property
    def _peak(self) -> CitedPeak | None:
        from kopt.services.peaks import cited_peak

        return cited_peak(self.engine, self.record.device_name) if self.record.device_name else None

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
        from evaluator.diagnosis.from_receipt import launch_of
        from evaluator.profiling.profile import Chosen, read_profile
        from kopt.services.diagnosis import diagnose_launch

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
        return diagnosis_note(name, chosen, found)

    def _task(self, chosen: Chosen) -> Task:
        """What the kernel has to do; nothing where that cannot be counted."""
        from kopt.services.diagnosis import NO_TASK, task_of

        work, said, _ = self._counted
        if work is None and "bytes" not in said:
            return NO_TASK
        return task_of(self.engine, chosen.launch, self.record.gpu, work, said)

    # --- step 0 -----------------------------------------------------------------------------------------------------

    @cached_property
    def _counted(self) -> tuple[Work | None, dict[str, Declared], str]:
        """(what the reference must do, what is declared of it, why it could not be counted)."""
        from kopt.services.work_counts import count, declared_work

        kernel = self.folder.version(0) / self.record.kernel.name
        request = self.request(_text(kernel), kernel.name, None)
        recognised = request.recognised()
        said = declared_work(request, recognised)
        if len(said) == 2:
            return None, said, ""
        try:
            return count(self.engine, request, recognised, said), said, ""
        except KoptError as error:
            return None, said, error.message

    def targets(self) -> Targets:
        """Specs with their citations, and what they leave the problem."""
        from kbs.answers.kernel_roofline import place
        from kopt.services.roofline import demand_of, roofline

        engine, gpu = self.engine, self.record.gpu
        work, said, why = self._counted
        if not gpu:
            missing = "no GPU is named, and none is present whose specs a page states"
            if work is None:
                return unknown_targets(f"{missing}; {why}" if why else missing)
            demand = demand_of(work, said, None, engine.terms, [])
            placed = place(demand, None, {}, None)
            return unknown_targets(
                missing, (), placed.steps, bytes=demand.bytes, operations=sum(demand.flop.values()) or None
            )
        every: list[Spec] = engine.with_store(lambda store: store.specs(), vectors=False)
        specs = trusted(every, self.record.least_confidence)
        listed = engine.terms.metric_groups[SPECS].metrics
        if work is None and "bytes" not in said:
            found = unknown_targets(
                why or "operations alone say nothing of the bytes", spec_notes(specs, gpu, listed, engine.terms)
            )
        else:
            made = roofline(engine, gpu, specs, work, said, None)
            needed = ("hbm_bandwidth", *made.placed.demand.flop)
            notes = spec_notes(specs, gpu, (*needed, *listed), engine.terms)
            found = targets_of(made.placed, notes, made.gpu, made.notes)
        if found.gaps:
            engine.log_gap(f"step 0 of {self.record.id}", "not_in_wiki", found.gaps)
        return found

    def environment(self) -> EnvNote:
        """The machine and the programs that matter to a run."""
        from evaluator.receipt.environment import cpu_model, driver_version, nvcc_version, package_version

        ncu, git = shutil.which("ncu"), shutil.which("git")
        nvcc = shutil.which("nvcc")
        gpu = self.record.device_name or self.record.device != "cpu"
        checks = [
            Check(name="kopt", found=self.record.kopt),
            Check(name="processor", found=cpu_model()),
            Check(name="GPU", found=self.record.device_name, why="" if gpu else "no time is taken"),
            Check(name="driver", found=(driver_version() or "") if gpu else "", why="" if gpu else "needs a GPU"),
            Check(name="PyTorch", found=package_version("torch") or ""),
            Check(
                name="Triton",
                found=package_version("triton") or "",
                why="" if package_version("triton") else "Triton kernels cannot run without it",
            ),
            Check(
                name="nvcc",
                found=(nvcc_version(Path(nvcc)) or "unknown version") if nvcc else "",
                why="" if nvcc else "kernels in .cu files cannot be compiled",
            ),
            Check(
                name="ncu",
                found="on the PATH" if ncu else "",
                why=self.record.profile_why,
            ),
            Check(name="git", found="on the PATH" if git else "", why="" if git else "a run needs it"),
            Check(
                name="matplotlib",
                found=package_version("matplotlib") or "",
                why="" if package_version("matplotlib") else "no pictures are drawn",
            ),
        ]
        return EnvNote(device=self.record.device, device_name=self.record.device_name, checks=tuple(checks))

    # --- looking up -------------------------------------------------------------------------------------------------

    def search(self, about: str, text: str) -> Search:
        """Ask the knowledge base; each passage is cited with the hash of its lines."""
        found = self.engine.with_store(lambda store: self.engine.search(store, text, {}, HITS), vectors=True)
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
        """Compile for the run's GPU and look at the opcodes; a note with the reason where that cannot be done."""
        from evaluator.sass.compile import machine_code
        from loop.planning.methods import read_methods

        target = self._target
        if target is None:
            return MachineNote(target="", functions={}, why="no GPU is named: nothing says what to compile for")
        try:
            made = machine_code(self._server("cuda"), self.request(kernel_text, kernel_name, None), target)
        except KoptError as error:
            return MachineNote(target=target.exact, functions={}, why=error.message)
        if made.compile_error:
            why = f"it does not compile for {target.exact}: {made.compile_error[:500]}"
            return MachineNote(target=target.exact, functions={}, why=why)
        known = read_methods(self.engine.library)
        return MachineNote(
            target=target.exact,
            functions={one.label: one.code for one in made.functions},
            methods={method: _verdict(method, known, target.number, made.functions) for method in methods},
            why="",
        )

    @cached_property
    def _target(self) -> Target | None:
        """The architecture of the run's GPU: as its page states it, else of the one that is present."""
        from evaluator.receipt.environment import gpu_capability
        from evaluator.sass.tools import read_target

        if self.record.device != "cpu":
            found = read_target(gpu_capability() or "")
            if found is not None:
                return found
        if not self.record.gpu:
            return None
        specs: list[Spec] = self.engine.with_store(
            lambda store: store.specs(self.record.gpu, "compute_capability"), vectors=False
        )
        stated = {target for spec in specs if spec.recommended and (target := read_target(spec.value))}
        return stated.pop() if len(stated) == 1 else None

    # --- pictures ---------------------------------------------------------------------------------------------------

    def pictures(self, drawing: Drawing) -> dict[str, bytes]:
        """PNG and SVG of what a run came to; nothing where matplotlib is not installed."""
        from kopt.services.plots.run import paint

        return paint(drawing)


def _verdict(method: str, known: Methods, target: int, functions: tuple[Function, ...]) -> str:
    """The best that any function shows: present before unverifiable before absent."""
    from evaluator.sass.sass import judge

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
            f"{path} of the run cannot be read: {error}",
            code="artifact_damaged",
            hint="Restore the file from the run's git repository.",
        ) from error
