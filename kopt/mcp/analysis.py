"""Tools that look at a kernel: occupancy, roofline, diagnose, bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from kbs.common.errors import ExitCode, UsageError
from kbs.common.visible_text import visible
from kopt.mcp.problem import NO_DIMS, Bytes, Dims, Entry, File, Inputs, Launch, Operations, Peak, problem_files
from kopt.mcp.tool import Call, Done, tool
from kopt.services.arguments import read_bytes

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile


@tool("occupancy", "machine_code.OccupancyData", lane="sandbox")
def occupancy(
    call: Call,
    gpu: Annotated[str, Field(description="h100-sxm, or a compute capability: sm_90.", max_length=100)] = "",
    regs: Annotated[int | None, Field(description="Registers per thread.")] = None,
    smem: Annotated[
        int | None,
        Field(description="Bytes of shared memory per block, or 48KB.", ge=0),
        BeforeValidator(lambda given: read_bytes(given) if isinstance(given, str) else given),
    ] = None,
    threads: Annotated[int | None, Field(description="Threads per block.")] = None,
    barriers: Annotated[int | None, Field(description="Barriers per block.")] = None,
    carveout: Annotated[int | None, Field(description="Preferred shared memory, in percent.")] = None,
    kernel: Annotated[File, Field(description="A .cubin, .cu or .py file in place of numbers; it is compiled.")] = "",
    function: Annotated[str, Field(description="With kernel: part of the function's name.", max_length=500)] = "",
    ref: Annotated[File, Field(description="Reference whose inputs a Triton kernel is called with.")] = "",
    dims: Dims = NO_DIMS,
    entry: Entry = "",
) -> Done:
    """Compute the blocks and warps that fit on an SM, what limits them, and what one more block needs."""
    import json

    from kopt.services.machine_code import occupancy as service
    from kopt.services.machine_code.compiling import compile_error, compile_files
    from kopt.services.results.machine_code import OccupancyData
    from kopt.services.results.telling.occupancy import occupancy_lines

    def compile(path: Path, target: Target, multiprocessors: int | None) -> tuple[SourceFile, Machine]:
        (made,) = compile_files(
            *([path], target, multiprocessors),
            kernels=(),
            python=None,
            variables=(),
            ref=call.roots.file(ref) if ref else None,
            dims=json.dumps(dict(dims)) if dims else None,
            entry=entry or None,
            load_seconds=300.0,
        )
        return made

    file = call.roots.file(kernel) if kernel else None
    asked = service.OccupancyQuery(gpu, regs, smem, threads, barriers, carveout, file, function)
    asked.check()
    engine = call.engine()
    found = service.occupancy(engine, asked, compile)
    data = OccupancyData.of(gpu, found, engine.terms)
    if found.rejected is not None:
        error = compile_error(*found.rejected)
        return Done(data, error["message"], ExitCode.REJECTED, engine.warnings, [error])
    told = "\n".join(found.gaps or occupancy_lines(data))
    return Done(data, told, ExitCode.ABSTAINED if found.gaps else ExitCode.OK, engine.warnings)


@tool("roofline", "rooflines.RooflineData", lane="sandbox")
def roofline(
    call: Call,
    gpu: Annotated[str, Field(description="A GPU of the wiki: h200-sxm; auto: the GPU present.", max_length=100)],
    kernel: Annotated[File, Field(description="The kernel: a .py or .cu file.")] = "",
    ref: Annotated[File, Field(description="The reference, whose bytes and operations are counted.")] = "",
    dims: Dims = NO_DIMS,
    inputs: Inputs = "",
    entry: Entry = "",
    bytes: Bytes = "",
    operations: Operations = "",
    peak: Peak = "",
    profile: Annotated[File, Field(description="A measured time: a receipt or an ncu report.")] = "",
) -> Done:
    """Count what a problem must move and compute, and compare it with a GPU's cited peaks: bound, floor time, target.

    Status `abstained` if the floor time is unknown, because no page states a peak that it needs.
    """
    from kopt.services.results.rooflines import RooflineData
    from kopt.services.results.telling.roofline import roofline_lines
    from kopt.services.roofline import problem_roofline

    if not (kernel or ref):
        raise UsageError("no problem is given", code="no_kernel", hint="Give kernel, ref or both.")
    files = problem_files(call, kernel, ref, dims, entry, bytes, operations, inputs)
    engine = call.engine()
    measured = call.roots.file(profile) if profile else None
    found, request, recognised = problem_roofline(engine, gpu, files, peak=peak, profile=measured)
    name = Path(kernel or ref).name
    data = RooflineData.of(found, name, recognised.form.value, request.dims, "")
    code = ExitCode.OK if found.placed.floor is not None else ExitCode.ABSTAINED
    told = "\n".join(map(visible, roofline_lines(found, name, request.dims)))
    return Done(data, told, code, engine.warnings)


@tool("diagnose", "profiles.DiagnoseData", lane="sandbox")
def diagnose(
    call: Call,
    report: Annotated[File, Field(description="A .ncu-rep, its CSV, a folder of `kopt profile`, or a receipt.")],
    kernel: Annotated[File, Field(description="The kernel: a .py or .cu file.")] = "",
    ref: Annotated[File, Field(description="The reference, whose bytes and operations are counted.")] = "",
    dims: Dims = NO_DIMS,
    inputs: Inputs = "",
    entry: Entry = "",
    bytes: Bytes = "",
    operations: Operations = "",
    peak: Peak = "",
    gpu: Annotated[str, Field(description="GPU for the headroom (default: the report's).", max_length=100)] = "",
    launch: Launch = "",
) -> Done:
    """Find what bounds a kernel: class, binding resource, headroom, and symptoms with the thresholds they rest on."""
    from kopt.services.results.profiles import DiagnoseData
    from kopt.services.results.telling.diagnosis import lines
    from kopt.services.user_kernel.diagnosis import diagnose_report

    files = problem_files(call, kernel, ref, dims, entry, bytes, operations, inputs)
    engine = call.engine()
    made = diagnose_report(engine, call.roots.file(report), files, launch=launch, gpu=gpu, peak=peak)
    told = (made.measured.report.name, made.measured.chosen, made.found, made.past)
    data = DiagnoseData.of(*told)
    code = ExitCode.ABSTAINED if data.bottleneck == "unknown" else ExitCode.OK
    return Done(data, "\n".join(lines(*told)), code, engine.warnings)


@tool("bench", "bench.BenchData", lane="measure", writes=True)
def bench(
    call: Call,
    kernel: Annotated[File, Field(description="The kernel: a .py or .cu file.")],
    ref: Annotated[File, Field(description="The reference (default: the kernel itself, at float64).")] = "",
    against: Annotated[File, Field(description="Another kernel for this problem to compare with.")] = "",
    plan: Annotated[Literal["signal", "verdict"], Field(description="signal is quick, verdict complete.")] = "verdict",
    device: Annotated[str, Field(description="cuda:N or cpu (default: the first GPU, else cpu).", max_length=20)] = "",
    dims: Dims = NO_DIMS,
    inputs: Inputs = "",
    entry: Entry = "",
    tolerance: Annotated[str, Field(description="ATOL,RTOL (default: the evaluator's bound).", max_length=100)] = "",
    baselines: Annotated[
        tuple[Literal["eager", "compile"], ...], Field(description="What the kernel is timed against.")
    ] = ("eager", "compile"),
    restarts: Annotated[int, Field(description="Process restarts per kernel.", ge=2, le=50)] = 5,
    seconds: Annotated[float, Field(description="Seconds of timed runs per workload.", ge=0.1, le=3600)] = 10.0,
    call_seconds: Annotated[float, Field(description="Seconds per call.", ge=0.1, le=3600)] = 60.0,
) -> Done:
    """Check a kernel against its reference, look for cheating, time it, and keep a sealed receipt.

    The kernel runs in the sandbox. Status `rejected` if it is not accepted; the verdict says why. Times are taken on a
    GPU only. Takes minutes: ask for progress.
    """
    import json

    from evaluator.receipt.verdict import Verdict
    from evaluator.request import check_device
    from evaluator.sandbox.fork_server import passed_environment
    from kopt.services.bench.evaluation import evaluate_and_keep, server_for
    from kopt.services.bench.request import first_device, make_request, peak_of
    from kopt.services.results.bench import BenchData
    from kopt.services.results.telling.receipt import receipt_lines

    chosen = device or first_device()
    check_device(chosen)
    engine, variables = call.engine(), passed_environment(())
    with server_for(chosen, "", variables) as server:
        request = make_request(
            call.roots.file(kernel),
            ref=call.roots.file(ref) if ref else None,
            against=call.roots.file(against) if against else None,
            inputs=call.roots.file(inputs) if inputs else None,
            plan=plan,
            device=chosen,
            python=server.python,
            environment=variables,
            peak=peak_of(engine, chosen),
            dims=json.dumps(dict(dims)) if dims else None,
            entry=entry or None,
            tolerance=tolerance or None,
            baselines=",".join(baselines),
            restarts=restarts,
            timing_seconds=seconds,
            call_seconds=call_seconds,
        )
        receipt, path = evaluate_and_keep(request, server, engine.settings.home, None, call.progress)
    code = ExitCode.OK if receipt.verdict is Verdict.ACCEPTED else ExitCode.REJECTED
    return Done(BenchData.of(receipt, path), "\n".join(receipt_lines(receipt, path)), code, engine.warnings)
