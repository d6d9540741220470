"""benchmark.md of a run: every time that was taken of every version, from the receipts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaluator.receipt import timing_text as words
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import WorkloadTiming
from kbs.common.markdown import bullets, inert, quoted, table
from loop.journal.record import RunRecord
from loop.pages.artifacts import NOT_THERE, VersionFiles
from loop.pages.measured import evaluated_words, text

FIGURES = 20
"""Of a run of the user's own benchmark, those that the page shows."""


def benchmark(record: RunRecord, files: Mapping[int, VersionFiles], final: Receipt | None) -> bytes:
    """The page. `final`: the measurement at the end."""
    lines = [f"# Benchmark of {inert(record.id)}", ""]
    printed = list(_external(record, files))
    timed = [(f"v{number}", found.receipt) for number, found in sorted(files.items()) if found.receipt is not None]
    if final is not None:
        timed.append((f"final, {final.candidate.name}", final))
    if not any(receipt.timing for _, receipt in timed):
        why = "this run took place on the CPU, where none is taken" if record.device == "cpu" else "none was taken"
        return text([*lines, f"{NOT_THERE}: there are no times: {why}.", "", *printed])
    lines += [
        "All times are of one call on the device, from a cold cache; ratios are the baseline's time over the kernel's.",
        "",
    ]
    for name, receipt in timed:
        lines += [f"## {inert(name)}", "", *_version(receipt)]
    return text([*lines, *printed])


def _external(record: RunRecord, files: Mapping[int, VersionFiles]) -> Iterator[str]:
    """What the user's own benchmark printed: quoted, since kopt measured none of it."""
    if record.benchmark is None:
        return
    yield from ("## External: what your own benchmark printed", "")
    yield f"{quoted(' '.join(record.benchmark.command))} was run as it is, in a copy of the workspace with each"
    yield "version's kernel in place of yours. kopt measured none of it (evidence: external)."
    yield ""
    rows = []
    for number, found in sorted(files.items()):
        one = found.external
        if one is None:
            why = "another language than the file that it reads" if found.receipt is not None else "it was not accepted"
            rows.append((f"v{number}", f"{NOT_THERE}: {why}", "", ""))
            continue
        for figure in one.figures[:FIGURES]:
            value = quoted(f"{figure.value:g} {figure.unit}".strip())
            rows.append((f"v{number}", quoted(figure.name), value, quoted(figure.text)))
        left = len(one.figures) - FIGURES
        more = f"; {left} more figures in its record" if left > 0 else "" if one.figures else "; no figure was found"
        rows.append((f"v{number}", f"{one.ending}{more}", "", f"receipt {one.id}"))
    yield from table(("version", "figure", "value", "the line that it stands in"), rows)


def _version(receipt: Receipt) -> Iterator[str]:
    timing = receipt.timing
    yield from bullets([f"receipt {receipt.id}", evaluated_words(receipt)])
    if timing is None:
        yield from ("- no time was taken", "")
        return
    yield from bullets(words.improvement(timing, receipt.improvement))
    yield ""
    for workload in timing.workloads:
        sizes = words.sizes(workload.dims)
        if sizes:
            yield from (f"### {inert(sizes)}", "")
        yield from _contenders(workload)
        yield from bullets(words.cross_checks(workload))
        yield ""
    yield from bullets([words.clocks(timing.clocks)])
    yield ""


def _contenders(workload: WorkloadTiming) -> list[str]:
    head = ("contender", "median", "95% interval", "p20", "p80", "std", "n", "ratio", "95% interval of the ratio")
    rows = []
    for timed in words.kernels(workload):
        summary = timed.summary
        if summary is None:
            rows.append((timed.name, "failed", *[NOT_THERE] * 7))
            continue
        unit = words.unit_of(summary.median_us)
        baseline = workload.baselines.get(timed.name)
        found = baseline.ratio if baseline else None
        rows.append(
            (
                timed.name,
                words.duration(summary.median_us),
                f"{words.figure(summary.ci_low_us, unit)} to {words.figure(summary.ci_high_us, unit)}",
                words.figure(summary.p20_us, unit),
                words.figure(summary.p80_us, unit),
                words.figure(summary.std_us, unit),
                str(summary.n),
                NOT_THERE if found is None else words.times(found.median),
                NOT_THERE if found is None else words.interval(found),
            )
        )
    reached = [
        f"bandwidth: {words.rate(workload.gb_per_s, 'GB/s')}",
        f"of the measured floor: {words.percent(workload.of_ceiling)}",
        f"of the cited peak: {words.percent(workload.of_peak)}",
    ]
    return [*table(head, rows, right=len(head) - 1), *bullets(reached)]
