"""The resolved plan of a run: what will be created, on which device, within which limits, and what each rests on.

Resolving writes nothing: no file or folder is created before the plan is accepted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from evaluator.receipt.plan import utc_now
from evaluator.source.languages import language_words
from evaluator.source.source_file import SourceFile, read_source
from kbs.common.canonical_json import Sha256
from kbs.common.errors import UsageError
from kbs.common.json_model import JsonDataclass
from loop.journal.folder import HINTS, check_free
from loop.journal.record import (
    BRANCHES,
    FirstWords,
    KeptFile,
    RunRecord,
)
from loop.planning.cost import cost_of
from loop.planning.decisions import target_of
from loop.planning.hints import Directive, Hints, Kind, appended, of_flag, parse_hints
from loop.planning.wanted import (
    ATTEMPTS,
    DISCIPLINES,
    ITERATIONS,
    MINIMUM_EFFECT,
    RunEnvironment,
    Wanted,
    kept_names,
    problem_words,
)
from loop.workspace.inventory import Inventory, form_words

RUNS = "runs"


@dataclass(frozen=True)
class Setting(JsonDataclass):
    """Something that the plan fixes."""

    name: str
    value: str
    source: str
    """Why it is so: a flag, a line of HINTS.md, what was found, or the default."""


@dataclass(frozen=True)
class ResolvedPlan:
    """Everything that is fixed before anything is created."""

    inventory: Inventory
    wanted: Wanted
    environment: RunEnvironment
    hints: Hints
    hints_text: str
    """HINTS.md of the run's folder: the user's text, followed by the directives of options."""
    kernel: SourceFile
    reference: SourceFile
    inputs: bytes | None
    folder: Path
    branch: str
    iterations: int
    attempts: int
    seconds: float | None
    settings: tuple[Setting, ...]
    creates: tuple[str, ...]
    """Every path that is created when the plan is accepted."""
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The kernel's name in folders and ids."""
        return slug(self.inventory.kernel.stem)

    def lines(self) -> Iterator[str]:
        """The plan as text, shown before it is accepted."""
        width = max(len(setting.name) for setting in self.settings)
        for setting in self.settings:
            yield f"{setting.name:<{width}}  {setting.value}  ({setting.source})"
        yield ""
        yield "hints"
        empty = "none" if self.inventory.hints is None else f"{self.inventory.hints.name} is empty"
        yield from (f"  {line}" for line in self.hints.acknowledged or (empty,))
        if self.inventory.not_used:
            yield "not used"
            yield from (f"  {line}" for line in self.inventory.not_used)
        yield "will be created"
        yield from (f"  {path}" for path in self.creates)
        yield from (f"note: {note}" for note in self.notes)

    def files(self) -> dict[str, bytes]:
        """The user's files as they are copied into the run's folder, by their names there."""
        record_of = kept_names(self.inventory)
        found = {
            record_of["kernel"]: self.kernel.text.encode("utf-8", "surrogatepass"),
            record_of["reference"]: self.reference.text.encode("utf-8", "surrogatepass"),
        }
        if self.inputs is not None:
            found[record_of["inputs"]] = self.inputs
        return found

    def record(self, id: str, seed_commitment: Sha256, created: str | None = None) -> RunRecord:
        """run.json. `id` is `run_id(plan.name, created, letters)`."""
        wanted, here, names = self.wanted, self.environment, kept_names(self.inventory)

        def kept(role: str, path: Path, digest: str) -> KeptFile:
            return KeptFile(origin=_origin(path, self.inventory.workspace), name=names[role], hash=digest)

        inputs = self.inventory.inputs
        return RunRecord(
            id=id,
            created=created or utc_now(),
            kopt=here.kopt,
            workspace=str(self.inventory.workspace),
            kernel=kept("kernel", self.inventory.kernel, self.kernel.hash),
            reference=kept("reference", self.inventory.reference, self.reference.hash),
            inputs=None
            if inputs is None or self.inputs is None
            else kept("inputs", inputs, hashlib.sha256(self.inputs).hexdigest()),
            problem_hash=here.problem_hash,
            problem=problem_words(wanted, here.outputs),
            first=self._first(),
            build=wanted.build,
            benchmark=wanted.benchmark,
            seed_commitment=seed_commitment,
            device=here.device,
            device_name=here.device_name if here.device != "cpu" else "",
            gpu=here.gpu,
            profile=here.grade,
            profile_why=here.grade_why,
            wikis=here.wikis,
            knowledge=here.knowledge,
            least_confidence=wanted.least_confidence,
            discipline=wanted.discipline,
            proposer=wanted.proposer,
            command=wanted.command,
            model=wanted.model,
            iterations=self.iterations,
            attempts=self.attempts,
            branches=wanted.branches,
            seconds=self.seconds,
            target=wanted.target,
            minimum_effect=wanted.minimum_effect,
            noise_floor=None,
            accept_unmeasured=wanted.accept_unmeasured,
            partial_restart=wanted.partial_restart,
            reports=2,
            in_place=wanted.in_place,
            branch=self.branch,
        )

    def _first(self) -> FirstWords | None:
        """How version 0 was made; None where it is the user's kernel."""
        made = self.inventory.made
        if made is None:
            return None
        return FirstWords(
            how=made.how, citation=made.citation, problem_hash=self.environment.library_hash if made.library else None
        )  # fmt: skip


def read_hints(inventory: Inventory, wanted: Wanted, methods: tuple[str, ...]) -> tuple[Hints, str]:
    """(directives of HINTS.md and the flags, the text of the run's HINTS.md).

    Raises `UsageError`: `hints_contradict`, `hints_value`, `method_unknown`, `file_unreadable`.
    """
    text = "" if inventory.hints is None else read_source(inventory.hints, "hints").text
    flags = _flags(wanted, methods)
    return parse_hints(text, methods, flags), appended(text, flags, methods)


def resolve(
    inventory: Inventory, wanted: Wanted, here: RunEnvironment, read: tuple[Hints, str], home: Path
) -> ResolvedPlan:
    """Resolve the plan. `read` is the result of `read_hints`, `home` is KOPT_HOME, which will have the seed.

    Raises `UsageError`: `target_invalid`, `out_exists`, `command_missing`, `knowledge_holds_run`, `benchmark_kernel`.
    """
    hints, text = read
    target_of(wanted.target)
    if wanted.proposer == "command" and not wanted.command:
        raise UsageError(
            "the proposer `command` needs a program",
            code="command_missing",
            hint="Such as: --proposer command --command 'python proposer.py'",
        )
    if wanted.benchmark is not None and Path(_origin(inventory.kernel, inventory.workspace)).is_absolute():
        raise UsageError(
            f"the kernel {inventory.kernel} is outside of the workspace, where your own benchmark would read it",
            code="benchmark_kernel",
            hint="Start the run in the folder that holds both, or leave --bench-command out.",
        )
    folder = _folder(inventory, wanted)
    holding = [notes for notes in wanted.knowledge if folder.resolve().is_relative_to(notes.resolve())]
    if holding:
        raise UsageError(
            f"the run's folder {folder} would lie in the notes {holding[0]}, and its own pages among them",
            code="knowledge_holds_run",
            hint="Give --knowledge a folder that holds notes alone, or another folder for the run with --out.",
        )
    name = slug(inventory.kernel.stem)
    branch = f"opt/{name}" if wanted.in_place else "main"
    limits = {kind: _limit(hints, kind) for kind in ("iterations", "attempts", "time")}
    iterations = int(limits["iterations"][0] or ITERATIONS)
    attempts = int(limits["attempts"][0] or ATTEMPTS)
    seconds = float(limits["time"][0]) if limits["time"][0] else None
    kernel = inventory.kernel_source
    reference = read_source(inventory.reference, "reference")
    inputs = None if inventory.inputs is None else _bytes(inventory.inputs)
    if (
        inputs is not None
        and b'"file"' in inputs
        and inventory.inputs is not None
        and inventory.inputs.suffix == ".json"
    ):
        raise UsageError(
            f"{inventory.inputs.name} names a second file of raw numbers, but a run keeps only one file of inputs",
            code="inputs_beside",
            hint="Save the tensors as .npz or .safetensors, and name that with --inputs.",
        )
    plan = ResolvedPlan(
        inventory, wanted, here, hints, text, kernel, reference, inputs, folder, branch, iterations, attempts, seconds,
        (), (), tuple(_notes(wanted, here)),
    )  # fmt: skip
    settings = tuple(_settings(plan, {kind: source for kind, (_, source) in limits.items()}))
    creates = tuple(_creates(plan, home))
    return ResolvedPlan(**{**vars(plan), "settings": settings, "creates": creates})


def run_id(name: str, created: str, letters: str) -> str:
    """Kernel, time and four letters: `softmax-20261121-140500-qkzt`. `created` as `utc_now` writes it."""
    time = re.sub(r"[-:Z]", "", created).replace("T", "-")
    return f"{name}-{time}-{letters}"


def slug(name: str) -> str:
    """A name in lower case, digits and hyphens, at most 40 characters: `soft_max v2` is `soft-max-v2`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "kernel"


# --- parts ------------------------------------------------------------------------------------------------------------


def _flags(wanted: Wanted, methods: tuple[str, ...]) -> tuple[Directive, ...]:
    said: list[tuple[Kind, str, str]] = []
    said += [("forbid", method, "--forbid") for method in wanted.forbid]
    said += [("prefer", method, "--prefer") for method in wanted.prefer]
    numbers = (
        ("iterations", wanted.iterations, "--iterations"),
        ("attempts", wanted.attempts, "--attempts"),
        ("registers", wanted.registers, "--registers"),
        ("time", None if wanted.seconds is None else f"{wanted.seconds:.0f} s", "--time"),
        ("shared memory", wanted.shared_memory or None, "--shared-memory"),
        ("precision", wanted.precision or None, "--precision"),
    )
    said += [(cast(Kind, kind), str(value), flag) for kind, value, flag in numbers if value is not None]
    if wanted.no_ncu:
        said.append(("no ncu", "", "--no-ncu"))
    return tuple(of_flag(kind, value, flag, methods) for kind, value, flag in said)


def _limit(hints: Hints, kind: str) -> tuple[str, str]:
    """(value, source)"""
    found = next((one for one in hints.directives if one.kind == kind), None)
    return (found.value, found.source) if found else ("", "default")


def _folder(inventory: Inventory, wanted: Wanted) -> Path:
    if wanted.out is not None:
        out = Path(wanted.out)
        check_free(out)
        return out
    parent, name = inventory.workspace / RUNS, slug(inventory.kernel.stem)
    taken = {path.name for path in parent.iterdir()} if parent.is_dir() else set()
    number = next(n for n in range(1, len(taken) + 2) if f"{name}-{n:03d}" not in taken)
    return parent / f"{name}-{number:03d}"


def _settings(plan: ResolvedPlan, sources: dict[str, str]) -> Iterator[Setting]:
    inventory, wanted, here = plan.inventory, plan.wanted, plan.environment
    root = inventory.workspace
    yield Setting("kernel", _origin(inventory.kernel, root), inventory.why["kernel"])
    yield Setting("reference", _origin(inventory.reference, root), inventory.why["reference"])
    if inventory.inputs is not None:
        yield Setting("inputs", _origin(inventory.inputs, root), inventory.why["inputs"])
    form = inventory.recognised
    yield Setting(
        "form",
        f"{form.form}: {form_words(form.form)}",
        f"{language_words(plan.kernel, form.backend)}, entry {form.entry}",
    )
    sizes = ", ".join(f"{name}={size}" for name, size in wanted.dims.items())
    yield Setting("sizes", sizes or "the reference's own", "--dims" if sizes else "default")
    device = f"{here.device} ({here.device_name})" if here.device_name else here.device
    yield Setting("device", device, "where kernels run")
    yield Setting("GPU", here.gpu or "UNKNOWN", here.gpu_from)
    yield Setting("profile", here.grade, here.grade_why or "ncu was tried")
    for option, value in wanted.build.shown:
        yield Setting(option.removeprefix("--"), value, option)
    yield Setting("proposer", " ".join((wanted.proposer, *wanted.command)), "--proposer")
    given = "default" if wanted.discipline == "single" else "--discipline"
    yield Setting("discipline", f"{wanted.discipline}: {DISCIPLINES[wanted.discipline]}", given)
    if wanted.model is not None:
        yield Setting("model", wanted.model.id, "--model or KOPT_MODEL")
        yield Setting("its limits", wanted.model.limits(), "--max-calls, --max-tokens, --max-cost")
        yield Setting("its prices", wanted.model.prices(), "KOPT_MODEL_INPUT_PRICE, KOPT_MODEL_OUTPUT_PRICE")
    yield Setting("iterations", str(plan.iterations), sources["iterations"])
    yield Setting("attempts", f"{plan.attempts} a version", sources["attempts"])
    default = "default" if wanted.branches == BRANCHES else "--branches"
    yield Setting("branches", f"{wanted.branches} candidates a proposal, at most", default)
    yield Setting("time limit", "none" if plan.seconds is None else f"{plan.seconds:g} s", sources["time"])
    cost = cost_of(
        device=here.device, grade=here.grade, iterations=plan.iterations, branches=wanted.branches,
        several=wanted.discipline == "budget", workloads=len(wanted.workloads), timing_seconds=wanted.timing_seconds,
    )  # fmt: skip
    yield Setting("will take", cost.shown, cost.assumed)
    yield Setting("target", wanted.target or "none", "--target" if wanted.target else "default")
    default = "default" if wanted.minimum_effect == MINIMUM_EFFECT else "--minimum-effect"
    yield Setting("kept from", f"a lower bound above {1 + wanted.minimum_effect:g} times the parent", default)
    baselines = ", ".join(one.name for one in wanted.baselines) or "none"
    library = inventory.made is not None and inventory.made.library
    first = "none for version 0, a baseline itself" if library else f"{baselines} for version 0"
    yield Setting("baselines", f"{first}, then each version's parent", "--baselines")
    if wanted.benchmark is not None:
        command = " ".join(wanted.benchmark.command)
        yield Setting("benchmark", command, "--bench-command: external evidence, for which no version is kept")
    for name, wiki in here.wikis.items():
        pinned = f"pinned at revision {wiki.revision[:12]}, {len(wiki.pages)} pages"
        if name in here.knowledge:
            yield Setting("knowledge", f"{name}, {wiki.root}", f"--knowledge: {pinned}; quoted, no source of a number")
        else:
            yield Setting("wiki", name, pinned)
    yield Setting("folder", str(plan.folder), "--out" if wanted.out else "default")
    where = f"branch {plan.branch} of the repository that is there" if wanted.in_place else "a repository of its own"
    yield Setting("git", where, "--in-place" if wanted.in_place else "default")


def _creates(plan: ResolvedPlan, home: Path) -> Iterator[str]:
    folder, names = plan.folder, kept_names(plan.inventory)
    yield f"{folder}/"
    own = [names["reference"], *([names["inputs"]] if plan.inputs is not None else [])]
    for name in ("run.json", "journal.jsonl", "plan.md", *([HINTS] if plan.hints_text else []), *own, ".gitattributes"):
        yield str(folder / name)
    yield str(folder / "v0" / names["kernel"])
    if plan.wanted.in_place:
        yield f"branch {plan.branch} of {plan.inventory.workspace}'s repository"
    else:
        yield str(folder / ".git")
    yield str(home / "runs" / "<run id>.seed")


def _notes(wanted: Wanted, here: RunEnvironment) -> Iterator[str]:
    if here.device == "cpu":
        yield "no time is taken on the CPU: correctness is checked, and nothing is said of speed"
        if wanted.accept_unmeasured:
            yield "correct versions are kept unmeasured (--accept-unmeasured); every report says so"
        else:
            yield "no version will be kept: a version is kept for its measured speed (or with --accept-unmeasured)"
    if wanted.benchmark is not None:
        yield (
            "your benchmark runs in a copy of the workspace that has each accepted version's kernel in place of yours,"
            " with your rights and outside of kopt's sandbox"
        )
    if not here.gpu:
        yield "specs and targets are UNKNOWN without a GPU: name one with --gpu"
    if here.grade != "full":
        yield f"the profile grade is {here.grade}: {here.grade_why}; the gate says which of its rules lapse"


def _origin(path: Path, workspace: Path) -> str:
    try:
        return path.resolve().relative_to(workspace.resolve()).as_posix()
    except ValueError:
        return str(path)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the inputs {path} cannot be read: {error.strerror}",
            code="file_unreadable",
            hint="Check its path and permissions.",
        ) from error
