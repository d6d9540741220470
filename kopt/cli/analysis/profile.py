"""`kopt profile`: what Nsight Compute counted, by our names, with every number where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kopt.cli.options import (
    CudaHomeOption,
    DimsOption,
    EntryOption,
    GpuDeviceOption,
    IncludeOption,
    InputsOption,
    NvccFlagsOption,
    OutputsOption,
    PtrSizeOption,
)
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.profiling.profile import Chosen, Profile
    from evaluator.request import Request

_REPORT = "profile.ncu-rep"
LaunchOption = Annotated[
    str,
    typer.Option("--launch", metavar="NAME|N", help="The launch: a kernel's name, or its place in the report, from 1."),
]


def profile(
    candidate: Annotated[Path | None, typer.Argument(help="The kernel to run under ncu: a .py or .cu file.")] = None,
    report: Annotated[
        Path | None, typer.Option("--import", help="A report that is there: .ncu-rep, or CSV of its raw page.")
    ] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, which makes the inputs if the kernel does not.")
    ] = None,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    launch: LaunchOption = "",
    metrics: Annotated[str, typer.Option("--set", help="basic (seconds) or full (every section).")] = "basic",
    device: GpuDeviceOption = "cuda:0",
    entry: EntryOption = None,
    outputs: OutputsOption = "",
    ptr_size: PtrSizeOption = None,
    include: IncludeOption = None,
    nvcc_flags: NvccFlagsOption = "",
    cuda_home: CudaHomeOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the files; by default <report or kernel>-profile.")
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Profile a kernel with Nsight Compute, or read its report: ncu_summary.md, ncu_details.md, CSV, for one launch.

    The kernel runs in the jail of `kopt bench`; one call is profiled after others, so that an autotuner's trials and
    the making of inputs are left out. Of several launches the slowest is shown. The clocks are left as they are.

    kopt profile softmax.py --ref ref.py · kopt profile --import report.ncu-rep --launch softmax_kernel
    """

    def work() -> Reply:
        from kbs.common.errors import UsageError

        if report is not None and candidate is None:
            return imported(report, launch, out)
        if candidate is not None and report is None:
            words = {
                "ref": ref,
                "inputs": inputs,
                "dims": dims,
                "device": device,
                "entry": entry,
                "outputs": outputs,
                "ptr_size": ptr_size,
                "include": include,
                "nvcc_flags": nvcc_flags,
                "cuda_home": cuda_home,
            }
            return measured(candidate, words, metrics, launch, out)
        raise UsageError(
            "give either a kernel or --import FILE",
            code="profile_of_what",
            hint="Such as: kopt profile --import report.ncu-rep",
        )

    deliver("profile", json, debug, work)


def imported(report: Path, launch: str, out: Path | None) -> Reply:
    """Read a report and write its files. Raises `KoptError`."""
    from evaluator.profiling.ncu_report import report_csv
    from evaluator.profiling.profile import read_profile

    data, name = report_csv(report)
    found = read_profile(data, name)
    folder = out or Path(f"{report.stem or 'report'}-profile")
    return reply(found, found.choose(launch), data, folder)


def measured(candidate: Path, words: dict[str, Any], metrics: str, launch: str, out: Path | None) -> Reply:
    """Run a kernel under ncu, read what it counted, write the files. `words` are the command's. Raises `KoptError`."""
    from evaluator.profiling.collect import take_profile
    from evaluator.profiling.profile import Chosen, launch_number, read_profile
    from evaluator.sandbox.fork_server import ForkServer
    from kbs.common.errors import UsageError
    from kopt.cli.output import progress_bar

    if metrics not in ("basic", "full"):
        raise UsageError(f"{metrics!r} is no set of metrics", code="set_unknown", hint="Sets are basic and full.")
    with ForkServer("cuda") as server, progress_bar() as bar:
        request = _request(candidate, words, server.python, server.environment)
        taken = take_profile(request, server=server, metrics=metrics, launch=launch, progress=bar)  # type: ignore[arg-type]  # one of the two
    data = taken.csv.encode()
    found = read_profile(data, f"profile of {candidate.name}")
    number = launch_number(launch)
    chosen = found.choose("" if number is not None else launch)
    if number is not None:
        chosen = Chosen(chosen.launch, f"launch {number} of the profiled call, as asked for")
    return reply(found, chosen, data, out or Path(f"{candidate.stem}-profile"), taken.report)


def _request(candidate: Path, words: dict[str, Any], python: str, environment: dict[str, str]) -> Request:
    from kopt.services.arguments import read_names, read_ptr_sizes
    from kopt.services.bench.request import make_request

    read: dict[str, Any] = {
        "outputs": read_names(words.pop("outputs")),
        "ptr_sizes": read_ptr_sizes(words.pop("ptr_size") or ()),
        "include": tuple(words.pop("include") or ()),
    }
    return make_request(
        candidate=candidate,
        workloads=None,
        plan="signal",
        tolerance=None,
        sanitizers=None,
        memory=None,
        python=python,
        environment=environment,
        **words,
        **read,
    )


def reply(found: Profile, chosen: Chosen, raw: bytes, folder: Path, report: bytes | None = None) -> Reply:
    """Write the files of a profile, its `report` among them where there is one, and say what is in them. Raises
    `KoptError`."""
    from evaluator.diagnosis.report import DETAILS, SUMMARY, computed, details, shown, summary
    from evaluator.profiling.ncu_report import RAW
    from kbs.common.visible_text import visible
    from kbs.hardware.profile_metrics import profile_metrics
    from kopt.services.results.profiles import ProfileData

    files = write_files(
        folder,
        {
            SUMMARY: summary(found, chosen).encode(),
            DETAILS: details(found, chosen).encode(),
            RAW: raw,
            **({} if report is None else {_REPORT: report}),
        },
    )
    data = ProfileData.of(found, chosen, files)

    def show(console: Console) -> None:
        def line(text: str) -> None:
            console.print(visible(text), markup=False)

        line(f"{chosen.launch.kernel}: {chosen.why}")
        if len(found.launches) > 1:
            for one in found.launches:
                line(f"  {one.number:>4} {shown(one.metric('duration')):>14}  {one.function}")
        for group, metrics in profile_metrics().groups().items():
            have = [(metric, counter) for metric in metrics if (counter := chosen.launch.metric(metric.id))]
            missing = len(metrics) - len(have)
            line(f"{group}{f' ({missing} N/A)' if missing else ''}")
            for metric, counter in have:
                line(f"  {metric.name:<44} {counter.shown:>18}  {counter.ncu}")
        line("computed")
        for name, arithmetic in computed(chosen.launch):
            line(f"  {name}: {arithmetic}")
        for file in files:
            line(f"wrote {file}")

    warnings = [f"unit not known, so N/A: {visible(unread)}" for unread in chosen.launch.unread]
    return Reply(data, show, warnings=warnings)


def write_files(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    """Write files that are not there yet; those that are there and the same stay. Raises `KoptError`."""
    from kbs.common.errors import UsageError
    from kbs.common.files import make_folder, write_whole

    make_folder(folder)
    for name, content in contents.items():
        path = folder / name
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise UsageError(
                f"{path} is there already, and has another content",
                code="output_exists",
                hint="Choose another folder with --out, or remove the file.",
            )
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]
