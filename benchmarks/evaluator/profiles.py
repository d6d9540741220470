"""Profiles of the kernels of tests/evaluator/profiles on a GPU, kept as small files. Resumable.

    python benchmarks/evaluator/profiles.py --out FOLDER [--only ID …] [--what bench basic full] [--seconds LIMIT]
    python benchmarks/evaluator/profiles.py --out FOLDER --report

For each kernel of expected.toml, in its order: `bench` (a signal: is it right, and how long does it take), `basic` and
`full` (one call under ncu, the launch picked by name). FOLDER gets `ID.basic.csv` and `ID.full.csv`, the raw pages, and
a line of JSON in `profiles.jsonl` after each, with the seconds that it took, the launches in the report, and where it
was taken. What stands there, or in `--known` (tests/evaluator/profiles/reports), for the same hash of kernel, reference
and dims is not done again; errors are.

Limits: no case is begun after `--seconds` (280), and one takes at most 240 (180 for ncu, 60 for its worker), so that a
command ends within 9 minutes. 19 kernels take about 20 s each for both profiles and 5 s for the signal, so two or three
commands. ncu must be allowed to read counters; where it is not, the first profile says so and nothing more is tried.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kbs.common.errors import ConfigurationError, KoptError, NoGpuError  # noqa: E402 - ROOT must be on the path first
from tests.evaluator.profiles.corpus import REPORTS, Expected, load  # noqa: E402 - likewise

RECORDS = "profiles.jsonl"
WHAT = ("bench", "basic", "full")
WHERE = ("command", "device", "driver", "ncu", "torch", "triton", "clock", "date")


def main() -> int:
    """Take what is missing, or print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--known", type=Path, default=REPORTS)
    words.add_argument("--only", nargs="*", default=[], help="ids of kernels; all of them where none is named")
    words.add_argument("--what", nargs="*", default=list(WHAT), choices=WHAT)
    words.add_argument("--seconds", type=float, default=280.0, help="no case is begun after so many")
    words.add_argument("--report", action="store_true")
    options = words.parse_args()
    rows = load().profile
    unknown = set(options.only) - {row.id for row in rows}
    if unknown:
        words.error(f"no kernel of the table: {', '.join(sorted(unknown))}")
    chosen = [row for row in rows if not options.only or row.id in options.only]
    done = read(options.known) | read(options.out)
    if options.report:
        report(chosen, done)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    missing = [(row, what) for row in chosen for what in options.what if not is_done(done, row, what)]
    print(f"{len(missing)} to do", flush=True)
    return take(missing, options.out, until) if missing else 0


def read(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(kernel, what) → the last line without an error."""
    path = folder / RECORDS
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return {(line["case"], line["what"]): line for line in lines if "error" not in line}


def is_done(done: dict[tuple[str, str], dict[str, Any]], row: Expected, what: str) -> bool:
    """Whether a record is of this very version."""
    return done.get((row.id, what), {}).get("hash") == row.hash


def take(missing: list[tuple[Expected, str]], out: Path, until: float) -> int:
    """Do what is missing, as long as there is time."""
    session = Session()
    try:
        for row, what in missing:
            if time.monotonic() > until:
                print("out of time: run it again", flush=True)
                return 0
            began = time.monotonic()
            stop = False
            try:
                found = session.signal(row) if what == "bench" else session.profile(row, what, out)
            except Exception as error:  # the next cases are worth their seconds all the same
                stop = isinstance(error, ConfigurationError | NoGpuError)
                code = error.code if isinstance(error, KoptError) else type(error).__name__
                found = {"error": f"{code}: {error}"[:1000], "where": traceback.format_exc()[-2000:]}
            took = round(time.monotonic() - began, 2)
            line = {"case": row.id, "what": what, "hash": row.hash, "took": took, **found, **session.where()}
            with (out / RECORDS).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
            print(
                json.dumps({key: line[key] for key in line if key not in (*WHERE, "hash", "where")})[:400], flush=True
            )
            if stop:
                return 5
    finally:
        session.close()
    return 0


class Session:
    """One fork server for all, and where the profiles were taken."""

    def __init__(self) -> None:
        from evaluator.sandbox.fork_server import ForkServer

        self.server = ForkServer("cuda")
        self._where: dict[str, Any] = {}

    def close(self) -> None:
        """End the server."""
        self.server.close()

    def _request(self, row: Expected) -> Any:
        from kopt.services.bench.request import make_request

        words = {
            "candidate": row.candidate_path, "ref": row.reference_path, "inputs": None, "dims": json.dumps(row.dims),
            "workloads": None, "plan": "signal", "device": "cuda:0", "tolerance": None, "sanitizers": None,
            "nvcc_flags": "", "memory": None, "python": self.server.python, "environment": self.server.environment,
        }  # fmt: skip
        return make_request(**words)

    def signal(self, row: Expected) -> dict[str, Any]:
        """Whether the kernel is right at these dims, and its time."""
        from evaluator.evaluate import evaluate
        from kopt import __version__

        receipt = evaluate(self._request(row), kopt=__version__, server=self.server)
        found: dict[str, Any] = {"verdict": str(receipt.verdict), "reason": receipt.reason[:300]}
        if receipt.timing is not None and receipt.timing.workloads:
            summary = receipt.timing.workloads[0].candidate.summary
            found["median_us"] = None if summary is None else summary.median_us
        return found

    def profile(self, row: Expected, metrics: str, out: Path) -> dict[str, Any]:
        """One call under ncu."""
        from evaluator.profiling.collect import take_profile

        taken = take_profile(
            self._request(row),
            server=self.server,
            metrics="full" if metrics == "full" else "basic",
            launch=row.kernel,
        )
        name = f"{row.id}.{metrics}.csv"
        (out / name).write_text(taken.csv, "utf-8")
        launched = [kernel.partition("(")[0] for kernel in kernels(taken.csv)]
        found: dict[str, Any] = {"csv": name, "bytes": len(taken.csv), "kernels": launched}
        if set(launched) != {row.kernel}:
            found["error"] = f"the report is of {launched}, not of {row.kernel}"
        return found

    def where(self) -> dict[str, Any]:
        """Device, software, clock, date and command."""
        if not self._where:
            import torch
            import triton

            from evaluator.receipt.environment import driver_version

            here = torch.cuda.is_available()
            self._where = {
                "command": "python benchmarks/evaluator/profiles.py --out FOLDER",
                "device": torch.cuda.get_device_name(0) if here else None,
                "driver": driver_version() if here else None,
                "ncu": ncu_version(self.server.environment.get("PATH")),
                "torch": torch.__version__,
                "triton": triton.__version__,
                "clock": "as it was: not locked",
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            }
        return self._where


def kernels(table: str) -> list[str]:
    """The names of the launches in a raw page."""
    lines = [line for line in table.splitlines() if not line.startswith("==")]  # what ncu itself has to say
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    return [name for name in (row.get("Kernel Name") or "" for row in rows) if name]


def ncu_version(path: str | None) -> str | None:
    """What ncu calls itself; None where there is none."""
    import shutil
    import subprocess

    ncu = shutil.which("ncu", path=path)
    if ncu is None:
        return None
    said = subprocess.run([ncu, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    return next((line.strip() for line in said.splitlines() if line.startswith("Version")), None)


def report(rows: list[Expected], done: dict[tuple[str, str], dict[str, Any]]) -> None:
    """One line a kernel: floor, time, seconds of the profiles."""
    print("| kernel | expected | first symptom | floor µs | signal µs | verdict | basic s | full s |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        of = {what: done[row.id, what] for what in WHAT if is_done(done, row, what)}
        timed = of.get("bench", {})
        cells = [
            row.id, row.bottleneck, row.first_symptom, f"{row.floor_us:g}", timed.get("median_us", "N/A"),
            timed.get("verdict", "N/A"), of.get("basic", {}).get("took", "N/A"), of.get("full", {}).get("took", "N/A"),
        ]  # fmt: skip
        print("| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |")


if __name__ == "__main__":
    raise SystemExit(main())
