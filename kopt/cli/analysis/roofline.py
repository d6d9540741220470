"""`kopt roofline`: what a problem needs, what a GPU can do, and how fast a kernel for it could be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.common.visible_text import visible
from kopt.cli.options import (
    CallSecondsOption,
    DimsOption,
    EntryOption,
    InputsOption,
    NeededBytesOption,
    NeededOperationsOption,
    OutputsOption,
    PeakOption,
    PtrSizeOption,
)
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.services.arguments import read_names, read_ptr_sizes
from kopt.services.bench.request import make_request

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.request import Request
    from evaluator.source.forms import Recognised
    from kopt.services.engine import Engine
    from kopt.services.roofline import Roofline


def roofline(
    gpu: Annotated[str, typer.Option("--gpu", help="A GPU of the wiki, such as h200-sxm; auto: the one of here.")],
    kernel: Annotated[Path | None, typer.Option("--kernel", help="The kernel: a .py or .cu file.")] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, whose bytes and operations are counted.")
    ] = None,
    dims: DimsOption = None,
    inputs: InputsOption = None,
    bytes: NeededBytesOption = "",
    operations: NeededOperationsOption = "",
    peak: PeakOption = "",
    profile: Annotated[
        Path | None, typer.Option("--profile", help="A measured time of the kernel: a receipt or an ncu report.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw it into a .png or .svg file; needs matplotlib.")
    ] = None,
    entry: EntryOption = None,
    outputs: OutputsOption = "",
    ptr_size: PtrSizeOption = None,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the reference's packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable that the reference gets. May be repeated.")
    ] = None,
    timeout: CallSecondsOption = 60.0,
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
        from kbs.common.errors import ExitCode, UsageError
        from kopt.cli.analysis.roofline_text import show
        from kopt.cli.support import engine
        from kopt.services.plots.roofline import check, save
        from kopt.services.results.rooflines import RooflineData

        if plot is not None:
            check(plot)
        first = kernel or ref
        if first is None:
            raise UsageError(
                "nothing says what the problem is", code="no_kernel", hint="Give --kernel FILE, --ref FILE or both."
            )
        request = request_to_count(
            candidate=first,
            role="kernel" if kernel is not None else "reference",
            ref=ref if kernel is not None else None,
            inputs=inputs,
            dims=dims,
            entry=entry,
            outputs=read_names(outputs),
            ptr_sizes=read_ptr_sizes(ptr_size or ()),
            bytes=bytes,
            operations=operations,
            python=python,
            env=env or (),
            call_seconds=timeout,
            memory=memory,
        )
        recognised = request.recognised()
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


def request_to_count(*, python: Path | None, env: Any, **words: Any) -> Request:
    """The request, with the words of `kopt bench` that are not this command's at their defaults."""
    from evaluator.sandbox.fork_server import passed_environment

    more: dict[str, Any] = {"python": str(python)} if python is not None else {}
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


def _find(eng: Engine, request: Request, recognised: Recognised, gpu: str, peak: str, profile: Path | None) -> Roofline:
    from evaluator.workloads import check_dims
    from kopt.services.roofline import add_point, product_of, roofline
    from kopt.services.work_counts import count, declared_work, seal_notes

    check_dims(request, recognised)
    specs, documented = eng.with_store(
        lambda store: (found := store.specs(), {spec.product for spec in found}), vectors=False
    )
    product = product_of(eng, gpu, [id for id in eng.terms.products if id in documented])
    said = declared_work(request, recognised)
    metric = rate_metric(eng, peak) if peak else None
    counted = None if len(said) == 2 else count(eng, request, recognised, said)
    found = roofline(eng, product, specs, counted, said, metric)
    if profile is not None:
        from evaluator.diagnosis.measured_point import read_point

        add_point(eng, found, read_point(profile, request))
        if profile.suffix == ".json":
            found.notes += seal_notes(eng, profile)
    return found


def rate_metric(eng: Engine, text: str) -> str:
    """A metric that is a rate of floating-point operations, by its name, or by that of an element type whose products
    of matrices run at it. UsageError `metric_unknown`."""
    from kbs.common.errors import UsageError

    rates = list(dict.fromkeys(m for d in eng.terms.dtypes.values() for m in (d.vector, d.tensor) if m))
    found = [metric for metric in eng.terms.resolve("metric", text) if metric in rates] or [
        tensor for id in eng.terms.resolve("dtype", text) if (tensor := eng.terms.dtypes[id].tensor)
    ]
    if len(found) != 1:
        raise UsageError(
            f"--peak {text!r} is no peak rate", code="metric_unknown", hint=f"Such rates are {', '.join(rates)}."
        )
    return found[0]
