"""Kills a run at every point: the folder as a kill would leave it is kept before and after each call that changes it.

A kill between two such calls leaves what one of them left, so that these folders are all that kills can leave, but for
what a call of git or the disk itself leaves half done.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from git.cmd import Git

from kbs.experience.files import LogFiles
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import Phase
from loop.proposals.proposal import Ablation, Branch, Proposal
from loop.run.driver import Driver, create_run, read_run
from tests.loop import tools
from tests.loop.planted import PlantedTools

CALLS = ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "ftruncate", "write")
"""Of `os`: what kopt changes the disk with. A buffered write comes to the disk before its fsync."""
IN_PLACE = (".jsonl", ".holder", ".tmp", ".lock", ".sqlite", ".sqlite-wal", ".sqlite-shm")
"""Endings of files that are changed where they stand, as git changes its own but for its objects. All others are
replaced whole, so that a link keeps them."""


def shared_memory() -> Path | None:
    """A folder in memory, where there is one."""
    place = Path("/dev/shm")
    return place if os.access(place, os.W_OK) else None


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder for many copies of small files."""
    with tempfile.TemporaryDirectory(dir=shared_memory(), prefix="kopt-crash-") as name:
        yield Path(name).resolve()


@dataclass
class Camera:
    """Keeps every state of a folder that differs from the one before it."""

    source: Path
    album: Path
    points: list[tuple[Path, str]] = field(default_factory=list)
    """(copy, the call that it stands before or after)"""
    calls: dict[str, int] = field(default_factory=dict)
    """How often each was made."""
    most: int = 100_000
    """Copies that are kept; later ones are not taken."""
    _last: object = None
    _busy: bool = False
    """Whether a picture is being taken: what that does to the disk is none of the run's."""

    def shoot(self, what: str) -> None:
        """Keep the folder as it is now."""
        seen = tuple(sorted(_stamps(self.source)))
        if seen == self._last or len(self.points) >= self.most:
            return
        self._last, self._busy = seen, True
        copy = self.album / f"p{len(self.points):05d}"
        copy_links(self.source, copy)
        self.points.append((copy, what))
        self._busy = False

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with a picture before and after it."""

        def made(*words: Any, **named: Any) -> Any:
            if self._busy:
                return call(*words, **named)
            what = f"{name} {self.calls.get(name, 0)}"
            self.calls[name] = self.calls.get(name, 0) + 1
            self.shoot(f"before {what}")
            if name == "write":
                self._half(call, words[0], words[1], what)
                result = len(words[1])
            else:
                result = call(*words, **named)
            self.shoot(f"after {what}")
            return result

        return made

    def _half(self, write: Callable[[int, bytes], int], descriptor: int, data: bytes, what: str) -> None:
        """Write in two parts: a kill may leave the first alone."""
        middle = len(data) // 2
        assert write(descriptor, data[:middle]) == middle
        self.shoot(f"inside {what}")
        assert write(descriptor, data[middle:]) == len(data) - middle


@contextmanager
def watched(camera: Camera) -> Iterator[None]:
    """Take a picture before and after everything that changes the disk, and every call of git."""
    kept = {name: getattr(os, name) for name in CALLS}
    execute = Git.execute
    try:
        for name, call in kept.items():
            setattr(os, name, camera.around(name, call))
        Git.execute = camera.around("git", execute)  # type: ignore[method-assign]  # put back below
        yield
    finally:
        for name, call in kept.items():
            setattr(os, name, call)
        Git.execute = execute  # type: ignore[method-assign]  # as it was


def copy_links(source: Path, target: Path, *, whole: bool = False) -> None:
    """A copy of a folder: files that are never changed in place are linked, unless it is to be `whole`."""
    target.mkdir()
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            apart = entry.name == ".git" or (whole and entry.name != "objects")
            copy_links(Path(entry.path), target / entry.name, whole=apart)
        elif whole or entry.name.endswith(IN_PLACE):
            shutil.copy2(entry.path, target / entry.name)
        else:
            os.link(entry.path, target / entry.name)


def _stamps(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield (entry.path, -1, 0, 0)
            yield from _stamps(Path(entry.path))
        elif not entry.name.endswith((".lock", ".holder")):
            found = entry.stat(follow_symlinks=False)
            yield (entry.path, found.st_size, found.st_mtime_ns, found.st_ino)


# --- the run that is killed -------------------------------------------------------------------------------------------


def next_kernel(driver: Driver) -> str:
    """What the proposer of the killed run hands in: three versions with a failed attempt and a refused submission."""
    version = driver.run.version
    if version.number == 1:
        return tools.kernel(1, us=80)
    if version.number == 2:
        return tools.kernel(22, us=60) if version.attempts else tools.kernel(2, verdict="incorrect")
    return tools.kernel(33, us=90) if version.refused else tools.kernel(3, gate="proposal:unsourced_spec")


def next_branches(version: int) -> tuple[Branch, ...]:
    """What it hands in beside the kernel: for the first version a better candidate and a wrong one."""
    if version != 1:
        return ()
    texts = {"wide": tools.kernel(11, us=75), "wrong": tools.kernel(12, verdict="incorrect")}
    return tuple(Branch(name=name, kernel=text) for name, text in texts.items())


def several_methods() -> Proposal:
    """What it hands in under the discipline `budget`: a kernel of two methods, and itself without each."""
    without = {"vectorized_access": 100, "async_copy": 80.5}
    left = [
        Ablation(method=method, kernel=tools.kernel(101 + n, us=us)) for n, (method, us) in enumerate(without.items())
    ]
    return tools.proposal(1, tools.kernel(1, us=80), methods=tuple(without), ablations=tuple(left))


@dataclass
class Ended:
    """How a run ended."""

    files: dict[str, bytes]
    """All but git's, the journal, and what was set aside of it."""
    events: list[dict[str, Any]]
    """Without times and commits."""
    aside: int
    """Torn lines that were set aside."""
    log: list[str]
    status: str
    asked: list[str]
    """Evaluations by the process that ended it, each as its plan and its kernel's hash."""
    recorded: list[dict[str, Any]]
    """Every line of the experience log that is a record, in whichever file; what was torn is none."""


def drive(base: Path, record: RunRecord) -> Ended:
    """Begin or go on with the run in a folder, and end it."""
    root, home = base / "run", base / "home"
    if not root.exists():
        create_run(root, record, tools.run_files(), home)
    folder = RunFolder(root)
    bench = PlantedTools(home, record)
    parts: Any = tools.FakeParts(folder, record, bench)
    with Driver.open(root, bench, home, parts) as driver:
        for _ in range(20):
            if driver.advance() is not Phase.PROPOSE:
                break
            offered = driver.run.version
            parent, others = offered.opened.parent or 0, next_branches(offered.number)
            handed = tools.proposal(offered.number, next_kernel(driver), parent=parent, branches=others)
            driver.submit(several_methods() if record.discipline == "budget" else handed, b"{}")
        assert driver.phase is Phase.FINISHED, driver.phase
    return ended(root, bench.asked, LogFiles(home / "experience"))


def ended(root: Path, asked: list[str], log: LogFiles) -> Ended:
    """What a run came to."""
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
    events = []
    for entry in read_run(root).state.entries:
        event = entry.event.model_dump(mode="json")
        event.pop("commit", None)
        events.append(event)
    torn = [name for name in files if name.startswith("journal.torn-")]
    for name in ("journal.jsonl", *torn):
        files.pop(name)
    subjects = git(root, "log", "--format=%s").splitlines()
    lines = (record for file in log.names() for _, record in log.read(file).records)
    recorded = sorted((one.model_dump(mode="json") for one in lines), key=lambda one: str(one["iteration"]))
    return Ended(files, events, len(torn), subjects, git(root, "status", "-s"), asked, recorded)


def git(root: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout
