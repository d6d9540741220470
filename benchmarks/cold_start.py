"""A cold `kopt ask --json` against a bare `import chromadb`, in one run on one machine; writes after each case.

    python benchmarks/cold_start.py [--repeats 9] [--out benchmarks/results/cold_start.json] [--against CHECKOUT]

Bars: at most 1.0 s wall and at most 2.0 × the import; no torch in sys.modules. The index is built first and not timed.
`--against` times every command of another checkout beside it, in turns, and prints the ratio of the medians.
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

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "why is my softmax memory-bound on H100"
CASES = {
    "python": [sys.executable, "-c", "pass"],
    "import chromadb": [sys.executable, "-c", "import chromadb"],
    "kopt --help": [sys.executable, "-m", "kopt", "--help"],
    "kopt spec": [sys.executable, "-m", "kopt", "spec", "h100-sxm", "hbm_bandwidth", "--json"],
    "kopt ask": [sys.executable, "-m", "kopt", "ask", QUESTION, "--json"],
    "kopt ask, passages": [sys.executable, "-m", "kopt", "ask", "what is a long scoreboard stall", "--json"],
}


def main() -> None:
    """Time every case in turns, so that what else the machine does touches all of them alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cold_start.json")
    parser.add_argument("--against", type=Path, help="Another checkout, timed beside this one.")
    options = parser.parse_args()
    checkouts = {"": ROOT, **({" (other checkout)": options.against.resolve()} if options.against else {})}
    with tempfile.TemporaryDirectory() as folder:
        environments = {}
        for suffix, checkout in checkouts.items():
            home = Path(folder) / f"home{len(environments)}"
            environments[suffix] = {**os.environ, "KOPT_HOME": str(home), "PYTHONPATH": str(checkout)}
            # Both sides as they are installed: with the bytecode that Python keeps beside the modules.
            environments[suffix].pop("PYTHONDONTWRITEBYTECODE", None)
            run([sys.executable, "-m", "kopt", "ingest"], environments[suffix], folder)
        samples: dict[str, list[float]] = {
            name + suffix: [] for name in CASES for suffix in (checkouts if "kopt" in name else [""])
        }
        for _ in range(options.repeats):
            for name, values in samples.items():
                suffix = next(one for one in reversed(checkouts) if name.endswith(one))
                case = name.removesuffix(suffix)
                started = time.perf_counter()
                run(CASES[case], environments[suffix], folder)
                values.append(time.perf_counter() - started)
            write(options.out, options.repeats, samples)
    bare = statistics.median(samples["import chromadb"])
    for name, values in samples.items():
        median = statistics.median(values)
        other = samples.get(f"{name} (other checkout)")
        beside = f"   {median / statistics.median(other):4.2f} × the other checkout" if other else ""
        sys.stdout.write(
            f"{name:<35} {median:6.3f} s   {median / bare:5.2f} × import chromadb   min {min(values):.3f}{beside}\n"
        )


def run(command: list[str], environment: dict[str, str], folder: str) -> None:
    """One command in a folder that is no checkout: `python -m` imports from where it stands."""
    subprocess.run(
        command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
