"""Drives a run of a case, as an agent would: each step hands in a kernel that stands beside it. Resumable.

    python benchmarks/loop/case.py docs/cases/softmax OUT [--device cuda:0] [--seconds LIMIT] [-- WORDS OF run start]

`steps.json` says the method, the change, the reason and the evidence of each kernel: a page of the wiki and the first
words of the line that is cited. A step with several kernels hands in the next one where the gate refuses one, or the
evaluator does not accept it: so a step can stand on whatever version is the best by then. What the gate asks for beside
that (methods that are skipped, circumstances) is answered with the plain reason; what it refuses otherwise is kept in
OUT/steps.jsonl, and the next step follows. OUT gets the finished run, with everything that it kept, and what was typed
and answered in OUT/transcript.md. After `--seconds` no further step begins, and the run is ended.

`--kopt WORDS` is the command to run, `python -m kopt` of this Python where nothing is said.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiki.library import bundled_wiki

SKIPPED = "it is tried in a later step, or does not change what this kernel waits for"
SHOWN = 200
"""Lines of an answer that the transcript has."""


@dataclass
class Kopt:
    """The command, in the folder of a case, with a transcript of what was typed."""

    folder: Path
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "kopt"])

    def __call__(self, *words: str) -> dict[str, Any]:
        """What a command answers as JSON; the transcript has what came of it."""
        done = self._run(*words, "--json")
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            found = {"status": "none", "data": None, "errors": [{"message": (done.stdout + done.stderr)[-2000:]}]}
        data = {key: (found["data"] or {}).get(key) for key in ("version", "outcome", "kept", "why", "phase", "broken")}
        kept = {key: value for key, value in data.items() if value not in (None, [])}
        self._log((*words, "--json"), json.dumps({"data": kept, "errors": found["errors"]}, indent=1))
        return found

    def read(self, *words: str) -> int:
        """The exit code of a command whose answer the transcript has as it was printed."""
        done = self._run(*words)
        self._log(words, done.stdout or done.stderr)
        return done.returncode

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        done = subprocess.run([*self.command, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        print(f"{' '.join(words[:4])}: {done.returncode}, {time.monotonic() - began:.1f} s", flush=True)
        return done

    def _log(self, words: tuple[str, ...], printed: str) -> None:
        lines = printed.replace(f"{self.folder}/", "").splitlines()
        rest = [f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
        with (self.folder / "transcript.md").open("a", encoding="utf-8") as log:
            log.write(
                f"```console\n$ {shlex.join(['kopt', *words])}\n" + "\n".join([*lines[:SHOWN], *rest]) + "\n```\n\n"
            )


def main() -> int:
    """Run a case."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("case", type=Path)
    words.add_argument("out", type=Path)
    words.add_argument("--device", default="cuda:0")
    words.add_argument("--seconds", type=float, default=3600.0)
    words.add_argument("--kopt", default="")
    own, _, further = " ".join(map(shlex.quote, sys.argv[1:])).partition(" -- ")
    options = words.parse_args(shlex.split(own))
    case, out = options.case.resolve(), options.out.resolve()
    end = time.monotonic() + options.seconds
    out.mkdir(parents=True, exist_ok=True)
    for path in (*case.glob("kernel.*"), case / "ref.py"):
        (out / path.name).write_bytes(path.read_bytes())
    kopt = Kopt(out, shlex.split(options.kopt)) if options.kopt else Kopt(out)
    steps = json.loads((case / "steps.json").read_text("utf-8"))
    if (out / "runs").exists():
        begun = kopt("run", "resume")
    else:
        more = [*(["--accept-unmeasured"] if options.device == "cpu" else []), *shlex.split(further)]
        limits = ("--iterations", str(len(steps)), "--device", options.device, *more)
        begun = kopt("run", "start", "--proposer", "agent", *limits, "--yes")
    if begun["status"] not in ("ok", "done", "abstained"):  # the last: there is nothing to resume, the run has ended
        print(json.dumps(begun)[:3000])
        return 1
    record = out / "steps.jsonl"
    done = {json.loads(line)["step"] for line in record.read_text("utf-8").splitlines()} if record.exists() else set()
    why = "every step of the case was tried"
    for number, step in enumerate(steps):
        if number in done:
            continue
        if time.monotonic() > end:
            why = "the time for this case is over"
            break
        if kopt.read("run", "next"):
            break
        one(kopt, case, number, step)
    for last in (("run", "stop", "--why", why), ("run", "final"), ("run", "gate", "--final"), ("run", "status")):
        kopt.read(*last)
    return 0


def one(kopt: Kopt, case: Path, number: int, step: dict[str, Any]) -> None:
    """Hand in the kernels of a step, until one of them is closed as a version."""
    for kernel in step["kernels"]:
        began = time.monotonic()
        answer = submit(kopt, case, step, kernel)
        line = {"step": number, "kernel": kernel, "seconds": round(time.monotonic() - began, 1), **told(answer)}
        with (kopt.folder / "steps.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(line)[:900], flush=True)
        if line["outcome"] in ("passed", "failed"):
            return


def cited(step: dict[str, Any]) -> list[str]:
    """The references of a step's evidence, by the lines as they stand today."""
    wiki = bundled_wiki()
    found = []
    for page, first in step.get("evidence", []):
        lines = (wiki.root / f"{page}.md").read_text("utf-8").splitlines()
        number = next(number for number, line in enumerate(lines, start=1) if line.startswith(first))
        found += ["--evidence", f"{wiki.name}/{page}.md:L{number}"]
    return found


def submit(kopt: Kopt, case: Path, step: dict[str, Any], kernel: str) -> dict[str, Any]:
    """Hand a kernel in; what the gate asks for beside is given, as often as it asks for something new."""
    (kopt.folder / kernel).write_bytes((case / kernel).read_bytes())
    more = cited(step)
    for _ in range(12):
        done = kopt(
            "run", "submit", "--kernel", kernel, "--method", step["method"], "--why", step["why"], "--change",
            step["change"], "--ask", step["ask"], "--expect", step.get("expect", "time down: by a little"), *more,
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


if __name__ == "__main__":
    sys.exit(main())
