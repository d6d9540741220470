"""Runs as a reader sees them: which are known, how one stands, and all that it holds of a version."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluator.receipt.plan import utc_now
from kbs.common.errors import KoptError, UsageError
from kbs.common.visible_text import visible
from kopt.services.results.runs import RunListItem, RunWatchData
from kopt.services.runs.lookup import runs_below, runs_of_home
from kopt.services.runs.watching import event_line, watched
from loop.journal.folder import RunFolder
from loop.journal.journal import Entry
from loop.journal.version_state import VersionState
from loop.pages import Drawing, drawing
from loop.pages.artifacts import VersionFiles, targets
from loop.run.driver import View, read_run
from loop.tools import Targets

MOST_FILES = 50_000
"""Files of a run that are looked at; one with more is not shown."""


@dataclass(frozen=True)
class KnownRun:
    """A run's folder, and the key that stands for it in addresses."""

    key: str
    folder: RunFolder

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.root.name

    @property
    def mark(self) -> str:
        """What changes when an event is added to its journal."""
        try:
            found = self.folder.journal.stat()
        except OSError:
            return ""
        return f"{found.st_size}-{found.st_mtime_ns}"


@dataclass(frozen=True)
class KnownRuns:
    """The runs that may be looked at. Every other folder is out of reach: a key is looked up, and never a path."""

    all: dict[str, KnownRun]

    @classmethod
    def of(cls, home: Path, here: Path, further: Iterable[Path] = ()) -> KnownRuns:
        """Those that were begun with this KOPT_HOME, those below `here`, and those of further folders: each is a run,
        or holds runs."""
        found = [*runs_of_home(home), *runs_below(here)]
        for place in further:
            found += [RunFolder(path) for path in _runs_at(place)]
        runs: dict[str, KnownRun] = {}
        for folder in found:
            root = folder.root.resolve()
            key = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
            runs.setdefault(key, KnownRun(key, RunFolder(root)))
        return cls(runs)

    def get(self, key: str) -> KnownRun:
        """Raises `UsageError` (`run_unknown`)."""
        if key not in self.all:
            raise UsageError(
                "there is no such run here", code="run_unknown", hint="It was moved or removed. See the list of runs."
            )
        return self.all[key]

    def items(self) -> list[tuple[KnownRun, RunListItem]]:
        """Each with its line, the newest first."""
        lines = [(run, _item(run.folder)) for run in self.all.values()]
        return sorted(lines, key=lambda line: (line[1].created, line[1].run), reverse=True)

    def named(self, id: str) -> KnownRun | None:
        """The run of an id, which its folder is named by; None where there is none, or several."""
        found = [run for run in self.all.values() if run.name == id]
        return found[0] if len(found) == 1 else None


def _runs_at(place: Path) -> list[Path]:
    if RunFolder(place).record.is_file():
        return [place]
    try:
        return sorted(path for path in place.iterdir() if RunFolder(path).record.is_file())
    except OSError:
        return []


def _item(folder: RunFolder) -> RunListItem:
    if why := unsafe(folder):
        return RunListItem(run=folder.root.name, folder=str(folder.root), phase="damaged", problem=why)
    return RunListItem.of(folder)


def unsafe(folder: RunFolder) -> str:
    """Why a run's folder is not read: it holds what leads out of it, or is no file. Empty where nothing does.

    A folder may be a stranger's, and a link in it would show whatever it leads to.
    """
    seen = 0
    for place, folders, files in os.walk(folder.root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            seen += 1
            try:
                mode = (Path(place) / name).lstat().st_mode
            except OSError:  # gone meanwhile
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                where = visible(str((Path(place) / name).relative_to(folder.root)))
                return f"{where} is a link, or no file: the run is not read"
        if seen > MOST_FILES:
            return f"it has more than {MOST_FILES:,} files"
    return ""


@dataclass(frozen=True)
class RunLook:
    """A run as it is on the disk now."""

    known: KnownRun
    view: View

    @classmethod
    def of(cls, known: KnownRun) -> RunLook:
        """Raises `KoptError`, and `UsageError` (`run_unsafe`)."""
        if why := unsafe(known.folder):
            raise UsageError(why, code="run_unsafe", hint="Put the file itself in its place, or remove it.")
        return cls(known, read_run(known.folder.root))

    @cached_property
    def stands(self) -> RunWatchData:
        """How far it is."""
        return watched(self.view, utc_now())

    @cached_property
    def files(self) -> dict[int, VersionFiles]:
        """Files of each version."""
        return {
            one.number: VersionFiles(self.known.folder, self.view.record, one.number)
            for one in self.view.state.versions
        }

    @cached_property
    def drawing(self) -> Drawing:
        """What its pictures show. Raises `KoptError` (`artifact_damaged`)."""
        return drawing(self.known.folder, self.view.record, self.view.state, self.files)

    @cached_property
    def targets(self) -> Targets | None:
        """What hardware and problem allow; None before step 0. Raises `KoptError` (`artifact_damaged`)."""
        return targets(self.known.folder)

    def version(self, number: int) -> VersionLook:
        """Raises `UsageError` (`version_unknown`)."""
        versions = self.view.state.versions
        if not 0 <= number < len(versions):
            last = f"the last one is v{len(versions) - 1}" if versions else "it has none yet"
            raise UsageError(
                f"the run has no v{number}: {last}", code="version_unknown", hint="See the versions of the run."
            )
        return VersionLook(self, versions[number])

    def events(self) -> Iterator[tuple[Entry, str]]:
        """Each event with its line, the newest first."""
        for entry in reversed(self.view.state.entries):
            yield entry, event_line(entry)


@dataclass(frozen=True)
class VersionLook:
    """A version of a run."""

    run: RunLook
    state: VersionState

    @property
    def number(self) -> int:
        """K of vK."""
        return self.state.number

    @property
    def files(self) -> VersionFiles:
        """Its structured files."""
        return self.run.files[self.number]

    @property
    def parent(self) -> VersionLook | None:
        """The version that was changed."""
        return None if self.state.parent is None else self.run.version(self.state.parent)

    @property
    def kernel(self) -> tuple[str, str] | None:
        """(name, text) of its kernel; of an attempt that was not accepted, what was tried last."""
        found = self.files.kernel or self._tried()
        return None if found is None else (found[0], found[1].decode("utf-8", "replace"))

    def _tried(self) -> tuple[str, bytes] | None:
        if not self.state.attempts:
            return None
        folder = self.run.known.folder.attempt(self.number, self.state.attempts[-1].number)
        for name in ("kernel.py", "kernel.cu"):
            try:
                return name, (folder / name).read_bytes()
            except OSError:
                continue
        return None


def readable(path: Path) -> str:
    """A text file of a run; empty where it is not there. Raises `KoptError` (`artifact_damaged`)."""
    try:
        return path.read_text("utf-8", "replace") if path.is_file() else ""
    except OSError as error:
        raise KoptError(
            f"{path.name} cannot be read: {error.strerror}", code="artifact_damaged", hint="Check its permissions."
        ) from error
