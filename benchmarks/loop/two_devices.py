"""Candidates a minute with one GPU and with two of them, by the processes that `--devices` starts. Resumable.

    python benchmarks/loop/two_devices.py --out FOLDER [--rounds N] [--seconds LIMIT]   # a machine with two like GPUs
    python benchmarks/loop/two_devices.py --out FOLDER --rehearse                       # the CPU in their place, small

A round measures the same settings of a row softmax (KernelBench level 1, problem 23) quickly, as the search does, once
on `cuda:0` and once on `cuda:0` and `cuda:1`; which comes first changes from round to round. Every kernel's text is
another one, so that nothing is compiled beforehand. The processes are started, and have measured once, before the clock
runs.

FOLDER gets `rounds.jsonl`, a line for each part of a round with every candidate, and `summary.json` with the ratio of
the medians (bar: 1.7). A part that is there is not repeated; `--seconds` (540) is when the script ends itself.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.search_starts import SOFTMAX  # noqa: E402  # ROOT must be on the path first
from evaluator.receipt.plan import SeedSchedule, utc_now  # noqa: E402
from evaluator.request import Request  # noqa: E402
from evaluator.source.source_file import SourceFile  # noqa: E402
from kopt.services.runs.devices.local import LocalDevices  # noqa: E402
from kopt.services.runs.devices.spread import spread  # noqa: E402
from kopt.services.runs.devices.task import Task  # noqa: E402

PROBLEMS = ROOT / "tests" / "third_party" / "kernelbench"
NAME = "23_Softmax"
SETTINGS = [(block, warps) for block in (1024, 2048, 4096, 8192) for warps in (4, 8, 16)]
BAR = 1.7


def main() -> int:
    """Measure what is not there, and sum up."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--seconds", type=float, default=540.0)
    words.add_argument("--rows", type=int, default=0, help="of the softmax, where the problem's are too many to fit")
    words.add_argument("--rehearse", action="store_true")
    options = words.parse_args()
    end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "rounds.jsonl"
    done = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    there = {(one["round"], one["devices"]) for one in done}
    names = ("cpu", "cpu") if options.rehearse else ("cuda:0", "cuda:1")
    for number in range(options.rounds):
        for count in (1, 2) if number % 2 == 0 else (2, 1):
            if (number, count) in there:
                continue
            if time.monotonic() > end:
                print("out of time: start it again", flush=True)
                return 1
            line = {"round": number, "devices": count, **part(names[:count], number, options)}
            done.append(line)
            with path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
            print(f"round {number}, {count} devices: {line['per_minute']:.1f} candidates a minute", flush=True)
    return summed_up(done, options)


def part(names: tuple[str, ...], number: int, options: argparse.Namespace) -> dict[str, Any]:
    """One round on these devices."""
    settings = SETTINGS[:4] if options.rehearse else SETTINGS
    devices = LocalDevices(names)
    try:
        list(spread(lambda: devices.width, devices.submit, (task(SETTINGS[0], "warm", options) for _ in names)))
        started = time.monotonic()
        named = f"round {number}, {len(names)} devices"
        tasks = (task(one, f"{named}: {one}", options) for one in settings)
        found = [
            {"setting": settings[place], "us": one.us, "why": one.why or (one.failure and one.failure.message) or "",
             "seconds": round(one.seconds, 3), "at": one.setting and one.setting.device_name}
            for place, one in spread(lambda: devices.width, devices.submit, tasks)
        ]  # fmt: skip
        wall = time.monotonic() - started
    finally:
        devices.close()
    return {"at": utc_now(), "wall_s": round(wall, 3), "per_minute": round(60 * len(found) / wall, 3),
            "candidates": found}  # fmt: skip


def task(setting: tuple[int, int], mark: str, options: argparse.Namespace) -> Task:
    """A setting of the kernel as a text of its own."""
    block, warps = setting
    text = SOFTMAX.replace("BLOCK=1024", f"BLOCK={block}, num_warps={warps}") + f"\n# {mark}\n"
    request = Request(
        candidate=SourceFile(name="kernel.py", text=text),
        reference=SourceFile(name="ref.py", text=reference(options.rows, rehearse=options.rehearse)),
        plan="signal",
        device="cpu" if options.rehearse else "cuda:0",
    )
    return Task.of(request, SeedSchedule.secret(), (), "")


def reference(rows: int, *, rehearse: bool) -> str:
    """The problem, or one with so many rows; small where nothing is timed."""
    text = (PROBLEMS / "level1" / f"{NAME}.py").read_text("utf-8")
    if rows:
        text = re.sub(r"^batch_size = .*$", f"batch_size = {rows}", text, flags=re.MULTILINE)
    if rehearse:
        for size, value in tomllib.loads((PROBLEMS / "dims.toml").read_text("utf-8"))[NAME].items():
            text = re.sub(rf"^{size} = .*$", f"{size} = {value}", text, flags=re.MULTILINE)
    return text


def summed_up(done: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Write the summary, and print it. The exit code is 1 where a candidate failed or the bar is missed."""
    rates = {count: statistics.median(one["per_minute"] for one in done if one["devices"] == count) for count in (1, 2)}
    failed = [one for one in candidates(done) if one["why"]]
    summary = {
        "rehearsed": options.rehearse, "device": next(candidates(done))["at"], "rounds": options.rounds,
        "rows": options.rows,
        "per_minute": {"one": rates[1], "two": rates[2]}, "ratio": round(rates[2] / rates[1], 3), "bar": BAR,
        "failed": len(failed), "candidates": sum(1 for _ in candidates(done)),
    }  # fmt: skip
    (options.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    print(json.dumps(summary), flush=True)
    return int(bool(failed) or (summary["ratio"] < BAR and not options.rehearse))


def candidates(done: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every candidate of every part."""
    for one in done:
        yield from one["candidates"]


if __name__ == "__main__":
    sys.exit(main())
