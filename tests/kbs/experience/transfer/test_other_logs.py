"""Logs as people and other tools write them: each record is kept, was there, or is left out with a reason."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.records import page_of
from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import words
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.experience.transfer.import_export import Import, read

PUBLIC_LOG = Path(__file__).parent / "data" / "public_log.json"
"""43 records in the form of a public log: most fields empty, methods in free text, `failure` for what became slower."""
ONE = {
    "kernel": "softmax",
    "date": "2026-03-01",
    "optimization": "vectorized loads",
    "outcome": "success",
    "speedup": 2,
}


def taken(folder: Path, text: str | list[Any] | dict[str, Any], name: str = "log.json") -> Import:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8", newline="")
    return read(path, lambda _: "")


def only(folder: Path, **fields: Any) -> Experiment:
    (one,) = taken(folder, [{**ONE, **fields}]).experiments
    return one


def test_a_public_log_is_kept_whole(tmp_path: Path) -> None:
    found = read(PUBLIC_LOG, lambda _: "")
    stated = Counter(one["outcome"] for one in json.loads(PUBLIC_LOG.read_text("utf-8")))
    counted = Counter(one.outcome.value for one in found.experiments)
    assert (len(found.experiments), found.problems) == (43, ())
    assert counted == {"success": stated["success"], "regression": stated["failure"], "neutral": stated["neutral"]}
    tiled = [one for one in found.experiments if one.parameters == {"tile_size": "16"}]
    assert [one.methods for one in tiled] == [("tiling_smem",)] * 2
    assert {one.capability for one in found.experiments} == {"8.6"}
    assert [one.iteration for one in found.experiments if one.op == "layernorm"] == [1, 2, 3, 4, 5]
    (unknown,) = [one for one in found.experiments if one.methods == ("unmapped",)]
    log = ExperienceLog(tmp_path / "log", tmp_path)
    assert len(log.take(found).added) == 43
    assert len(log.take(found).there) == 43
    with log.index() as index:
        assert [entry.experiment for entry in index.entries(Filter(method="unmapped"))] == [unknown]
    _, (passage, *_) = page_of(Entry(unknown))
    assert {"unmapped", "builtin"} <= set(words(passage.text)), "a search finds it"


@pytest.mark.parametrize(
    ("outcome", "speedup", "kept"),
    [
        ("failure", 0.96, ("regression", 0.96)),
        ("failure", 1.0, ("neutral", 1.0)),
        ("failure", None, ("failed", None)),
        ("failure", 1.5, ("failed", None)),
        ("crashed", 0.5, ("failed", None)),
        ("reverted", 0.9, ("regression", 0.9)),
        ("rejected", 0.9, ("rejected", 0.9)),
        ("wrong", 0.5, ("incorrect", None)),
        ("success", None, ("success", None)),
        ("success", 0.8, ("regression", 0.8)),
        ("improved", 0.8, ("unmeasured", None)),
        ("neutral", 0.97, ("neutral", 0.97)),
        (None, 1.2, ("success", 1.2)),
        (None, 0.8, ("regression", 0.8)),
        (None, None, ("unmeasured", None)),
        ("passed", None, ("unmeasured", None)),
        ("passed", 1.1, ("success", 1.1)),
        ("splendid", None, ("unmeasured", None)),
        (True, 1.1, ("success", 1.1)),
        ("✅", "1.10x", ("success", 1.1)),
    ],
)
def test_word_and_ratio_say_the_outcome(
    tmp_path: Path, outcome: Any, speedup: Any, kept: tuple[str, float | None]
) -> None:
    one = only(tmp_path, outcome=outcome, speedup=speedup)
    assert (one.outcome.value, one.speedup and one.speedup.median) == kept


def test_what_nobody_wrote_down_stays_open(tmp_path: Path) -> None:
    one = only(tmp_path, optimization="", hypothesis="—", notes="N/A", chip="unknown", iteration="-", dims={})
    assert (one.methods, one.optimization, one.iteration, one.gpu) == (("unmapped",), "not stated", None, "")
    found = taken(tmp_path, [{"kernel": "softmax", "mood": "good"}, {"kernel": "x", "outcome": "ok?"}, 7, "text"])
    assert (found.experiments, len(found.left_out)) == ((), 4)
    assert "it says neither what was tried nor what came of it" in found.left_out[0]


def test_a_record_without_a_date_is_of_the_files_day_and_keeps_its_id(tmp_path: Path) -> None:
    first = only(tmp_path, date=None)
    (tmp_path / "log.json").touch()
    again = only(tmp_path, date=None)
    assert first.id == again.id
    assert first.time <= datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_date_in_the_future_is_refused_in_every_form(tmp_path: Path) -> None:
    ahead = datetime.now(UTC) + timedelta(days=2)
    for date in (ahead.strftime("%Y-%m-%d"), ahead.isoformat(), ahead.timestamp()):
        found = taken(tmp_path, [ONE, {**ONE, "date": date}])
        assert (len(found.experiments), len(found.left_out)) == (1, 1)
        assert "lies in the future" in found.left_out[0]
    assert only(tmp_path, date=datetime.now(UTC).isoformat()).outcome == "success"
    exported = only(tmp_path).model_copy(update={"time": ahead.strftime("%Y-%m-%dT%H:%M:%SZ")})
    assert taken(tmp_path, exported.model_dump_json(), "own.jsonl").experiments == ()


MARKDOWN = """# What we tried

| Kernel | GPU | Technique | Speedup | Notes |
|---|:--:|---|--:|---|
| softmax | H200 | **vectorized loads** | 1.4x | wide \\| wider |
| matmul | H200 | `num_warps=8` | 0.9x | slower |

| name | meaning |
|---|---|
| x | y |
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.md", MARKDOWN),
        ("log.md", f"[![badge](x.svg)](y)\n{MARKDOWN}"),
        ("log.md", "## softmax [cuda] (1)\n\n|GPU|Optimization|Outcome|Speedup|Notes|\n|---|---|---|---|---|\n"
                   "|H200|vectorized loads|✓|1.4x|wide \\| wider|\n\n## gemm\n\n|GPU|Optimization|Outcome|Speedup|\n"
                   "|---|---|---|---|\n|H200|`num_warps=8`|✗|0.9x|\n"),
        ("log.csv", "Kernel,GPU,Technique,Speedup,Notes\nsoftmax,H200,vectorized loads,1.4x,wide | wider\n\n"
                    'matmul,H200,num_warps=8,0.9x,"slower"\n'),
        ("log.tsv", "kernel_name\tdevice\tmethod\tspeedup\tlesson\r\nsoftmax\tNVIDIA H200\tvectorized_access\t1.4\t"
                    "wide | wider\r\nmatmul\tH200\tnum_warps=8\t0.9\tslower\r\n"),
        ("log.json", json.dumps({"gpu": "H200", "version": 3, "runs": [
            {"kernel": "softmax", "trials": [{"change": "vectorized loads", "speedup": 1.4, "note": "wide | wider"}]},
            {"kernel": "matmul", "trials": [{"methods": ["num_warps=8"], "speedup": 0.9, "note": "slower"}]}]})),
        ("log.jsonl", '{"op": "softmax", "hardware": "h200", "what": "vectorized loads", "ratio": 1.4, "comment": '
                      '"wide | wider"}\n\n{"task": "matmul", "gpu": "H200", "strategy": "num_warps=8", "result": '
                      '"slower", "speedup": 0.9, "notes": ["slower"]}\n'),
    ],
)  # fmt: skip
def test_one_reader_for_many_forms(tmp_path: Path, name: str, text: str) -> None:
    found = taken(tmp_path, text, name)
    assert found.left_out == ()
    first, second = found.experiments
    assert (first.op, first.gpu, first.methods, first.lesson) == (
        "softmax", "h200-sxm", ("vectorized_access",), "wide | wider",
    )  # fmt: skip
    assert (second.op, second.outcome.value, dict(second.parameters)) == ("matmul", "regression", {"num_warps": "8"})
    assert second.methods == ("launch_config",)


def test_unknown_fields_are_told_once_and_records_twice_are_counted(tmp_path: Path) -> None:
    found = taken(tmp_path, [{**ONE, "mood": 1}, {**ONE, "mood": 2}, {**ONE, "speedup": 3, "mood": 1}])
    assert (len(found.experiments), found.repeated) == (3, 0), "they differ in a field, though in none that is read"
    assert taken(tmp_path, [ONE, ONE]).repeated == 1
    assert found.notes == ("mood: no field of a record; 3 records have it",)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "kernel\n", "words"])
def test_a_table_without_kernels_is_no_log(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        taken(tmp_path, text)
    assert caught.value.code == "import_format"


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(
    st.sampled_from([*ONE, "op", "methods", "chip", "dims", "notes", "x", "experiment", "kind"]), VALUES
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.builds(lambda whole, one: {**ONE, **one} if whole else one, st.booleans(), OBJECTS), max_size=4))
def test_each_object_of_a_file_is_counted(tmp_path: Path, objects: list[dict[str, Any]]) -> None:
    lines = "\n".join(json.dumps(one) for one in [ONE, ONE, *objects])
    found = taken(tmp_path, lines, "log.jsonl")
    flat = [one for one in objects if not any(isinstance(value, list | dict) for value in one.values())]
    assert len(found.experiments) + found.repeated + len(found.left_out) >= 2 + len(flat)
    assert all(note.isprintable() for note in found.problems)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from('|-kernel,;\t\n"{}[]:1x ='), max_size=80))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    with contextlib.suppress(UsageError):
        assert all(note.isprintable() for note in taken(tmp_path, text, "log.txt").problems)


def test_attempts_dated_in_their_headings_are_records_in_prose_too(tmp_path: Path) -> None:
    """Beside others that have bullets: what is told in sentences alone was lost, and nothing said so."""
    text = """# Softmax on an A100

## Attempt 1 (2025-10-02): vectorized loads

- Before: 214 us
- After: 96 us

## Attempt 2 (4.10.2025): larger tiles

Ran 12% slower than attempt 1. Reverted.

## Attempt 3 (27-Nov-2025): fp8

Kernel crashed with an illegal memory access.

## Attempt 4 (reverted): more warps

Tests pass.
"""
    found = taken(tmp_path, text, "log.md")
    made = {one.optimization: one for one in found.experiments}
    assert list(made) == ["vectorized loads", "larger tiles", "fp8", "more warps"]
    assert [str(one.time)[:10] for one in found.experiments[:3]] == ["2025-10-02", "2025-10-04", "2025-11-27"]
    outcomes = [one.outcome.value for one in found.experiments]
    assert outcomes[:3] == ["success", "regression", "failed"]
    assert outcomes[3] != "success"
    assert found.left_out == ()
