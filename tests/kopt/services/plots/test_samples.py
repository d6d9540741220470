"""The picture of the samples: it is drawn, always alike, and only where it may be."""

from __future__ import annotations

import importlib.util
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.receipt.timing import Series, Timing
from kbs.common.errors import ConfigurationError, ExitCode, UsageError
from kopt.services.plots.picture import check_plot
from kopt.services.plots.samples import MARK, MOST, draw, save_plot
from tests.evaluator.receipts import baseline, failed_baseline, series, timed, timing, workload_timing

NAMES = "$\\frac{1}{0}$ _hidden 核 \x1b[2J\n"


def texts(svg: bytes) -> list[str]:
    """What is written in a picture: matplotlib names each text in a comment."""
    return re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)


def strange() -> Timing:
    """Names that a drawing program would read as formulas, and times that cannot be spread."""
    odd = timed(NAMES, 5.0, series=Series(), late=0)
    one = timed("one", series=series(turns=1, restarts=1, dropped=("",)))
    gone = timed("gone", series=series(9e9, dropped=("late",) * 20))
    zero = timed("zero", 0.0)
    every = {found.name: baseline(timed=found) for found in (odd, one, gone, zero)}
    return timing(workload_timing(dims={NAMES: 1}, baselines={"eager": baseline(), **every}))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_same_times_give_the_same_bytes(format: str) -> None:
    found = draw(timing(), "kernel.py on NVIDIA H200", format)
    assert found == draw(timing(), "kernel.py on NVIDIA H200", format)
    assert MARK.encode() in found
    assert draw(timing(workload_timing(candidate=timed(us=99.0))), "kernel.py on NVIDIA H200", format) != found


@pytest.mark.processes
def test_another_process_draws_the_same() -> None:
    code = (
        "import sys; from kopt.services.plots.samples import draw; from tests.evaluator.receipts import timing;"
        " sys.stdout.buffer.write(draw(timing(), 'k', 'svg'))"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=root)
    assert done.stdout == draw(timing(), "k", "svg")


def test_no_date_and_no_version_stand_in_it() -> None:
    svg = draw(timing(), "k", "svg").decode()
    assert "<dc:date>" not in svg
    assert b"Software" not in draw(timing(), "k", "png")


def test_contenders_restarts_and_dropped_turns_are_drawn() -> None:
    svg = draw(timing(), "kernel.py on NVIDIA H200", "svg")
    said = texts(svg)
    assert "kernel.py on NVIDIA H200" in said
    assert {"median 136.0 µs, n 19", "median 178.5 µs, n 19", "median 136.7 µs, n 19"} <= set(said)
    assert "failed" in said
    assert said.count("restart 4") == 3, "three contenders have times"
    assert any(text.startswith("dropped turn") for text in said)
    turns = [
        len(re.findall("<use ", group)) for group in re.findall(r'(?s)<g id="line2d_\d+">.*?</g>\n *</g>', svg.decode())
    ]
    assert turns.count(4) >= 3 * 4, "four turns in each of the first four restarts"
    assert turns.count(3) >= 3, "three in the last one, of which one was dropped"


def test_several_workloads_are_told_apart() -> None:
    several = timing(
        workload_timing(dims={"n": 64}), workload_timing(dims={"n": 65}, baselines={"eager": failed_baseline("eager")})
        , against="", ratio=None)  # fmt: skip
    said = texts(draw(several, "k", "svg"))
    assert {"n=64: candidate", "n=64: compile", "n=65: candidate", "n=65: eager"} <= set(said)


@pytest.mark.slow
def test_many_workloads_are_cut_and_the_title_says_so() -> None:
    many = timing(*(workload_timing(dims={"n": n}, baselines={"eager": baseline()}) for n in range(MOST + 2)))
    assert f"k, the first {MOST} of {MOST + 2} workloads" in texts(draw(many, "k", "svg"))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["png", "svg"])
def test_strange_names_and_times_are_drawn(format: str) -> None:
    assert len(draw(strange(), NAMES, format)) > 1000


def test_a_png_is_as_large_as_it_should_be() -> None:
    width, height = struct.unpack(">II", draw(timing(), "k", "png")[16:24])
    assert 1000 < width < 4000
    assert 300 < height < 1000


def test_the_users_own_style_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    expected = draw(timing(), "k", "svg")
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 9.0)
    monkeypatch.setitem(matplotlib.rcParams, "axes.facecolor", "red")
    assert draw(timing(), "k", "svg") == expected


# --- where it is written ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samples.png", "samples.svg", "SAMPLES.PNG"])
def test_a_plot_is_written_and_written_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for _ in range(2):
        save_plot(path, timing(), "k")
    assert path.read_bytes() == draw(timing(), "k", path.suffix.lower()[1:])


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("samples.pdf", None, "plot_format"),
        ("samples", None, "plot_format"),
        ("no/samples.png", None, "plot_folder"),
        ("samples.png", b"\x89PNG\r\n\x1a\n", "plot_exists"),
        ("samples.svg", b"", "plot_exists"),
    ],
)
def test_where_it_may_not(name: str, content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        check_plot(path, MARK)
    assert caught.value.code == code
    assert "--plot" in caught.value.hint or "folder" in caught.value.hint
    assert content is None or path.read_bytes() == content


def test_without_matplotlib_it_is_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "matplotlib" else found(name, *more)
    )
    with pytest.raises(ConfigurationError) as caught:
        check_plot(tmp_path / "samples.png", MARK)
    assert caught.value.code == "matplotlib_missing"
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    assert "pip install 'kopt[plot]'" in caught.value.hint


@pytest.mark.processes
def test_a_command_that_draws_nothing_needs_no_matplotlib() -> None:
    modules = "kopt.services.plots.samples, kopt.services.bench.files"
    code = f"import sys; import {modules}; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
