"""Pages of what was measured of a version: its correctness, its profile, its place under the roofline, its code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby

from evaluator.diagnosis.binding_resource import dominant_stall
from evaluator.diagnosis.report import details, summary
from evaluator.receipt import timing_text as words
from evaluator.receipt.findings import Trial
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Verdict
from evaluator.scan.hazards import Severity
from kbs.common.canonical_json import dumps
from kbs.common.markdown import Markdown, bullets, inert, quoted, table
from kbs.evidence.units import format_number
from kbs.hardware.profile_metrics import STALLS, profile_metrics
from loop.journal.events import Evaluated
from loop.pages.artifacts import NOT_THERE, VersionFiles
from loop.planning import instructions
from loop.planning.outcomes import signature_of
from loop.tools import MachineNote, Targets

TOP = (
    *("duration", "sm_throughput", "memory_throughput", "dram_throughput", "l1_throughput", "l2_throughput"),
    *("dram_bytes_read", "dram_bytes_written", "achieved_occupancy", "theoretical_occupancy", "registers"),
    *("eligible_warps", "ipc_active", "waves", "grid_size", "block_size", "local_load_sectors", "bank_conflicts"),
    *("fma_pipe", "tensor_pipe", "l1_hit_rate", "l2_hit_rate", "load_bytes_per_sector", "store_bytes_per_sector"),
)
"""Metrics of ncu_top.json, beside the stalls."""


def correctness(receipt: Receipt) -> bytes:
    """correctness.md of an attempt, from its receipt alone."""
    declared = receipt.problem.tolerance
    bound = (
        "the evaluator's own"
        if declared is None
        else f"atol {declared.atol:g}, rtol {declared.rtol:g}, declared by the {declared.declared_by}"
    )
    lines = [
        f"# Correctness of {inert(receipt.candidate.name)}",
        "",
        *bullets(
            [
                Markdown(f"verdict: {evaluated_words(receipt)}"),
                f"evidence: {receipt.evidence} by kopt, receipt {receipt.id}",
                f"kernel: SHA-256 {receipt.candidate.hash}",
                f"problem: SHA-256 {receipt.problem.hash}",
                f"device: {receipt.environment.device}",
                f"tolerance: {bound}",
            ]
        ),
        "",
        "## Calls that were compared",
        "",
        *_trials(receipt),
        "## Hazards",
        "",
        *_hazards(receipt),
        "## Not tried",
        "",
        *(bullets(f"{entry.what}: {entry.why}" for entry in receipt.not_tried) or ["Nothing."]),
        "",
        "## Not checked",
        "",
        *(bullets(receipt.not_checked) or ["Nothing is known to be missing."]),
    ]
    return text(lines)


def _trials(receipt: Receipt) -> list[str]:
    if not receipt.correctness:
        return [f"{NOT_THERE}: no call came to an end.", ""]
    rows = []
    ordered = sorted(receipt.correctness, key=lambda trial: (sorted(trial.dims.items()), trial.distribution))
    for (dims, distribution), group in groupby(ordered, key=lambda trial: (trial.dims, trial.distribution)):
        found = list(group)
        passed = sum(trial.passed for trial in found)
        rows.append((words.sizes(dims), distribution, f"{passed} of {len(found)}", _worst(found)))
    return table(("sizes", "inputs", "outputs that passed", "nearest to the allowance"), rows)


def _worst(found: list[Trial]) -> str:
    failed = next((trial for trial in found if not trial.passed), None)
    if failed is not None:
        said = failed.detail or f"element {failed.worst} is {failed.got:g}, right is {failed.expected:g}"
        return f"FAILED: {said}"
    near = max((trial.nearness for trial in found), default=math.nan)
    return f"{near:.0%}" if math.isfinite(near) else "equal"


def _hazards(receipt: Receipt) -> list[str]:
    if not receipt.hazards:
        return ["None was found.", ""]
    rows = [
        (hazard.id, "rejects" if hazard.severity is Severity.REJECT else "note", quoted(hazard.evidence))
        for hazard in sorted(receipt.hazards, key=lambda hazard: hazard.severity is not Severity.REJECT)
    ]
    return table(("hazard", "weight", "what was seen"), rows)


def profile_pages(files: VersionFiles, found: Targets | None) -> dict[str, bytes]:
    """ncu_summary.md, ncu_details.md, ncu_top.json."""
    pages = _profile_pages(files)
    if found is not None and found.instructions is not None:
        said = ["", "## Instructions of the target", "", *instructions.lines(found, files.machine)]
        pages["ncu_summary.md"] = pages["ncu_summary.md"].rstrip(b"\n") + b"\n" + text(said)
    return pages


def _profile_pages(files: VersionFiles) -> dict[str, bytes]:
    if files.profile is None or files.chosen is None:
        why = files.record.profile_why or "no counters stand in this version's folder"
        grade = "none" if files.record.profile == "none" else "degraded"
        said = f"{NOT_THERE}: no profile of Nsight Compute was taken: {inert(why)}."
        return {
            "ncu_summary.md": text(["# NCU summary", "", said]),
            "ncu_details.md": text(["# NCU details", "", said]),
            "ncu_top.json": dumps({"grade": grade, "why": why, "profile": None, "metrics": []}),
        }
    return {
        "ncu_summary.md": summary(files.profile, files.chosen).encode("utf-8", "replace"),
        "ncu_details.md": details(files.profile, files.chosen).encode("utf-8", "replace"),
        "ncu_top.json": _top(files),
    }


def _top(files: VersionFiles) -> bytes:
    assert files.chosen is not None  # its caller looked
    launch, known = files.chosen.launch, profile_metrics()
    stalls = [metric.id for metric in known.groups()[STALLS]]
    found = []
    for id in (*TOP, *stalls):
        counter = launch.metric(id)
        if counter is not None:
            found.append(
                {"metric": id, "value": counter.shown, "ncu": counter.ncu, "cite": f"profile/{files.profile_id}#{id}"}
            )
    stall = dominant_stall(launch)
    return dumps(
        {
            "grade": "full",
            "why": "",
            "profile": files.profile_id,
            "kernel": launch.function,
            "chosen": files.chosen.why,
            "metrics": found,
            "dominant_stall": None if stall is None else {"metric": stall.metric, "share": stall.arithmetic},
            "bottleneck": files.diagnosis.bottleneck if files.diagnosis else "unknown",
        }
    )


def roofline(files: VersionFiles, found: Targets | None) -> bytes:
    """roofline.json of a version: its measured time beside the floor and the target, with the arithmetic."""
    median = files.median_us
    unknown = "step 0 was not done" if found is None else "the floor is UNKNOWN" if found.floor_us is None else ""
    said = "no time was taken" if median is None else unknown
    return dumps(
        {
            "bytes": found.bytes if found else None,
            "operations": found.operations if found else None,
            "bound": found.bound if found else "",
            "floor_us": found.floor_us if found else None,
            "target_us": found.target_us if found else None,
            "median_us": median,
            "receipt": files.receipt.id if files.receipt else None,
            "arithmetic": list(_shares(median, found)),
            "why": said,
        }
    )


def _shares(median: float | None, found: Targets | None) -> Iterator[str]:
    if not median or found is None:
        return
    shown = words.significant(median)
    if found.bytes is not None:
        rate = Decimal(found.bytes) / Decimal(shown.replace(",", "")) / 1000
        yield f"achieved bandwidth: {found.bytes:,} B / {shown} µs = {format_number(rate, 4)} GB/s"
    for name, limit in (("floor", found.floor_us), ("target", found.target_us)):
        if limit is not None:
            aim = words.significant(limit)
            share = Decimal(aim.replace(",", "")) / Decimal(shown.replace(",", "")) * 100
            yield f"{name} in the measured time: {aim} µs / {shown} µs = {format_number(share)} %"


def machine(files: VersionFiles, found: Targets | None) -> bytes:
    """sass_check.json: what the machine code shows of the methods and of the instructions of the target, and whether it
    differs from the parent's."""
    note, parent = files.machine, files.parent.machine if files.parent else None
    declared = list(files.proposal.methods) if files.proposal else []
    if note is None:
        note = MachineNote(target="", functions={}, why="the machine code was not looked at")
    said = {method: note.methods.get(method, f"unverifiable: {note.why or 'not looked for'}") for method in declared}
    page: dict[str, object] = {
        "target": note.target,
        "functions": note.functions,
        "why": note.why,
        "declared": said,
        "differs_from_parent": _differs(note, parent),
    }
    if note.opcodes is not None and parent is not None:
        page["parent"] = {method: signature_of(method, parent) for method in declared}
    if found is not None and found.instructions is not None:
        page["instructions"] = instructions.held_against(found, note)
    return dumps(page)


def _differs(note: MachineNote, parent: MachineNote | None) -> bool | None:
    """None where one of the two has no machine code."""
    if parent is None or not note.functions or not parent.functions or note.target != parent.target:
        return None
    return note.functions != parent.functions


def evaluated_words(found: Receipt | Evaluated) -> Markdown:
    """Verdict and reason. The reason is quoted if it may be the kernel's output."""
    reason = inert(found.reason) if found.verdict is Verdict.ACCEPTED else quoted(found.reason)
    return Markdown(f"{found.verdict}: {reason}")


def text(lines: list[str]) -> bytes:
    """The bytes of a page."""
    return ("\n".join(lines).rstrip("\n") + "\n").encode("utf-8", "replace")
