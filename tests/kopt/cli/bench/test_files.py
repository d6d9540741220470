"""`--report` and `--plot`: files beside the receipt, refused before the run where they cannot be written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.receipt.receipt import parse
from evaluator.store.report import MARK, render
from kbs.common.errors import UsageError
from kopt.services.bench.files import check_files, write_files
from kopt.services.plots.samples import MARK as PLOT_MARK
from tests.conftest import Run
from tests.evaluator.receipts import receipt, timed_receipt

ADD = "def add(a, b):\n    return a + b\n"


@pytest.fixture
def bench(tmp_path: Path, run: Callable[..., Run]) -> Callable[..., Run]:
    """Runs `kopt bench` on a function that is right, on the CPU."""
    (tmp_path / "home").mkdir()
    for name in ("k.py", "r.py"):
        (tmp_path / name).write_text(ADD)
    (tmp_path / "shapes.json").write_text("[[8, 64], [8, 64]]")
    words = ("k.py", "--ref", "r.py", "--inputs", "shapes.json", "--allow-library", "--device", "cpu", "--json")
    return lambda *more: run(tmp_path / "home", "bench", *words, *more, cwd=tmp_path)


def test_a_report_of_a_run_on_the_cpu(bench: Callable[..., Run], tmp_path: Path) -> None:
    done = bench("--report", "benchmark.md", "--receipt", "receipt.json")
    assert done.code == 0, done.out + done.err
    text = (tmp_path / "benchmark.md").read_text("utf-8")
    assert text == render(parse((tmp_path / "receipt.json").read_bytes()))
    assert "N/A: no time was taken." in text
    assert done.json["data"]["timing"] is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--report", "k.py"), "report_exists"),
        (("--report", "no/benchmark.md"), "report_folder"),
        (("--plot", "samples.pdf"), "plot_format"),
        (("--plot", "samples.svg"), "nothing_to_plot"),
        (("--report", "same.json", "--receipt", "same.json"), "one_file_twice"),
    ],
)
def test_what_is_refused_before_the_run(
    words: tuple[str, ...], code: str, bench: Callable[..., Run], tmp_path: Path
) -> None:
    done = bench(*words)
    assert done.code == 2
    (error,) = json.loads(done.out)["errors"]
    assert error["code"] == code
    assert error["hint"]
    assert not (tmp_path / "home" / "receipts").exists()
    assert (tmp_path / "k.py").read_text() == ADD


@pytest.mark.slow
def test_both_files_of_a_timed_receipt(tmp_path: Path) -> None:
    report, plot = tmp_path / "benchmark.md", tmp_path / "samples.svg"
    check_files(tmp_path / "receipt.json", report, plot, "cuda:0")
    assert write_files(timed_receipt(), report, plot) == []
    assert report.read_text("utf-8").startswith(MARK)
    assert PLOT_MARK in plot.read_text("utf-8")
    check_files(tmp_path / "receipt.json", report, plot, "cuda:0")  # one's own may be overwritten


def test_a_plot_of_nothing_is_a_warning(tmp_path: Path) -> None:
    """A candidate that was rejected before it could be timed."""
    plot = tmp_path / "samples.png"
    assert write_files(receipt(), None, plot) == [f"{plot} was not written: nothing was timed"]
    assert not plot.exists()


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    check_files(None, None, None, "cpu")
    assert write_files(timed_receipt(), None, None) == []
    assert list(tmp_path.iterdir()) == []


def test_one_file_under_two_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_files(None, tmp_path / "a.svg", tmp_path / "x" / ".." / "a.svg", "cuda:0")
    assert caught.value.code == "one_file_twice"
