"""Ablation: the accepted kernel is measured without each of its methods, under the plan that it was accepted by."""

from __future__ import annotations

from kbs.common.errors import NoGpuError, UsageError
from loop.journal import events, seeds
from loop.planning import decisions
from loop.run.evaluation import measured
from loop.run.open_run import Kernel, Run, missing


def ablate(run: Run) -> None:
    """Measure the accepted kernel without the next of its methods, against the accepted kernel in one evaluation."""
    version, attempt = run.version, run.version.attempts[-1]
    method = attempt.pending("ablation")[0]
    folder = run.folder.ablation(version.number, method)
    proposal, whole = run.proposal(version), run.kernel(run.folder.attempt(version.number, attempt.number))
    text = next((one.kernel for one in proposal.ablations if one.method == method), None) if proposal else None
    if text is None:
        raise missing(run.folder.attempt(version.number, attempt.number) / "proposal.json")
    kernel = Kernel(whole.name, text.encode("utf-8"))
    copy = (
        run.folder.trajectory / f"v{version.number}-a{attempt.number}-without-{method}.{whole.name.rpartition('.')[2]}"
    )
    kept = {run.folder.relative(copy): kernel.data, run.folder.relative(folder / kernel.name): kernel.data}
    request = run.tools.request(kernel.text, kernel.name, whole.text)
    schedule = seeds.schedule(run.master, version.number, attempt.number, f"without {method}")
    found = events.Measured(
        version=version.number, attempt=attempt.number, what="ablation", name=method, receipt=None, verdict=None,
        improvement=None, reason="", ratio=None, median_us=None, seconds=0.0, files={},
    )  # fmt: skip
    try:
        receipt, made = measured(run, run.folder.relative(folder), kernel, request, schedule)
    except (UsageError, NoGpuError) as error:
        run.happened(found.model_copy(update={"reason": error.message, "files": run.put(kept)}))
        return
    run.happened(
        found.model_copy(
            update={
                "receipt": receipt.id,
                "verdict": receipt.verdict,
                "improvement": receipt.improvement,
                "reason": receipt.reason,
                "ratio": decisions.ratio_of(receipt),
                "median_us": decisions.median_of(receipt),
                "seconds": receipt.seconds,
                "files": made | run.put(kept),
            }
        )
    )
