"""Times generated kernels of KernelBench problems on the GPU that is present: many configurations, quickly, no verdict.

    python benchmarks/loop/generated_gpu.py --out FOLDER [--only 95 88 FILE] [--each 8] [--past FOLDER] [--seconds 120]

A process for each problem reads its reference, makes the files of each family's cheapest configurations and of some
drawn at random, and compiles them on the CPU; one at a time then gets the GPU, holds every result against eager
PyTorch, and takes the median of single calls between events, each behind a fill of 256 MiB. FOLDER gets a line for each
configuration in `NAME.jsonl` and the fastest file of each family and of all. `--past`: such a folder of before, whose
fastest configurations come first, and whose slow families get few. What is right here is no verdict: `kopt bench run`
gives one.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

PROBLEMS = ROOT / "tests" / "third_party" / "kernelbench" / "level1"
SEVEN = ("95", "88", "40", "23", "36", "47", "48")
NEAR = 1.35
"""Configurations whose model is within this factor of the family's best are drawn from."""


def main() -> int:
    """Start a process for each problem; or be one."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--only", nargs="*", default=list(SEVEN))
    words.add_argument("--each", type=int, default=8, help="configurations of a family")
    words.add_argument("--seconds", type=float, default=120.0, help="when the script ends")
    words.add_argument("--gpu-seconds", type=float, default=14.0, help="what a problem may take of the GPU")
    words.add_argument("--one", default="")
    words.add_argument("--past", type=Path)
    words.add_argument("--lock", type=Path, help="who holds this file has the GPU")
    words.add_argument("--families", nargs="*", default=[])
    options = words.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        return one(options)
    end = time.monotonic() + options.seconds
    own = [sys.executable, __file__, "--out", str(options.out), "--each", str(options.each)]
    own += ["--gpu-seconds", str(options.gpu_seconds), "--families", *options.families]
    own += ["--past", str(options.past)] if options.past else []
    logs = {number: (options.out / f"log-{Path(number).stem}.txt").open("w") for number in options.only}
    started = {
        number: subprocess.Popen([*own, "--one", number], stdout=log, stderr=log) for number, log in logs.items()
    }
    for number, process in started.items():
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            print(f"{number}: out of time", flush=True)
        lines = (options.out / f"log-{Path(number).stem}.txt").read_text("utf-8").splitlines()
        print("\n".join(lines[-7:]), flush=True)
    return 0


def one(options: argparse.Namespace) -> int:
    """A problem."""
    import torch

    from loop.search.generators import generated
    from loop.search.study import ordered
    from loop.search.variant import Target

    path = Path(options.one) if options.one.endswith(".py") else next(PROBLEMS.glob(f"{options.one}_*.py"))
    folder = options.out / f"files-{path.stem}"
    folder.mkdir(exist_ok=True)
    graph = read(path, folder, torch.device("cpu"))
    properties = torch.cuda.get_device_properties(0)
    capability, cache = properties.major * 10 + properties.minor, properties.L2_cache_size
    target = Target(capability, properties.multi_processor_count, 3e12, cache)
    draw = random.Random(7)
    wanted: list[tuple[str, dict[str, Any], str]] = []
    for variant in generated(graph, path.stem, target):
        if options.families and variant.name not in options.families:
            continue
        order = ordered(variant)
        known, share = past(options.past, path.stem, variant.name)
        known = [config for config in known if config in order]
        near = [c for c in order if variant.cost(c) <= NEAR * variant.cost(order[0]) and c not in known]
        count = max(0, int(options.each * share) - 1)
        some = [*known, *near[:1], *draw.sample(near[1:], min(len(near[1:]), count))]
        wanted += [(variant.name, config, variant.render(config)) for config in some]
    modules = [load(folder, n, text) for n, (_, _, text) in enumerate(wanted)]
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        failed = list(pool.map(lambda module: compiled(module, graph), modules))
    print(f"{path.stem}: {len(wanted)} configurations compiled in {time.monotonic() - started:.1f} s", flush=True)
    with (options.lock or options.out / "gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        measured(options, path, [(*w, m, f) for w, m, f in zip(wanted, modules, failed, strict=True)])
    return 0


def read(path: Path, folder: Path, device: Any) -> Any:
    """The graph of a reference, which is copied to a folder."""
    from evaluator.graph import read_graph
    from evaluator.worker.counting.graph import trace
    from evaluator.worker.loading.subjects import make_subject

    (folder / "reference.py").write_text(path.read_text("utf-8"), "utf-8")
    message = {"form": "kernelbench", "role": "reference", "file": "reference.py", "dims": {}, "inputs": ""}
    return read_graph(trace(make_subject(message, folder, device), 0))


def past(folder: Path | None, problem: str, family: str) -> tuple[list[dict[str, Any]], float]:
    """(a family's fastest configurations of before, how much of what is tried it should get)."""
    if folder is None or not (folder / f"{problem}.jsonl").is_file():
        return [], 1.0
    lines = [json.loads(line) for line in (folder / f"{problem}.jsonl").read_text("utf-8").splitlines()]
    right = sorted((one for one in lines if one.get("right")), key=lambda one: one["us"])
    own = [one for one in right if one["family"] == family]
    if not own:
        return [], 1.0
    behind = own[0]["us"] / right[0]["us"]
    return [one["config"] for one in own[:4]], 1.0 if behind < 1.08 else 0.3 if behind < 1.3 else 0.0


def load(folder: Path, number: int, text: str) -> ModuleType:
    """A generated file as a module."""
    path = folder / f"candidate_{number}.py"
    path.write_text(text, "utf-8")
    return imported(path)


def imported(path: Path) -> ModuleType:
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


class Recorder:
    """Stands for a kernel, and keeps what it is launched with."""

    def __init__(self, kernel: Any, launches: list[Any]) -> None:
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **words: self.launches.append((self.kernel, grid, args, words))


def compiled(module: ModuleType, graph: Any) -> str:
    """Compile what a file launches, without running it; why that failed, or nothing."""
    import torch
    from triton import JITFunction

    own = {name: value for name, value in vars(module).items() if isinstance(value, JITFunction) and name[0] != "_"}
    launches: list[Any] = []
    for name, kernel in own.items():
        setattr(module, name, Recorder(kernel, launches))
    try:
        inputs: list[Any] = [
            torch.empty_strided(one.shape, one.stride, dtype=getattr(torch, one.dtype), device="meta")
            for one in graph.sources
            if one.what == "input"
        ]
        for number in graph.numbers:
            inputs.insert(number.position, number.value)
        module.ModelNew().to("meta")(*inputs)
        for kernel, grid, args, words in launches:
            looks = getattr(module, "LOOKS", 0)
            mocks = [
                one.dtype if isinstance(one, torch.Tensor) else looks if isinstance(one, int) else one for one in args
            ]
            kernel.warmup(*mocks, grid=grid, **words)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-400:]}"
    finally:
        for name, kernel in own.items():
            setattr(module, name, kernel)
    return ""


def measured(options: argparse.Namespace, path: Path, candidates: list[Any]) -> None:
    """Check and time everything, within the problem's seconds."""
    import torch

    end = time.monotonic() + options.gpu_seconds
    device = torch.device("cuda")
    reference = imported(options.out / f"files-{path.stem}" / "reference.py")
    torch.manual_seed(0)
    with device, torch.no_grad():
        model = reference.Model(*reference.get_init_inputs()).to(device)
        for weight in model.parameters():
            weight.copy_(torch.rand_like(weight) + 0.5)
        inputs = reference.get_inputs()
        wanted = model(*inputs)
        eager = timed(lambda: model(*inputs))
    scale = float(wanted.abs().max())
    best: dict[str, float] = {}
    with (options.out / f"{path.stem}.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"task": path.stem, "device": torch.cuda.get_device_name(), "eager_us": eager}) + "\n")
        for name, config, text, module, failed in candidates:
            line: dict[str, Any] = {"task": path.stem, "family": name, "config": config}
            if time.monotonic() > end:
                line["why"] = "out of time"
            elif failed:
                line["why"] = failed
            else:
                try:
                    line |= tried(module, model, inputs, wanted, scale)
                except Exception as error:
                    line["why"] = f"{type(error).__name__}: {str(error)[-400:]}"
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            if line.get("right") and line["us"] < min(best.values(), default=float("inf")):
                (options.out / f"best-{path.stem}.py").write_text(text, "utf-8")
            if line.get("right") and line["us"] < best.get(name, float("inf")):
                best[name] = line["us"]
                (options.out / f"best-{path.stem}-{name}.py").write_text(text, "utf-8")
    shown = ", ".join(f"{name} {us:.1f}" for name, us in best.items())
    print(f"{path.stem}: eager {eager:.1f} us; {shown}", flush=True)


def tried(module: ModuleType, model: Any, inputs: list[Any], wanted: Any, scale: float) -> dict[str, Any]:
    """What a candidate does."""
    import torch

    own = module.ModelNew().to(wanted.device)
    state = model.state_dict()
    if state:
        own.load_state_dict(state)
    with torch.no_grad():
        got = own(*inputs)
        torch.cuda.synchronize()
        error = 0.0
        for a, b in zip(got.reshape(-1).split(1 << 28), wanted.reshape(-1).split(1 << 28), strict=True):
            error = max(error, float((a - b).abs().max()) / scale if bool(torch.isfinite(a).all()) else float("inf"))
        del got
        us = timed(lambda: own(*inputs))
    return {"us": us, "error": error, "right": error < (1e-4 if wanted.element_size() > 2 else 2e-2)}


def timed(call: Any, seconds: float = 0.12) -> float:
    """Median microseconds of a call, behind a fill that empties the cache of its data and hides the host's time."""
    import torch

    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    call()
    torch.cuda.synchronize()
    found: list[float] = []
    until = time.monotonic() + seconds
    while len(found) < 5 or (time.monotonic() < until and len(found) < 100):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        flush.zero_()
        first.record()
        call()
        last.record()
        last.synchronize()
        found.append(first.elapsed_time(last) * 1000)
    return sorted(found)[len(found) // 2]


if __name__ == "__main__":
    sys.exit(main())
