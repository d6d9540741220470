"""The generated kernels against their bars, on every GPU that is named: problems of KernelBench, other shapes, cuBLAS.

    python benchmarks/loop/search_bars.py --out FOLDER --drawn DRAWN [--devices 0 1] [--only GROUP ...] [--seconds 540]

Groups, in the order in which they are done: `seven` (the problems of `search_starts.py`), `drawn` (the files that
`draw.py` left in DRAWN), `matmul` and `shapes` (`search_shapes.py`), `peers` (torch.compile with max-autotune on the
seven), `log` (a run of problem 95, and another with the first one's log). A case is looked at quickly
(`generated_gpu.py`), and its fastest kernel gets a verdict (`kopt bench`). Each GPU does a case at a time; the next are
traced and compiled meanwhile.

FOLDER gets a line of `results.jsonl` for each case that is done, its kernel, its receipt and its configurations. A case
that is there is not repeated: start the script again after `--seconds`. `--first`: names of cases that come first.
`--rehearse` does the same on the CPU for the seven, at small sizes, with the first kernel that is generated.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.search_h200 import Kopt, measured, prepare  # noqa: E402  # ROOT must be on the path first
from benchmarks.loop.search_shapes import PRODUCTS, SHAPES  # noqa: E402  # likewise
from benchmarks.loop.search_starts import STARTS  # noqa: E402  # likewise

PROBLEMS = ROOT / "tests" / "third_party" / "kernelbench" / "level1"
HERE = Path(__file__).resolve().parent
GROUPS = ("seven", "drawn", "matmul", "shapes", "peers", "log")
AHEAD = 2
"""Cases of a GPU that may be looked at before its last one has a verdict."""


@dataclass(frozen=True)
class Case:
    """Something that a kernel is made for."""

    name: str
    group: str
    text: str
    each: int
    """Configurations of a family."""
    seconds: float
    """Of the GPU, for the quick look."""
    baselines: str = "compile"


def cases(options: argparse.Namespace) -> list[Case]:
    """All that is asked for, in order."""
    seven = {name: (PROBLEMS / f"{name}.py").read_text("utf-8") for name in STARTS}
    found = [Case(name, "seven", text, 12 if name[:3] in ("23_", "40_") else 5, 9.0) for name, text in seven.items()]
    drawn = sorted(options.drawn.glob("level*/*.py")) if options.drawn else []
    found += [Case(f"{path.parent.name}_{path.stem}", "drawn", path.read_text("utf-8"), 10, 7.0) for path in drawn]
    found += [Case(name, "matmul", text, 24, 8.0, "eager") for name, text in PRODUCTS.items()]
    found += [Case(name, "shapes", text, 5, 4.0, "eager") for name, text in SHAPES.items()]
    found += [Case(f"peers_{name}", "peers", text, 0, 0.0) for name, text in seven.items()]
    found.append(Case("95_CrossEntropyLoss_log", "log", seven["95_CrossEntropyLoss"], 0, 0.0))
    first = {name: place for place, name in enumerate(options.first)}
    chosen = [one for one in found if one.group in options.only or one.name in first]
    return sorted(chosen, key=lambda one: (first.get(one.name, len(first)), GROUPS.index(one.group)))


@dataclass
class Bench:
    """What all GPUs share."""

    options: argparse.Namespace
    out: Path
    work: Path
    end: float
    left: list[Case]
    guard: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Case | None:
        """A case that nobody has taken."""
        with self.guard:
            return self.left.pop(0) if self.left and time.monotonic() < self.end - 20 else None

    def keep(self, case: Case, line: dict[str, Any]) -> None:
        """A case is done."""
        with self.guard:
            with (self.out / "results.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"case": case.name, "group": case.group, **line}) + "\n")
            print(f"{time.monotonic():.0f} {case.name}: {json.dumps(line)[:700]}", flush=True)


class Device:
    """A GPU with a process for the quick looks and one for the verdicts."""

    def __init__(self, number: int, bench: Bench) -> None:
        self.number, self.bench = number, bench
        self.looked: queue.Queue[tuple[Case, dict[str, Any]] | None] = queue.Queue(AHEAD)
        self.lock = bench.work / f"gpu{number}.lock"
        self.threads = [threading.Thread(target=one, daemon=True) for one in (self.looks, self.verdicts)]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alone on the GPU."""
        with self.lock.open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def looks(self) -> None:
        """Look at one case after the other."""
        while (case := self.bench.next()) is not None:
            if self.bench.options.rehearse:
                prepare(self.bench.work, case.name.removeprefix("peers_").removesuffix("_log"), rehearse=True)
                case = replace(case, text=(self.bench.work / "ref.py").read_text("utf-8"))
            file = self.bench.work / f"{case.name}.py"
            file.write_text(case.text, "utf-8")
            line: dict[str, Any] = {"gpu": self.number}
            if case.each:
                line |= (self.rehearsed if self.bench.options.rehearse else self.look)(case, file)
            self.looked.put((case, line))
        self.looked.put(None)

    def rehearsed(self, case: Case, file: Path) -> dict[str, Any]:
        """The first kernel that there is."""
        import torch

        from benchmarks.loop.generated_gpu import read
        from loop.search.generators import generated
        from loop.search.study import ordered
        from loop.search.variant import Target

        target = Target(90, 132, 3e12, 50 << 20)
        graph = read(file, self.bench.work, torch.device("cpu"))
        variant = next(one for one in generated(graph, case.name, target) if ordered(one))
        best = self.bench.work / "quick" / f"best-{case.name}.py"
        best.write_text(variant.render(ordered(variant)[0]), "utf-8")
        return {"family": variant.name}

    def look(self, case: Case, file: Path) -> dict[str, Any]:
        """The quick look: what each family came to."""
        bench, out = self.bench, self.bench.work / "quick"
        words = ["--out", str(out), "--one", str(file), "--each", str(case.each), "--gpu-seconds", str(case.seconds)]
        words += ["--lock", str(self.lock), *(["--past", str(bench.options.past)] if bench.options.past else [])]
        started = time.monotonic()
        log = bench.work / f"look-{case.name}.txt"
        with log.open("w") as stream:
            try:
                subprocess.run(
                    [sys.executable, str(HERE / "generated_gpu.py"), *words], stdout=stream, stderr=stream, check=False,
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": str(self.number)}, timeout=max(1.0, self.left),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"why": "out of time"}
        found = out / f"{case.name}.jsonl"
        said = {"look_s": round(time.monotonic() - started, 1)}
        if not (out / f"best-{case.name}.py").is_file():
            return {**said, "why": (log.read_text("utf-8").splitlines() or ["it said nothing"])[-1][-600:]}
        lines = [json.loads(one) for one in found.read_text("utf-8").splitlines()]
        with bench.guard, (bench.out / "configurations.jsonl").open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(one) + "\n" for one in lines)
        right = sorted((one for one in lines if one.get("right")), key=lambda one: one["us"])
        families: dict[str, float] = {}
        for one in right:
            families.setdefault(one["family"], round(one["us"], 1))
        wrong = sum(1 for one in lines if one.get("right") is False)
        return {**said, "card": lines[0]["device"], "family": right[0]["family"], "config": right[0]["config"],
                "families": families, "tried": len(lines) - 1, "wrong": wrong}  # fmt: skip

    @property
    def left(self) -> float:
        """Seconds."""
        return self.bench.end - time.monotonic()

    def verdicts(self) -> None:
        """A verdict on the fastest kernel of each case that was looked at."""
        while (item := self.looked.get()) is not None:
            case, line = item
            if line.get("why") == "out of time" or self.left < 5:
                continue
            started = time.monotonic()
            try:
                if not line.get("why"):
                    with self.held():
                        line |= {"peers": self.peers, "log": self.log}.get(case.group, self.verdict)(case)
            except subprocess.TimeoutExpired:
                continue
            except Exception as error:
                line["why"] = f"{type(error).__name__}: {str(error)[-400:]}"
            self.bench.keep(case, {**line, "verdict_s": round(time.monotonic() - started, 1)})

    def kopt(self, folder: Path, home: str = "home") -> Kopt:
        """The command in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        return Kopt(folder, self.bench.work / home, self.bench.end)

    def verdict(self, case: Case) -> dict[str, Any]:
        """By `kopt bench`."""
        bench, rehearse = self.bench, self.bench.options.rehearse
        best = bench.work / "quick" / f"best-{case.name}.py"
        device = "cpu" if rehearse else f"cuda:{self.number}"
        words = [str(best), "--ref", str(bench.work / f"{case.name}.py"), "--device", device]
        if not rehearse:
            words += ["--baselines", case.baselines, "--restarts", "2", "--seconds", "2"]
        said = self.kopt(bench.work / f"bench-{case.name}")("bench", "run", *words)
        found = measured(said["data"])
        if said["data"]:
            (bench.out / "receipts").mkdir(exist_ok=True)
            shutil.copyfile(said["data"]["receipt"], bench.out / "receipts" / f"{case.name}.json")
        (bench.out / "kernels").mkdir(exist_ok=True)
        shutil.copyfile(best, bench.out / "kernels" / f"{case.name}.py")
        return {**found, "errors": [one["message"] for one in said["errors"]]}

    def peers(self, case: Case) -> dict[str, Any]:
        """Peers on one of the seven, timed like the quick look."""
        file, name = self.bench.work / f"{case.name}.py", case.name.removeprefix("peers_")
        best = self.bench.out / "kernels" / f"{name}.py"
        if not best.is_file():
            best = self.bench.options.kernels / f"{name}.py"
        done = subprocess.run(
            [sys.executable, str(HERE / "search_peers.py"), str(file), str(best)],
            capture_output=True, text=True, check=False, timeout=max(1.0, self.left),
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(self.number)},
        )  # fmt: skip
        return dict(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else {"why": done.stderr[-600:]}

    def log(self, case: Case) -> dict[str, Any]:
        """A run, and another one with its log: GPU-seconds until each had what the first one found best."""
        rehearse = self.bench.options.rehearse
        where = ["--device", "cpu", "--accept-unmeasured", "--gpu", "h100-sxm"]
        where = where if rehearse else ["--no-ncu", "--device", f"cuda:{self.number}"]
        found = []
        for number in (1, 2):
            kopt = self.kopt(self.bench.work / f"log{number}", "home-log")
            (kopt.folder / "ref.py").write_text(case.text, "utf-8")
            (kopt.folder / "kernel.py").write_text(STARTS["95_CrossEntropyLoss"], "utf-8")
            kopt(
                "run", "start", "--kernel", "kernel.py", "--ref", "ref.py", "--iterations", "1", "--branches", "2",
                "--restarts", "2", "--seconds", "2", "--search-seconds", "40", *where, "--yes",
            )  # fmt: skip
            run = kopt("run", "status")["data"]
            found.append({"run": run and run["run"], "best": run and run["best"], "trials": trials(kopt, run)})
        return {"runs": found, **compared(found[0]["trials"], found[1]["trials"])}


def trials(kopt: Kopt, run: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What a run's search measured, in order."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    found: list[dict[str, Any]] = []
    home = Path(kopt.environment["KOPT_HOME"])
    for path in sorted((home / "runs").glob(f"{run['run'] if run else '-'}*.search")):
        storage = JournalStorage(JournalFileBackend(str(path)))
        for study in storage.get_all_studies():
            found += [
                {"at": str(one.datetime_complete), "family": study.study_name, "us": one.value,
                 "seconds": float(one.user_attrs.get("seconds", 0.0)), "config": one.params}
                for one in storage.get_all_trials(study._study_id)
            ]  # fmt: skip
    return sorted((one for one in found if one["us"] is not None), key=lambda one: str(one["at"]))


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any]:
    """GPU-seconds of each run's search until it had a kernel within 2 % of the first one's best."""
    if not first:
        return {"why": "the first run measured nothing"}
    wanted = min(one["us"] for one in first) * 1.02

    def until(found: list[dict[str, Any]]) -> float | None:
        spent = 0.0
        for one in found:
            spent += float(one["seconds"])
            if one["us"] <= wanted:
                return round(spent, 2)
        return None

    return {"best_us": min(one["us"] for one in first), "until_first_s": until(first), "until_second_s": until(second),
            "whole_first_s": round(sum(one["seconds"] for one in first), 2)}  # fmt: skip


def main() -> int:
    """Do what is not done."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--drawn", type=Path)
    words.add_argument("--past", type=Path, help="quick looks of before: NAME.jsonl")
    words.add_argument("--kernels", type=Path, default=Path(), help="kernels of before, for the peers")
    words.add_argument("--devices", type=int, nargs="+", default=[0])
    words.add_argument("--only", nargs="*", default=list(GROUPS), choices=GROUPS)
    words.add_argument("--first", nargs="*", default=[])
    words.add_argument("--most", type=int, default=0, help="cases")
    words.add_argument("--seconds", type=float, default=540.0)
    words.add_argument("--work", type=Path, default=Path("/tmp/search-bars"))
    words.add_argument("--rehearse", action="store_true")
    options = words.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.work / "quick").mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    path = options.out / "results.jsonl"
    done = {json.loads(line)["case"] for line in path.read_text("utf-8").splitlines()} if path.exists() else set()
    left = [one for one in cases(options) if one.name not in done]
    bench = Bench(options, options.out.absolute(), options.work, end, left[: options.most or None])
    devices = [Device(number, bench) for number in options.devices]
    for device in devices:
        for thread in device.threads:
            thread.start()
    for device in devices:
        device.threads[1].join(max(1.0, end - time.monotonic()) + 15)
    missing = [
        one.name for one in left if f'"case": "{one.name}"' not in (path.read_text("utf-8") if path.exists() else "")
    ]
    print(f"not done: {', '.join(missing) or 'nothing'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
