"""Kills a real run on the CPU at random moments, and lets it go on: it ends as the one that nobody killed.

    python benchmarks/loop/kills.py [--kills 20] [--each 5] [--seed 17] [--out benchmarks/results/loop/kills.json]

A workspace with a small Triton kernel, the proposer of docs/examples, the real evaluator in Triton's interpreter, and
`kopt run start`, then `kopt run resume`, each ended by SIGKILL after a random time. Compared with a run of the same
kernel that ends by itself: the events without times, seeds and commits, the files that do not speak of them, git's log
and its status. Processes that a killed kopt left behind are counted too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from loop.journal.state import Phase  # noqa: E402 - likewise
from loop.run.driver import read_run  # noqa: E402 - it lies in the folder that was just put on the path
from tests.kopt.run_workspace import EXAMPLE, workspace  # noqa: E402 - likewise

LIMIT = 600.0
"""Seconds that a command may take which nobody kills."""
GRACE = 15.0
"""Seconds in which workers of a killed process must have ended."""


class Killed:
    """A workspace, and what was done to its run."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = workspace(folder), home
        shutil.copy(EXAMPLE, folder / "proposer.py")
        self.kills: list[dict[str, Any]] = []

    @property
    def root(self) -> Path | None:
        """The run's folder, where it was begun."""
        found = sorted((self.folder / "runs").glob("*/run.json"))
        return found[0].parent if found else None

    @property
    def ended(self) -> bool:
        """Whether the run is at its end."""
        if self.root is None:
            return False
        view = read_run(self.root)
        return view.state.phase(view.record) is Phase.FINISHED

    def command(self) -> list[str]:
        """What goes on from here."""
        kopt = [sys.executable, "-m", "kopt", "run"]
        if self.root is not None:
            return [*kopt, "resume", "--json"]
        asked = ["--proposer", "command", "--command", f"{sys.executable} proposer.py"]
        return [*kopt, "start", "--device", "cpu", "--yes", "--json", "--accept-unmeasured", *asked]

    def go(self, seconds: float | None) -> bool:
        """Let it go on, and kill it after some seconds: whether it was killed."""
        words = {**os.environ, "KOPT_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        output = self.folder / "output.txt"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                self.command(), cwd=self.folder, env=words, stdout=stream, stderr=stream, start_new_session=True
            )
            try:
                status = process.wait(LIMIT if seconds is None else seconds)
            except subprocess.TimeoutExpired:
                if seconds is None:
                    raise
                left = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
                process.wait()
                _, alive = psutil.wait_procs(left, GRACE)
                at = "before the run" if self.root is None else self._phase()
                self.kills.append({"after_seconds": round(seconds, 2), "phase": at, "left_behind": len(alive)})
                return True
        if status != 0:
            raise SystemExit(f"status {status}: {output.read_text('utf-8', 'replace')[-3000:]}")
        return False

    def _phase(self) -> str:
        assert self.root is not None
        view = read_run(self.root)
        current = view.state.current
        return f"{view.state.phase(view.record).value} v{current.number if current else '-'}"

    def told(self) -> dict[str, Any]:
        """What the run came to, without what no two runs share."""
        assert self.root is not None
        events = [without(entry.event.model_dump(mode="json")) for entry in read_run(self.root).state.entries]
        there = [path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts]
        names = {path.relative_to(self.root).as_posix() for path in there}
        texts = {name: (self.root / name).read_text("utf-8") for name in sorted(names) if name.endswith(".py")}
        return {
            "events": events,
            "files": sorted(name for name in names if not name.startswith("journal.torn-")),
            "texts": texts,
            "log": self._git("log", "--format=%s").splitlines(),
            "status": self._git("status", "--porcelain"),
        }

    def _git(self, *words: str) -> str:
        assert self.root is not None
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout


def without(value: Any) -> Any:
    """An event without hashes, commits and seconds."""
    if isinstance(value, dict):
        left_out = ("commit", "receipt", "record", "file")
        return {name: without(one) for name, one in value.items() if name not in left_out}
    if isinstance(value, list):
        return [without(one) for one in value]
    return "" if isinstance(value, str) and len(value) == 64 else value


def main() -> int:
    """Exit code 1 where a killed run ended otherwise, or left a process behind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--each", type=int, default=5, help="most kills of one run")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "loop" / "kills.json")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        subprocess.run(
            [sys.executable, "-m", "kopt", "ingest"],
            env={**os.environ, "KOPT_HOME": str(home), "PYTHONPATH": str(ROOT)},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        whole = Killed(Path(folder) / "whole", home)
        started = time.monotonic()
        whole.go(None)
        took = time.monotonic() - started
        expected, runs, wrong = whole.told(), [], []
        killed = 0
        while killed < options.kills:
            number = len(runs)
            run = Killed(Path(folder) / f"run{number}", home)
            wanted = min(options.each, options.kills - killed)
            while len(run.kills) < wanted and not run.ended:
                run.go(chance.uniform(0.5, took))
            killed += len(run.kills)
            if not run.ended:
                run.go(None)
            found = run.told()
            differs = [name for name in expected if expected[name] != found[name]]
            left = sum(kill["left_behind"] for kill in run.kills)
            wrong += [f"run {number}: {name}" for name in differs] + [f"run {number}: processes"] * bool(left)
            runs.append({"kills": run.kills, "differs": differs})
            sys.stdout.write(f"run {number}: {run.kills} {'differs: ' + str(differs) if differs else 'the same'}\n")
            for name in differs:
                sys.stdout.write(f"  {name}: {_first(expected[name], found[name])}\n")
            sys.stdout.flush()
    result = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(["python", "benchmarks/loop/kills.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "undisturbed_seconds": round(took, 1),
        "kills": sum(len(run["kills"]) for run in runs),
        "runs": runs,
        "wrong": wrong,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{result['kills']} kills; wrong: {wrong or 'nothing'}\n")
    return 1 if wrong else 0


def _first(expected: Any, found: Any) -> str:
    """Where two values differ first."""
    if isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(expected, found, strict=False):
            if one != other:
                return f"{str(one)[:300]} / {str(other)[:300]}"
        return f"{len(expected)} / {len(found)}: {str((expected + found)[min(len(expected), len(found)) :][:2])[:400]}"
    if isinstance(expected, dict) and isinstance(found, dict):
        return str([name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)])[:600]
    return f"{str(expected)[:300]} / {str(found)[:300]}"


if __name__ == "__main__":
    sys.exit(main())
