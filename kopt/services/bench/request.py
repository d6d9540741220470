"""Make the evaluator's request from files and texts that a user named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.receipt.plan import BaselineChoice
from evaluator.request import InputsFile, Request
from evaluator.source.source_file import read_source
from kbs.common.errors import UsageError
from kopt.services.arguments import read_baselines, read_dims, read_names, read_tolerance

if TYPE_CHECKING:
    from evaluator.receipt.timing import CitedPeak
    from kopt.services.engine import Engine

INPUT_FORMATS = (".py", ".npz", ".safetensors", ".pt", ".pth", ".json")
_WORKLOAD = 'Write one JSON object per line: {"M": 4096, "N": 8192}'


def make_request(
    candidate: Path,
    *,
    ref: Path | None = None,
    inputs: Path | None = None,
    dims: str | None = None,
    workloads: Path | None = None,
    plan: str = "verdict",
    tolerance: str | None = None,
    sanitizers: str | None = None,
    baselines: str | None = None,
    against: Path | None = None,
    nvcc_flags: str = "",
    memory: float | None = None,
    role: str = "candidate",
    **fields: Any,
) -> Request:
    """Read files and texts; `fields` are passed to `Request` as they are. `role` is what errors call the candidate.

    Raises `UsageError` for what cannot be read.
    """
    from evaluator.sanitizer import TOOLS  # imports torch

    if plan not in ("signal", "verdict"):
        raise UsageError(f"unknown plan {plan!r}", code="plan_unknown", hint="Plans are signal and verdict.")
    asked = read_names(sanitizers or "")
    tools = TOOLS if asked == ("all",) else asked
    unknown = [tool for tool in tools if tool not in TOOLS]
    if unknown:
        raise UsageError(
            f"unknown compute-sanitizer tool {unknown[0]!r}",
            code="sanitizer_unknown",
            hint=f"Choose from {', '.join(TOOLS)}, or all.",
        )
    if baselines is not None:
        first = () if against is None else (BaselineChoice(name="incumbent", how="incumbent"),)
        fields["baselines"] = (*first, *read_baselines(baselines))
    if memory is not None:
        fields["memory_limit"] = int(memory * 1e9)
    return Request(
        incumbent=None if against is None else read_source(against, "incumbent"),
        candidate=read_source(candidate, role),
        reference=None if ref is None else read_source(ref, "reference"),
        inputs=None if inputs is None else read_inputs(inputs),
        dims=read_dims(dims),
        workloads=read_workloads(workloads),
        plan=plan,  # type: ignore[arg-type]  # one of the two
        tolerance=read_tolerance(tolerance),
        nvcc_flags=tuple(nvcc_flags.split()),
        sanitizers=tools,
        **fields,
    )


def first_device() -> str:
    """The device of a bench that names none: the first GPU, else the CPU."""
    return "cuda:0" if Path("/dev/nvidiactl").exists() else "cpu"


def peak_of(engine: Engine, device: str) -> CitedPeak | None:
    """The cited peak bandwidth of a device; None on the CPU and where no source is known."""
    from evaluator.sandbox.devices import device_name
    from kopt.services.gpus import cited_peak

    name = device_name(device)
    return cited_peak(engine, name) if name else None


def read_workloads(path: Path | None) -> tuple[dict[str, int], ...]:
    """Sets of sizes, one per line of a file. UsageError `workloads_empty`, `dims_invalid`, `file_not_found`."""
    if path is None:
        return ()
    lines = _read_bytes(path, "workloads").decode("utf-8", "replace").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found += [read_dims(line)] if line.strip() else []
        except UsageError as error:
            raise UsageError(f"line {number} of {path}: {error.message}", code=error.code, hint=_WORKLOAD) from error
    if not found:
        raise UsageError(f"{path} contains no workload", code="workloads_empty", hint=_WORKLOAD)
    return tuple(found)


def read_inputs(path: Path) -> InputsFile:
    """The file of inputs as bytes; only the worker opens it."""
    if path.suffix not in INPUT_FORMATS:
        raise UsageError(
            f"unsupported inputs file {path}",
            code="inputs_format",
            hint=f"Supported formats: {', '.join(INPUT_FORMATS)}",
        )
    content, beside = _read_bytes(path, "inputs"), {}
    if path.suffix == ".json":
        try:
            described = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{path} is not valid JSON: {error}",
                code="inputs_invalid",
                hint="Example: [[64, 128], [128]], a list of shapes",
            ) from error
        name = described.get("file") if isinstance(described, dict) else None
        if isinstance(name, str):
            if Path(name).name != name:
                raise UsageError(
                    f"{name!r} must be in the same folder as {path}",
                    code="inputs_invalid",
                    hint="Give the file's name without a folder.",
                )
            beside[name] = _read_bytes(path.parent / name, "inputs")
    return InputsFile(name=path.name, content=content, beside=beside)


def _read_bytes(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"no such file: {path} ({what})", code="file_not_found", hint="Check the path.") from error
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", code="file_unreadable", hint="Check its permissions."
        ) from error
