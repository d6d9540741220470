"""Paths in a run's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kbs.common.errors import UsageError

RECORD = "run.json"
JOURNAL = "journal.jsonl"
HINTS = "HINTS.md"
MAIN = "main"
"""The candidate that is a proposal's own kernel."""
KERNELS = {"python": "kernel.py", "cuda": "kernel.cu"}


def check_free(root: Path) -> None:
    """Raise `UsageError` (`out_exists`) unless a run's folder can be created there."""
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(
            f"{root} exists already",
            code="out_exists",
            hint="Choose another folder with --out, or continue the existing run with `kopt run resume`.",
        )


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    root: Path

    @property
    def record(self) -> Path:
        """run.json."""
        return self.root / RECORD

    @property
    def journal(self) -> Path:
        """journal.jsonl."""
        return self.root / JOURNAL

    @property
    def hints(self) -> Path:
        """HINTS.md, which the user writes."""
        return self.root / HINTS

    @property
    def current(self) -> Path:
        """current_iteration.txt, written by the gate alone."""
        return self.root / "current_iteration.txt"

    @property
    def best(self) -> Path:
        """The folder that holds the best version's file."""
        return self.root / "best"

    @property
    def trajectory(self) -> Path:
        """Copies of every benchmarked candidate."""
        return self.root / "trajectory"

    def version(self, number: int) -> Path:
        """vN/."""
        return self.root / f"v{number}"

    def attempt(self, version: int, attempt: int) -> Path:
        """vN/attempts/aM/."""
        return self.version(version) / "attempts" / f"a{attempt}"

    def branch(self, version: int, attempt: int, name: str) -> Path:
        """vN/branches/aM/NAME/: a candidate of an attempt, with what was measured of it."""
        return self.branches(version, attempt) / name

    def branches(self, version: int, attempt: int) -> Path:
        """vN/branches/aM/."""
        return self.version(version) / "branches" / f"a{attempt}"

    def candidate(self, version: int, attempt: int, name: str) -> Path:
        """The folder that holds the kernel of a candidate: that of the attempt for the proposal's own."""
        return self.attempt(version, attempt) if name == MAIN else self.branch(version, attempt, name)

    def ablation(self, version: int, method: str) -> Path:
        """vN/ablations/METHOD/: the accepted kernel without one of its methods, with what was measured of it."""
        return self.version(version) / "ablations" / method

    def submission(self, version: int, number: int) -> Path:
        """vN/refused/sM/: an answer that was refused."""
        return self.version(version) / "refused" / f"s{number}"

    def final(self, version: int, ending: int) -> Path:
        """final/vN/: its final measurement; `ending` counts the ends of the run, from 1."""
        return self.root / "final" / (f"v{version}" if ending == 1 else f"v{version}-{ending}")

    def external(self, version: int) -> Path:
        """external/vN.json: what the user's own benchmark printed of it."""
        return self.root / "external" / f"v{version}.json"

    def relative(self, path: Path) -> str:
        """A path relative to the run's folder, as events have it."""
        return path.relative_to(self.root).as_posix()
