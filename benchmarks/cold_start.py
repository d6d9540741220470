"""A cold `kopt ask --json` against a bare `import chromadb`, in one run on one machine; writes after each case.

    python benchmarks/cold_start.py [--repeats 9] [--out benchmarks/results/cold_start.json]

Bars: at most 1.0 s wall and at most 2.0 × the import; no torch in sys.modules. The index is built first and not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTION = "why is my softmax memory-bound on H100"
CASES = {
    "python": [sys.executable, "-c", "pass"],
    "import chromadb": [sys.executable, "-c", "import chromadb"],
    "kopt --help": [sys.executable, "-m", "kopt", "--help"],
    "kopt spec": [sys.executable, "-m", "kopt", "spec", "h100-sxm", "hbm_bandwidth", "--json"],
    "kopt ask": [sys.executable, "-m", "kopt", "ask", QUESTION, "--json"],
    "kopt ask, passages": [sys.executable, "-m", "kopt", "ask", "what is a long scoreboard stall", "--json"],
    "kopt ask, Chroma": [sys.executable, "-m", "kopt", "ask", QUESTION, "--json"],
}


def main() -> None:
    """Time every case in turns, so that what else the machine does touches all of them alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cold_start.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "KOPT_HOME": home}
        subprocess.run([sys.executable, "-m", "kopt", "ingest"], env=env, check=True, stdout=subprocess.DEVNULL)
        samples: dict[str, list[float]] = {name: [] for name in CASES}
        for _ in range(options.repeats):
            for name, command in CASES.items():
                chosen = {**env, "KOPT_VECTOR_SEARCH": "chroma"} if name.endswith("Chroma") else env
                started = time.perf_counter()
                subprocess.run(command, env=chosen, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                samples[name].append(time.perf_counter() - started)
            write(options.out, options.repeats, samples)
    bare = statistics.median(samples["import chromadb"])
    for name, values in samples.items():
        median = statistics.median(values)
        sys.stdout.write(
            f"{name:<20} {median:6.3f} s   {median / bare:5.2f} × import chromadb   min {min(values):.3f}\n"
        )


def write(path: Path, repeats: int, samples: dict[str, list[float]]) -> None:
    """Keep all samples, and what they were taken on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "command": f"python benchmarks/cold_start.py --repeats {repeats}",
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": {name: [round(value, 4) for value in values] for name, values in samples.items()},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
