"""One call of a candidate under NVIDIA Nsight Compute (ncu), inside the jail, after warm calls.

The profiler is started and stopped around that call, so that neither the making of inputs nor an autotuner's trials
stand in the report. The clocks are left as they are. What comes back is as untrusted as the candidate.
Source: NVIDIA, Nsight Compute CLI (--set, --profile-from-start, --kernel-name, --launch-skip, --launch-count,
--clock-control, --import, --csv, --page raw).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from evaluator import messages, planning, recording
from evaluator.cases import Cases
from evaluator.claims import claimed
from evaluator.contenders import Starter
from evaluator.cuda_source import output_pointers, solve_parameters
from evaluator.devices import require_gpu
from evaluator.findings import Findings
from evaluator.oracle import Oracle
from evaluator.request import Request
from evaluator.sandbox import ForkServer, WorkerLostError, package_folder
from evaluator.source import Form, Recognised, recognise
from evaluator.standalone_job import job_of
from evaluator.workloads import check_dims
from kbs.errors import ConfigurationError, KoptError, UsageError

SECONDS = 180.0
"""For ncu and for what prints its report."""
MOST_LAUNCHES = 16
"""Launches of one call that are profiled where none is chosen."""
_MOST_CSV = 16 << 20
_MOST_REPORT = 256 << 20
_NO_PERMISSION = re.compile(r"ERR_NVGPUCTRPERM|permission to access NVIDIA GPU Performance Counters", re.IGNORECASE)
_NOTHING = re.compile(r"No kernels were profiled", re.IGNORECASE)


@dataclass(frozen=True)
class Taken:
    """What ncu made of one call."""

    csv: str
    """The raw page of the report as CSV."""
    report: bytes | None
    """The report itself (`.ncu-rep`); None where it is larger than 256 MiB."""
    said: str
    """The end of what ncu printed. Untrusted."""


def take_profile(
    request: Request,
    *,
    server: ForkServer,
    metrics: Literal["basic", "full"] = "basic",
    launch: str = "",
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Taken:
    """Profile one call of the request's candidate. `launch` is the name of a kernel, or the number of a launch, from 1.

    Raises `NoGpuError`; `ConfigurationError` for no ncu (`no_ncu`) and no permission to read counters
    (`no_counter_permission`); `UsageError` for a kernel that was never launched (`kernel_not_launched`); `KoptError`
    (`profile_failed`) with what was said otherwise.
    """
    require_gpu(request.device, "kopt profile --import reads a report that was made elsewhere.")
    ncu = shutil.which("ncu", path=request.environment.get("PATH"))
    if ncu is None:
        raise ConfigurationError(
            "there is no ncu on the PATH",
            code="no_ncu",
            hint="Install NVIDIA Nsight Compute, or give a report that it made elsewhere with --import.",
        )
    recognised = recognise(
        request.candidate,
        request.reference,
        inputs=request.inputs.name if request.inputs else None,
        entry=request.entry,
        backend=request.backend,
    )
    check_dims(request, recognised)
    starter = Starter(request, recognised, server, server, planning.schedule(request))
    oracle = _oracle(starter, recognised)
    try:
        progress("profiling", 0, 1)
        cases = Cases(
            starter.seeds,
            oracle,
            Findings(),
            tolerance=recording.tolerance(request),
            own_oracle=True,
            first_index=0,
        )
        first = cases.prepare(
            kernelbench=recognised.form is Form.KERNELBENCH,
            outputs=lambda named, written: _outputs(request, recognised, named, written),
        )
        _match_weights(starter, cases)
        command = [ncu, "--set", metrics, "--profile-from-start", "off", "--clock-control", "none", *_chosen(launch)]
        with job_of(starter, cases, first.values, request.dims) as (job, lent):
            files = messages.files_of_candidate(request)
            with server.spawn("profile", starter.limits, files, starter.reading, loopback=True) as worker:
                fields = {"ncu": command, "limit": SECONDS, "package": package_folder(), **job}
                reply = claimed(worker, worker.request("profile", SECONDS + 60, [t.buffer for t in lent], **fields))
                if not reply["ok"]:
                    raise _failed(f"{reply['error']['type']}: {reply['error']['message']}")
                found = reply["profile"] or {"code": None, "text": "it said nothing", "report": "", "csv": ""}
                table = worker.read_file(found["csv"], _MOST_CSV) if found["csv"] else None
                report = worker.read_file(found["report"], _MOST_REPORT) if found["report"] else None
    except WorkerLostError as error:
        raise _failed(error.detail) from error
    finally:
        oracle.close()
        torch.cuda.empty_cache()
    if table is None:
        raise _why(found["text"], launch)
    return Taken(table.decode("utf-8", "replace"), report, found["text"])


def _oracle(starter: Starter, recognised: Recognised) -> Oracle:
    request = starter.request
    files = messages.files_of_oracle(request, recognised, request.dims)
    worker = starter.server.spawn("oracle", starter.limits, files, starter.reading)
    oracle = Oracle(worker, starter.device, request.load_seconds, request.call_seconds)
    try:
        oracle.load(messages.oracle_message(request, recognised, request.dims))
    except BaseException:
        oracle.close()
        raise
    return oracle


def _outputs(request: Request, recognised: Recognised, named: Sequence[str], written: Sequence[str]) -> list[str]:
    """Names of the outputs in the forms that write their arguments."""
    if recognised.form is Form.SOLVE:
        parameters = solve_parameters(request.candidate)
        return output_pointers(parameters, request.outputs or tuple(named), frozenset(written) if written else None)
    return list(request.outputs or named) if recognised.form is Form.SETUP else []


def _match_weights(starter: Starter, cases: Cases) -> None:
    """The candidate's names for the reference's weights, which the job needs."""
    contender = starter.spawn_candidate(0, 1)
    try:
        starter.load_candidate(contender, cases, starter.request.dims)
    finally:
        contender.close()


def _chosen(launch: str) -> list[str]:
    if not launch:
        return ["--launch-count", str(MOST_LAUNCHES)]
    if launch.isdigit():
        return ["--launch-skip", str(max(0, int(launch) - 1)), "--launch-count", "1"]
    return ["--kernel-name", f"regex:{re.escape(launch)}", "--launch-count", str(MOST_LAUNCHES)]


def _why(said: str, launch: str) -> KoptError:
    """The error for what ncu said."""
    if _NO_PERMISSION.search(said):
        return ConfigurationError(
            "ncu may not read the GPU's performance counters",
            code="no_counter_permission",
            hint="Run as root; or let the administrator set the module option NVreg_RestrictProfilingToAdminUsers=0; or"
            " give the container the capability SYS_ADMIN.",
        )
    if _NOTHING.search(said) or (launch and "no kernels" in said.lower()):
        what = f"no kernel like {launch!r}" if launch else "no kernel"
        return UsageError(
            f"{what} was launched by the profiled call",
            code="kernel_not_launched",
            hint="Leave --launch out to see what is launched.",
        )
    return _failed(said)


def _failed(said: str) -> KoptError:
    last = [line.strip() for line in said.splitlines() if line.strip()][-3:]
    return KoptError(
        f"the profile was not taken: {' | '.join(last)[:600] or 'ncu said nothing'}",
        code="profile_failed",
        hint="Run `kopt bench` on the kernel first; `kopt doctor` says what ncu may do.",
    )
