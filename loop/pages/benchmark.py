"""benchmark.md of a run: every time that was taken of every version, from the receipts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaluator.receipt import timing_text as words
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import WorkloadTiming
from kbs.common.markdown import bullets, inert, table
from loop.journal.record import RunRecord
from loop.pages.artifacts import NOT_THERE, VersionFiles
from loop.pages.measured import evaluated_words, text


def benchmark(record: RunRecord, files: Mapping[int, VersionFiles], final: Receipt | None) -> bytes:
    """The page. `final`: the measurement at the end."""
    lines = [f"# Benchmark of {inert(record.id)}", ""]
    timed = [(f"v{number}", found.receipt) for number, found in sorted(files.items()) if found.receipt is not None]
    if final is not None:
        timed.append((f"final, {final.candidate.name}", final))
    if not any(receipt.timing for _, receipt in timed):
        why = "this run took place on the CPU, where none is taken" if record.device == "cpu" else "none was taken"
        return text([*lines, f"{NOT_THERE}: there are no times: {why}."])
    lines += [
        "All times are of one call on the device, from a cold cache; ratios are the baseline's time over the kernel's.",
        "",
    ]
    for name, receipt in timed:
        lines += [f"## {inert(name)}", "", *_version(receipt)]
    return text(lines)


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
