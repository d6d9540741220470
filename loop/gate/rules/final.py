"""Rules on what a run hands over: the pages that kopt renders, the best version, and its final measurement."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.store.seal import verify
from kbs.common.errors import KoptError
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.gate.rules.folder import left_by_programs


@rule("rendered", "version")
def rendered(context: GateContext) -> Iterator[Broken]:
    """Leave rendered files as kopt renders them.

    What it checks: hypothesis.txt, plan.md, ncu_summary.md and the others are rendered again from proposal, receipt,
    profile and journal, and compared byte for byte.

    Why: nobody can improve a page by hand.

    Fix: change what the page is rendered from, remove the page, and run `kopt run resume`.
    """
    for name, data in context.rendered_version.items():
        path = context.in_version(name)
        there = context.bytes_of(path)
        if there is not None and there != data:
            message = "it differs from what kopt renders from this version's files"
            line = _first_difference(there, data)
            yield broken(path, message, "Remove it, and let `kopt run resume` render it.", line)


def _first_difference(before: bytes, after: bytes) -> int:
    """Number of the first line that differs."""
    old, new = before.split(b"\n"), after.split(b"\n")
    differing = (n for n, (one, other) in enumerate(zip(old, new, strict=False), 1) if one != other)
    return next(differing, min(len(old), len(new)))


@rule("best-restored", "final")
def best_restored(context: GateContext) -> Iterator[Broken]:
    """Keep in best/ the version that was measured at the end, and nothing else.

    What it checks: the only file in best/ is the kernel of the final version, byte for byte.

    Why: `kopt run apply` copies it, so it must be what was measured.

    Fix: let `kopt run final` restore it.
    """
    final = context.state.final
    if final is None or final.version != context.version:
        message = f"the journal has no final measurement of v{context.version} that agrees with its own"
        yield broken("journal.jsonl", message, "Run `kopt run final`.")
        return
    fix = "Let `kopt run final` restore it from git."
    name = context.kernel_name(context.version)
    wanted = f"best/{name}" if name else ""
    for path in sorted({*context.listed(context.folder.best), *([wanted] if wanted else [])}):
        if left_by_programs(path, context):
            continue
        if path != wanted:
            yield broken(path, f"it is not a file of v{context.version}", fix)
        elif context.hash(path) != context.hash(context.in_version(name or "")):
            yield broken(path, f"it is not the kernel of v{context.version}", fix)


@rule("final-receipt", "final")
def final_receipt(context: GateContext) -> Iterator[Broken]:
    """Measure the restored kernel against version 0, and keep the sealed receipt.

    What it checks: the final receipt is sealed, recorded by the journal, and of the restored kernel and the run's
    problem, under the plan `verdict`.

    Why: the speed in the report rests on this measurement.

    Fix: measure again with `kopt run final`.
    """
    final, fix = context.state.final, "Measure again with `kopt run final`."
    path = next((p for p in final.files if p.endswith("receipt.json")), "") if final is not None else ""
    data = context.bytes_of(path) if path else None
    if final is None or data is None:
        yield broken(path or "journal.jsonl", "there is no receipt of the final measurement", fix)
        return
    found, receipt = verify(data, context.key), context.receipt(path)
    if not found.ok or receipt is None:
        yield broken(path, found.detail, fix)
        return
    name = context.kernel_name(context.version)
    kernel = context.hash(context.in_version(name)) if name else None
    for wrong, message in (
        (receipt.id != final.receipt, "it is not the receipt that the journal has"),
        (receipt.candidate.hash != kernel, f"it is not of the kernel of v{context.version}"),
        (receipt.problem.hash != context.record.problem_of(receipt.candidate.hash), "it is not of the run's problem"),
        (receipt.plan.name != "verdict", "its plan accepts nothing"),
    ):
        if wrong:
            yield broken(path, message, fix)


@rule("final-rendered", "final")
def final_rendered(context: GateContext) -> Iterator[Broken]:
    """Leave the reports as kopt renders them from measured artifacts.

    What it checks: final_report.md, benchmark.md, summary.json and the run's own pages are rendered again from receipts
    and the journal as it was when they were written, and compared byte for byte. Pictures are not drawn again, because
    fonts differ between machines: they have the hashes that the journal recorded.

    Why: nobody can improve a report by hand.

    Fix: render them again with `kopt run report`.
    """
    fix = "Restore the files that it is made from, which another rule names; `git checkout -- FILE` brings them back."
    try:
        pages = context.rendered_end
    except KoptError as error:
        yield broken("final_report.md", f"it cannot be rendered again: {error.message}", fix)
        return
    fix = "Run `kopt run report`."
    for path, data in pages.items():
        there = context.bytes_of(path)
        if there is None:
            yield broken(path, "it is missing", fix)
        elif there != data:
            yield broken(path, "it differs from what kopt renders", fix, _first_difference(there, data))
