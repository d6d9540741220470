"""Files that `kopt bench` writes beside the receipt: the report in Markdown and the plot of the samples."""

from __future__ import annotations

from pathlib import Path

from evaluator.receipt.receipt import Receipt
from evaluator.store.report import check_report, save_report
from kbs.common.errors import UsageError
from kopt.services.plots.picture import check_plot
from kopt.services.plots.samples import MARK as PLOT_MARK
from kopt.services.plots.samples import save_plot


def check_files(receipt: Path | None, report: Path | None, plot: Path | None, device: str) -> None:
    """Refuse what cannot be written before the run. Raises `KoptError`."""
    named = [path.resolve() for path in (receipt, report, plot) if path is not None]
    if len(set(named)) < len(named):
        raise UsageError(
            "--receipt, --report and --plot must name different files",
            code="one_file_twice",
            hint="Give each its own file.",
        )
    if report is not None:
        check_report(report)
    if plot is not None:
        check_plot(plot, PLOT_MARK)
        if device == "cpu":
            raise UsageError(
                "nothing to plot: kernels are not timed on the CPU",
                code="nothing_to_plot",
                hint="Remove --plot, or choose a GPU with --device cuda:0.",
            )


def write_files(receipt: Receipt, report: Path | None, plot: Path | None) -> list[str]:
    """Write the report and the plot that were asked for: warnings."""
    if report is not None:
        save_report(report, receipt)
    if plot is None:
        return []
    if receipt.timing is None:
        return [f"{plot} was not written: nothing was timed"]
    save_plot(plot, receipt.timing, f"{receipt.candidate.name} on {receipt.environment.device_name}")
    return []
