"""`kopt bench ceilings` and `kopt bench noise`: what the device does at best, and how far its times can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.options import DimsOption, GpuDeviceOption, InputsOption
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console


_WITHOUT = "Times are taken on a GPU alone; `kopt bench --device cpu` checks correctness without one."


def ceilings(
    device: GpuDeviceOption = "cuda:0",
    show_kept: Annotated[bool, typer.Option("--show", help="Show what was measured before; measure nothing.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Measure what the GPU does at best: copies, reads, fills, matrix products, a launch.

    By the protocol of `kopt bench`: cold cache, events, the median of 20 turns. Kept per device and driver.
    """

    def work() -> Reply:
        from evaluator.receipt.environment import driver_version
        from evaluator.sandbox.devices import device_name, require_gpu
        from evaluator.sandbox.fork_server import ForkServer
        from evaluator.timing.ceilings import load, measure, path_of, save
        from kbs.common.errors import KoptError
        from kopt.cli.bench.device_schemas import CeilingsData
        from kopt.cli.output import progress_bar
        from kopt.services.settings import load_settings

        require_gpu(device, _WITHOUT)
        home = load_settings().home
        path = path_of(home, device_name(device), driver_version() or "unknown")
        if show_kept:
            found = load(path)
            if found is None:
                raise KoptError(
                    "no ceilings were measured on this device under this driver",
                    code="ceilings_missing",
                    hint="Run: kopt bench ceilings",
                )
        else:
            with ForkServer("cuda") as server, progress_bar() as bar:
                found = measure(server, device, bar)
            path = save(home, found)

        def show(console: Console) -> None:
            console.print(
                f"{found.device}, driver {found.driver}, PyTorch {found.torch}, {found.created}", markup=False
            )
            for figure in found.figures:
                value = f"{figure.value:.2f} {figure.unit}" if figure.unit != "us" else f"{figure.value:.2f} µs"
                console.print(f"{figure.name:<22} {value:>16}  (median {figure.us:.2f} µs, n {figure.n})", markup=False)
            console.print(f"{'empty pair of events':<22} {found.empty_us:>13.2f} µs", markup=False)
            clocks = found.clocks
            said = (
                f"{clocks.min_mhz} to {clocks.max_mhz} MHz, locked: {clocks.locked}"
                if clocks.max_mhz
                else clocks.detail
            )
            console.print(f"{'clocks':<22} {said}", markup=False)
            console.print(f"{'kept in':<22} {path}", markup=False)

        return Reply(CeilingsData.of(found, path), show)

    deliver("bench ceilings", json, debug, work)


def noise(
    ref: Annotated[Path, typer.Argument(help="The reference, which is compared with itself.")],
    inputs: InputsOption = None,
    dims: DimsOption = None,
    runs: Annotated[int, typer.Option("--runs", help="How many comparisons.", min=1, max=1000)] = 10,
    seconds: Annotated[float, typer.Option("--seconds", help="Limit of the turns of one run.", min=0.1, max=600)] = 2.0,
    restarts: Annotated[int, typer.Option("--restarts", help="Processes of each side.", min=2, max=50)] = 5,
    device: GpuDeviceOption = "cuda:0",
    out: Annotated[Path | None, typer.Option("--out", help="Append one JSON line a run, as it ends.")] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Compare a reference with itself, as a candidate is compared with it: how often noise alone says faster or slower.

    The reference must make its own inputs or take --inputs, as for `kopt bench`.
    """

    def work() -> Reply:
        from evaluator.noise import compare_with_itself
        from evaluator.sandbox.devices import require_gpu
        from kbs.common.errors import UsageError
        from kopt.cli.bench.device_schemas import NoiseData
        from kopt.cli.output import progress_bar
        from kopt.services.bench.request import noise_request

        require_gpu(device, _WITHOUT)
        if out is not None and (out.is_dir() or not out.parent.is_dir()):
            raise UsageError(f"{out} cannot be written", code="out_folder", hint="Name a file in a folder that exists.")
        with progress_bar() as bar:
            found = compare_with_itself(
                noise_request(ref, inputs, dims, seconds, restarts, device), runs, out, progress=bar
            )

        def show(console: Console) -> None:
            for run in found:
                ratio = run.ratio
                console.print(
                    f"run {run.run + 1:<4} {run.improvement:<9} ratio {ratio.median:.4f} "
                    f"[{ratio.ci_low:.4f}, {ratio.ci_high:.4f}], noise {ratio.noise:.2%}, median"
                    f" {run.median_us:.2f} µs, {run.seconds:.1f} s",
                    markup=False,
                )
            wrong = sum(run.improvement in ("faster", "slower") for run in found)
            console.print(f"{wrong} of {len(found)} runs called a difference where there is none", markup=False)

        return Reply(NoiseData.of(found), show)

    deliver("bench noise", json, debug, work)
