"""`kopt bench`: is this kernel right, is it honest; receipts, checked and run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.common.visible_text import visible
from kopt.cli.bench.timing import ceilings, noise
from kopt.cli.command import Group
from kopt.cli.options import (
    CallSecondsOption,
    CudaHomeOption,
    DimsOption,
    EntryOption,
    EnvOption,
    IncludeOption,
    InputsOption,
    NvccFlagsOption,
    OutputsOption,
    PtrSizeOption,
    PythonOption,
)
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.services.arguments import read_names, read_ptr_sizes
from kopt.services.bench.request import make_request, read_inputs

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.receipt.plan import Plan, SeedSchedule
    from evaluator.receipt.receipt import Receipt
    from evaluator.request import Request
    from evaluator.sandbox.fork_server import ForkServer
    from kopt.cli.output import ProgressBar
    from kopt.services.settings import LoadedSettings

DEFAULT = "run"


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
    help="Check one kernel: is it right, is it honest. `kopt bench FILE --ref REF` is `kopt bench run FILE --ref REF`.",
)


@bench.command("run")
def run(
    context: typer.Context,
    candidate: Annotated[Path, typer.Argument(help="The kernel: a .py or .cu file.")],
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference. Without it the kernel is its own oracle.")
    ] = None,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    plan: Annotated[str, typer.Option("--plan", help="signal (quick) or verdict (everything).")] = "verdict",
    device: Annotated[
        str | None, typer.Option("--device", help="cuda:N or cpu; by default the first GPU, else cpu.")
    ] = None,
    allow_library: Annotated[
        bool, typer.Option("--allow-library", help="The kernel may compute with PyTorch, cuBLAS and their like.")
    ] = False,
    vary: Annotated[
        str, typer.Option("--vary", help="Names of dims that may have any size; odd and prime ones are tried too.")
    ] = "",
    workloads: Annotated[
        Path | None, typer.Option("--workloads", help="A .jsonl file, one object of dims a line: right on all.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="triton, cuda or torch; by default from the source.")
    ] = None,
    entry: EntryOption = None,
    outputs: OutputsOption = "",
    ptr_size: PtrSizeOption = None,
    tolerance: Annotated[
        str | None, typer.Option("--tolerance", help="ATOL,RTOL in place of the evaluator's own bound.")
    ] = None,
    sanitize: Annotated[
        str | None,
        typer.Option("--sanitize", help="Tools of compute-sanitizer: all, or memcheck,racecheck,initcheck,synccheck."),
    ] = None,
    baselines: Annotated[
        str, typer.Option("--baselines", help="What it is compared with: eager, compile, NAME=module:callable.")
    ] = "eager,compile",
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Another kernel for the same problem: the verdict on speed speaks of it first."),
    ] = None,
    restarts: Annotated[
        int,
        typer.Option(
            "--restarts", help="Processes of each contender; below five only 10 % and more count.", min=2, max=50
        ),
    ] = 5,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Limit of the timed turns of one workload.", min=0.1, max=3600)
    ] = 10.0,
    bytes: Annotated[
        str, typer.Option("--bytes", help="Bytes that the bandwidth counts: 2*M*N*4. By default inputs and results.")
    ] = "",
    operations: Annotated[
        str, typer.Option("--operations", help="Operations that the problem needs: 2*M*N*K, for TFLOP/s.")
    ] = "",
    python: PythonOption = None,
    env: EnvOption = None,
    cuda_home: CudaHomeOption = None,
    include: IncludeOption = None,
    nvcc_flags: NvccFlagsOption = "",
    seed: Annotated[
        str | None, typer.Option("--seed", help="Draw the inputs of another run; by default a secret.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", help="Seconds for one call; for a --bench-command all it has (600).", min=0.1, max=3600
        ),
    ] = 60.0,
    memory: Annotated[
        float | None, typer.Option("--memory", help="GB of host memory for each worker; by default half.", min=0.5)
    ] = None,
    receipt: Annotated[Path | None, typer.Option("--receipt", help="Where to write the receipt.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a report in Markdown too, such as benchmark.md.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw all samples into a .png or .svg file; needs matplotlib.")
    ] = None,
    bench_command: Annotated[
        str | None, typer.Option("--bench-command", help="Your own benchmark, run as it is: evidence: external.")
    ] = None,
    signal_command: Annotated[
        str | None, typer.Option("--signal-command", help="A faster one, which --plan signal runs instead.")
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", help="NAME=REGEX: a number to read from what it prints. May be repeated."),
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Hold a kernel against its reference on many inputs, look for cheating, and write a sealed receipt.

    Files are told apart by content: KernelBench (Model, get_inputs / ModelNew), setup(**dims) and run_kernel(**kwargs)
    with reference(**kwargs), extern "C" void solve(...) in a .cu file, or a plain function with --inputs.
    The kernel runs in isolated processes (`kopt doctor` says how well); kopt compares memory, not words.
    Exit code 0 if it is accepted, 4 if not, 6 if it needs a GPU and there is none.

    With --bench-command nothing of this is done: a sealed record is kept of what your own command printed.
    """

    def work() -> Reply:
        if bench_command is not None or signal_command is not None or figure:
            from kopt.cli.bench.external import external

            return external(
                context,
                candidate=candidate,
                bench_command=bench_command,
                signal_command=signal_command,
                figure=figure or [],
                plan=plan,
                timeout=timeout,
                receipt=receipt,
            )
        from evaluator.request import check_device
        from evaluator.sandbox.fork_server import ForkServer, passed_environment
        from kopt.cli.bench.files import check_files, write_files
        from kopt.cli.output import progress_bar
        from kopt.services.bench.request import peak_of
        from kopt.services.engine import Engine
        from kopt.services.settings import load_settings

        chosen = device or ("cuda:0" if Path("/dev/nvidiactl").exists() else "cpu")
        check_device(chosen)
        check_files(receipt, report, plot, chosen)
        interpreter = "" if python is None else str(python)
        environment = passed_environment(env or ())
        settings = load_settings()
        with ForkServer("cpu" if chosen == "cpu" else "cuda", interpreter, environment) as server:
            eng = Engine(settings)
            request = make_request(
                candidate=candidate,
                against=against,
                ref=ref,
                inputs=inputs,
                dims=dims,
                workloads=workloads,
                vary=read_names(vary),
                plan=plan,
                device=chosen,
                allow_library=allow_library,
                backend=backend,
                entry=entry,
                outputs=read_names(outputs),
                ptr_sizes=read_ptr_sizes(ptr_size or ()),
                tolerance=tolerance,
                sanitizers=sanitize,
                baselines=baselines,
                restarts=restarts,
                timing_seconds=seconds,
                bytes=bytes,
                operations=operations,
                peak=peak_of(eng, chosen),
                include=tuple(include or ()),
                nvcc_flags=nvcc_flags,
                cuda_home=cuda_home,
                python=server.python,
                environment=environment,
                seed=seed,
                call_seconds=timeout,
                memory=memory,
            )
            with progress_bar() as bar:
                found, path = _evaluate(request, server, settings, receipt, bar)
        return _reply(found, path, [*eng.warnings, *write_files(found, report, plot)])

    deliver("bench", json, debug, work)


def _evaluate(
    request: Request,
    server: ForkServer,
    settings: LoadedSettings,
    receipt: Path | None,
    bar: ProgressBar,
    schedule: SeedSchedule | None = None,
) -> tuple[Receipt, Path]:
    """(sealed receipt, its file)."""
    from evaluator.evaluate import evaluate
    from evaluator.store.seal import ensure_key, seal
    from evaluator.store.store import check_chosen, save_plan, save_receipt
    from kopt import __version__

    if receipt is not None:
        check_chosen(receipt)
    key = ensure_key(settings.home)

    def keep(plan: Plan) -> None:
        save_plan(settings.home, plan)

    found = evaluate(request, kopt=__version__, server=server, on_plan=keep, progress=bar, schedule=schedule)
    sealed = seal(found, key)
    return sealed, save_receipt(settings.home, sealed, receipt)


def _reply(receipt: Receipt, path: Path, warnings: list[str]) -> Reply:
    from evaluator.receipt.verdict import Verdict
    from kbs.common.errors import ExitCode
    from kopt.cli.bench.report import report
    from kopt.cli.bench.schemas import BenchData

    accepted = receipt.verdict is Verdict.ACCEPTED
    data = BenchData.of(receipt, path)

    def show(console: Console) -> None:
        report(console, receipt, path)

    return Reply(data, show, ExitCode.OK if accepted else ExitCode.REJECTED, warnings)


@bench.command("verify")
def verify(
    receipt: Annotated[Path, typer.Argument(help="A receipt that `kopt bench` wrote.")],
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say whether a receipt is as it was written, and whose seal it has.

    The seal finds accidents and edits. It does not bind a program that runs as you and can read your key: the proof for
    a stranger is `kopt bench replay`. Exit code 4 unless it is whole and sealed with your own key.
    """

    def work() -> Reply:
        from evaluator.store.seal import load_key
        from evaluator.store.seal import verify as verify_bytes
        from evaluator.store.store import read_receipt
        from kbs.common.errors import ExitCode
        from kopt.cli.bench.schemas import VerifyData
        from kopt.services.settings import load_settings

        found = verify_bytes(read_receipt(receipt), load_key(load_settings().home))
        data = VerifyData(receipt=str(receipt), **found.model_dump())
        external = ", evidence: external" if found.evidence == "external" else ""

        def show(console: Console) -> None:
            console.print(
                f"{'ok' if found.ok else 'not ok':<8} content {found.content}, seal: {found.seal}{external}",
                markup=False,
            )
            if found.detail:
                console.print(f"{'':<8} {visible(found.detail)}", markup=False)

        return Reply(data, show, ExitCode.OK if found.ok else ExitCode.REJECTED)

    deliver("bench verify", json, debug, work)


@bench.command("replay")
def replay(
    receipt: Annotated[Path, typer.Argument(help="A receipt that `kopt bench` wrote.")],
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="The file of inputs, where the receipt does not hold it.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cuda:N or cpu; by default the receipt's.")] = None,
    python: PythonOption = None,
    env: EnvOption = None,
    cuda_home: CudaHomeOption = None,
    timeout: CallSecondsOption = 60.0,
    save: Annotated[Path | None, typer.Option("--receipt", help="Where to write the receipt of the replay.")] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Do again what a receipt says was done, from the sources and the seed in it, and compare what comes out.

    Exit code 4 if the result differs: another verdict or improvement, other trials failed, other hazards, other ratios.
    """

    def work() -> Reply:
        from evaluator.receipt.receipt import parse
        from evaluator.request import check_device, of_receipt
        from evaluator.sandbox.fork_server import ForkServer, passed_environment
        from evaluator.store.replay import differences
        from evaluator.store.store import read_receipt
        from kbs.common.errors import ExitCode
        from kopt.cli.bench.report import report
        from kopt.cli.bench.schemas import BenchData, ReplayData
        from kopt.cli.output import progress_bar
        from kopt.services.settings import load_settings

        original = parse(read_receipt(receipt))
        settings = load_settings()
        interpreter = "" if python is None else str(python)
        environment = passed_environment(env or ())  # never what a stranger's receipt names
        if device is not None:
            check_device(device)
        file = None if inputs is None else read_inputs(inputs)
        request, schedule = of_receipt(
            original,
            inputs=file,
            device=device,
            environment=environment,
            cuda_home=cuda_home,
            call_seconds=timeout,
        )
        with (
            ForkServer("cpu" if request.device == "cpu" else "cuda", interpreter, environment) as server,
            progress_bar() as bar,
        ):
            again, path = _evaluate(request, server, settings, save, bar, schedule)
        every = differences(original, again)
        surroundings = [text.removeprefix("environment: ") for text in every if text.startswith("environment: ")]
        result = [text for text in every if not text.startswith("environment: ")]
        data = ReplayData(
            same=not result, differences=result, environment=surroundings, replay=BenchData.of(again, path)
        )

        def show(console: Console) -> None:
            report(console, again, path)
            console.print("")
            console.print(
                "the same result as the receipt's" if not result else "differs from the receipt:", markup=False
            )
            for line in result:
                console.print(f"  {visible(line)}", markup=False)
            for line in surroundings:
                console.print(f"  (environment) {visible(line)}", markup=False)

        return Reply(data, show, ExitCode.OK if not result else ExitCode.REJECTED)

    deliver("bench replay", json, debug, work)


bench.command("ceilings")(ceilings)
bench.command("noise")(noise)
