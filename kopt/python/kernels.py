"""`kopt.bench`, `kopt.diagnose` and `kopt.recommend`: a kernel checked, explained, and what to try on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from kopt.python.session import File, check_texts, file, opened, public, settings, sizes, within, words

if TYPE_CHECKING:
    from ingest.progress import Progress
    from kopt.python.results.kernels import Benchmark, Diagnosis, Recommendations


@public
def bench(
    kernel: File,
    ref: File | None = None,
    *,
    against: File | None = None,
    plan: Literal["signal", "verdict"] = "verdict",
    device: str | None = None,
    dims: Mapping[str, int] | str | None = None,
    workloads: File | None = None,
    vary: str | Sequence[str] = (),
    inputs: File | None = None,
    entry: str | None = None,
    allow_library: bool = False,
    tolerance: tuple[float, float] | None = None,
    baselines: str | Sequence[str] = ("eager", "compile"),
    restarts: int = 5,
    seconds: float = 10.0,
    call_seconds: float = 60.0,
    receipt: File | None = None,
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Check a kernel against its reference, look for cheating, time it on a GPU, and keep a sealed receipt.

    Kernel and reference run in the sandbox, in processes of their own. `ref`: left out, the kernel itself at float64.
    `device`: cuda:N or cpu; left out, the first GPU, else cpu, which takes no times. `tolerance`: (atol, rtol).
    `workloads`: a file with sizes a line, `{"M": 4096}`, at each of which it must be correct; `vary`: names of sizes
    that may be any, so that odd and prime ones are tested too. `allow_library`: it may call PyTorch and cuBLAS.
    `seconds`: of timed runs per workload; `call_seconds`: of one call at most. `receipt`: its file; left out, one in
    the home folder. `progress` is called with what is being done, how much is done, and of how much.

    The status is `rejected` unless the verdict is `accepted`. Raises `UsageError`, `ConfigurationError`, `NoGpuError`,
    `IndexBusyError`.
    """
    from evaluator.receipt.verdict import Verdict
    from evaluator.request import check_device
    from evaluator.sandbox.fork_server import passed_environment
    from evaluator.store.store import check_chosen
    from kopt.python.results.kernels import Benchmark
    from kopt.services.bench.evaluation import evaluate_and_keep, server_for
    from kopt.services.bench.request import first_device, make_request, peak_of
    from kopt.services.results.bench import BenchData

    if tolerance is not None and not (isinstance(tolerance, Sequence) and len(tolerance) == 2):
        raise TypeError("tolerance is a pair: (atol, rtol)")
    within("restarts", restarts, 2, 50)
    within("seconds", seconds, 0.1, 3600.0)
    within("call_seconds", call_seconds, 0.1, 3600.0)
    check_texts(plan=plan, **{name: one for name, one in {"device": device, "entry": entry}.items() if one is not None})
    chosen, kept = device or first_device(), file("receipt", receipt)
    check_device(chosen)
    if kept is not None:
        check_chosen(kept)
    loaded, variables = settings(home, wikis, workspace), passed_environment(())
    with opened(loaded) as engine, server_for(chosen, "", variables) as server:
        request = make_request(
            file("kernel", kernel),
            ref=file("ref", ref),
            against=file("against", against),
            inputs=file("inputs", inputs),
            workloads=file("workloads", workloads),
            vary=words("vary", vary),
            allow_library=allow_library,
            plan=plan,
            device=chosen,
            python=server.python,
            environment=variables,
            peak=peak_of(engine, chosen),
            dims=json.dumps(sizes(dims)) if dims else None,
            entry=entry,
            tolerance=None if tolerance is None else ",".join(map(str, tolerance)),
            baselines=",".join(words("baselines", baselines)),
            restarts=restarts,
            timing_seconds=seconds,
            call_seconds=call_seconds,
        )
        found, path = evaluate_and_keep(request, server, loaded.home, kept, progress or _silent)
        accepted = found.verdict is Verdict.ACCEPTED
        return Benchmark.made(BenchData.of(found, path), "ok" if accepted else "rejected", engine.warnings)


@public
def diagnose(
    report: File,
    *,
    kernel: File | None = None,
    ref: File | None = None,
    dims: Mapping[str, int] | str | None = None,
    inputs: File | None = None,
    entry: str | None = None,
    bytes: str = "",
    operations: str = "",
    peak: str = "",
    gpu: str = "",
    launch: str = "",
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Find what bounds a kernel: class, binding resource, headroom, and symptoms, each with the threshold it rests on.

    `report`: a .ncu-rep, its CSV, a folder of `kopt profile`, or a receipt. With `ref`, which runs in the sandbox, or
    with `bytes`, traffic beyond what the problem needs is judged too. Where no class can be told the status is
    `abstained`. Raises `UsageError`, `ConfigurationError`, `IndexBusyError`.
    """
    from kopt.python.results.kernels import Diagnosis
    from kopt.services.bench.request import read_inputs
    from kopt.services.results.profiles import DiagnoseData
    from kopt.services.user_kernel.diagnosis import diagnose_report
    from kopt.services.work_counts import ProblemFiles

    check_texts(bytes=bytes, operations=operations, peak=peak, gpu=gpu, launch=launch)
    made = file("inputs", inputs)
    files = ProblemFiles(
        kernel=file("kernel", kernel),
        reference=file("ref", ref),
        inputs=None if made is None else read_inputs(made),
        dims=sizes(dims),
        entry=entry,
        bytes=bytes,
        operations=operations,
    )
    with opened(settings(home, wikis, workspace), progress) as engine:
        told = diagnose_report(engine, file("report", report), files, launch=launch, gpu=gpu, peak=peak)
        data = DiagnoseData.of(told.measured.report.name, told.measured.chosen, told.found, told.past)
        return Diagnosis.made(data, "abstained" if data.bottleneck == "unknown" else "ok", engine.warnings)


@public
def recommend(
    kernel: str,
    *,
    backend: str = "",
    gpu: str = "",
    bottleneck: str = "",
    dims: Mapping[str, int] | str | None = None,
    dtype: str = "",
    limit: int = 5,
    explain: bool = False,
    home: File | None = None,
    workspace: File | None = None,
) -> Recommendations:
    """Recommend methods that helped in similar experiments of the log. `kernel`: its name, or its operation.

    Where nothing is similar the status is `abstained`, and `why` says so. `explain` adds every factor of the ranking.
    Raises `UsageError`, `ConfigurationError`.
    """
    from kopt.python.results.kernels import Recommendations
    from kopt.services.experience.log import recommended
    from kopt.services.results.experiments import RecommendData

    within("limit", limit, 1, 100)
    check_texts(kernel=kernel, backend=backend, gpu=gpu, bottleneck=bottleneck, dtype=dtype)
    loaded = settings(home, None, workspace)
    asked, advice = recommended(
        kernel, backend, gpu, bottleneck, sizes(dims), dtype, limit, explain=explain, settings=loaded
    )
    data = RecommendData(asked=asked, **vars(advice))
    return Recommendations.made(data, "ok" if data.recommended else "abstained", ())


def _silent(_step: str, _done: int, _total: int) -> None:
    """Progress that nobody listens to."""
