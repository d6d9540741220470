"""A run that this process has open, with everything that its steps use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from evaluator.receipt.receipt import Receipt, parse
from kbs.common.errors import KoptError
from kbs.common.files import read_if_there, write_all
from loop.gate.report import GateReport
from loop.journal.events import Event, Files
from loop.journal.folder import KERNELS, RunFolder
from loop.journal.journal import Journal
from loop.journal.record import RunRecord
from loop.journal.repository import Repository
from loop.journal.state import Phase, RunState
from loop.journal.version_state import VersionState
from loop.proposals.proposal import Proposal
from loop.run.parts import Parts
from loop.tools import Targets, Tools

Progress = Callable[[Phase, str], None]
"""Called with the phase and what is done in it."""


@dataclass(frozen=True)
class Kernel:
    """A kernel's file."""

    name: str
    """kernel.py or kernel.cu."""
    data: bytes

    @property
    def text(self) -> str:
        """Its text."""
        return self.data.decode("utf-8")

    @property
    def hash(self) -> str:
        """SHA-256 of its bytes."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass
class Run:
    """What the steps in `loop/run/steps.py` share."""

    folder: RunFolder
    record: RunRecord
    journal: Journal
    state: RunState
    tools: Tools
    parts: Parts
    repository: Repository
    home: Path
    master: bytes
    """The secret that the seeds are derived from."""
    progress: Progress
    again: bool = True
    """Whether there may be a commit that the journal does not know of: true until the first commit of this process."""
    rejected: GateReport | None = None
    """The gate's report if it rejected the end of the run."""

    def happened(self, event: Event) -> None:
        """Record an event; when this returns, it is on the disk and in the state."""
        entry = self.journal.append(event)
        self.state.apply(entry)

    def put(self, files: dict[str, bytes]) -> Files:
        """Write files by their paths below the folder."""
        return write_all(self.folder.root, files)

    def below(self, folder: Path, files: dict[str, bytes]) -> dict[str, bytes]:
        """Files of a folder, by their paths below the run's folder."""
        return {self.folder.relative(folder / name): data for name, data in files.items()}

    @property
    def version(self) -> VersionState:
        """The version that was opened last; there must be one."""
        assert self.state.current is not None
        return self.state.current

    def kernel(self, folder: Path) -> Kernel:
        """The kernel's file in a folder. Raises `KoptError` (`artifact_missing`)."""
        for name in KERNELS.values():
            data = read_if_there(folder / name)
            if data is not None:
                return Kernel(name, data)
        raise missing(folder / "kernel.py")

    def version_kernel(self, number: int) -> Kernel:
        """The kernel of a version that was accepted, or the user's. Raises `KoptError` (`artifact_missing`,
        `artifact_changed`)."""
        folder = self.folder.version(number)
        kernel = self.kernel(folder)
        recorded = self.state.files.get(f"{self.folder.relative(folder)}/{kernel.name}")
        if recorded is not None and recorded != kernel.hash:
            raise KoptError(
                f"{folder / kernel.name} is not the kernel that the journal recorded",
                code="artifact_changed",
                hint="Restore it from the run's git repository (`git checkout -- FILE` in the run's folder).",
            )
        return kernel

    def receipt(self, number: int) -> Receipt | None:
        """A version's receipt; None if it has none."""
        data = read_if_there(self.folder.version(number) / "receipt.json")
        return None if data is None else parse(data)

    def proposal(self, version: VersionState) -> Proposal | None:
        """The proposal of a version's last attempt; None if nobody proposed it."""
        if not version.attempts or version.attempts[-1].submitted is None:
            return None
        path = self.folder.attempt(version.number, version.attempts[-1].number) / "proposal.json"
        data = read_if_there(path)
        if data is None:
            raise missing(path)
        return Proposal.model_validate_json(data)

    def targets(self) -> Targets | None:
        """The targets that step 0 found."""
        data = read_if_there(self.folder.root / "roofline.json")
        try:
            return None if data is None else Targets.model_validate_json(data)
        except ValidationError:
            return None


def missing(path: Path) -> KoptError:
    """The error for a file that the journal recorded and that is missing."""
    return KoptError(
        f"{path} is missing, although the journal recorded it",
        code="artifact_missing",
        hint="Restore it from the run's git repository (`git checkout -- FILE` in the run's folder).",
    )
