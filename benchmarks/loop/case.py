"""Drives a run of a case under docs/cases: each step hands in a kernel that stands beside it, as an agent would.

    python benchmarks/loop/case.py docs/cases/softmax OUT [--device cuda:0]

`steps.json` says the method, the change and the reason of each kernel. What the gate asks for beside that (methods that
are skipped, circumstances) is answered with the plain reason; what it refuses otherwise is kept in OUT/steps.jsonl, and
the next step follows. OUT gets the finished run, with everything that it kept.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SKIPPED = "it is tried in a later step, or does not change what this kernel waits for"


def main() -> int:
    """Run a case."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("case", type=Path)
    words.add_argument("out", type=Path)
    words.add_argument("--device", default="cuda:0")
    options = words.parse_args()
    case, out = options.case.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in ("kernel.py", "ref.py"):
        (out / name).write_bytes((case / name).read_bytes())
    steps = json.loads((case / "steps.json").read_text("utf-8"))
    start = [
        "run",
        "start",
        "--proposer",
        "agent",
        "--iterations",
        str(len(steps)),
        "--device",
        options.device,
        "--yes",
    ]
    begun = kopt(out, *start, *(["--accept-unmeasured"] if options.device == "cpu" else []))
    if begun["status"] not in ("ok", "done"):
        print(json.dumps(begun)[:3000])
        return 1
    with (out / "steps.jsonl").open("w", encoding="utf-8") as log:
        for step in steps:
            began = time.monotonic()
            for kernel in step["kernels"]:  # the next where the first does not follow from the best version
                done = submit(out, case, step, kernel)
                if told(done)["outcome"] != "refused":
                    break
            line = {"kernel": kernel, "seconds": round(time.monotonic() - began, 1), **told(done)}
            log.write(json.dumps(line) + "\n")
            print(json.dumps(line)[:600], flush=True)
    for last in (("run", "stop", "--why", "every step of the case was tried"), ("run", "final"), ("run", "status")):
        print(json.dumps(kopt(out, *last))[:600], flush=True)
    return 0


def submit(out: Path, case: Path, step: dict[str, Any], kernel: str) -> dict[str, Any]:
    """Hand a step in; what the gate asks for beside is given, as often as it asks for something new."""
    more: list[str] = []
    for _ in range(12):
        done = kopt(
            out, "run", "submit", "--kernel", str(case / kernel), "--method", step["method"],
            "--why", step["why"], "--change", step["change"], "--ask", step["ask"],
            "--expect", "time down: by a little", *more,
        )  # fmt: skip
        asked: list[str] = []
        for one in done["data"].get("broken", []) if done["data"] else []:
            method = re.match(r"(\w+) comes before", one["message"])
            if one["rule"] == "skipped-priority" and method:
                asked += ["--skip", f"{method[1]}={SKIPPED}"]
            if one["rule"] == "known-failure":
                asked += ["--circumstances", "another parent than where it failed"]
        for error in done["errors"]:
            asked += [word for name in re.findall(r"--skip (\w+)=", error.get("hint", "") + error["message"])
                      for word in ("--skip", f"{name}={SKIPPED}")]  # fmt: skip
        if not asked or set(asked) <= set(more):
            return done
        more += [word for pair in zip(asked[::2], asked[1::2], strict=True) if pair[1] not in more for word in pair]
    return done


def told(done: dict[str, Any]) -> dict[str, Any]:
    """What came of a step, in short."""
    data = done["data"] or {}
    kept = {key: data.get(key) for key in ("outcome", "kept", "why", "version")}
    return {**kept, "broken": data.get("broken") or [], "errors": done["errors"]}


def kopt(folder: Path, *words: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "kopt", *words, "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        found = {"status": "none", "data": None, "errors": [{"message": (done.stdout + done.stderr)[-2000:]}]}
    return found


if __name__ == "__main__":
    sys.exit(main())
