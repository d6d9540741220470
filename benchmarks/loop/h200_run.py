"""Whole runs of three iterations on a GPU, from the plan to the report: one a proposer. Resumable.

    python benchmarks/loop/h200_run.py --out FOLDER [--only command agent llm] [--seconds LIMIT]

A row softmax in fp32, 16384 x 4096, in three passes with one warp a row; `softmax_steps.py` has what is proposed: two
warps, two passes (for `agent` first wrongly, then rightly), and last the row in registers, which is near the floor.
`command` asks that file as a program; for `agent` this script does what an agent does: `kopt run next`, `kopt run
submit`; for `llm` the tests' service stands in for a model's, and answers with the same steps. Everything goes through
the command line.

FOLDER gets workspaces and KOPT_HOME, and for each run that has ended `NAME.tgz`, its folder without `.git` and without
reports of ncu above 1 MB, and a line of JSON in `runs.jsonl`: versions, verdicts, times, ratios. A run that is there is
gone on with, one that has ended is not repeated. `--seconds` (540) is when the script ends itself; start it again then.
Receipts hold the paths of FOLDER and of this file: start a copy that stands where anyone may know of it.
Without sentence-transformers and chromadb the search works with words alone, and says so. `--rehearse` does the same on
the CPU with 64 x 128, and keeps versions unmeasured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.softmax_steps import BASELINE, REFERENCE, proposal  # noqa: E402  # ROOT must be on the path first
from tests.kbs.language_model.model_server import KEY, Asked, model_server, well  # noqa: E402  # likewise

LARGEST = 1_000_000
"""Bytes of a report of ncu that is kept."""
SIZES = {"M": 16384, "N": 4096}
SMALL = {"M": 64, "N": 128}
NAMES = ("command", "agent", "llm")
INVENTED = "The H200 SXM reads 9.9 TB/s from HBM, so that a row must be read once."
"""No source has this figure."""
QUICK = ("--restarts", "2", "--seconds", "2", "--baselines", "eager", "--iterations", "3")


class Kopt:
    """The command, in a workspace, until a moment."""

    def __init__(self, folder: Path, home: Path, end: float) -> None:
        self.folder, self.end = folder, end
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.environment = {**os.environ, "KOPT_HOME": str(home), "PYTHONPATH": path}

    def __call__(self, *words: str, stdin: str = "") -> tuple[int, dict[str, Any]]:
        """(exit code, envelope). Raises `subprocess.TimeoutExpired` when the script's time is over."""
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "kopt", *words, "--json"],
            input=stdin,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=max(1.0, self.end - time.monotonic()),
            check=False,
        )
        said = json.loads(done.stdout) if done.stdout.strip() else {"data": None, "errors": [{"message": "no answer"}]}
        problems = "; ".join(f"{one['message']} {one.get('hint', '')}" for one in said["errors"])
        print(f"{' '.join(words[:3])}: {done.returncode}, {time.monotonic() - started:.1f} s {problems}", flush=True)
        return done.returncode, said


def main() -> int:
    """Do what is not done."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    words.add_argument("--seconds", type=float, default=540.0)
    words.add_argument("--rehearse", action="store_true")
    options = words.parse_args()
    out = options.out.absolute()
    end = time.monotonic() + options.seconds
    code = 0
    for name in options.only:
        if (out / f"{name}.tgz").exists():
            continue
        folder = out / name
        prepare(folder, SMALL if options.rehearse else SIZES)
        try:
            found = one(name, Kopt(folder, out / "home", end), rehearse=options.rehearse)
        except subprocess.TimeoutExpired:
            print("out of time: start it again", flush=True)
            return 1
        if found is None:
            code = 1
            continue
        keep(name, found, out)
    return code


def prepare(folder: Path, sizes: dict[str, int]) -> None:
    """A workspace as a user has it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "softmax.py").write_text(BASELINE, "utf-8")
    (folder / "ref.py").write_text(REFERENCE.format(**sizes), "utf-8")


def one(name: str, kopt: Kopt, *, rehearse: bool) -> dict[str, Any] | None:
    """A run to its end: its data; None where it stopped for another reason."""
    if name != "llm":
        return go_on(name, kopt, rehearse=rehearse)
    with model_server(well(written), well(invented), well(written)) as server:
        kopt.environment |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.address}
        return go_on(name, kopt, rehearse=rehearse)


def written(asked: Asked) -> str:
    """What the model answers."""
    return json.dumps(proposal(asked.request, "llm"))


def invented(asked: Asked) -> str:
    """What the model answers once: the gate must refuse it."""
    found = proposal(asked.request, "llm")
    found["hypothesis"]["rationale"] = INVENTED
    return json.dumps(found)


def go_on(name: str, kopt: Kopt, *, rehearse: bool) -> dict[str, Any] | None:
    """Begin a run, or go on with it."""
    where = ("--device", "cpu", "--accept-unmeasured", "--gpu", "h200-sxm") if rehearse else ()
    steps = Path(__file__).resolve().parent / "softmax_steps.py"
    asked = {"command": ("--command", f"{sys.executable} {steps}"), "llm": ("--model", "openai:steps")}.get(name, ())
    code, said = kopt("run", "status")
    if said["data"] is None:
        named = ("--kernel", "softmax.py", "--ref", "ref.py")
        kopt("run", "start", "--proposer", name, *asked, *named, *QUICK, *where, "--yes")
    else:
        kopt("run", "resume")
    while name == "agent":
        code, said = kopt("run", "next")
        if code != 0:
            break
        code, said = kopt("run", "submit", "-", stdin=json.dumps(proposal(said["data"]["request"], name)))
        if said["data"] is None or said["data"]["outcome"] == "refused":
            print(json.dumps(said, indent=2), flush=True)
            return None
    code, said = kopt("run", "status")
    if said["data"] is None or said["data"]["phase"] != "finished":
        print(json.dumps(said, indent=2), flush=True)
        return None
    return dict(said["data"])


def keep(name: str, run: dict[str, Any], out: Path) -> None:
    """The run's folder as an archive, and a line about it."""

    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(entry.name).parts
        large = entry.name.endswith(".ncu-rep") and entry.size > LARGEST
        return None if ".git" in parts or large else entry

    whole = out / f"{name}.tgz.part"
    with tarfile.open(whole, "w:gz") as archive:
        archive.add(run["folder"], arcname=name, filter=chosen)
    whole.rename(out / f"{name}.tgz")
    versions = [
        {key: version[key] for key in ("version", "outcome", "kept", "methods", "bottleneck", "why")}
        | {"attempts": [(one["verdict"], one["median_us"], one["ratio"]) for one in version["attempts"]]}
        for version in run["versions"]
    ]
    line = {"name": name, "run": run["run"], "profile": run["profile"], "best": run["best"], "stopped": run["stopped"]}
    with (out / "runs.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({**line, "finals": run["finals"], "versions": versions}) + "\n")
    print(json.dumps(versions, indent=2), flush=True)


if __name__ == "__main__":
    sys.exit(main())
