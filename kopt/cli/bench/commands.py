"""`kopt bench`: check and time a kernel, verify and replay receipts, measure the GPU itself."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.common.visible_text import visible
from kopt.cli import options
from kopt.cli.bench.options import (
    BuildOptions,
    CandidateArgument,
    FigureOption,
    FileOptions,
    OwnBenchmarkOptions,
    PlanOption,
    ReceiptArgument,
    ReceiptOption,
    on_command_line,
)
from kopt.cli.command import Group, command
from kopt.cli.output import JsonFlag, Reply, progress_bar
from kopt.cli.support import print_lines

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.receipt.receipt import Receipt

DEFAULT = "run"
_GPU_NEEDED = "Times are taken on a GPU only; `kopt bench --device cpu` checks correctness without one."


class _DefaultsToRun(Group):
    """`kopt bench FILE …` is `kopt bench run FILE …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` in front unless a command of the group stands there."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


bench = typer.Typer(
    cls=_DefaultsToRun,
    no_args_is_help=True,
    help="Check and time a kernel. `kopt bench KERNEL` is short for `kopt bench run KERNEL`.",
)


@bench.command("run")
@command("bench", reads_wikis=True)
def run(
    context: typer.Context,
    candidate: CandidateArgument,
    *,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference (default: the kernel itself, at float64).")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Another kernel for this problem; speed is compared with it first.")
    ] = None,
    plan: PlanOption = "verdict",
    device: options.AnyDeviceOption = None,
    problem: options.ProblemOptions,
    timing: options.TimingOptions,
    environment: options.EnvironmentOptions,
    files: FileOptions,
    build: BuildOptions,
    own: OwnBenchmarkOptions,
    long: Annotated[bool, typer.Option("--long", help="Print the evidence too: inputs, cross-checks, clocks.")] = False,
) -> Reply:
    """Check a kernel against its reference, look for cheating, time it, and write a sealed receipt.

    Files may follow KernelBench (Model, get_inputs / ModelNew), define setup(**dims), run_kernel(**kwargs) and
    reference(**kwargs), export extern "C" void solve(...) from a .cu file, or hold a plain function with --inputs.

    The kernel runs in isolated processes; `kopt doctor` shows how well. To record your own benchmark instead, see
    `kopt bench external --help`.

    Exit codes: 0 accepted, 4 not accepted, 6 a GPU is needed and there is none.
    """
    if own.given():
        own.check(context)
        seconds = timing.call_seconds if on_command_line(context, "call_seconds") else None
        reply = _own_benchmark(
            candidate, own.bench_command, own.signal_command, own.figure, plan, seconds, files.receipt
        )
        reply.warnings.append("`kopt bench --bench-command` is now `kopt bench external`; this spelling still works")
        return reply
    from evaluator.request import check_device
    from kopt.services.bench.evaluation import evaluate_and_keep, server_for
    from kopt.services.bench.files import check_files, write_files
    from kopt.services.bench.request import first_device, make_request, peak_of
    from kopt.services.engine import Engine
    from kopt.services.settings import load_settings

    chosen = device or first_device()
    check_device(chosen)
    check_files(files.receipt, files.report, files.plot, chosen)
    variables = environment.variables()
    settings = load_settings()
    with server_for(chosen, environment.interpreter, variables) as server:
        engine = Engine(settings)
        request = make_request(
            candidate,
            ref=ref,
            against=against,
            inputs=problem.inputs,
            plan=plan,
            device=chosen,
            sanitizers=build.sanitize,
            memory=build.memory,
            nvcc_flags=build.nvcc_flags,
            include=tuple(build.include or ()),
            cuda_home=environment.cuda_home,
            python=server.python,
            environment=variables,
            seed=build.seed,
            peak=peak_of(engine, chosen),
            **problem.arguments(),
            **asdict(timing),
        )
        with progress_bar() as bar:
            found, path = evaluate_and_keep(request, server, settings.home, files.receipt, bar)
    return _receipt_reply(found, path, [*engine.warnings, *write_files(found, files.report, files.plot)], long=long)


def _receipt_reply(receipt: Receipt, path: Path, warnings: list[str], *, long: bool) -> Reply:
    from evaluator.receipt.verdict import Verdict
    from kbs.common.errors import ExitCode
    from kopt.cli.bench.text import report
    from kopt.services.results.bench import BenchData

    code = ExitCode.OK if receipt.verdict is Verdict.ACCEPTED else ExitCode.REJECTED
    show = partial(report, receipt=receipt, path=path, long=long)
    return Reply(BenchData.of(receipt, path), show, code, warnings)


@command("bench external", bench)
def external(
    candidate: CandidateArgument,
    bench_command: Annotated[
        str | None,
        typer.Option("--command", "--bench-command", help="Your benchmark, run as it is: 'python bench.py'."),
    ] = None,
    signal_command: Annotated[
        str | None, typer.Option("--signal-command", help="A faster one, run with --plan signal.")
    ] = None,
    figure: FigureOption = None,
    plan: PlanOption = "verdict",
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", help="Seconds for the whole command (default: 600).", min=0.1, max=3600),
    ] = None,
    receipt: ReceiptOption = None,
) -> Reply:
    """Run your own benchmark and keep a sealed record of what it printed.

    kopt checks and measures nothing here: the record says `evidence: external`. Numbers are read from JSON, from
    --figure patterns, and from lines such as `latency: 12.5 us`. Exit code 1 if the command fails.
    """
    if bench_command is None and signal_command is None:
        from kbs.common.errors import UsageError

        raise UsageError("no command was given", code="bench_command_invalid", hint="Example: --command 'python b.py'")
    return _own_benchmark(candidate, bench_command, signal_command, figure, plan, timeout, receipt)


def _own_benchmark(
    candidate: Path,
    bench_command: str | None,
    signal_command: str | None,
    figure: list[str] | None,
    plan: str,
    seconds: float | None,
    receipt: Path | None,
) -> Reply:
    from kbs.common.errors import ExitCode
    from kopt.cli.bench.text import external_error, external_report
    from kopt.services.bench.evaluation import run_own_benchmark
    from kopt.services.results.bench import ExternalData
    from kopt.services.settings import load_settings

    with progress_bar() as bar:
        found, path = run_own_benchmark(
            candidate,
            bench_command=bench_command,
            signal_command=signal_command,
            figures=figure or [],
            plan=plan,
            seconds=seconds,
            home=load_settings().home,
            receipt=receipt,
            progress=bar,
        )

    errors = [external_error(found, path)] if found.failed else []
    code = ExitCode.FAILURE if found.failed else ExitCode.OK
    notes = [visible(note) for note in found.notes]
    data = ExternalData.of(found, path)
    return Reply(data, lambda console: external_report(console, found, path), code, notes, errors)


@command("bench verify", bench)
def verify(receipt: ReceiptArgument) -> Reply:
    """Check that a receipt is unchanged, and whose seal it has.

    The seal finds accidents and edits. It does not bind a program that runs as you and can read your key: to convince
    a stranger, use `kopt bench replay`. Exit code 4 unless the receipt is intact and sealed with your own key.
    """
    from evaluator.store.seal import load_key
    from evaluator.store.seal import verify as verify_bytes
    from evaluator.store.store import read_receipt, receipt_file
    from kbs.common.errors import ExitCode
    from kopt.services.results.bench import VerifyData
    from kopt.services.settings import load_settings

    home = load_settings().home
    receipt = receipt_file(home, receipt)
    found = verify_bytes(read_receipt(receipt), load_key(home))
    data = VerifyData(receipt=str(receipt), **found.model_dump())
    from_outside = ", evidence: external" if found.evidence == "external" else ""

    lines = [f"{'ok' if found.ok else 'not ok':<8} content {found.content}, seal: {found.seal}{from_outside}"]
    lines += [f"{'':<8} {visible(found.detail)}"] if found.detail else []
    return Reply(data, print_lines(lines), ExitCode.OK if found.ok else ExitCode.REJECTED)


@command("bench replay", bench)
def replay(
    receipt: ReceiptArgument,
    environment: options.EnvironmentOptions,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="The inputs file, if the receipt does not contain it.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="cuda:N or cpu (default: the receipt's device).")
    ] = None,
    timeout: options.CallSecondsOption = 60.0,
    save: Annotated[Path | None, typer.Option("--receipt", help="File for the receipt of the replay.")] = None,
) -> Reply:
    """Repeat a receipt's evaluation from its sources and seed, and compare the results.

    Exit code 4 if the result differs: another verdict or improvement, other failed trials, other hazards, other ratios.
    """
    from evaluator.store.store import receipt_file
    from kbs.common.errors import ExitCode
    from kopt.cli.bench.text import report
    from kopt.services.bench import evaluation
    from kopt.services.bench.request import read_inputs
    from kopt.services.results.bench import BenchData, ReplayData
    from kopt.services.settings import load_settings

    home = load_settings().home
    with progress_bar() as bar:
        found = evaluation.replay(
            receipt_file(home, receipt),
            inputs=None if inputs is None else read_inputs(inputs),
            device=device,
            interpreter=environment.interpreter,
            environment=environment.variables(),
            cuda_home=environment.cuda_home,
            call_seconds=timeout,
            home=home,
            receipt=save,
            progress=bar,
        )
    same = not found.differences
    made = BenchData.of(found.receipt, found.path)
    data = ReplayData(same=same, differences=found.differences, environment=found.environment, replay=made)

    def show(console: Console) -> None:
        report(console, found.receipt, found.path)
        print_lines(["", "same result as the receipt" if same else "differs from the receipt:"])(console)
        print_lines(f"  {visible(line)}" for line in found.differences)(console)
        print_lines(f"  (environment) {visible(line)}" for line in found.environment)(console)

    return Reply(data, show, ExitCode.OK if same else ExitCode.REJECTED)


@command("bench export", bench)
def export(
    receipt: ReceiptArgument,
    format: Annotated[str, typer.Option("--format", help="kernelbench or flashinfer-bench.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: standard output).")
    ] = None,
    problem: Annotated[
        int | None, typer.Option("--problem", min=0, help="KernelBench: its number (default: from the file's name).")
    ] = None,
    sample: Annotated[int, typer.Option("--sample", min=0, help="KernelBench: number of the sample.")] = 0,
    definition: Annotated[
        str, typer.Option("--definition", help="flashinfer-bench: its name (default: the reference's file).")
    ] = "",
    solution: Annotated[
        str, typer.Option("--solution", help="flashinfer-bench: its name (default: the kernel's file).")
    ] = "",
    json: JsonFlag = False,
) -> Reply:
    """Write a receipt as a result of KernelBench (eval_results.json) or flashinfer-bench (lines of traces).

    Neither the source nor anything that the kernel printed is taken over. A receipt that was changed, or that has
    another's seal, is told of.
    """
    from evaluator.store.store import receipt_file
    from kbs.common.errors import UsageError
    from kopt.services.bench.exports import Naming, export_receipt
    from kopt.services.results.bench import BenchExportData
    from kopt.services.settings import load_settings

    if json and output is None:
        raise UsageError(
            "--json and the export cannot both be printed", code="no_output", hint="Name a file with --output."
        )
    naming, home = Naming(problem, sample, definition, solution), load_settings().home
    text, warnings = export_receipt(receipt_file(home, receipt), format, naming, output, home)
    lines = text.splitlines() if output is None else [f"written to {output}"]
    return Reply(BenchExportData(file=str(output or ""), format=format), print_lines(lines), warnings=warnings)


@command("bench ceilings", bench)
def ceilings(
    device: options.GpuDeviceOption = "cuda:0",
    show_kept: Annotated[bool, typer.Option("--show", help="Show the last measurement; measure nothing.")] = False,
) -> Reply:
    """Measure the best this GPU does: copies, reads, fills, matrix products, a launch.

    Uses the protocol of `kopt bench`: cold cache, events, the median of 20 runs. Kept per device and driver.
    """
    from evaluator.receipt.environment import driver_version
    from evaluator.sandbox.devices import device_name, require_gpu
    from evaluator.sandbox.fork_server import ForkServer
    from evaluator.timing.ceilings import load, measure, path_of, save
    from kbs.common.errors import KoptError
    from kopt.cli.bench.text import ceilings_lines
    from kopt.services.results.bench import CeilingsData
    from kopt.services.settings import load_settings

    require_gpu(device, _GPU_NEEDED)
    home = load_settings().home
    path = path_of(home, device_name(device), driver_version() or "unknown")
    if show_kept:
        found = load(path)
        if found is None:
            raise KoptError(
                "no ceilings have been measured on this device with this driver",
                code="ceilings_missing",
                hint="Run: kopt bench ceilings",
            )
    else:
        with ForkServer("cuda") as server, progress_bar() as bar:
            found = measure(server, device, bar)
        path = save(home, found)
    return Reply(CeilingsData.of(found, path), print_lines(ceilings_lines(found, path)))


@command("bench noise", bench)
def noise(
    ref: Annotated[Path, typer.Argument(help="The reference to compare with itself.")],
    inputs: options.InputsOption = None,
    dims: options.DimsOption = None,
    runs: Annotated[int, typer.Option("--runs", help="Number of comparisons.", min=1, max=1000)] = 10,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Seconds of timed runs per comparison.", min=0.1, max=600)
    ] = 2.0,
    restarts: Annotated[int, typer.Option("--restarts", help="Process restarts per side.", min=2, max=50)] = 5,
    device: options.GpuDeviceOption = "cuda:0",
    out: Annotated[
        Path | None, typer.Option("--out", help="File to append a JSON line to after each comparison.")
    ] = None,
) -> Reply:
    """Compare a reference with itself, to see how often noise alone looks faster or slower.

    The reference must make its own inputs or take --inputs, as for `kopt bench`.
    """
    from evaluator.noise import compare_with_itself
    from evaluator.sandbox.devices import require_gpu
    from evaluator.sandbox.fork_server import passed_environment
    from kbs.common.errors import UsageError
    from kopt.cli.bench.text import noise_lines
    from kopt.services.bench.request import make_request
    from kopt.services.results.bench import NoiseData

    require_gpu(device, _GPU_NEEDED)
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise UsageError(f"cannot write {out}", code="out_folder", hint="Name a file in a folder that exists.")
    with progress_bar() as bar:
        request = make_request(
            ref,
            ref=ref,
            inputs=inputs,
            dims=dims,
            device=device,
            environment=passed_environment(()),
            baselines="eager",
            restarts=restarts,
            timing_seconds=seconds,
        )
        found = compare_with_itself(request, runs, out, progress=bar)
    return Reply(NoiseData.of(found), print_lines(noise_lines(found)))
