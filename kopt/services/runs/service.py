"""Plan a run, begin it, open it with its tools, ask its proposer, and look at it."""

from __future__ import annotations

import secrets
import string
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.receipt.plan import utc_now
from evaluator.source.languages import check_language
from evaluator.store.seal import load_key
from ingest.progress import Progress
from kbs.common.errors import UsageError
from kopt.services.engine import Engine
from kopt.services.knowledge.log_search import searched_log
from kopt.services.runs.devices.choice import ALONE, Choice
from kopt.services.runs.handing_in import propose
from kopt.services.runs.lookup import find_run
from kopt.services.runs.planning.environment import device_of, methods_of, plan_overrides, survey
from kopt.services.runs.planning.first_kernel import choose_first
from kopt.services.runs.planning.knowledge import use_knowledge, use_pinned_knowledge
from kopt.services.runs.tools import RunTools
from kopt.services.settings import ModelServices, load_settings
from loop.gate.context import GateContext, Stage
from loop.gate.report import GateReport, run_gate
from loop.journal import seeds
from loop.journal.folder import HINTS
from loop.journal.language_model import ModelChoice, allowance
from loop.journal.repository import check_git, check_in_place
from loop.journal.state import Phase
from loop.pages import final_files
from loop.pages.run import plan as plan_page
from loop.planning.methods import read_methods
from loop.planning.plan import ResolvedPlan, read_hints, resolve, run_id
from loop.planning.wanted import Wanted
from loop.proposals.briefing import brief
from loop.proposals.few_words import Words
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest
from loop.proposers import command
from loop.run.driver import Driver, View, create_run, read_run
from loop.run.open_run import Progress as Steps
from loop.run.parts import Parts
from loop.workspace.inventory import take

_LETTERS = 4
"""At the end of a run's id."""


def plan(
    engine: Engine, wanted: Wanted, workspace: Path, *, device: str | None, gpu: str | None, **files: Path | None
) -> ResolvedPlan:
    """The plan of a run. Writes nothing; looks at the GPU with ncu where there is one. Raises `KoptError`.

    `files`: kernel, reference and inputs. None for these, a device or a GPU: to be found.
    """
    chosen = device_of(device)
    unread = use_knowledge(engine, wanted.knowledge)
    found = take(workspace, **files, entry=wanted.entry, backend=wanted.backend, knowledge=wanted.knowledge)
    if wanted.command:
        command.find_program(wanted.command, workspace)
    if wanted.benchmark is not None:
        command.find_program(wanted.benchmark.command, workspace)
    check_git()
    branch = check_in_place(workspace, found.kernel.stem) if wanted.in_place else None
    hints = read_hints(found, wanted, methods_of(engine))
    made: list[str] = []
    check_language(found.kernel_source, wanted.build.python or sys.executable)
    if found.made is not None:
        found, made = choose_first(engine, found, wanted, chosen)
    here = survey(engine, found, wanted, hints[0], device=chosen, gpu=gpu)
    resolved = resolve(found, wanted, here, hints, engine.settings.home)
    overrides = plan_overrides(engine, here.gpu, wanted.least_confidence)
    engine.warn(overrides)
    resolved = replace(resolved, notes=(*made, *resolved.notes, *unread, *overrides, *engine.left_out))
    return resolved if branch is None else replace(resolved, branch=branch)


def begin(engine: Engine, resolved: ResolvedPlan) -> Path:
    """Create the run's folder, which is there whole or not at all. Raises `KoptError`."""
    created, home = utc_now(), engine.settings.home
    name = run_id(resolved.name, created, "".join(secrets.choice(string.ascii_lowercase) for _ in range(_LETTERS)))
    record = resolved.record(name, seeds.create(home, name), created)
    files = {**resolved.files(), "plan.md": plan_page(record)}
    if resolved.hints_text:
        files[HINTS] = resolved.hints_text.encode("utf-8", "surrogatepass")
    return create_run(resolved.folder, record, files, home).root


@dataclass
class Driving:
    """A run that this process holds."""

    driver: Driver
    engine: Engine
    steps: Steps
    tools: RunTools

    @property
    def view(self) -> View:
        """How it stands now."""
        return View(self.driver.folder, self.driver.record, self.driver.state, torn=False)

    @property
    def notes(self) -> list[str]:
        """What the user should know of."""
        return [*self.driver.notes, *self.engine.warnings]

    @property
    def kernel(self) -> Path:
        """The user's kernel, which the run began with."""
        record = self.driver.record
        return Path(record.workspace) / record.kernel.origin

    def propose(self, said: Words, parent: int | None) -> Proposal:
        """A proposal from few words (`kopt.services.runs.handing_in`)."""
        return propose(self.engine, self.view, said, parent)

    def advance(self, command_seconds: float, search_seconds: float) -> None:
        """Go on until an agent's proposal is wanted, or to the end; any other proposer is asked for its proposals.

        `search_seconds`: what the quick measurements of `search` may take in the whole run.
        """
        record = self.driver.record
        while self.driver.advance(self.steps) is Phase.PROPOSE and record.proposer != "agent":
            request = brief_of(self.engine, self.view)
            self.steps(Phase.PROPOSE, f"v{request.version}, attempt {request.attempt}: {record.asked}")
            if record.model:
                self._ask_model(record.model, request)
            elif record.proposer == "search":
                self._search(request, search_seconds)
            else:
                self._ask_program(request, command_seconds)

    def _search(self, request: NextRequest, seconds: float) -> None:
        from kopt.services.runs.proposers.searching import propose  # imports optuna

        several = self.tools.several
        found = propose(self.driver, request, seconds, lambda line: self.steps(Phase.PROPOSE, line), several)
        self.driver.submit(found, found.model_dump_json().encode() if isinstance(found, Proposal) else b"")

    def _ask_program(self, request: NextRequest, seconds: float) -> None:
        record = self.driver.record
        answer = command.ask(record.command, request.document(), Path(record.workspace), seconds)
        self.driver.submit(answer.outcome, answer.stdout, answer.stderr)

    def _ask_model(self, model: ModelChoice, request: NextRequest) -> None:
        from kopt.services.models import access  # imports httpx
        from loop.proposers.llm import ask

        there = access(model.provider, ModelServices())
        answer = ask(model, there, request, allowance(model, self.driver.state.spent))
        self.driver.asked(answer.call)
        self.driver.submit(answer.outcome, answer.data)


@contextmanager
def driving(given: str | None, progress: Progress, steps: Steps, choice: Choice = ALONE) -> Iterator[Driving]:
    """Hold the run that is meant (`kopt.services.runs.lookup.find_run`), with its tools. Raises `KoptError`.

    `choice`: where candidates are measured quickly.
    """
    engine = Engine(load_settings(), progress=progress)
    home = engine.settings.home
    folder = find_run(given, Path.cwd(), home)
    record = read_run(folder.root).record
    choice.check(record.device, record.proposer)
    use_pinned_knowledge(engine, record)
    with RunTools(engine, folder, record, choice) as tools:
        log = searched_log(engine)
        parts = Parts(folder, record, tools, engine.library, engine.terms, home, log)
        with Driver.open(folder.root, tools, home, parts) as driver:
            yield Driving(driver, engine, steps, tools)


def look(given: str | None) -> tuple[Engine, View]:
    """The run that is meant, as it stands on the disk. Nothing is written, and no lock is held."""
    engine = Engine(load_settings())
    view = read_run(find_run(given, Path.cwd(), engine.settings.home).root)
    use_pinned_knowledge(engine, view.record)
    return engine, view


def brief_of(engine: Engine, view: View) -> NextRequest:
    """What a proposer is told now. Raises `KoptError`."""
    methods = read_methods(engine.library)
    return brief(view.folder, view.record, view.state, methods, engine.terms, utc_now())


def gate_look(engine: Engine, view: View, version: int | None, *, final: bool) -> GateReport:
    """What the gate says of a version as it stands on the disk, or of the end. UsageError `version_unknown`."""
    state = view.state
    if final:
        ended = state.final or (state.finals[-1] if state.finals else None)
        if ended is None:
            raise UsageError("the run has not ended", code="not_ended", hint="`kopt run final` ends it.")
        number = ended.version
    else:
        profiled = [one.number for one in state.versions if one.profiled is not None]
        number = version if version is not None else (profiled[-1] if profiled else -1)
        if number not in profiled:
            which = f"v{number} is not" if version is not None else "no version is"
            raise UsageError(
                f"{which} profiled yet: the gate looks at whole versions"
                if version is None or version < len(state.versions)
                else f"the run has no v{number}",
                code="version_unknown",
                hint=f"Whole ones are {', '.join(f'v{n}' for n in profiled)}."
                if profiled
                else "See `kopt run status`.",
            )
    stage: Stage = "final" if final else "version"
    home = engine.settings.home
    context = GateContext(
        view.folder, view.record, state, engine.library, engine.terms, number, stage,
        key=load_key(home), began_sealed=seeds.sealed(home, view.record.id),
        last_commit=seeds.last_commit(home, view.record.id),
    )  # fmt: skip
    return run_gate(context)


def report_of(view: View) -> tuple[str, bool]:
    """(final_report.md, whether the run has ended); where it has not, as the report would be now."""
    path = view.folder.root / "final_report.md"
    if view.state.reported is not None and path.is_file():
        return path.read_text("utf-8", "replace"), True
    return final_files(view.folder, view.record, view.state)["final_report.md"].decode(), False
