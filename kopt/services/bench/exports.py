"""Receipts as results of other benchmarks: KernelBench and flashinfer-bench.

Only figures, names and the reason for the verdict are taken over: no source, no environment variable, and nothing that
the candidate printed. Both formats keep mean times of all samples in milliseconds, where kopt speaks of medians.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.receipt.findings import Trial
from evaluator.receipt.receipt import Receipt, parse
from evaluator.receipt.timing import Timed, WorkloadTiming
from evaluator.receipt.verdict import Verdict
from evaluator.store.seal import load_key, verify
from evaluator.store.store import read_receipt
from kbs.common.errors import UsageError
from kbs.common.files import may_overwrite, write_whole
from kbs.common.visible_text import visible

_UUID = uuid.UUID("4d2f8a52-7a58-5ac1-9f0e-6e0f1c3a2b71")
"""Namespace of the ids that workloads get: the same problem at the same sizes has the same id in every export."""
_EAGER = "eager"
_STATUS = {
    Verdict.ACCEPTED: "PASSED",
    Verdict.COMPILE_ERROR: "COMPILE_ERROR",
    Verdict.CRASHED: "RUNTIME_ERROR",
    Verdict.TIMEOUT: "TIMEOUT",
    Verdict.CHEATING: "RUNTIME_ERROR",
}
"""Verdict → status of flashinfer-bench, which has none for a kernel that cheats."""
_OTHER = re.compile(r"shape (\[.*?\]) (\S+), wanted (\[.*?\]) (\S+)")
"""How the evaluator says that a result has another shape or element type."""


@dataclass(frozen=True)
class Naming:
    """What the other benchmark calls problem and kernel; empty or None: told from the receipt's files."""

    problem: int | None = None
    """KernelBench: number of the problem."""
    sample: int = 0
    """KernelBench: number of the sample."""
    definition: str = ""
    """flashinfer-bench: name of the definition."""
    solution: str = ""
    """flashinfer-bench: name of the solution."""


def export_receipt(path: Path, format: str, naming: Naming, output: Path | None, home: Path) -> tuple[str, list[str]]:
    """(the export, warnings), written to `output` if that is given.

    Raises `UsageError`: `format_unknown`, `receipt_invalid`, `external_receipt`, `problem_unnamed`, `not_exportable`
    for a verdict that the format has no word for, `output_exists` for a file that is not such an export.
    """
    if format not in FORMATS:
        raise UsageError(
            f"unknown --format {format[:40]!r}", code="format_unknown", hint=f"Choose from {', '.join(FORMATS)}."
        )
    data = read_receipt(path)
    receipt = parse(data)
    found = verify(data, load_key(home))
    warnings = [] if found.ok else [visible(f"{path}: content {found.content}, seal: {found.seal}. {found.detail}")]
    text = FORMATS[format](receipt, naming)
    if output is not None:
        if not may_overwrite(output, b"") or (output.exists() and not _is_export(output, format)):
            raise UsageError(
                f"{output} exists and is not a {format} export",
                code="output_exists",
                hint="Choose another file with --output, or move that one away.",
            )
        write_whole(output, text.encode())
    return text, warnings


def _is_export(path: Path, format: str) -> bool:
    try:
        first = path.read_text("utf-8")
        found = json.loads(first if format == "kernelbench" else first.partition("\n")[0])
    except (OSError, ValueError, RecursionError):
        return False
    if format != "kernelbench":
        return isinstance(found, dict) and {"definition", "workload", "evaluation"} <= found.keys()
    rows = found.values() if isinstance(found, dict) else ()
    return bool(rows) and all(isinstance(row, list) and row and "sample_id" in row[0] for row in rows)


# --- KernelBench ------------------------------------------------------------------------------------------------------


def _kernelbench(receipt: Receipt, naming: Naming) -> str:
    """An `eval_results.json`: problem → its samples. The times are those of the first workload."""
    problem = naming.problem if naming.problem is not None else _problem_number(receipt)
    calls: dict[int, bool] = {}
    for trial in receipt.correctness:
        calls[trial.index] = calls.get(trial.index, True) and trial.passed
    metadata: dict[str, Any] = {
        "hardware": receipt.environment.device_name,
        "device": receipt.environment.device,
        "correctness_trials": f"({sum(calls.values())} / {len(calls)})",
        **_source(receipt),
    }
    if receipt.verdict is Verdict.COMPILE_ERROR:
        metadata["compilation_error"] = visible(receipt.reason)
    elif receipt.verdict in (Verdict.CRASHED, Verdict.TIMEOUT):
        metadata["runtime_error"] = visible(receipt.reason)
    elif receipt.verdict is not Verdict.ACCEPTED:
        metadata["correctness_issue"] = visible(receipt.reason)
    first = receipt.timing.workloads[0] if receipt.timing else None
    eager = first.baselines.get(_EAGER) if first else None
    sample = {
        "sample_id": naming.sample,
        "compiled": receipt.verdict is not Verdict.COMPILE_ERROR,
        "correctness": receipt.verdict is Verdict.ACCEPTED,
        "metadata": metadata,
        **_stats("runtime", first.candidate if first else None, receipt),
        **_stats("ref_runtime", eager.timed if eager else None, receipt),
    }
    return json.dumps({str(problem): [sample]}, indent=4) + "\n"


def _problem_number(receipt: Receipt) -> int:
    name = receipt.problem.reference.name if receipt.problem.reference else receipt.candidate.name
    found = re.match(r"(\d{1,6})_", name)
    if found is None:
        raise UsageError(
            f"the file {visible(name)} does not begin with the number of a problem",
            code="problem_unnamed",
            hint="Give the number with --problem N.",
        )
    return int(found[1])


def _stats(name: str, timed: Timed | None, receipt: Receipt) -> dict[str, Any]:
    """The mean in ms, -1 where nothing was timed, as KernelBench has it; and what else it keeps of times."""
    kept = [us / 1000 for us in timed.samples_us] if timed else []
    if not kept:
        return {name: -1.0, f"{name}_stats": {}}
    stats = {
        "mean": statistics.fmean(kept),
        "std": statistics.pstdev(kept),
        "min": min(kept),
        "max": max(kept),
        "num_trials": len(kept),
        "hardware": receipt.environment.device_name,
        "device": receipt.environment.device,
    }
    return {name: stats["mean"], f"{name}_stats": stats}


# --- flashinfer-bench -------------------------------------------------------------------------------------------------


def _flashinfer_bench(receipt: Receipt, naming: Naming) -> str:
    """A line of JSON for each workload: a trace with its evaluation."""
    return "".join(json.dumps(trace) + "\n" for trace in _traces(receipt, naming))


def _traces(receipt: Receipt, naming: Naming) -> Iterator[dict[str, Any]]:
    reference = receipt.problem.reference
    definition = naming.definition or Path(reference.name if reference else receipt.candidate.name).stem
    timed = {_axes(one.dims): one for one in (receipt.timing.workloads if receipt.timing else ())}
    for dims in receipt.plan.workloads:
        trials = [trial for trial in receipt.correctness if trial.dims == dims]
        status = _status(receipt, trials)
        numbers = status in ("PASSED", "INCORRECT_NUMERICAL")
        yield {
            "definition": definition,
            "workload": {
                "axes": dict(dims),
                "inputs": {},
                "uuid": str(uuid.uuid5(_UUID, f"{receipt.problem.hash} {_axes(dims)}")),
            },
            "solution": naming.solution or Path(receipt.candidate.name).stem,
            "evaluation": {
                "status": status,
                "environment": {"hardware": _hardware(receipt), "libs": _libs(receipt)},
                "timestamp": receipt.created,
                "log": f"kopt: {receipt.verdict}: {visible(receipt.reason)} (receipt {receipt.id})",
                "correctness": _correctness(trials, receipt) if numbers else None,
                "performance": _performance(timed.get(_axes(dims)), receipt) if status == "PASSED" else None,
            },
        }


def _axes(dims: dict[str, int]) -> str:
    return json.dumps(dims, sort_keys=True)


def _status(receipt: Receipt, trials: list[Trial]) -> str:
    if receipt.verdict is Verdict.INCORRECT:
        failed = [trial for trial in trials if not trial.passed]
        for other in filter(None, (_OTHER.fullmatch(trial.detail) for trial in failed)):
            return "INCORRECT_SHAPE" if other[1] != other[3] else "INCORRECT_DTYPE"
        return "INCORRECT_NUMERICAL"
    if receipt.verdict not in _STATUS:
        raise UsageError(
            f"flashinfer-bench has no status for the verdict {receipt.verdict}",
            code="not_exportable",
            hint="It says nothing of the kernel: change the problem, or check it on a GPU.",
        )
    return _STATUS[receipt.verdict]


def _correctness(trials: list[Trial], receipt: Receipt) -> dict[str, Any]:
    """The largest errors of the elements that kopt keeps: the worst one of each output and call."""
    compared = [trial for trial in trials if trial.worst >= 0]
    pairs = [(abs(one.got - one.expected), abs(one.expected)) for one in compared]
    return {
        "max_relative_error": _largest(error / size if size else math.inf if error else 0.0 for error, size in pairs),
        "max_absolute_error": _largest(error for error, _ in pairs),
        "extra": {"errors_of": "the worst element of each output and call", "rule": "kopt", **_source(receipt)},
    }


def _largest(errors: Iterator[float]) -> float | str:
    """NaN and infinity as texts, as flashinfer-bench writes them."""
    found = list(errors)
    if any(math.isnan(error) for error in found):
        return "NaN"
    most = max(found, default=0.0)
    return "Infinity" if math.isinf(most) else most


def _performance(workload: WorkloadTiming | None, receipt: Receipt) -> dict[str, float]:
    kept = workload.candidate.samples_us if workload else []
    if workload is None or not kept:
        raise UsageError(
            f"{visible(receipt.candidate.name)} passed and was not timed, for which flashinfer-bench has no form",
            code="not_exportable",
            hint="Check it on a GPU: `kopt bench KERNEL --ref REF --device cuda:0`.",
        )
    eager = workload.baselines.get(_EAGER)
    latency = statistics.fmean(kept) / 1000
    reference = statistics.fmean(eager.timed.samples_us) / 1000 if eager and eager.timed.samples_us else 0.0
    return {
        "latency_ms": latency,
        "reference_latency_ms": reference,
        "speedup_factor": reference / latency if latency else 0.0,
    }


def _hardware(receipt: Receipt) -> str:
    return re.sub(r"\W+", "_", receipt.environment.device_name).strip("_") or receipt.environment.device


def _libs(receipt: Receipt) -> dict[str, str]:
    worker = receipt.environment.worker
    found = {"torch": worker.torch, "triton": worker.triton, "cuda": worker.cuda, "kopt": receipt.environment.kopt}
    return {name: version for name, version in found.items() if version}


def _source(receipt: Receipt) -> dict[str, str]:
    """Where it comes from."""
    return {
        "kopt_receipt": receipt.id,
        "kopt_verdict": receipt.verdict.value,
        "kopt_improvement": receipt.improvement.value,
        "kopt_reason": visible(receipt.reason),
    }


FORMATS: dict[str, Callable[[Receipt, Naming], str]] = {
    "kernelbench": _kernelbench,
    "flashinfer-bench": _flashinfer_bench,
}
"""Name of a format → what writes it."""
