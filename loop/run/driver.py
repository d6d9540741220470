"""Drives a run: creates it, advances it step by step, takes proposals, and ends it.

One process at a time holds a run. After an interruption, `Driver.open` replays the journal to find the state, and
`advance` repeats the step whose event is missing.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.receipt.plan import utc_now
from evaluator.store.seal import ensure_key
from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import Sha256
from kbs.common.errors import KoptError, UsageError
from kbs.common.files import make_folder, read_if_there, remove_unfinished, write_all, write_error, write_whole
from loop.gate.report import GateReport
from loop.journal import journal, registry, seeds
from loop.journal.events import Applied, Asked, Created, Extended, HintsRead, Masked, Stopped, replaced
from loop.journal.folder import JOURNAL, KERNELS, RECORD, RunFolder, check_free
from loop.journal.journal import Journal
from loop.journal.language_model import ModelCall
from loop.journal.record import RunRecord, read_record
from loop.journal.repository import ATTRIBUTES, Repository
from loop.journal.seals import Sealer
from loop.journal.state import Phase, RunState, replay
from loop.planning import decisions
from loop.planning.hints import is_preference
from loop.proposals.proposal import Proposal
from loop.proposers.reading import Unread
from loop.run import ending, steps
from loop.run.open_run import Progress, Run
from loop.run.parts import Parts
from loop.run.submission import Submission, check, submit
from loop.tools import Tools


@dataclass(frozen=True)
class View:
    """A run as it is on the disk, for reading only."""

    folder: RunFolder
    record: RunRecord
    state: RunState
    torn: bool
    """Whether the last line of the journal is incomplete: the run was killed, or is being written right now."""


def read_run(root: Path) -> View:
    """Read a run without locking it. Raises `KoptError`."""
    folder = RunFolder(root)
    record = read_record(folder)
    found = journal.read(journal.load(folder.journal))
    return View(folder, record, replay(found.entries), bool(found.torn))


def create_run(root: Path, record: RunRecord, files: dict[str, bytes], home: Path) -> RunFolder:
    """Create a run's folder with its first event, atomically.

    `files` are the files at its top, by name; the kernel goes to v0/ under the name in the record. The seed that the
    record commits to must exist (`seeds.create`). Raises `KoptError`: `out_exists`, `run_busy`,
    `disk_full`, `not_writable`.
    """
    seeds.load(home, record.id, record.seed_commitment)
    with registry.run_lock(home, record.id):
        check_free(root)
        made = root.with_name(f".{root.name}.{record.id}.tmp")
        try:
            for left in sorted(root.parent.glob(f".{root.name}.*.tmp")) if root.parent.is_dir() else ():
                _remove_left(left, root, home, record.id)
            make_folder(made)
            folder = RunFolder(made)
            data = canonical.dumps(record.model_dump(mode="json"))
            placed = {f"v0/{name}" if name == record.kernel.name else name: found for name, found in files.items()}
            hashes = write_all(folder.root, {RECORD: data, ".gitattributes": ATTRIBUTES, **placed})
            event = Created(record=hashes.pop(RECORD), files=hashes)
            ensure_key(home)
            write_whole(made / JOURNAL, journal.first_line(event, Sealer.of(home, record.id)))
            made.rename(root)
        except OSError as error:
            raise write_error(error, root) from error
        registry.remember(home, record.id, root)
    return RunFolder(root)


def _remove_left(left: Path, root: Path, home: Path, run: str) -> None:
    """Remove the folder that a killed start left behind, unless another process is creating that run."""
    other = left.name.removeprefix(f".{root.name}.").removesuffix(".tmp")
    with contextlib.ExitStack() as stack:
        if other != run:
            try:
                stack.enter_context(registry.run_lock(home, other))
            except KoptError:
                return
        shutil.rmtree(left)


@dataclass
class Driver:
    """A run that this process holds."""

    run: Run
    notes: list[str] = field(default_factory=list)
    """What was repaired or read when the run was opened."""

    @classmethod
    @contextlib.contextmanager
    def open(cls, root: Path, tools: Tools, home: Path, parts: Parts) -> Iterator[Driver]:
        """Lock a run, and repair what a killed process left. Nothing is measured before `advance`.

        Raises `KoptError`: `run_busy`, `journal_edited`, `journal_foreign`, `journal_inconsistent`, `record_damaged`,
        `seed_missing`, those of git (`git_missing`, `wrong_branch`, `git_locked` …), `hints_contradict`.
        """
        folder = RunFolder(root)
        record = read_record(folder)
        with registry.run_lock(home, record.id):
            master = seeds.load(home, record.id, record.seed_commitment)
            written = Journal.open(folder.journal, Sealer.of(home, record.id))
            state = replay(written.entries)
            _check_record(folder, state)
            remove_unfinished(folder.root)
            repository = Repository(
                root, record.id, in_place=record.in_place, branch=record.branch,
                last=seeds.commit_file(home, record.id),
            )  # fmt: skip
            notes = repository.settle()
            committed = any(version.committed for version in state.versions)
            repository.begin(committed=committed)
            if written.set_aside is not None:
                notes.append(f"the journal's last line was not whole: it was moved to {written.set_aside.name}")
            _check_history(repository, folder, committed)
            run = Run(
                folder, record, written, state, tools, parts, repository, home, master, lambda *_: None
            )  # fmt: skip
            registry.remember(home, record.id, root)
            driver = cls(run, notes)
            driver._read_hints()
            yield driver

    @property
    def state(self) -> RunState:
        """The state that the journal adds up to."""
        return self.run.state

    @property
    def record(self) -> RunRecord:
        """run.json."""
        return self.run.record

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return self.run.folder

    @property
    def phase(self) -> Phase:
        """The next phase."""
        return self.state.phase(self.record)

    @property
    def rejected(self) -> GateReport | None:
        """The gate's report if it rejected the end of the run."""
        return self.run.rejected

    def advance(self, progress: Progress = lambda *_: None) -> Phase:
        """Continue until a proposal is needed, the run is finished, or its baseline failed.

        Returns `REPORT` if the gate rejects the end of the run; `rejected` says why. Raises `KoptError` if a step
        fails; nothing recorded is lost, and the next `advance` repeats that step.
        """
        self.run.rejected = None
        while True:
            phase = self.phase
            if phase is Phase.PROPOSE:
                over = decisions.over_time(self.state, self.record, utc_now()) or decisions.over_budget(
                    self.state, self.record
                )
                if over is None:
                    return phase
                self.run.happened(Stopped(reason=over.reason, evidence=over.evidence))
                continue
            if phase is Phase.BASELINE_FAILED:
                ending.commit_rest(self.run)
                return phase
            current = self.state.current
            progress(phase, "" if current is None else f"v{current.number}")
            if phase is Phase.FINISHED:
                ending.settle(self.run)
                return phase
            if phase is Phase.OPEN:
                self._read_hints()
            steps.STEPS[phase](self.run)
            if self.run.rejected is not None:
                return phase

    def asked(self, call: ModelCall) -> None:
        """Record what a call of a language model used; its answer is submitted next.

        Raises `UsageError` (`not_awaited`), `KoptError`.
        """
        self.check_awaited()
        self.run.happened(Asked(version=self.run.version.number, call=call))

    def submit(self, outcome: Proposal | Unread, data: bytes, said: str = "") -> Submission:
        """Take a proposal for the open version. It is in the journal when this returns.

        `data` is the answer as it was handed in. `said` is what a program wrote to standard error; it is kept if the
        answer is not a proposal. Raises `UsageError` (`not_awaited`), `KoptError`.
        """
        self.check_awaited()
        self._read_hints()
        return submit(self.run, outcome, data, said)

    def check(self, proposal: Proposal) -> Submission:
        """What `submit` would say of a proposal. Records nothing of it. Raises as `submit` does."""
        self.check_awaited()
        return check(self.run, proposal)

    def check_awaited(self) -> None:
        """Raise `UsageError` (`not_awaited`) unless a proposal is wanted now."""
        if self.phase is not Phase.PROPOSE:
            raise UsageError(
                f"the run is not waiting for a proposal: it is in the phase {self.phase}",
                code="not_awaited",
                hint="`kopt run status` shows what comes next; `kopt run resume` continues.",
            )

    # --- what the user asks for ---------------------------------------------------------------------------------------

    def stop(self, why: str = "") -> None:
        """Open no further version; `advance` then ends the run. A second call changes nothing."""
        if self.state.stopped is None:
            said = why or f"the user stopped the run after {self.state.iterations} iterations"
            self.run.happened(Stopped(reason="user", evidence=said))

    def final(self, progress: Progress = lambda *_: None) -> Phase:
        """Stop, and continue to the end."""
        self.stop()
        return self.advance(progress)

    def extend(self, iterations: int) -> None:
        """Allow more iterations; a stopped run continues. Raises `UsageError` (`baseline_failed`)."""
        if self.phase is Phase.BASELINE_FAILED:
            raise UsageError(
                "version 0 was not accepted: no iteration can follow it",
                code="baseline_failed",
                hint="Fix the kernel or the reference, and start a new run.",
            )
        self.run.happened(Extended(iterations=iterations))

    def mask(self, version: int, masked: bool, why: str) -> None:
        """Hide a version's record from proposers, or show it again. Raises `UsageError` (`no_version`)."""
        if not 0 <= version < len(self.state.versions):
            raise UsageError(
                f"there is no version {version}", code="no_version", hint="`kopt run show` lists the versions."
            )
        if self.state.versions[version].masked != masked:
            self.run.happened(Masked(version=version, masked=masked, why=why))

    def difference(self, target: Path) -> str:
        """What `apply` would change in the user's file, as a unified diff; empty if it is the best version already."""
        kernel = self.run.version_kernel(self._best())
        before = _read_target(target, self.record.first is not None).decode("utf-8", "replace")
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            kernel.text.splitlines(keepends=True),
            str(target),
            f"v{self._best()}/{kernel.name}",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def apply(self, target: Path, expected: Sha256) -> Applied | None:
        """Copy the best version over the user's kernel, and keep the old file in replaced/; None if nothing changes.

        `expected` is the hash of the file that the diff was made with. Raises `UsageError`: `target_changed`,
        `target_language`, `nothing_to_apply`.
        """
        number = self._best()
        kernel, before = self.run.version_kernel(number), _read_target(target, self.record.first is not None)
        if (target.suffix == ".cu") != (kernel.name == KERNELS["cuda"]):
            raise UsageError(
                f"v{number} is {kernel.name}, but {target} is in another language",
                code="target_language",
                hint=f"Copy {self.folder.best / kernel.name} by hand, and change what calls the kernel.",
            )
        kept = replaced(len(self.state.applied) + 1, str(target))
        saved = read_if_there(self.folder.root / kept)
        if before == kernel.data and saved is None:
            return None
        if before != kernel.data:
            if hashlib.sha256(before).hexdigest() != expected:
                raise UsageError(
                    f"{target} was changed since the difference was shown",
                    code="target_changed",
                    hint="Look at the difference again: `kopt run apply`.",
                )
            self.run.put({kept: before})
            saved = before
            write_whole(target, kernel.data)
        assert saved is not None
        event = Applied(
            version=number, target=str(target), before=hashlib.sha256(saved).hexdigest(), after=kernel.hash
        )  # fmt: skip
        self.run.happened(event)
        if self.phase is Phase.FINISHED:
            ending.settle(self.run)
        return event

    def _best(self) -> int:
        final = self.state.final
        number = final.version if final is not None else self.state.best
        if number is None:
            raise UsageError("there is no version to apply", code="nothing_to_apply", hint="See `kopt run status`.")
        return number

    def _read_hints(self) -> None:
        """Read HINTS.md, and record it if it changed."""
        found, before = self.run.parts.hints(), self.state.hints
        if found != before:
            self.run.happened(found)
            if found.file is not None or before is not None:
                self.notes.append(_hints_words(found))


def _hints_words(found: HintsRead) -> str:
    if found.file is None:
        return "HINTS.md is gone: no directive applies from now on"
    if not found.directives and not found.passed_on:
        return "HINTS.md is empty: it has no directive, and nothing for the proposer"
    orders = sum(not is_preference(line) for line in found.directives)
    wishes = len(found.directives) - orders
    said = [
        f"{orders} enforced by the gate from now on" if orders else "",
        f"{wishes} on which methods are offered first" if wishes else "",
        f"{len(found.passed_on)} passed on to the proposer" if found.passed_on else "",
    ]
    return f"HINTS.md was read; directives and lines: {', '.join(filter(None, said))}"


def _read_target(target: Path, made: bool) -> bytes:
    """The bytes of a file; `made`: none where it is not there, because the user had a reference alone."""
    try:
        return target.read_bytes()
    except FileNotFoundError as error:
        if made:
            return b""
        raise _unreadable(target, error) from error
    except OSError as error:
        raise _unreadable(target, error) from error


def _unreadable(target: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{target} cannot be read: {error.strerror or error}",
        code="file_unreadable",
        hint="Give the kernel that the run was started with, or another file to copy over.",
    )


def _check_record(folder: RunFolder, state: RunState) -> None:
    """Raise `KoptError` if run.json is not the one that the run started with."""
    recorded = None if state.created is None else state.created.record
    if recorded != hashlib.sha256(folder.record.read_bytes()).hexdigest():
        raise KoptError(
            f"{folder.record} was changed after the run started",
            code="record_changed",
            hint="Restore it from the run's git repository. The subject of a run cannot change: start a new one.",
        )


def _check_history(repository: Repository, folder: RunFolder, committed: bool) -> None:
    """Raise `KoptError` if the journal lost or changed lines that git has."""
    there = repository.committed(JOURNAL) if committed else None
    if there is not None and not folder.journal.read_bytes().startswith(there):
        raise KoptError(
            f"{folder.journal} does not start with the lines in git's last commit",
            code="journal_edited",
            hint=f"`git checkout -- {JOURNAL}` in the run's folder; steps after that commit are then repeated.",
        )
