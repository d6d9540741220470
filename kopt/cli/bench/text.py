"""What `kopt bench` prints for a person: reports of evaluations, times, own benchmarks, and the GPU's ceilings."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Verdict
from kbs.common.visible_text import visible
from kopt.services.results.telling.receipt import judged, section_lines, sections

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.external.figures import Figure
    from evaluator.external.record import ExternalReceipt
    from evaluator.noise import NoiseRun
    from evaluator.timing.ceilings import Ceilings

_SHOWN = 40
"""Figures of the user's own benchmark that are shown; the receipt has all."""


def report(console: Console, receipt: Receipt, path: Path, *, long: bool = True) -> None:
    """Print it: the verdict first, then the evidence; of that only what a verdict is read by, unless it is `long`.

    Names and messages in it are the candidate's own words.
    """
    from rich.text import Text

    good = receipt.verdict is Verdict.ACCEPTED
    verdict = Text(str(receipt.verdict).upper(), style="bold green" if good else "bold red")
    console.print(verdict.append(f"  {judged(receipt)}", style="not bold default"))
    _print_sections(console, visible(receipt.reason), sections(receipt, path, long=long))
    if not long:
        hint = "Give --long for the evidence: inputs, cross-checks, clocks, what was not tried."
        for line in section_lines([("", [hint])]):
            console.print(line, markup=False)


def _print_sections(console: Console, said: str, found: Iterable[tuple[str, list[str]]]) -> None:
    for line in (said, "", *section_lines(found)):
        console.print(line, markup=False)


# --- the user's own benchmark ---------------------------------------------------------------------------------------


def external_report(console: Console, receipt: ExternalReceipt, path: Path) -> None:
    """Print it: first whose evidence it is. Figures and output are the command's own words."""
    from rich.text import Text

    head = Text("FAILED" if receipt.failed else "EXTERNAL", style="bold red" if receipt.failed else "bold yellow")
    what = visible(f"  {receipt.candidate.name}, by a command of the user's (evidence: external)")
    console.print(head.append(what, style="not bold default"))
    _print_sections(console, f"{_came_of(receipt)}; kopt measured nothing of it", _external_sections(receipt, path))


def _external_sections(receipt: ExternalReceipt, path: Path) -> Iterator[tuple[str, list[str]]]:
    more = len(receipt.figures) - _SHOWN
    rest = [f"and {more} more, in the receipt"] if more > 0 else []
    yield "figures", [*map(_figure, receipt.figures[:_SHOWN]), *rest] or ["none"]
    if receipt.failed:
        last = (receipt.stderr.text.strip() or receipt.stdout.text.strip()).splitlines()[-10:]
        yield "printed last", [line[:400] for line in last]
    yield "command", [" ".join(map(shlex.quote, receipt.command))]
    yield "not checked", list(receipt.not_checked)
    yield "receipt", [f"{path} (sealed with your key; evidence: external; {receipt.seconds:.1f} s)"]


def _figure(figure: Figure) -> str:
    said = f"{figure.value:.10g}{'' if figure.unit in ('', 'x', '%') else ' '}{figure.unit}"
    return f"{figure.name:<20} {said:<16} {figure.stream} line {figure.line}: {figure.text.strip()[:100]}"


def _came_of(receipt: ExternalReceipt) -> str:
    took = f"after {receipt.seconds:.1f} s"
    if receipt.exit_code is None:
        return f"the command was ended at its time limit, {took}"
    if receipt.exit_code < 0:
        return f"signal {-receipt.exit_code} ended the command {took}"
    return f"the command ended with exit code {receipt.exit_code} {took}"


def external_error(receipt: ExternalReceipt, path: Path) -> dict[str, str]:
    code = "bench_command_timeout" if receipt.timed_out else "bench_command_failed"
    hint = "Give it more time with --timeout." if receipt.timed_out else "Run it by itself to see why."
    return {"code": code, "message": _came_of(receipt), "hint": f"{hint} What it printed is in {path}."}


# --- the device -----------------------------------------------------------------------------------------------------


def ceilings_lines(found: Ceilings, path: Path) -> Iterator[str]:
    """The best that a GPU does, and where it is kept."""
    yield f"{found.device}, driver {found.driver}, PyTorch {found.torch}, {found.created}"
    for figure in found.figures:
        value = f"{figure.value:.2f} {figure.unit}" if figure.unit != "us" else f"{figure.value:.2f} µs"
        yield f"{figure.name:<22} {value:>16}  (median {figure.us:.2f} µs, n {figure.n})"
    yield f"{'empty pair of events':<22} {found.empty_us:>13.2f} µs"
    clocks = found.clocks
    said = f"{clocks.min_mhz} to {clocks.max_mhz} MHz, locked: {clocks.locked}" if clocks.max_mhz else clocks.detail
    yield f"{'clocks':<22} {said}"
    yield f"{'kept in':<22} {path}"


def noise_lines(found: Sequence[NoiseRun]) -> Iterator[str]:
    """Comparisons of a reference with itself."""
    for run in found:
        ratio = run.ratio
        yield (
            f"run {run.run + 1:<4} {run.improvement:<9} ratio {ratio.median:.4f} "
            f"[{ratio.ci_low:.4f}, {ratio.ci_high:.4f}], noise {ratio.noise:.2%}, median"
            f" {run.median_us:.2f} µs, {run.seconds:.1f} s"
        )
    wrong = sum(run.improvement in ("faster", "slower") for run in found)
    yield f"{wrong} of {len(found)} runs called a difference where there is none"
