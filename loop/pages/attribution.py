"""attribution.json: what each method of a version brought, by leaving it out."""

from __future__ import annotations

from typing import Literal

from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Verdict
from kbs.common.canonical_json import dumps
from loop.pages.artifacts import VersionFiles
from loop.planning.decisions import Interval

NAME = "attribution.json"
Helps = Literal["faster", "no change", "slower", "unknown"]


def attribution(files: VersionFiles) -> bytes:
    """The file: a row for each method that was left out, in the proposal's order."""
    assert files.proposal is not None
    rows = []
    outcomes = {one.method: one for one in files.outcomes}
    for one in files.proposal.ablations:
        receipt, ratio = files.ablations.get(one.method), files.left_out(one.method)
        rows.append(
            {
                "method": one.method,
                "receipt": receipt.id if receipt else None,
                "verdict": receipt.verdict.value if receipt else None,
                "ratio": ratio,
                "difference_us": _difference(receipt, ratio),
                "helps": helps(ratio, files.record.minimum_effect),
                "found": outcomes[one.method].found,
                "why": _why(receipt, outcomes[one.method].why),
            }
        )
    return dumps(
        {
            "version": files.number,
            "what": "ratio: time without the method over time with it; difference_us: the one less the other;"
            " median, lower and upper bound, paired in one evaluation",
            "noise": files.record.minimum_effect,
            "methods": rows,
        }
    )


def helps(ratio: Interval | None, noise: float) -> Helps:
    """What a method brings: its interval lies above 1 + noise, below 1 - noise, or neither."""
    if ratio is None:
        return "unknown"
    return "faster" if ratio[1] > 1 + noise else "slower" if ratio[2] < 1 - noise else "no change"


def _difference(receipt: Receipt | None, ratio: Interval | None) -> Interval | None:
    """In microseconds, from the whole kernel's own time in the same evaluation."""
    timing = receipt.timing if receipt else None
    whole = timing.workloads[0].baselines.get(timing.against) if timing else None
    summary = whole.timed.summary if whole else None
    if ratio is None or summary is None:
        return None
    median, low, high = (round(summary.median_us * (part - 1), 4) for part in ratio)
    return median, low, high


def _why(receipt: Receipt | None, otherwise: str) -> str:
    if receipt is None:
        return "the evaluator could not take the kernel without it"
    if receipt.verdict is not Verdict.ACCEPTED:
        return f"without it the kernel is {receipt.verdict.value}, so its time says nothing"
    return otherwise
