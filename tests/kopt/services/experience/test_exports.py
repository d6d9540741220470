"""Exports of the log: what comes back, what other tools read, and what must not stand in one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kbs.common.errors import ConfigurationError, UsageError
from kbs.experience.experiment import Experiment
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.experience.transfer.import_export import columns, read
from kopt.services.experience.exports import BINARY, FORMATS, export_log
from kopt.services.settings import LoadedSettings, load_settings
from tests.kbs.experience.records import experiment, measured

EVERY = Filter(masked=None)
SECRET = "sk-proj-0123456789abcdef"
RECORDS = (
    experiment(id="01M7000000000000000000000A", lesson="=1+1", hypothesis='-2 "a", line\nbroken', run="r", iteration=3),
    experiment(id="01M7000000000000000000000B", metrics_before={"dram_throughput": "12.5"}, parameters={"tile": "16"}),
    experiment(id="01M7000000000000000000000C", outcome="incorrect", speedup=None, kernel="@evil", dims={}),
    measured("b", id="01M7000000000000000000000D", evidence=("gpu-wiki/kernel/softmax.md:L34",)),
)  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> ExperienceLog:
    made = ExperienceLog(tmp_path / "log", tmp_path / "home")
    made.append(list(RECORDS))
    made.mask("01M7000000000000000000000C", True, "+measured on a busy GPU")
    return made


@pytest.fixture
def settings(tmp_path: Path) -> LoadedSettings:
    return load_settings({}, tmp_path, tmp_path / "home")


def entries(log: ExperienceLog) -> list[Any]:
    with log.index() as index:
        return list(index.entries(EVERY))


def exported(log: ExperienceLog, format: str, settings: LoadedSettings, **more: Any) -> Any:
    made, count = export_log(log, EVERY, format, more.get("output"), settings)
    assert count == len(entries(log))
    return made


@pytest.mark.parametrize("format", ["json", "jsonl", "csv"])
def test_an_own_export_comes_back_as_it_was(
    format: str, log: ExperienceLog, settings: LoadedSettings, tmp_path: Path
) -> None:
    file = tmp_path / f"out.{format}"
    exported(log, format, settings, output=file)
    found = read(file, lambda _: "")
    assert found.problems == ()
    other = ExperienceLog(tmp_path / "other", tmp_path / "home")
    other.take(found)
    assert entries(other) == entries(log)
    if format == "jsonl":
        lines = file.read_text("utf-8").splitlines()
        assert [Experiment.model_validate(json.loads(line)["experiment"]) for line in lines] == list(RECORDS)
        file.write_text(lines[0] + "\n", "utf-8")
        assert read(file, lambda _: "").experiments == RECORDS[:1]


def test_no_cell_is_a_formula(log: ExperienceLog, settings: LoadedSettings) -> None:
    import csv
    import io

    rows = list(csv.reader(io.StringIO(exported(log, "csv", settings).decode(), newline="")))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert any("'=1+1" in row for row in rows)


def test_parquet_has_the_columns_of_the_table(log: ExperienceLog, settings: LoadedSettings, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    with pytest.raises(UsageError, match="no text"):
        exported(log, "parquet", settings)
    exported(log, "parquet", settings, output=file)
    table = parquet.read_table(file)
    assert table.column_names == columns()
    rows = table.to_pylist()
    for row, entry in zip(rows, entries(log), strict=True):
        one = entry.experiment
        assert (row["id"], row["lesson"], row["masked"], row["why"]) == (one.id, one.lesson, entry.masked, entry.why)
        assert json.loads(row["dims"]) == one.dims
        assert row["iteration"] == one.iteration
        assert row["speedup_median"] == (one.speedup.median if one.speedup else None)
    exported(log, "parquet", settings, output=file)  # its own is written over


def test_without_pyarrow_the_error_names_the_extra(
    log: ExperienceLog, settings: LoadedSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError) as error:
        exported(log, "parquet", settings, output=tmp_path / "out.parquet")
    assert error.value.code == "extra_missing"
    assert "kopt[parquet]" in error.value.hint
    assert not (tmp_path / "out.parquet").exists()


def test_mlflow_has_a_run_an_experiment(log: ExperienceLog, settings: LoadedSettings) -> None:
    document = json.loads(exported(log, "mlflow", settings))
    for run, entry in zip(document["runs"], entries(log), strict=True):
        one, info, data = entry.experiment, run["info"], run["data"]
        params = {row["key"]: row["value"] for row in data["params"]}
        tags = {row["key"]: row["value"] for row in data["tags"]}
        metrics = {row["key"]: row["value"] for row in data["metrics"]}
        assert info["run_id"] == one.id
        assert info["lifecycle_stage"] == ("deleted" if entry.masked else "active")
        assert params["kernel"] == one.kernel
        assert {name: params[f"dims.{name}"] for name in one.dims} == {k: str(v) for k, v in one.dims.items()}
        assert (tags["outcome"], tags["provenance"]) == (one.outcome.value, one.provenance.value)
        assert metrics.get("speedup") == (one.speedup.median if one.speedup else None)
        assert all(isinstance(value, float) for value in metrics.values())
        assert all(isinstance(value, str) for value in (*params.values(), *tags.values()))
        assert all(row["timestamp"] == info["start_time"] for row in data["metrics"])


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_secret_stands_in_no_export(
    format: str, tmp_path: Path, log: ExperienceLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("KOPT_CHROMA_TOKEN", f"token-{SECRET}")
    monkeypatch.setenv("KOPT_CHROMA_HEADERS", json.dumps({"X-Key": f'quo"ted-{SECRET[3:]}'}))
    said = f'OPENAI_API_KEY={SECRET} token-{SECRET} quo"ted-{SECRET[3:]}'
    log.append([experiment(id="01M7000000000000000000000E", observed=said, source=said[:60], parameters={"k": SECRET})])
    file = tmp_path / f"out.{format}"
    export_log(log, EVERY, format, file, load_settings({}, tmp_path, tmp_path / "home"))
    text = str(parquet.read_table(file).to_pylist()) if format in BINARY else file.read_text("utf-8")
    assert "[a secret]" in text
    assert SECRET not in text
    assert SECRET[3:] not in text


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_but_an_export_is_written_over(
    format: str, log: ExperienceLog, settings: LoadedSettings, tmp_path: Path
) -> None:
    for number, mine in enumerate((b'{"kind": "mine"}', b"PAR1 mine PAR1", b"id,time\n")):
        file = tmp_path / f"mine-{number}"
        file.write_bytes(mine)
        with pytest.raises(UsageError) as error:
            exported(log, format, settings, output=file)
        assert error.value.code == "output_exists"
        assert file.read_bytes() == mine
