"""Options of `kopt run` in groups, and what they ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, get_args

import typer

from kopt.cli.bench.options import FigureOption
from kopt.cli.command import RARE
from kopt.cli.options import (
    AnyDeviceOption,
    EnvironmentOptions,
    IncludeOption,
    NvccFlagsOption,
    ProblemOptions,
    TimingOptions,
)
from kopt.cli.terminal.completion import gpus, runs

if TYPE_CHECKING:
    from kopt.services.engine import Engine
    from kopt.services.runs.devices.choice import Choice
    from loop.journal.language_model import ModelChoice
    from loop.journal.record import BenchmarkWords, BuildWords
    from loop.planning.plan import ResolvedPlan
    from loop.planning.wanted import Wanted
    from loop.proposals.few_words import Words

RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", autocompletion=runs, help="Folder, name or id of the run (default: the one here or below ./runs)."
    ),
]
CommandTimeoutOption = Annotated[
    float, typer.Option("--command-timeout", help="Seconds for each answer of --command.", min=0.1, max=86400)
]
SearchSecondsOption = Annotated[
    float, typer.Option("--search-seconds", help="Seconds of quick measurements in the whole run.", min=0, max=86400)
]
SEARCH_SECONDS = 300.0
DevicesOption = Annotated[
    str,
    typer.Option(
        "--devices", help="GPUs that rank candidates: all, or 0,1. A verdict is measured on the run's device alone."
    ),
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        "--scheduler", help="tcp://HOST:PORT of a dask scheduler whose workers measure for the search.",
        rich_help_panel=RARE,
    ),
]  # fmt: skip
VersionArgument = Annotated[str, typer.Argument(help="A version, such as v3.")]


@dataclass(frozen=True)
class ProposerOptions:
    """Who proposes versions."""

    panel: ClassVar[str] = "Proposer"
    proposer: Annotated[
        str,
        typer.Option(
            "--proposer",
            help="search: kopt tries kernels and settings itself; agent: wait for `kopt run submit`; "
            "command: run a program; llm: ask a model.",
        ),
    ] = "search"
    command: Annotated[
        str, typer.Option("--command", help="Program that reads a request on stdin and prints a proposal.")
    ] = ""
    command_timeout: CommandTimeoutOption = 900.0
    search_seconds: SearchSecondsOption = SEARCH_SECONDS
    model: Annotated[
        str, typer.Option("--model", help="openai:NAME or anthropic:NAME (default: the setting `model`).")
    ] = ""
    max_calls: Annotated[int | None, typer.Option("--max-calls", help="Model calls in the whole run.")] = None
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Tokens of prompts and answers in the whole run.")
    ] = None
    max_cost: Annotated[float | None, typer.Option("--max-cost", help="US dollars, at the prices in the settings.")] = (
        None
    )

    def choice(self, engine: Engine) -> ModelChoice | None:
        """The language model; None for another proposer. Raises `KoptError`."""
        from decimal import Decimal

        from kbs.common.errors import UsageError

        if self.proposer != "llm":
            options = ("model", "max_calls", "max_tokens", "max_cost")
            given = next((name for name in options if getattr(self, name) not in (None, "")), None)
            if given is not None:
                raise UsageError(
                    f"--{given.replace('_', '-')} needs the proposer `llm`",
                    code="model_not_asked",
                    hint="Add --proposer llm.",
                )
            return None
        from kopt.services.runs.proposers.models import choose
        from kopt.services.settings import ModelServices

        values, services = engine.settings.values, ModelServices()
        cost = None if self.max_cost is None else Decimal(str(self.max_cost))
        return choose(self.model, values, services, max_calls=self.max_calls, max_tokens=self.max_tokens, max_cost=cost)


@dataclass(frozen=True)
class LimitOptions:
    """When the run ends."""

    panel: ClassVar[str] = "Limits"
    iterations: Annotated[int | None, typer.Option("--iterations", help="Versions after version 0 (default: 3).")] = (
        None
    )
    attempts: Annotated[int | None, typer.Option("--attempts", help="Attempts per version (default: 3).")] = None
    branches: Annotated[int, typer.Option("--branches", help="Candidates per proposal.", min=1, max=16)] = 4
    time: Annotated[str | None, typer.Option("--time", help="Time for the whole run: 90, 30min, 2h.")] = None
    target: Annotated[str, typer.Option("--target", help="Stop at 2.0x (of version 0) or 90% (of the floor).")] = ""


@dataclass(frozen=True)
class RuleOptions:
    """Which versions are kept, and what proposals may do."""

    panel: ClassVar[str] = "Rules"
    minimum_effect: Annotated[
        float, typer.Option("--minimum-effect", help="Keep a version whose gain is surely above this.", min=0, max=0.99)
    ] = 0.01
    accept_unmeasured: Annotated[
        bool, typer.Option("--accept-unmeasured", help="Keep correct versions if nothing can be timed.")
    ] = False
    forbid: Annotated[list[str] | None, typer.Option("--forbid", help="Method not to use. Repeatable.")] = None
    prefer: Annotated[
        list[str] | None, typer.Option("--prefer", help="Method to offer first; nothing is enforced. Repeatable.")
    ] = None
    precision: Annotated[
        str, typer.Option("--precision", help="Lowest-precision element type allowed: fp32.", rich_help_panel=RARE)
    ] = ""
    registers: Annotated[
        int | None, typer.Option("--registers", help="Most registers per thread.", rich_help_panel=RARE)
    ] = None
    shared_memory: Annotated[
        str, typer.Option("--shared-memory", help="Most shared memory per block: '48 KiB'.", rich_help_panel=RARE)
    ] = ""
    no_ncu: Annotated[bool, typer.Option("--no-ncu", help="Do not profile with ncu.", rich_help_panel=RARE)] = False
    discipline: Annotated[
        str, typer.Option("--discipline", help="single: one method a version; budget: several, each also left out.")
    ] = "single"
    partial_restart: Annotated[
        bool,
        typer.Option(
            "--partial-restart", help="If progress stalls, mask half of the rejected versions.", rich_help_panel=RARE
        ),
    ] = False
    least_confidence: Annotated[
        str,
        typer.Option(
            "--least-confidence", help="Lowest confidence a spec may have to be used as a target.", rich_help_panel=RARE
        ),
    ] = "source-reported"


@dataclass(frozen=True)
class KernelBuildOptions:
    """How kernels are built."""

    panel: ClassVar[str] = RARE
    include: IncludeOption = None
    nvcc_flags: NvccFlagsOption = ""


@dataclass(frozen=True)
class PlaceOptions:
    """On which device, and where files go."""

    panel: ClassVar[str] = "Device and folder"
    device: AnyDeviceOption = None
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", autocompletion=gpus, help="Product whose specs are used (default: the GPU present)."),
    ] = None
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder (default: WORKSPACE/runs/NAME-NNN).")] = (
        None
    )
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Commit to branch opt/KERNEL of the workspace's repository.")
    ] = False
    devices: DevicesOption = ""
    scheduler: SchedulerOption = ""


@dataclass(frozen=True)
class PlanOptions:
    """Everything that a run is planned from."""

    proposer: ProposerOptions
    limits: LimitOptions
    problem: ProblemOptions
    timing: TimingOptions
    rules: RuleOptions
    place: PlaceOptions
    environment: EnvironmentOptions
    build: KernelBuildOptions
    workspace: Annotated[Path, typer.Argument(help="Folder with the kernel and its reference.")] = Path()
    kernel: Annotated[
        Path | None, typer.Option("--kernel", help="The kernel, if the folder has several candidates.")
    ] = None
    ref: Annotated[Path | None, typer.Option("--ref", help="The reference, if the folder has several candidates.")] = (
        None
    )

    knowledge: Annotated[
        list[Path] | None,
        typer.Option("--knowledge", help="Folder of notes to search and quote in this run only. Repeatable."),
    ] = None

    bench_command: Annotated[
        str | None,
        typer.Option("--bench-command", help="Your own benchmark, run as it is for each version: external evidence."),
    ] = None
    figure: FigureOption = None

    @property
    def choice(self) -> Choice:
        """Where candidates are measured quickly."""
        from kopt.services.runs.devices.choice import Choice

        return Choice(self.place.devices, self.place.scheduler)

    def resolve(self, engine: Engine) -> ResolvedPlan:
        """The plan of the run. Raises `KoptError`."""
        from kopt.services.runs.service import plan

        resolved = plan(
            engine,
            self.wanted(engine),
            self.workspace.absolute(),
            device=self.place.device,
            gpu=self.place.gpu,
            kernel=self.kernel,
            reference=self.ref,
            inputs=self.problem.inputs,
        )
        self.choice.check(resolved.environment.device, self.proposer.proposer)
        return resolved

    def wanted(self, engine: Engine) -> Wanted:
        """What the options ask for. Raises `KoptError`."""
        from pydantic import ValidationError

        from evaluator.receipt.document import first_of
        from kbs.common.errors import UsageError
        from kopt.services.arguments import read_baselines, read_dims, read_seconds, read_tolerance
        from kopt.services.bench.request import read_workloads
        from loop.planning.wanted import Wanted
        from loop.proposers.command import split_command

        self._check()
        rules, out = self.rules, self.place.out
        try:
            return Wanted(
                proposer=self.proposer.proposer,  # type: ignore[arg-type]  # checked above
                model=self.proposer.choice(engine),
                command=split_command(self.proposer.command) if self.proposer.command else (),
                iterations=self.limits.iterations,
                attempts=self.limits.attempts,
                branches=self.limits.branches,
                seconds=read_seconds(self.limits.time),
                target=self.limits.target,
                out=None if out is None else str(out.absolute()),
                in_place=self.place.in_place,
                build=self._build(),
                benchmark=self._benchmark(),
                knowledge=tuple(path.absolute() for path in self.knowledge or ()),
                **{
                    **asdict(rules),
                    "discipline": rules.discipline,  # checked above
                    "forbid": tuple(rules.forbid or ()),
                    "prefer": tuple(rules.prefer or ()),
                    **self.problem.arguments(),
                    "dims": read_dims(self.problem.dims),
                    "workloads": read_workloads(self.problem.workloads),
                    "tolerance": read_tolerance(self.problem.tolerance),
                    **asdict(self.timing),
                    "baselines": read_baselines(self.timing.baselines),
                },
            )
        except ValidationError as error:
            where, what = first_of(error)
            raise UsageError(
                f"--{where.replace('_', '-')}: {what}", code="limit_invalid", hint="See `kopt run start --help-all`."
            ) from error

    def _benchmark(self) -> BenchmarkWords | None:
        from kbs.common.errors import UsageError

        if self.bench_command is None:
            if self.figure:
                raise UsageError(
                    "--figure reads the output of your own benchmark, and none was given",
                    code="options_do_not_fit",
                    hint="Add --bench-command 'python bench.py'.",
                )
            return None
        from evaluator.external.figures import read_patterns
        from evaluator.external.record import choose
        from loop.journal.record import BenchmarkWords

        _, words = choose(self.bench_command, None, "verdict")
        return BenchmarkWords(command=words, patterns=dict(read_patterns(self.figure or [])))

    def _build(self) -> BuildWords:
        """Folders and programs by their full paths: a run goes on from any folder. Raises `UsageError`."""
        from kopt.services.arguments import find_interpreter, read_variables
        from loop.journal.record import BuildWords

        home = self.environment.cuda_home
        return BuildWords(
            include=tuple(str(folder.absolute()) for folder in self.build.include or ()),
            nvcc_flags=tuple(self.build.nvcc_flags.split()),
            cuda_home="" if home is None else str(home.absolute()),
            python=find_interpreter(self.environment.python),
            variables=read_variables(self.environment.env or ()),
        )

    def _check(self) -> None:
        """Refuse options that name nothing known, or do not fit together. UsageError."""
        from kbs.common.errors import UsageError
        from kbs.evidence.spec import CONFIDENCES
        from loop.journal.record import Discipline, Proposer

        name = self.proposer.proposer
        if name not in get_args(Proposer):
            raise UsageError(
                f"unknown proposer {name!r}",
                code="proposer_unknown",
                hint="--proposer search needs nothing else; --proposer agent waits for `kopt run submit`; --proposer "
                "command --command 'python p.py' runs p.py; --proposer llm --model openai:NAME asks a language model.",
            )
        if name != "command" and self.proposer.command:
            raise UsageError(
                "--command needs the proposer `command`", code="command_not_asked", hint="Add --proposer command."
            )
        if self.rules.discipline not in get_args(Discipline):
            raise UsageError(
                f"unknown discipline {self.rules.discipline!r}",
                code="discipline_unknown",
                hint="--discipline single is one method a version; --discipline budget allows several.",
            )
        if self.rules.least_confidence not in CONFIDENCES:
            raise UsageError(
                f"unknown confidence {self.rules.least_confidence!r}",
                code="confidence_unknown",
                hint=f"From highest to lowest: {', '.join(CONFIDENCES)}.",
            )


@dataclass(frozen=True)
class WordOptions:
    """A proposal in few words, in place of a JSON file."""

    panel: ClassVar[str] = "Proposal in few words"
    kernel: Annotated[Path | None, typer.Option("--kernel", help="File with the whole new kernel.")] = None
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Method that the change is, as `kopt run next` lists it.")
    ] = None
    why: Annotated[str, typer.Option("--why", help="Why the change should help.")] = ""
    change: Annotated[
        str, typer.Option("--change", help="What was changed (default: the method, and the functions that differ).")
    ] = ""
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="METHOD=FILE: the kernel without one of several methods. Repeatable."),
    ] = None
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence",
            help="Reference from `kopt run next`, or '\"words\" <- reference' (default: the parent's receipt). "
            "Repeatable.",
        ),
    ] = None
    expect: Annotated[
        list[str] | None, typer.Option("--expect", help="Expected movement: 'time down: a little'. Repeatable.")
    ] = None
    skip: Annotated[
        list[str] | None, typer.Option("--skip", help="METHOD=REASON: why an earlier method is skipped. Repeatable.")
    ] = None
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", help="Question that finds your evidence, if no query of the run did. Repeatable."),
    ] = None
    circumstances: Annotated[
        str, typer.Option("--circumstances", help="What is different now, for a method that failed before.")
    ] = ""
    risk: Annotated[str, typer.Option("--risk", help="What may go wrong.")] = ""
    keep_if: Annotated[str, typer.Option("--keep-if", help="On which figures the version is kept.")] = ""
    parent: Annotated[
        str | None, typer.Option("--parent", help="Version that was changed (default: the best one).")
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of them was given."""
        return any(value not in (None, "", []) for value in asdict(self).values())

    @staticmethod
    def _without(given: str) -> tuple[str, str]:
        """(method, text of the file) of METHOD=FILE."""
        from kopt.services.runs.handing_in import read_kernel
        from loop.proposals.few_words import incomplete

        method, equals, file = given.partition("=")
        if not equals or not file:
            raise incomplete([f"--without {given!r} is not METHOD=FILE"])
        return method.strip(), read_kernel(Path(file))[0]

    def words(self) -> tuple[Words, Path, int | None]:
        """What was typed, the kernel's file, and the parent. Raises `UsageError`."""
        from kopt.services.arguments import read_version
        from kopt.services.runs.handing_in import read_kernel
        from loop.proposals.few_words import Words, incomplete

        if self.kernel is None:
            raise incomplete(["--kernel is missing: the file with the whole new kernel"])
        text, language = read_kernel(self.kernel)
        said = Words(
            kernel=text,
            language=language,
            methods=tuple(self.method or ()),
            why=self.why,
            change=self.change,
            evidence=tuple(self.evidence or ()),
            expect=tuple(self.expect or ()),
            skip=tuple(self.skip or ()),
            ask=tuple(self.ask or ()),
            circumstances=self.circumstances,
            risk=self.risk,
            keep_if=self.keep_if,
            without=tuple(self._without(one) for one in self.without or ()),
        )
        return said, self.kernel, None if self.parent is None else read_version(self.parent)
