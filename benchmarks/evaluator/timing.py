"""The evaluator's times on a GPU, held against their bars. Resumable: a line of JSON is written after each case.

    python benchmarks/evaluator/timing.py --out FILE [--only BAR …] [--seconds LIMIT]
    python benchmarks/evaluator/timing.py --out FILE --report

Plan, in the order of what costs least: `signal` (5 warm signals of 3 kernels), `do_bench` (medians of kernels of 1 ms
and more against `triton.testing.do_bench`), `verdict` (seconds of two full verdicts of a 0.1 ms kernel), `kernelbench`
(6 problems with torch.compile as the candidate), `level1` (references as their own candidates), `spread` (10 verdicts
of 2 kernels), `noise` (200 comparisons of references with themselves). A case that stands in FILE is not measured
again. The whole table but for `level1` takes about 25 minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KERNELBENCH = ROOT / "tests" / "third_party" / "kernelbench"
KERNELS = Path(__file__).resolve().parent / "kernels"
FACTS = {  # eager ms, torch.compile ms: an earlier measurement of the same problems with do_bench
    "23": (6.166, 4.749), "36": (11.338, 3.961), "40": (8.013, 0.323),
    "47": (2.111, 2.413), "88": (1.150, 0.131), "95": (0.411, 0.277),
}  # fmt: skip
COMPILED = """


class ModelNew(Model):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.compile()
"""
ELEMENTS = {"39": 4, "36": 3, "35": 3, "37": 3, "23": 2, "40": 1}
"""Problems of level 1 that move most, with the billions of elements that they move, rounded up."""
SPREAD_RUNS = 10
NOISE_RUNS = 200
SIGNALS = 5
RUNS = 5
"""Of do_bench, in each way."""

Case = tuple[str, Callable[[], dict[str, Any]]]


def main() -> int:
    """Measure what is missing, or print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--only", nargs="*", default=list(BARS), choices=list(BARS))
    words.add_argument("--seconds", type=float, default=500.0, help="no case is begun after so many")
    words.add_argument("--report", action="store_true")
    options = words.parse_args()
    done = read(options.out)
    if options.report:
        report(done)
        return 0
    until = time.monotonic() + options.seconds
    session = Session()
    try:
        for bar in options.only:
            for name, measure in BARS[bar](session):
                if name in done:
                    continue
                if time.monotonic() > until:
                    print("out of time: run it again", flush=True)
                    return 0
                began = time.monotonic()
                try:
                    found = measure()
                except Exception as error:  # the next cases are worth their seconds all the same
                    found = {
                        "error": f"{type(error).__name__}: {error}"[:1000],
                        "where": traceback.format_exc()[-2500:],
                    }
                line = {"case": name, "took": round(time.monotonic() - began, 2), **found, **session.where()}
                with options.out.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(json.dumps({key: line[key] for key in line if key not in WHERE})[:400], flush=True)
    finally:
        session.close()
    return 0


def read(path: Path) -> dict[str, dict[str, Any]]:
    """What was measured before; errors are measured again."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return {line["case"]: line for line in lines if "error" not in line}


WHERE = ("command", "device", "driver", "torch", "triton", "clock", "date")


class Session:
    """One fork server for all cases, and where they were measured."""

    def __init__(self) -> None:
        from evaluator.sandbox.fork_server import ForkServer

        self.server = ForkServer("cuda")
        self.folder = Path(tempfile.mkdtemp(prefix="kopt-timing-"))
        self._where: dict[str, Any] = {}

    def close(self) -> None:
        """End the server."""
        self.server.close()

    def where(self) -> dict[str, Any]:
        """Device, software, clock, date and command."""
        if not self._where:
            import torch
            import triton

            from evaluator.receipt.environment import driver_version
            from evaluator.timing.ceilings import device_clock

            self._where = {
                "command": "python benchmarks/evaluator/timing.py --out FILE",
                "device": torch.cuda.get_device_name(0),
                "driver": driver_version(),
                "torch": torch.__version__,
                "triton": triton.__version__,
                "clock": f"{device_clock(torch.device('cuda:0')).sample()} MHz, not locked",
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            }
        return self._where

    def bench(self, candidate: Path, reference: Path, **more: Any) -> Any:
        """The receipt of one evaluation."""
        from evaluator.evaluate import evaluate
        from kopt import __version__
        from kopt.services.bench.request import make_request

        words = {
            "candidate": candidate, "ref": reference, "inputs": None, "dims": None, "workloads": None,
            "plan": "verdict", "device": "cuda:0", "tolerance": None, "sanitizers": None, "nvcc_flags": "",
            "memory": None, "python": self.server.python, "environment": self.server.environment,
            "baselines": "eager", **more,
        }  # fmt: skip
        return evaluate(make_request(**words), kopt=__version__, server=self.server)

    def compiled(self, number: str) -> tuple[Path, Path]:
        """(torch.compile of a KernelBench problem as a candidate, the problem)."""
        problem = next(KERNELBENCH.glob(f"**/{number}_*.py"))
        candidate = self.folder / f"compiled_{number}.py"
        candidate.write_text(problem.read_text("utf-8") + COMPILED, "utf-8")
        return candidate, problem


def timed(receipt: Any) -> dict[str, Any]:
    """What a receipt says of time, in short."""
    found = {"verdict": str(receipt.verdict), "improvement": str(receipt.improvement), "reason": receipt.reason[:300]}
    if receipt.timing is None:
        return found
    first = receipt.timing.workloads[0]
    ratio = receipt.timing.ratio
    return {
        **found,
        "median_us": first.candidate.summary.median_us,
        "baselines_us": {n: b.timed.summary.median_us for n, b in first.baselines.items() if b.timed.summary},
        "failed": {n: b.timed.detail for n, b in first.baselines.items() if not b.timed.summary},
        "ratio": None if ratio is None else [ratio.median, ratio.ci_low, ratio.ci_high],
        "noise": None if ratio is None else ratio.noise,
        "converged": None if ratio is None else ratio.converged,
        "n": first.candidate.summary.n,
        "audit": first.audit.status,
        "unstable": list(first.unstable),
        "of_ceiling": first.of_ceiling,
        "back_to_back": first.back_to_back and first.back_to_back.model_dump(mode="json"),
        "notes": list(first.notes),
        "seconds": receipt.seconds,
        "timing_seconds": receipt.timing.seconds,
        "first_compile_seconds": sum(b.timed.first_call_seconds for n, b in first.baselines.items() if n == "compile"),
    }


def signals(session: Session) -> Iterator[Case]:
    """Warm signals: one evaluation after the other in a process that has imported everything."""
    for name, dims in (("softmax", "M=4096,N=1024"), ("add", "N=65536"), ("softmax", "M=16384,N=4096")):

        def measure(name: str = name, dims: str = dims) -> dict[str, Any]:
            session.bench(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", dims=dims, plan="signal")
            seconds = []
            for _ in range(SIGNALS):
                began = time.monotonic()
                receipt = session.bench(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", dims=dims, plan="signal")
                seconds.append(time.monotonic() - began)
            return {**timed(receipt), "signal_seconds": seconds}

        yield f"signal {name} {dims}", measure


def plain_do_bench(session: Session) -> Iterator[Case]:
    """The same kernel under do_bench, in this process."""
    for name, dims in (
        ("softmax", "M=65536,N=8192"), ("add", "N=536870912"), ("matmul", "M=8192,N=8192,K=8192"),
    ):  # fmt: skip

        def measure(name: str = name, dims: str = dims) -> dict[str, Any]:
            plain = do_bench(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", dims)
            receipt = session.bench(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", dims=dims)
            found = timed(receipt)
            ours = found.get("median_us")
            return {**found, **plain, "off": None if ours is None else ours / plain["do_bench_us"] - 1}

        yield f"do_bench {name} {dims}", measure


def do_bench(candidate: Path, reference: Path, dims: str) -> dict[str, Any]:
    """Medians in microseconds by triton.testing.do_bench: as it is (25 ms of warm-up, 100 ms), each time after a second
    of rest, and without rest; and 5 ms of warm-up and 20 ms after 0.3 s of rest. What held the SM clock back."""
    import importlib.util

    import torch
    import triton

    from evaluator.timing.ceilings import device_clock
    from kopt.services.arguments import read_dims

    sizes = read_dims(dims)

    def load(path: Path) -> Any:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    ours, theirs = load(candidate), load(reference)
    for size, value in sizes.items():
        setattr(theirs, size, value)
    with torch.device("cuda"):
        inputs = theirs.get_inputs()
    model = ours.ModelNew()

    def call() -> None:
        model(*inputs)

    def plain(rest: float, **words: Any) -> float:
        time.sleep(rest)
        return 1e3 * float(triton.testing.do_bench(call, return_mode="median", **words))

    plain(0.0, warmup=5, rep=20)  # compiled
    with device_clock(torch.device("cuda:0")).watched() as seen:
        rested = [plain(1.0) for _ in range(RUNS)]
        in_a_row = [plain(0.0) for _ in range(RUNS)]
    short = [plain(0.3, warmup=5, rep=20) for _ in range(RUNS)]
    inputs = None
    torch.cuda.empty_cache()
    return {
        "do_bench_us": statistics.median(rested), "rested_us": rested, "in_a_row_us": in_a_row, "short_us": short,
        "min_mhz": min(seen.megahertz, default=0), "throttled": seen.throttled(),
    }  # fmt: skip


def verdicts(session: Session) -> Iterator[Case]:
    """Seconds of full verdicts with both baselines."""
    for run in range(2):

        def measure() -> dict[str, Any]:
            began = time.monotonic()
            receipt = session.bench(
                KERNELS / "softmax.py", KERNELS / "softmax_ref.py", dims="M=16384,N=4096", baselines="eager,compile"
            )
            return {**timed(receipt), "verdict_seconds": time.monotonic() - began}

        yield f"verdict softmax 16384 x 4096, {run}", measure


def problems(session: Session) -> Iterator[Case]:
    """KernelBench level 1 at its own sizes, torch.compile as the candidate."""
    for number, (eager, compiled) in FACTS.items():

        def measure(number: str = number, eager: float = eager, compiled: float = compiled) -> dict[str, Any]:
            candidate, problem = session.compiled(number)
            receipt = session.bench(candidate, problem, allow_library=True)
            found = timed(receipt)
            ratio = found.get("ratio")
            return {**found, "facts": eager / compiled, "off": ratio[0] / (eager / compiled) - 1 if ratio else None}

        yield f"kernelbench {number}", measure


def spread(session: Session) -> Iterator[Case]:
    """The same verdict in fresh processes, again and again."""
    for name, dims in (("add", "N=65536"), ("softmax", "M=16384,N=4096")):
        for run in range(SPREAD_RUNS):

            def measure(name: str = name, dims: str = dims) -> dict[str, Any]:
                receipt = session.bench(KERNELS / f"{name}.py", KERNELS / f"{name}_ref.py", dims=dims)
                return timed(receipt)

            yield f"spread {name} {dims}, {run}", measure


def noises(session: Session) -> Iterator[Case]:
    """References against themselves, in fresh processes."""
    from evaluator.noise import compare_with_itself
    from kopt.services.bench.request import noise_request

    each = ("N=65536", "add"), ("M=2048,N=1024", "softmax"), ("M=8192,N=4096", "softmax"), ("M=16384,N=4096", "softmax")
    for start in range(0, NOISE_RUNS // len(each), 10):
        for dims, name in each:

            def measure(name: str = name, dims: str = dims) -> dict[str, Any]:
                request = noise_request(KERNELS / f"{name}_ref.py", None, dims, 1.0, 5, "cuda:0")
                runs = compare_with_itself(request, 10, server=session.server)
                return {"runs": [json.loads(run.model_dump_json()) for run in runs]}

            yield f"noise {name} {dims}, {start}", measure


def level_1(session: Session) -> Iterator[Case]:
    """KernelBench level 1 at its own sizes, each reference as its own candidate; the largest first."""
    files = sorted(KERNELBENCH.glob("level1/*.py"), key=lambda path: -ELEMENTS.get(path.stem.partition("_")[0], 0))
    for problem in files:

        def measure(problem: Path = problem) -> dict[str, Any]:
            return timed(session.bench(problem, problem, allow_library=True))

        yield f"level1 {problem.stem}", measure


BARS: dict[str, Callable[[Session], Iterator[Case]]] = {
    "signal": signals,
    "do_bench": plain_do_bench,
    "verdict": verdicts,
    "kernelbench": problems,
    "level1": level_1,
    "spread": spread,
    "noise": noises,
}


def report(done: dict[str, dict[str, Any]]) -> None:
    """The bars and what was reached."""

    print("bars: signal 3 s; do_bench 2 %; verdict 40 s; kernelbench 5 %; spread 1 % (5 % below 50 us); noise 2 of 200")

    def of(bar: str) -> list[dict[str, Any]]:
        return [line for name, line in done.items() if name.startswith(bar)]

    for line in of("signal"):
        print(f"{line['case']:<40} {statistics.median(line['signal_seconds']):.2f} s warm ({line['verdict']})")
    for line in of("do_bench"):
        print(f"{line['case']:<40} {line['median_us']:.1f} us, do_bench {line['do_bench_us']:.1f}: {line['off']:+.2%}")
        for name in ("rested", "in_a_row", "short"):
            print(f"{'':<40} do_bench, {name}: {', '.join(f'{us:.1f}' for us in line[f'{name}_us'])}")
        rows = line["back_to_back"] or {}
        for row in filter(None, (rows.get(side) for side in ("candidate", "baseline"))):
            print(f"{'':<40} without a pause: {row['name']} {row['per_call_us']:.1f}, SM clock {row['min_mhz']} MHz")
    for line in of("verdict"):
        rest = line["verdict_seconds"] - line["first_compile_seconds"]
        print(f"{line['case']:<40} {line['verdict_seconds']:.1f} s, without the first torch.compile {rest:.1f} s")
    for line in of("kernelbench"):
        said = f"ratio {line['ratio']}, facts {line['facts']:.3f}: {line['off']:+.2%}"
        print(f"{line['case']:<40} {line['improvement']}, {said}")
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in of("spread"):
        groups.setdefault(line["case"].rpartition(",")[0], []).append(line)
    for name, lines in groups.items():
        ratios = [line["ratio"][0] for line in lines]
        middle = statistics.median(ratios)
        print(
            f"{name:<40} {len(ratios)} runs, median {lines[0]['median_us']:.1f} us, ratio {middle:.4f}, spread"
            f" {(max(ratios) - min(ratios)) / middle:.2%}, std {statistics.stdev(ratios) / middle:.2%}"
        )
    runs = [run for line in of("noise") for run in line["runs"]]
    wrong = [run for run in runs if run["improvement"] in ("faster", "slower")]
    if runs:
        longest = max(run["turn_seconds"] for run in runs)
        print(f"{'noise':<40} {len(wrong)} of {len(runs)} called a difference; turns at most {longest:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
