"""kopt's own search on seven problems of KernelBench at their own sizes, from plain Triton kernels. Resumable.

    python benchmarks/loop/search_h200.py --out FOLDER [--only 95 88] [--seconds LIMIT] [--search SECONDS]

Each problem is a run of the proposer `search`, as `kopt run start` makes it; its best version then gets a verdict of
its own against eager PyTorch and torch.compile (`kopt bench`). `search_starts.py` has the kernels that runs begin with.

FOLDER gets workspaces and KOPT_HOME; for each problem that is done, a line of `search.jsonl` (times in microseconds,
ratio to torch.compile with its interval, share of the measured floor, what was tried, receipts) and `NAME.tgz`, the
run's folder without `.git`. A problem that is there is not repeated, a run that was cut off is gone on with.
`--seconds` (540) is when the script ends itself; start it again then. `--rehearse` does the same on the CPU with the
small sizes that stand beside the problems, and times nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.search_starts import STARTS  # noqa: E402  # ROOT must be on the path first

PROBLEMS = ROOT / "tests" / "third_party" / "kernelbench"
QUICK = ("--restarts", "2", "--seconds", "2")
LARGEST = 200_000
"""Bytes of a file of the run's folder that is kept."""


class Kopt:
    """The command, in a workspace, until a moment."""

    def __init__(self, folder: Path, home: Path, end: float) -> None:
        self.folder, self.end = folder, end
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.environment = {**os.environ, "KOPT_HOME": str(home), "PYTHONPATH": path}

    def __call__(self, *words: str) -> dict[str, Any]:
        """The envelope. Raises `subprocess.TimeoutExpired` when the script's time is over."""
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "kopt", *words, "--json"], stdout=subprocess.PIPE, text=True, cwd=self.folder,
            env=self.environment, timeout=max(1.0, self.end - time.monotonic()), check=False,
        )  # fmt: skip
        said: dict[str, Any] = {"data": None, "errors": [{"message": "no answer"}]}
        if done.stdout.strip():
            said = json.loads(done.stdout)
        problems = "; ".join(f"{one['message']} {one.get('hint', '')}" for one in said["errors"])
        print(f"{' '.join(words[:3])}: {done.returncode}, {time.monotonic() - started:.1f} s {problems}", flush=True)
        return said


def main() -> int:
    """Do what is not done."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--only", nargs="*", default=[], help="numbers of problems")
    words.add_argument("--seconds", type=float, default=540.0)
    words.add_argument("--search", type=float, default=300.0, help="seconds of quick measurements for a problem")
    words.add_argument("--iterations", type=int, default=3)
    words.add_argument("--branches", type=int, default=4)
    words.add_argument("--quick", action="store_true", help="verdicts of fewer restarts: only 10 % and more count")
    words.add_argument("--rehearse", action="store_true")
    options = words.parse_args()
    out, end = options.out.absolute(), time.monotonic() + options.seconds
    code = 0
    for name in STARTS:
        if (options.only and name.partition("_")[0] not in options.only) or (out / f"{name}.tgz").exists():
            continue
        prepare(out / name, name, rehearse=options.rehearse)
        try:
            line = one(name, Kopt(out / name, out / "home", end), options)
        except subprocess.TimeoutExpired:
            print("out of time: start it again", flush=True)
            return 1
        if line is None:
            code = 1
            continue
        keep(name, line, out)
    return code


def prepare(folder: Path, name: str, *, rehearse: bool) -> None:
    """A workspace as a user has it."""
    folder.mkdir(parents=True, exist_ok=True)
    reference = (PROBLEMS / "level1" / f"{name}.py").read_text("utf-8")
    if rehearse:
        for size, value in tomllib.loads((PROBLEMS / "dims.toml").read_text("utf-8"))[name].items():
            reference = re.sub(rf"^{size} = .*$", f"{size} = {value}", reference, flags=re.MULTILINE)
    (folder / "kernel.py").write_text(STARTS[name], "utf-8")
    (folder / "ref.py").write_text(reference, "utf-8")


def one(name: str, kopt: Kopt, options: argparse.Namespace) -> dict[str, Any] | None:
    """A run to its end and a verdict on its best version; None where the run did not end."""
    where = ("--device", "cpu", "--accept-unmeasured", "--gpu", "h200-sxm") if options.rehearse else ("--no-ncu",)
    quick = QUICK if options.quick else ()
    limits = ("--iterations", str(options.iterations), "--branches", str(options.branches))
    files = ("--kernel", "kernel.py", "--ref", "ref.py")
    started = time.monotonic()
    if kopt("run", "status")["data"] is None:
        kopt("run", "start", *files, *limits, *quick, *where, "--search-seconds", str(options.search), "--yes")
    else:
        kopt("run", "resume", "--search-seconds", str(options.search))
    run = kopt("run", "status")["data"]
    if run is None or run["phase"] != "finished":
        print(json.dumps(run), flush=True)
        return None
    best = Path(run["folder"]) / "best" / "kernel.py"
    device = ("--device", "cpu") if options.rehearse else ()
    found = kopt("bench", "run", str(best), "--ref", "ref.py", *quick, *device)["data"]
    return {"task": name, **measured(found), "run": run["run"], "best": run["best"], "stopped": run["stopped"],
            "wall_s": round(time.monotonic() - started, 1), "first_us": first_us(run), "folder": run["folder"],
            "versions": [described(version, Path(run["folder"])) for version in run["versions"]]}  # fmt: skip


def measured(found: dict[str, Any] | None) -> dict[str, Any]:
    """What the verdict on the best version says."""
    if found is None:
        return {"verdict": "none"}
    line = {"verdict": found["verdict"], "reason": found["reason"], "receipt": Path(found["receipt"]).stem}
    for workload in (found["timing"] or {}).get("workloads", ())[:1]:
        own = workload["candidate"]["summary"]["median_us"]
        line["us"] = own
        for baseline, said in workload["baselines"].items():
            line[f"{baseline}_us"] = (said["timed"]["summary"] or {}).get("median_us")
            ratio = said["ratio"]
            line[f"against_{baseline}"] = ratio and [ratio["median"], ratio["ci_low"], ratio["ci_high"]]
        if workload.get("ceiling"):
            line["floor_us"] = workload["ceiling"]["floor_us"]
            line["of_floor"] = round(workload["ceiling"]["floor_us"] / own, 4)
    return line


def first_us(run: dict[str, Any]) -> float | None:
    """The time of the kernel that the run began with."""
    attempts = run["versions"][0]["attempts"]
    return attempts[-1]["median_us"] if attempts else None


def described(version: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A version in short, with what it changed."""
    path = folder / f"v{version['version']}" / "proposal.json"
    said = json.loads(path.read_text("utf-8")) if path.is_file() else None
    change = said["hypothesis"]["single_change"] if said else ""
    done = [(one["verdict"], one["median_us"], one["ratio"]) for one in version["attempts"]]
    return {key: version[key] for key in ("version", "outcome", "kept", "methods")} | {"change": change, "is": done}


def keep(name: str, line: dict[str, Any], out: Path) -> None:
    """The run's folder as an archive, and the line."""
    whole, folder = out / f"{name}.tgz.part", line.pop("folder")

    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if ".git" in Path(entry.name).parts or entry.size > LARGEST else entry

    with tarfile.open(whole, "w:gz") as archive:
        archive.add(folder, arcname=name, filter=chosen)
    with (out / "search.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
    whole.rename(out / f"{name}.tgz")
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
