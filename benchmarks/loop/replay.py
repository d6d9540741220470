"""Replays the journal of a run of 1,000 iterations: read, checked against its chain, and added up to the run's state.

    python benchmarks/loop/replay.py [--iterations 1000] [--repeats 9] [--out benchmarks/results/loop/replay.json]

Bar: under 1 s. In every ten versions one submission is refused, one version fails twice, and one is not kept; a look of
the gate names 40 files, as in a real run on a GPU. The journal is read from a file that was just written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from loop.journal import journal  # noqa: E402 - it lies in the folder that was just put on the path
from loop.journal.events import Event, Gated  # noqa: E402 - likewise
from loop.journal.state import replay  # noqa: E402 - likewise
from tests.loop import events_made as made  # noqa: E402 - likewise

CHECKED = 40
"""Files that a look of the gate names."""
BAR = 1.0
"""Seconds."""


def events(iterations: int) -> Iterator[Event]:
    """A whole run's."""
    for event in made.history(iterations):
        if isinstance(event, Gated):
            files = {f"v{event.version}/file-{number}.md": made.HASH for number in range(CHECKED)}
            yield event.model_copy(update={"checked": files})
        else:
            yield event


def written(path: Path, iterations: int) -> int:
    """Write the journal: its lines."""
    head, lines = journal.FIRST, 0
    with path.open("wb") as stream:
        for lines, event in enumerate(events(iterations), 1):
            line = journal.render(journal.Entry(n=lines, time=made.TIME, prev=head, event=event))
            head = hashlib.sha256(line).hexdigest()
            stream.write(line + b"\n")
    return lines


def main() -> int:
    """Exit code 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "loop" / "replay.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        lines = written(path, options.iterations)
        taken = []
        for _ in range(options.repeats):
            started = time.perf_counter()
            state = replay(journal.read(journal.load(path)).entries)
            taken.append(time.perf_counter() - started)
        size = path.stat().st_size
    assert state.iterations == options.iterations, state.iterations
    median = statistics.median(taken)
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(["python", "benchmarks/loop/replay.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "iterations": options.iterations,
        "lines": lines,
        "bytes": size,
        "seconds": [round(value, 4) for value in taken],
        "median_seconds": round(median, 4),
        "bar_seconds": BAR,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    sys.stdout.write(f"{lines} lines, {size / 1e6:.1f} MB: median {median:.3f} s, slowest {max(taken):.3f} s\n")
    return 0 if median < BAR else 1


if __name__ == "__main__":
    sys.exit(main())
