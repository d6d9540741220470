"""Finding a report: a CSV, a folder, a .ncu-rep through ncu or NVIDIA's package, and what to do without either."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluator.profiling import ncu_package
from evaluator.profiling import ncu_report as ncu_report_file
from evaluator.profiling.ncu_report import RAW, report_csv
from evaluator.profiling.profile import read_profile
from kbs.common.errors import ConfigurationError, KoptError
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv

CSV = raw_csv(("k(int)", SOFTMAX))


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A .ncu-rep, on a machine with neither ncu nor the package."""
    file = tmp_path / "a report.ncu-rep"
    file.write_bytes(b"NVR\x00 and so on")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(ncu_report_file.importlib.util, "find_spec", lambda _: None)
    return file


def fake_ncu(folder: Path, script: str) -> None:
    """An ncu on the PATH."""
    ncu = folder / "bin" / "ncu"
    ncu.parent.mkdir()
    ncu.write_text(f"#!{sys.executable}\nimport os, sys\n{script}")
    ncu.chmod(0o755)


def test_a_csv_and_a_folder_of_kopt(tmp_path: Path) -> None:
    (tmp_path / RAW).write_text(CSV)
    assert report_csv(tmp_path / RAW) == report_csv(tmp_path) == (CSV.encode(), RAW)


def test_without_ncu_the_export_command_is_said(report: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        report_csv(report)
    assert caught.value.code == "ncu_missing"
    assert "ncu --import a report.ncu-rep --csv --page raw > a report.csv" in caught.value.hint
    assert "kopt[ncu]" in caught.value.hint


@pytest.mark.processes
def test_an_installed_ncu_exports_in_base_units_and_a_plain_locale(report: Path, tmp_path: Path) -> None:
    fake_ncu(
        tmp_path,
        f"assert sys.argv[1:] == ['--import', {str(report)!r}, '--csv', '--page', 'raw', '--print-units', 'base']\n"
        f"assert os.environ['LC_ALL'] == 'C'\nprint({CSV!r}, end='')",
    )
    data, name = report_csv(report)
    assert name == report.name
    assert read_profile(data, name).launches[0].kernel == "k(int)"


@pytest.mark.processes
def test_an_old_ncu_has_another_option_for_units(report: Path, tmp_path: Path) -> None:
    fake_ncu(
        tmp_path,
        f"if '--print-units' in sys.argv: sys.exit(\"unrecognised option '--print-units'\")\n"
        f"assert sys.argv[-2:] == ['--units', 'base']\nprint({CSV!r}, end='')",
    )
    assert report_csv(report)[0] == CSV.encode()


@pytest.mark.processes
@pytest.mark.parametrize("script", ["sys.exit('broken file')", "pass"])
def test_what_ncu_cannot_read_is_damaged(report: Path, tmp_path: Path, script: str) -> None:
    fake_ncu(tmp_path, script)
    with pytest.raises(KoptError) as caught:
        report_csv(report)
    assert caught.value.code == "report_damaged"


@pytest.mark.processes
def test_the_package_is_asked_where_ncu_is_not(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu_report_file.importlib.util, "find_spec", lambda _: object())
    asked = tmp_path / "reader.py"
    asked.write_text(f"import sys\nassert sys.argv[1:] == [{str(report)!r}]\nprint({CSV!r}, end='')")
    monkeypatch.setattr(ncu_package, "__file__", str(asked))
    assert report_csv(report)[0] == CSV.encode()
    asked.write_text("import os\nos.abort()")
    with pytest.raises(KoptError) as caught:
        report_csv(report)
    assert caught.value.code == "report_damaged"


def test_reports_of_nsight_systems_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.nsys-rep").write_bytes(b"x")
    for path, code in (("a.nsys-rep", "report_of_another_tool"), ("b.csv", "file_not_found"), (".", "file_not_found")):
        with pytest.raises(KoptError) as caught:
            report_csv(tmp_path / path)
        assert caught.value.code == code


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.csv").chmod(0)
    with pytest.raises(KoptError) as caught:
        report_csv(tmp_path / "a.csv")
    assert caught.value.code == "file_unreadable"


class _Metric:
    def __init__(self, value: Any, unit: str) -> None:
        self._value, self._unit = value, unit

    def has_value(self) -> bool:
        return self._value is not None

    def value(self) -> Any:
        return self._value

    def unit(self) -> str:
        return self._unit


class _Action:
    NameBase_DEMANGLED = 1

    def __init__(self, name: str, metrics: dict[str, tuple[Any, str]]) -> None:
        self._name, self._metrics = name, metrics

    def name(self, base: int) -> str:
        assert base == self.NameBase_DEMANGLED
        return self._name

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def metric_by_name(self, name: str) -> _Metric | None:
        return _Metric(*self._metrics[name]) if name in self._metrics else None


class _Report:
    """As `ncu_report.load_report` returns one: a list of lists of actions."""

    def __init__(self, *ranges: list[_Action]) -> None:
        self._ranges = ranges

    def num_ranges(self) -> int:
        return len(self._ranges)

    def range_by_idx(self, index: int) -> Any:
        actions = self._ranges[index]

        class Range:
            def num_actions(self) -> int:
                return len(actions)

            def action_by_idx(self, index: int) -> _Action:
                return actions[index]

        return Range()


def test_what_the_package_prints_is_read_as_what_ncu_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics: dict[str, tuple[Any, str]] = {
        "gpu__time_duration.sum": (128512, "nsecond"),
        "launch__block_dim_x": (256, ""), "launch__block_dim_y": (1, ""), "launch__block_dim_z": (1, ""),
        "device__attribute_compute_capability_major": (9, ""), "device__attribute_compute_capability_minor": (0, ""),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": (31.400000000000002, "%"),
        "lts__t_sector_hit_rate.pct": (None, "%"),
    }  # fmt: skip
    made = _Report([_Action("first(int)", metrics)], [_Action("second(int)", {"dram__bytes_read.sum": (7, "byte")})])
    module = type(sys)("ncu_report")
    module.load_report = lambda _: made  # type: ignore[attr-defined]  # a made-up module
    monkeypatch.setitem(sys.modules, "ncu_report", module)
    assert ncu_package.main("x.ncu-rep") == 0
    first, second = read_profile(capsys.readouterr().out.encode(), "x.ncu-rep").launches
    assert (first.kernel, first.capability, first.head["Block Size"]) == ("first(int)", "9.0", "(256, 1, 1)")
    assert str(first.value("duration")) == "128.512"
    assert first.value("l2_hit_rate") is None
    assert second.value("duration") is None
    assert second.value("dram_bytes_read") == 7
    module.load_report = lambda _: _Report()  # type: ignore[attr-defined]  # likewise
    assert ncu_package.main("x.ncu-rep") == ncu_package.NOTHING_IN_IT
