"""`kopt roofline`: what a problem needs, what a GPU can do, and how fast a kernel for it could be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.visible import visible
from kopt.cli.bench_words import make_request, names, pairs
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.request import Request
    from evaluator.source import Recognised
    from evaluator.work import Work
    from kopt.engine import Engine
    from kopt.roofline import Declared, Roofline


def roofline(
    gpu: Annotated[str, typer.Option("--gpu", help="A GPU of the wiki, such as h200-sxm; auto: the one of here.")],
    kernel: Annotated[Path | None, typer.Option("--kernel", help="The kernel: a .py or .cu file.")] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, whose bytes and operations are counted.")
    ] = None,
    dims: Annotated[str | None, typer.Option("--dims", help="Sizes: '{\"M\": 4096}' or M=4096,N=8192.")] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", help="Where inputs come from: .py, .npz, .safetensors, .pt, or .json (shapes, or raw)."
        ),
    ] = None,
    bytes: Annotated[
        str, typer.Option("--bytes", help="Bytes that must move, in place of those that are counted: 2*M*N*4.")
    ] = "",
    operations: Annotated[
        str, typer.Option("--operations", help="Floating-point operations, in place of those counted: 2*M*N*K.")
    ] = "",
    peak: Annotated[
        str | None,
        typer.Option("--peak", help="Peak rate of matrix products or of --operations: tf32_tensor_throughput …"),
    ] = None,
    profile: Annotated[
        Path | None, typer.Option("--profile", help="A measured time of the kernel: a receipt or an ncu report.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw it into a .png or .svg file; needs matplotlib.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", help="The class or function to run, where several fit.")
    ] = None,
    outputs: Annotated[str, typer.Option("--outputs", help="Pointers that a .cu kernel writes: a,b.")] = "",
    ptr_size: Annotated[
        list[str] | None, typer.Option("--ptr-size", help="Elements of a pointer's buffer: NAME=M*N. May be repeated.")
    ] = None,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the reference's packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable that the reference gets. May be repeated.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for one call.", min=0.1, max=3600)] = 60.0,
    memory: Annotated[
        float | None, typer.Option("--memory", help="GB of host memory for the reference; by default half.", min=0.5)
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Count what a reference must move and compute, and hold it against a GPU's peaks: bound, floor time, target.

    Bytes: the distinct parts of inputs and weights that the results depend on, and the results. Operations: PyTorch's
    own counter for products of matrices, one for each addition, multiplication, comparison … of an element else. The
    reference runs isolated, on tensors without memory where it can; no GPU is needed. A reference may declare
    `operations` and `min_bytes` at its top level. A peak that no page states is UNKNOWN, and nothing is computed of it.
    Exit code 3 where the floor time is not known for that.
    """

    def work() -> Reply:
        from evaluator.source import recognise
        from kbs.errors import ExitCode, UsageError
        from kopt.cli.roofline_schemas import RooflineData
        from kopt.cli.roofline_words import show
        from kopt.cli.support import engine
        from kopt.roofline_plot import check, save

        if plot is not None:
            check(plot)
        first = kernel or ref
        if first is None:
            raise UsageError(
                "nothing says what the problem is", code="no_kernel", hint="Give --kernel FILE, --ref FILE or both."
            )
        request = _request(
            candidate=first,
            ref=ref if kernel is not None else None,
            inputs=inputs,
            dims=dims,
            entry=entry,
            outputs=names(outputs),
            ptr_sizes=pairs(ptr_size or ()),
            bytes=bytes,
            operations=operations,
            python=python,
            env=env or (),
            call_seconds=timeout,
            memory=memory,
        )
        recognised = recognise(
            request.candidate,
            request.reference,
            inputs=request.inputs.name if request.inputs else None,
            entry=request.entry,
            backend=None,
        )
        with engine() as eng:
            found = _find(eng, request, recognised, gpu, peak, profile)
            if found.gaps:
                eng.log_gap(f"roofline {gpu}", "not_in_wiki", found.gaps)
            drawn = plot if found.placed.floor is not None and found.placed.intensity else None
            if drawn is not None:
                save(drawn, found, f"{first.name} on {found.gpu}")
            elif plot is not None:
                found.notes.append("nothing is drawn: a roofline needs operations, and rates that are known")
            data = RooflineData.of(found, first.name, recognised.form.value, request.dims, str(drawn or ""))
            warnings = list(eng.warnings)

        def print_it(console: Console) -> None:
            show(console, found, first.name, data.dims)
            if drawn is not None:
                console.print(f"plot     {visible(str(drawn))}", markup=False)

        code = ExitCode.OK if found.placed.floor is not None else ExitCode.ABSTAINED
        return Reply(data, print_it, code, warnings)

    deliver("roofline", json, debug, work)


def _request(*, python: Path | None, env: Any, **words: Any) -> Request:
    """The request, with the words of `kopt bench` that are not this command's at their defaults."""
    from evaluator.sandbox import passed_environment

    more = {"python": str(python)} if python is not None else {}
    return make_request(
        **words,
        **more,
        environment=passed_environment(env),
        workloads=None,
        plan="signal",
        sanitizers=None,
        tolerance=None,
        nvcc_flags="",
        device="cpu",
    )


def _find(
    eng: Engine, request: Request, recognised: Recognised, gpu: str, peak: str | None, profile: Path | None
) -> Roofline:
    from evaluator.workloads import check_dims
    from kopt.roofline import add_point, product_of, roofline

    check_dims(request, recognised)
    specs, documented = eng.with_store(
        lambda store: (found := store.specs(), {spec.product for spec in found}), vectors=False
    )
    product = product_of(eng, gpu, [id for id in eng.terms.products if id in documented])
    said = _declared(request, recognised)
    metric = None if peak is None else _metric(eng, peak)
    counted = None if len(said) == 2 else _count(eng, request, recognised, said)
    found = roofline(eng, product, specs, counted, said, metric)
    if profile is not None:
        from evaluator.measured_point import read_point

        add_point(eng, found, read_point(profile, request))
        if profile.suffix == ".json":
            found.notes += _seal(eng, profile)
    return found


def _seal(eng: Engine, receipt: Path) -> list[str]:
    """What speaks against the receipt's seal."""
    from evaluator.seal import load_key, verify
    from evaluator.store import read_receipt

    checked = verify(read_receipt(receipt), load_key(eng.settings.home))
    return [] if checked.ok else [f"{receipt.name}: content {checked.content}, seal: {checked.seal}. {checked.detail}"]


def _count(eng: Engine, request: Request, recognised: Recognised, said: dict[str, Declared]) -> Work:
    from evaluator.sandbox import ForkServer
    from evaluator.work import COUNTING_MODULES, count_work
    from kbs.errors import UsageError

    eng.progress("counting the reference's work", 0, 1)
    with ForkServer("cpu", request.python, request.environment, COUNTING_MODULES) as server:
        found = count_work(request, recognised, server)
    eng.progress("counting the reference's work", 1, 1)
    if not found.traced and "operations" not in said:
        raise UsageError(
            "the kernel is its own reference, and the operations of its code cannot be counted",
            code="work_uncountable",
            hint="Give a reference with --ref, or say how many there are: --operations '5*M*N'.",
        )
    return found


def _declared(request: Request, recognised: Recognised) -> dict[str, Declared]:
    """What the command line says, else what the reference declares."""
    from evaluator.work import declared, sizes
    from kopt.roofline import declared as evaluated

    dims = sizes(request, recognised)
    stated = declared(request.reference or request.candidate)
    found = {}
    for name, option, asked, own in (
        ("bytes", "--bytes", request.bytes, stated.get("min_bytes", "")),
        ("operations", "--operations", request.operations, stated.get("operations", "")),
    ):
        if asked or own:
            found[name] = evaluated(asked or own, dims, "command line" if asked else "reference", option)
    return found


def _metric(eng: Engine, text: str) -> str:
    """A metric that is a rate of floating-point operations, by its name, or by that of an element type whose products
    of matrices run at it. UsageError `metric_unknown`."""
    from kbs.errors import UsageError

    rates = list(dict.fromkeys(m for d in eng.terms.dtypes.values() for m in (d.vector, d.tensor) if m))
    found = [metric for metric in eng.terms.resolve("metric", text) if metric in rates] or [
        tensor for id in eng.terms.resolve("dtype", text) if (tensor := eng.terms.dtypes[id].tensor)
    ]
    if len(found) != 1:
        raise UsageError(
            f"--peak {text!r} is no peak rate", code="metric_unknown", hint=f"Such rates are {', '.join(rates)}."
        )
    return found[0]
