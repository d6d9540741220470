"""benchmark.md: a receipt told in Markdown. Made of the receipt alone, so that one receipt gives one text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from evaluator.receipt import timing_text as words
from evaluator.receipt.findings import Trial
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Timed, Timing, WorkloadTiming
from evaluator.scan.hazards import Severity
from evaluator.source.languages import language_words
from kbs.common.errors import UsageError
from kbs.common.files import may_overwrite, write_whole
from kbs.common.markdown import bullets, inert, table

MARK = "<!-- kopt benchmark report"
"""How every report begins: a file that begins otherwise is never overwritten."""
NOTHING = "N/A"
"""Stands for what was not collected."""


def render(receipt: Receipt) -> str:
    """The whole report."""
    blocks = [
        [f"{MARK}, receipt {receipt.id} -->", ""],
        _head(receipt),
        ["## Times", "", *_times(receipt.timing)],
        ["## Environment", "", *_environment(receipt)],
        ["## Correctness", "", *_correctness(receipt)],
        ["## Hazards", "", *_hazards(receipt)],
        ["## Really ran", "", *(_ran(receipt) or [f"{NOTHING}: nothing was seen to run."]), ""],
        ["## Not tried", "", *(bullets(f"{e.what}: {e.why}" for e in receipt.not_tried) or ["Nothing."]), ""],
        ["## Not checked", "", *(bullets(receipt.not_checked) or ["Nothing is known to be missing."]), ""],
        _receipt(receipt),
    ]
    return "\n".join(line for block in blocks for line in block).rstrip("\n") + "\n"


def save_report(path: Path, receipt: Receipt) -> None:
    """Write the report. Raises `UsageError` (`report_exists`, `report_folder`) and `KoptError`."""
    check_report(path)
    write_whole(path, render(receipt).encode("utf-8", "replace"))


def check_report(path: Path) -> None:
    """Refuse a place for the report before the run, not after it. Raises as `save_report` does."""
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent} for the report",
            code="report_folder",
            hint="Make the folder, or choose another file with --report.",
        )
    if not may_overwrite(path, MARK.encode()):
        raise UsageError(
            f"{path} is there and no benchmark report of kopt: it is not overwritten",
            code="report_exists",
            hint="Choose another file with --report, or move that one away.",
        )


def _head(receipt: Receipt) -> list[str]:
    against = receipt.problem.reference.name if receipt.problem.reference else "itself (no reference)"
    language = language_words(receipt.candidate.source, receipt.candidate.backend)
    rows = [
        ("verdict", f"{receipt.verdict}: {receipt.reason}"),
        ("improvement", "; ".join(words.improvement(receipt.timing, receipt.improvement))),
        ("plan", receipt.plan.name),
        ("candidate", f"{receipt.candidate.name} ({language}), SHA-256 {receipt.candidate.hash}"),
        ("reference", f"{against}, oracle: {receipt.problem.oracle}"),
        ("evidence", f"{receipt.evidence} by kopt"),
        ("measured", receipt.created),
    ]
    return [f"# Benchmark of {inert(receipt.candidate.name)}", "", *table(("", ""), rows)]


def _times(timing: Timing | None) -> Iterator[str]:
    if timing is None:
        yield from (f"{NOTHING}: no time was taken.", "")
        return
    several = len(timing.workloads) > 1
    if several:
        yield from ("### Workloads", "", *_workloads(timing))
    for number, workload in enumerate(timing.workloads, 1):
        level = "###"
        if several:
            named = words.sizes(workload.dims)
            yield from (f"### Workload {number}{f': {inert(named)}' if named else ''}", "")
            level = "####"
        yield from _kernels(workload)
        yield from (f"{level} Ratios", "", *_ratios(workload))
        yield from (f"{level} Cross-checks of the device time", "", *bullets(words.cross_checks(workload)), "")
        if rows := words.back_to_back(workload.back_to_back):
            yield from (f"{level} Back to back", "", *bullets(rows), "")
        yield from (f"{level} Limits", "", *_limits(workload))
        yield from (f"{level} Notes", "", *(bullets(workload.notes) or ["None."]), "")
    clocks = [words.clocks(timing.clocks), f"all times were taken in {timing.seconds:.1f} s"]
    yield from ("### Clocks of the device", "", *bullets(clocks), "")


def _workloads(timing: Timing) -> list[str]:
    head = ("sizes", "candidate", "ratio", "95% interval", "improvement", "of the floor", "of the peak")
    rows = []
    for workload in timing.workloads:
        baseline = workload.baselines.get(workload.against)
        ratio = None if baseline is None else baseline.ratio
        summary = workload.candidate.summary
        row = (
            words.sizes(workload.dims) or "its own",
            NOTHING if summary is None else words.duration(summary.median_us),
            NOTHING if ratio is None else words.times(ratio.median),
            NOTHING if ratio is None else words.interval(ratio),
            str(workload.improvement),
            words.percent(workload.of_ceiling),
            words.percent(workload.of_peak),
        )
        rows.append(row)
    if timing.ratio is not None:
        mean = words.times(timing.ratio.median), words.interval(timing.ratio)
        rows.append((f"geometric mean, against {timing.against}", "", *mean, "", "", ""))
    return table(head, rows)


def _kernels(workload: WorkloadTiming) -> list[str]:
    every = words.kernels(workload)
    head = ("kernel", "median", "95% interval", "p20", "p80", "min", "max", "std", "n", "GB/s", "TFLOP/s")
    flagged = [f"{timed.name}: {', '.join(timed.flags)}" for timed in every if timed.flags]
    said = [f"{timed.name}: {timed.detail}" for timed in every if timed.detail]
    dropped = [text for text in map(words.drops, every) if text]
    return [
        *table(head, (_kernel(workload, timed) for timed in every), right=len(head) - 1),
        *bullets([*said, *flagged, f"dropped turns: {'; '.join(dropped) or 'none'}", words.overhead(workload)]),
        "",
    ]


def _kernel(workload: WorkloadTiming, timed: Timed) -> list[str]:
    summary = timed.summary
    if summary is None:
        return [timed.name, "failed", *[NOTHING] * 9]
    unit = words.unit_of(summary.median_us)
    shown = (summary.p20_us, summary.p80_us, summary.min_us, summary.max_us, summary.std_us)
    seconds = summary.median_us * 1e-6
    return [
        timed.name,
        f"{words.figure(summary.median_us, unit)} {unit}",
        f"{words.figure(summary.ci_low_us, unit)} to {words.figure(summary.ci_high_us, unit)}",
        *(words.figure(us, unit) for us in shown),
        str(summary.n),
        words.significant(workload.bytes / seconds / 1e9) if seconds and workload.bytes else NOTHING,
        words.significant(workload.operations / seconds / 1e12) if seconds and workload.operations else NOTHING,
    ]


def _ratios(workload: WorkloadTiming) -> list[str]:
    if not workload.baselines:
        return [f"{NOTHING}: there is no baseline.", ""]
    head = ("baseline", "its time over the candidate's", "95% interval", "restarts", "pairs", "noise floor")
    rows = []
    for name, baseline in words.baselines(workload):
        ratio = baseline.ratio
        found = ["failed" if baseline.timed.status == "failed" else NOTHING, *[NOTHING] * 4]
        if ratio is not None:
            restarts = ", ".join(words.times(median) for median in ratio.restarts)
            found = [words.times(ratio.median), words.interval(ratio), restarts, str(ratio.pairs)]
            found.append(words.percent(ratio.noise))
        rows.append((name, *found, str(baseline.improvement)))
    noise = words.noise(workload)
    return [*table((*head, "improvement"), rows), *([*bullets([f"noise floor: {noise}"]), ""] if noise else [])]


def _limits(workload: WorkloadTiming) -> list[str]:
    floor, physics = workload.ceiling, workload.physics
    moved = f"{words.size(workload.read_bytes)} read, {words.size(workload.written_bytes)} written"
    operations = NOTHING if workload.operations is None else f"{workload.operations:,} declared".replace(",", " ")
    return table(
        ("", ""),
        [
            ("bytes", f"{words.size(workload.bytes)} counted ({moved})"),
            ("operations", operations),
            ("measured floor", NOTHING if floor is None else words.ceiling(floor)),
            ("of the measured floor", words.percent(workload.of_ceiling)),
            ("cited peak", NOTHING if physics.peak is None else words.peak(physics.peak)),
            ("of the cited peak", words.percent(workload.of_peak)),
            ("physics", words.physics(physics)),
        ],
    )


def _environment(receipt: Receipt) -> list[str]:
    found = receipt.environment
    layers = [layer.name for layer in found.isolation if not layer.applied]
    rows = [
        ("device", found.device_name if found.device != "cpu" else "the CPU"),
        ("device memory", None if found.device_memory is None else words.size(found.device_memory)),
        ("compute capability", found.compute_capability),
        ("driver", found.driver),
        ("CUDA of PyTorch", found.worker.cuda),
        ("nvcc", found.nvcc),
        ("PyTorch", found.worker.torch),
        ("Triton", found.worker.triton),
        ("Python", found.worker.python),
        ("processor", f"{found.cpu}, {found.cpu_count} used"),
        ("memory", words.size(found.memory)),
        ("system", found.platform),
        ("kopt", found.kopt),
        ("isolation not in force", ", ".join(layers) or "none"),
    ]
    return table(("", ""), [(name, NOTHING if value is None else value) for name, value in rows])


def _correctness(receipt: Receipt) -> list[str]:
    if not receipt.correctness:
        return [f"{NOTHING}: no call came to an end.", ""]
    rows = []
    ordered = sorted(receipt.correctness, key=lambda trial: (sorted(trial.dims.items()), trial.distribution))
    for (dims, distribution), group in groupby(ordered, key=lambda trial: (trial.dims, trial.distribution)):
        found = list(group)
        calls, passed = len({trial.index for trial in found}), sum(trial.passed for trial in found)
        rows.append((words.sizes(dims), distribution, str(calls), f"{passed} of {len(found)}", _worst(found)))
    head = ("sizes", "inputs", "calls", "outputs that passed", "nearest to the allowance")
    declared = receipt.problem.tolerance
    bound = "the evaluator's own"
    if declared is not None:
        bound = f"atol {declared.atol:g}, rtol {declared.rtol:g}, declared by the {declared.declared_by}"
    tools = [f"{run.tool}: {run.status}{f': {run.detail}' if run.detail else ''}" for run in receipt.sanitizers]
    return [*table(head, rows), *bullets([f"tolerance: {bound}", *tools]), ""]


def _worst(found: list[Trial]) -> str:
    failed = [trial for trial in found if not trial.passed]
    if failed:
        worst = failed[0]
        return f"FAILED: {worst.detail or f'element {worst.worst} is {worst.got:g}, right is {worst.expected:g}'}"
    near = max((trial.nearness for trial in found), default=math.nan)
    return f"{near:.0%}" if math.isfinite(near) else "equal"


def _hazards(receipt: Receipt) -> list[str]:
    if not receipt.hazards:
        return ["None was found.", ""]
    head = ("hazard", "weight", "what was seen", "line")
    ordered = sorted(receipt.hazards, key=lambda hazard: hazard.severity is not Severity.REJECT)
    weights = {Severity.REJECT: "rejects", Severity.NOTE: "note"}
    return table(head, [(h.id, weights[h.severity], h.evidence, str(h.line or "")) for h in ordered])


def _ran(receipt: Receipt) -> list[str]:
    kernels = [f"{k.name} ({k.calls} x{', of a library' if k.library else ''})" for k in receipt.kernels]
    operations = [f"{o.name} ({o.calls} x, {o.share:.0%} of the problem's bytes)" for o in receipt.library_operations]
    return bullets([*kernels, *operations])


def _receipt(receipt: Receipt) -> list[str]:
    seal = "not sealed" if receipt.seal is None else f"sealed with the key {receipt.seal.key_id}"
    name = f"{receipt.id[:16]}.json"
    return [
        "## Receipt",
        "",
        f"All of this stands in the receipt `{receipt.id}` ({seal}), and every sample. Its file is",
        f"`receipts/{name}` under KOPT_HOME, or the one that `--receipt` named.",
        "",
        "```sh",
        f"kopt bench verify {name}   # is it as it was written",
        f"kopt bench replay {name}   # measure again, from the sources and the seed in it",
        "```",
    ]
