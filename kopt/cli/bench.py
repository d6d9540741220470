"""`kopt bench`: is this kernel right, is it honest; receipts, checked and run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver, visible

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.plan import Plan, SeedSchedule
    from evaluator.receipt import Receipt
    from evaluator.request import InputsFile, Request
    from evaluator.sandbox import ForkServer
    from kopt.cli.output import ProgressBar
    from kopt.settings import LoadedSettings

DEFAULT = "run"


class _DefaultsToRun(TyperGroup):
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
    candidate: Annotated[Path, typer.Argument(help="The kernel: a .py or .cu file.")],
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference. Without it the kernel is its own oracle.")
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", help="Where inputs come from: .py, .npz, .safetensors, .pt, or .json (shapes, or raw)."
        ),
    ] = None,
    dims: Annotated[str | None, typer.Option("--dims", help="Sizes: '{\"M\": 4096}' or M=4096,N=8192.")] = None,
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
    entry: Annotated[
        str | None, typer.Option("--entry", help="The class or function to run, where several fit.")
    ] = None,
    outputs: Annotated[str, typer.Option("--outputs", help="Pointers that a .cu kernel writes: a,b.")] = "",
    ptr_size: Annotated[
        list[str] | None, typer.Option("--ptr-size", help="Elements of a pointer's buffer: NAME=M*N. May be repeated.")
    ] = None,
    tolerance: Annotated[
        str | None, typer.Option("--tolerance", help="ATOL,RTOL in place of the evaluator's own bound.")
    ] = None,
    sanitize: Annotated[
        str | None,
        typer.Option("--sanitize", help="Tools of compute-sanitizer: all, or memcheck,racecheck,initcheck,synccheck."),
    ] = None,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the kernels' packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable that the kernels get. May be repeated.")
    ] = None,
    cuda_home: Annotated[Path | None, typer.Option("--cuda-home", help="The CUDA toolkit.")] = None,
    include: Annotated[list[Path] | None, typer.Option("--include", "-I", help="Folder of headers for nvcc.")] = None,
    nvcc_flags: Annotated[str, typer.Option("--nvcc-flags", help="Further words for nvcc.")] = "",
    seed: Annotated[
        str | None, typer.Option("--seed", help="Draw the inputs of another run; by default a secret.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for one call.", min=0.1, max=3600)] = 60.0,
    memory: Annotated[
        float | None, typer.Option("--memory", help="GB of host memory for each worker; by default half.", min=0.5)
    ] = None,
    receipt: Annotated[Path | None, typer.Option("--receipt", help="Where to write the receipt.")] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Hold a kernel against its reference on many inputs, look for cheating, and write a sealed receipt.

    Files are told apart by content: KernelBench (Model, get_inputs / ModelNew), setup(**dims) and run_kernel(**kwargs)
    with reference(**kwargs), extern "C" void solve(...) in a .cu file, or a plain function with --inputs.
    The kernel runs in isolated processes (`kopt doctor` says how well); kopt compares memory, not words.
    Exit code 0 if it is accepted, 4 if not, 6 if it needs a GPU and there is none.
    """

    def work() -> Reply:
        from evaluator.sandbox import ForkServer, passed_environment
        from kopt.cli.output import progress_bar
        from kopt.settings import load_settings

        chosen = device or ("cuda:0" if Path("/dev/nvidiactl").exists() else "cpu")
        _check_device(chosen)
        interpreter = "" if python is None else str(python)
        environment = passed_environment(env or ())
        settings = load_settings()
        with ForkServer("cpu" if chosen == "cpu" else "cuda", interpreter, environment) as server:
            request = make_request(
                candidate=candidate,
                ref=ref,
                inputs=inputs,
                dims=dims,
                workloads=workloads,
                vary=_names(vary),
                plan=plan,
                device=chosen,
                allow_library=allow_library,
                backend=backend,
                entry=entry,
                outputs=_names(outputs),
                ptr_sizes=_pairs(ptr_size or ()),
                tolerance=tolerance,
                sanitizers=sanitize,
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
        return _reply(found, path)

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
    from evaluator.seal import ensure_key, seal
    from evaluator.store import check_chosen, save_plan, save_receipt
    from kopt import __version__

    if receipt is not None:
        check_chosen(receipt)
    key = ensure_key(settings.home)

    def keep(plan: Plan) -> None:
        save_plan(settings.home, plan)

    found = evaluate(request, kopt=__version__, server=server, on_plan=keep, progress=bar, schedule=schedule)
    sealed = seal(found, key)
    return sealed, save_receipt(settings.home, sealed, receipt)


def _reply(receipt: Receipt, path: Path) -> Reply:
    from evaluator.verdict import Verdict
    from kbs.errors import ExitCode
    from kopt.cli.bench_report import report
    from kopt.cli.schemas import BenchData

    accepted = receipt.verdict is Verdict.ACCEPTED
    data = BenchData.of(receipt, path)

    def show(console: Console) -> None:
        report(console, receipt, path)

    return Reply(data, show, ExitCode.OK if accepted else ExitCode.REJECTED)


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
        from evaluator.seal import load_key
        from evaluator.seal import verify as verify_bytes
        from evaluator.store import read_receipt
        from kbs.errors import ExitCode
        from kopt.cli.schemas import VerifyData
        from kopt.settings import load_settings

        found = verify_bytes(read_receipt(receipt), load_key(load_settings().home))
        data = VerifyData(receipt=str(receipt), **found.model_dump())

        def show(console: Console) -> None:
            console.print(
                f"{'ok' if found.ok else 'not ok':<8} content {found.content}, seal: {found.seal}", markup=False
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
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the kernels' packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable that the kernels get. May be repeated.")
    ] = None,
    cuda_home: Annotated[Path | None, typer.Option("--cuda-home", help="The CUDA toolkit.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for one call.", min=0.1, max=3600)] = 60.0,
    save: Annotated[Path | None, typer.Option("--receipt", help="Where to write the receipt of the replay.")] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Do again what a receipt says was done, from the sources and the seed in it, and compare what comes out.

    Exit code 4 if the result differs: another verdict, other trials failed, other hazards.
    """

    def work() -> Reply:
        from evaluator.receipt import parse
        from evaluator.replay import differences
        from evaluator.request import of_receipt
        from evaluator.sandbox import ForkServer, passed_environment
        from evaluator.store import read_receipt
        from kbs.errors import ExitCode
        from kopt.cli.bench_report import report
        from kopt.cli.output import progress_bar
        from kopt.cli.schemas import BenchData, ReplayData
        from kopt.settings import load_settings

        original = parse(read_receipt(receipt))
        settings = load_settings()
        interpreter = "" if python is None else str(python)
        environment = passed_environment(env or ())  # never what a stranger's receipt names
        if device is not None:
            _check_device(device)
        file = None if inputs is None else _inputs(inputs)
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


# --- reading the words of the command ---------------------------------------------------------------------------------


def make_request(**words: Any) -> Request:
    """The request that the words of `kopt bench` make; each is named as the command's parameter."""
    from evaluator.request import Request
    from evaluator.sanitize import TOOLS
    from evaluator.source import read_source
    from kbs.errors import UsageError
    from kopt.cli.support import read_dims

    if words["plan"] not in ("signal", "verdict"):
        raise UsageError(f"{words['plan']!r} is no plan", code="plan_unknown", hint="Plans are signal and verdict.")
    asked = _names(words["sanitizers"] or "")
    tools = TOOLS if asked == ("all",) else asked
    unknown = [tool for tool in tools if tool not in TOOLS]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is no tool of compute-sanitizer",
            code="sanitizer_unknown",
            hint=f"Tools are {', '.join(TOOLS)}, or all.",
        )
    read = {
        "candidate": read_source(words.pop("candidate"), "candidate"),
        "reference": None if words["ref"] is None else read_source(words["ref"], "reference"),
        "inputs": None if words["inputs"] is None else _inputs(words["inputs"]),
        "dims": read_dims(words["dims"]),
        "workloads": _workloads(words["workloads"]),
        "tolerance": _tolerance(words["tolerance"]),
        "nvcc_flags": tuple(words["nvcc_flags"].split()),
        "sanitizers": tools,
    }
    del words["ref"]
    memory = words.pop("memory")
    limit = {} if memory is None else {"memory_limit": int(memory * 1e9)}
    return Request(**{**words, **read, **limit})


def _check_device(device: str) -> None:
    from kbs.errors import UsageError

    kind, _, number = device.partition(":")
    if device != "cpu" and (kind != "cuda" or not (number.isdigit() or device == "cuda")):
        raise UsageError(
            f"{device!r} is no device", code="device_unknown", hint="Devices are cuda:0, cuda:1 … and cpu."
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _pairs(texts: Any) -> dict[str, str]:
    from kbs.errors import UsageError

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(
                f"--ptr-size {text!r} cannot be read", code="ptr_size_invalid", hint="Such as --ptr-size A=M*N."
            )
        found[name.strip()] = value.strip()
    return found


def _tolerance(text: str | None) -> tuple[float, float] | None:
    from kbs.errors import UsageError

    if text is None:
        return None
    try:
        atol, rtol = (float(part) for part in text.split(","))
    except ValueError:
        atol = rtol = -1.0
    if not (0 <= atol < 1e300 and 0 <= rtol < 1e300):
        raise UsageError(
            f"--tolerance {text!r} cannot be read",
            code="tolerance_invalid",
            hint="Give two numbers from 0 up, atol and rtol: --tolerance 1e-3,1e-3.",
        )
    return atol, rtol


def _workloads(path: Path | None) -> tuple[dict[str, int], ...]:
    from kbs.errors import UsageError
    from kopt.cli.support import read_dims

    if path is None:
        return ()
    lines = _read_bytes(path, "workloads").decode("utf-8", "replace").splitlines()
    found = [read_dims(line) for line in lines if line.strip()]
    if not found:
        raise UsageError(
            f"{path} names no workload", code="workloads_empty", hint='One object a line: {"M": 4096, "N": 8192}.'
        )
    return tuple(found)


def _inputs(path: Path) -> InputsFile:
    """The file of inputs as bytes; it is opened by the worker alone."""
    import json as json_module

    from evaluator.request import InputsFile
    from kbs.errors import UsageError

    known = (".py", ".npz", ".safetensors", ".pt", ".pth", ".json")
    if path.suffix not in known:
        raise UsageError(
            f"{path} is no file of inputs", code="inputs_format", hint=f"Inputs are {', '.join(known)} files."
        )
    content, beside = _read_bytes(path, "inputs"), {}
    if path.suffix == ".json":
        try:
            described = json_module.loads(content)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{path} is no JSON: {error}",
                code="inputs_invalid",
                hint="Such as [[64, 128], [128]], a list of shapes.",
            ) from error
        name = described.get("file") if isinstance(described, dict) else None
        if isinstance(name, str):
            if Path(name).name != name:
                raise UsageError(
                    f"{name!r} must lie beside {path}", code="inputs_invalid", hint="Name a file without a folder."
                )
            beside[name] = _read_bytes(path.parent / name, "inputs")
    return InputsFile(name=path.name, content=content, beside=beside)


def _read_bytes(path: Path, what: str) -> bytes:
    from kbs.errors import UsageError

    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path} ({what})", code="file_not_found", hint="Check the path.") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="file_unreadable", hint="Check its permissions."
        ) from error
