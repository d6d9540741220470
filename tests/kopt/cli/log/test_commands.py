"""`kopt log` as a user types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.document import render
from evaluator.store.seal import ensure_key, seal
from kopt.services.results.experiments import ImportData, LogListData, LogShowData, RecommendData
from tests.conftest import Run, run_kopt
from tests.evaluator.receipts import receipt as any_receipt
from tests.kbs.experience.transfer.test_other_logs import PUBLIC_LOG
from tests.kopt.test_imports import HEAVY, PROBE

pytestmark = pytest.mark.processes

Log = Callable[..., Run]
WIDE = ("Load 16 bytes a thread", "--kernel", "softmax.py", "--chip", "H200", "--bottleneck", "memory", "--method",
        "Vectorized access", "--dims", "M=4096,N=8192", "--dtype", "bf16", "--backend", "triton")  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Runs `kopt log` on a KOPT_HOME of its own."""
    home = tmp_path / "home"
    home.mkdir()
    return lambda *words, **more: run_kopt(home, "log", *words, **more)


def data(done: Run, code: int = 0) -> Any:
    """What a command printed with --json."""
    assert done.code == code, (done.code, done.out, done.err)
    return done.json["data"]


def added(log: Log, *words: str) -> str:
    """The id of an added experiment."""
    found = data(log("add", *words, "--json"))
    assert found["added"]
    return str(found["entry"]["experiment"]["id"])


def test_add_list_show_search(log: Log) -> None:
    id = added(log, *WIDE, "--outcome", "success", "--speedup", "1.3", "--lesson", "Rows must be even.")
    listed = LogListData.model_validate(data(log("list", "--op", "softmax", "--json")))
    one = listed.entries[0].experiment
    assert (listed.total, one.gpu, one.bottleneck_before) == (1, "h200-sxm", "memory-bound")
    assert (one.methods, one.provenance.value, one.op) == (("vectorized_access",), "reported", "softmax")
    shown = log("show", id[:12])
    assert "Rows must be even." in shown.out
    assert "1.3x" in shown.out
    assert f"log/{id}" in log("search", "16", "bytes").out
    assert "None of 1 experiment fits." in log("search", "nowhere").out
    assert data(log("list", "--chip", "B200", "--json"))["total"] == 0


def test_its_reference_shows_a_record_and_is_checked(log: Log, tmp_path: Path) -> None:
    id = added(log, *WIDE, "--outcome", "success", "--speedup", "1.3")
    home = tmp_path / "home"
    shown, same = run_kopt(home, "show", f"log/{id}"), log("show", id)
    assert (shown.code, shown.out) == (0, same.out)
    found = run_kopt(home, "show", f"log/{id}", "--json")
    assert LogShowData.model_validate(found.json["data"]).entry.experiment.id == id
    assert run_kopt(home, "cite", f"speedup: 1.3x <- log/{id}").code == 0
    assert run_kopt(home, "cite", f"speedup: 1.4x <- log/{id}").code == 4
    unknown = run_kopt(home, "show", "log/01ZZZZZZZZ", "--json")
    assert (unknown.code, unknown.json["errors"][0]["code"]) == (2, "log_unknown")
    page = run_kopt(home, "wiki", "show", f"log/{id}", "--json")
    assert (page.code, "kopt show log/ID" in page.json["errors"][0]["hint"]) == (2, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("cite", "log/01ZZZZZZZZ"), 4),
        (("show", "log/01ZZZZZZZZ"), 2),
        (("log", "list"), 0),
        (("log", "show", "01ZZZZZZZZ"), 2),
        (("log", "search", "softmax"), 0),
        (("log", "stats"), 0),
        (("log", "recommend", "--kernel", "softmax"), 3),
        (("log", "merge"), 0),
        (("log", "export"), 0),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_question_leaves_nothing_where_no_log_is(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    done = run_kopt(tmp_path / "home", *words, cwd=tmp_path)
    assert (done.code, list(tmp_path.iterdir())) == (code, []), done.err


def test_recommend_from_what_was_added(log: Log) -> None:
    empty = log("recommend", "--kernel", "softmax", "--json")
    assert data(empty, 3)["why"]
    for _ in range(4):
        added(log, *WIDE, "--outcome", "success", "--speedup", "1.4")
    asked = ("--kernel", "softmax", "--backend", "triton", "--chip", "H200", "--bottleneck", "memory")
    done = log("recommend", *asked, "--dims", "M=4096,N=8192", "--dtype", "bf16", "--explain", "--json")
    found = RecommendData.model_validate(data(done))
    assert found.recommended[0].method == "vectorized_access"
    assert found.recommended[0].records[0].reference.startswith("log/")
    assert found.recommended[0].factors
    assert "similarity" in log("recommend", *asked).out
    far = log("recommend", "--kernel", "matmul", "--chip", "H200", "--json")
    assert data(far, 3)["recommended"] == []


def test_masked_ones_are_left_out(log: Log) -> None:
    id = added(log, *WIDE, "--outcome", "success", "--speedup", "1.4")
    assert data(log("mask", id, "--why", "another program ran", "--json"))["changed"]
    assert not data(log("mask", id, "--why", "again", "--json"))["changed"]
    assert data(log("list", "--json"))["total"] == 0
    assert data(log("list", "--masked", "--json"))["total"] == 1
    assert data(log("recommend", "--kernel", "softmax", "--json"), 3)["recommended"] == []
    assert data(log("stats", "--json"))["masked"] == 1
    assert data(log("unmask", id, "--why", "measured again", "--json"))["changed"]
    assert data(log("list", "--json"))["total"] == 1


def test_stats_and_export_and_import(log: Log, tmp_path: Path) -> None:
    added(log, *WIDE, "--outcome", "success", "--speedup", "1.4")
    added(log, *WIDE, "--outcome", "incorrect")
    (method,) = data(log("stats", "--json"))["by"]["method"]
    assert (method["experiments"], method["outcomes"]["incorrect"], method["median"]) == (2, 1, 1.4)
    assert "50%" in log("stats").out
    for form in ("json", "csv"):
        file = tmp_path / f"out.{form}"
        assert data(log("export", "--format", form, "--output", str(file), "--json"))["experiments"] == 2
        assert log("export", "--format", form).out.replace("\r\n", "\n") == file.read_text("utf-8").replace(
            "\r\n", "\n"
        )
        again = data(log("import", str(file), "--json"))
        assert (again["added"], len(again["there"]), again["problems"]) == ([], 2, [])
        other = run_kopt(tmp_path, "log", "import", str(file), "--json", env={"KOPT_EXPERIENCE": str(tmp_path / form)})
        assert len(data(other)["added"]) == 2


def test_questions_about_the_log_have_the_same_filters(log: Log) -> None:
    added(log, *WIDE, "--outcome", "success", "--speedup", "1.3", "--run", "r-1", "--iteration", "1")
    added(log, "Load fewer bytes", "--kernel", "gemm.py", "--outcome", "neutral", "--dtype", "fp32")
    words = {"op": "softmax", "kernel": "softmax.py", "backend": "triton", "chip": "H200", "bottleneck": "memory",
             "dtype": "bf16", "method": "vectorized_access", "outcome": "success", "run": "r-1"}  # fmt: skip
    for name, value in words.items():
        chosen = (f"--{name}", value, "--provenance", "reported", "--since", "2026-02-28", "--until", "2099")
        for ask in (("list",), ("search", "bytes"), ("stats",)):
            found = data(log(*ask, *chosen, "--json"))
            assert (name, ask, found.get("total", found.get("experiments"))) == (name, ask, 1)
        assert len(json.loads(log("export", *chosen).out)["records"]) == 1


def test_an_export_overwrites_nothing_but_an_export(log: Log, tmp_path: Path) -> None:
    added(log, *WIDE, "--outcome", "neutral")
    mine = tmp_path / "mine.json"
    mine.write_text('{"kind": "mine"}')
    done = log("export", "--output", str(mine), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "output_exists")
    assert mine.read_text() == '{"kind": "mine"}'
    for form in ("json", "csv"):
        file = tmp_path / f"export.{form}"
        for _ in range(2):
            assert log("export", "--format", form, "--output", str(file)).code == 0
        other = "csv" if form == "json" else "json"
        assert log("export", "--format", other, "--output", str(file)).code == 2


def test_import_lists_and_counts_what_it_cannot_keep(log: Log, tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    one = {"kernel": "softmax", "date": "2026-01-01", "optimization": "x", "outcome": "odd"}
    file.write_text(json.dumps([one, one, {**one, "date": "2999-01-01"}, {"date": "2026-01-01"}]))
    done = log("import", str(file))
    assert done.code == 4
    assert "record 3: left out: its date, 2999-01-01T00:00:00Z, lies in the future" in done.out
    assert "record 1: outcome: odd is none of" in done.out
    assert "4 records read: 1 added, 1 were there already, 2 left out; 1 unmeasured" in done.out
    found = ImportData.model_validate(data(log("import", str(file), "--json"), 4))
    counts = found.counts
    assert (counts.records, counts.added, counts.there, counts.left_out) == (4, 0, 2, 2)
    assert (counts.outcomes, counts.methods, len(found.left_out)) == ({"unmeasured": 1}, {"unmapped": 1}, 2)
    assert log("import", str(tmp_path / "nothing")).code == 2


def test_a_public_log_is_imported_whole_and_found(pristine_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(pristine_home, tmp_path / "home"))
    found = ImportData.model_validate(data(run_kopt(home, "log", "import", str(PUBLIC_LOG), "--json")))
    assert (found.counts.records, found.counts.added, found.problems) == (43, 43, [])
    assert found.counts.outcomes == {"success": 14, "regression": 14, "neutral": 15}
    softmax = {
        entry["reference"] for entry in data(run_kopt(home, "log", "list", "--op", "softmax", "--json"))["entries"]
    }
    assert len(softmax) == 10
    advice = data(run_kopt(home, "log", "recommend", "--kernel", "softmax", "--json"))
    assert {one["method"] for one in advice["recommended"]} >= {"warp_shuffle", "tiling_smem"}
    assert advice["recommended"][0]["records"][0]["reference"] in softmax
    assert "launch_config" in [one["method"] for one in advice["failures"]]
    asked = run_kopt(home, "ask", "what did we learn about softmax", "--json")
    assert asked.code == 0
    assert {entry["reference"] for entry in asked.json["data"]["experiments"]} <= softmax
    assert "10 experiments: 2 success, 3 neutral, 5 regression" in json.dumps(asked.json["data"])


def test_ask_cites_kernels_whatever_they_are_called(pristine_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(pristine_home, tmp_path / "home"))
    file = tmp_path / "theirs.json"
    names = ["Flash Decode v2", "fused add thing", "2.1 History", "speedup"]
    file.write_text(json.dumps([{"kernel": name, "change": "warp specialization", "speedup": 1.2} for name in names]))
    assert data(run_kopt(home, "log", "import", str(file), "--json"))["counts"]["added"] == 4
    asked = run_kopt(home, "ask", "did warp specialization help", "--json")
    assert (asked.code, len(asked.json["data"]["experiments"]) > 0) == (0, True)
    file.write_text("foo,bar\n1,2\n")
    refused = run_kopt(home, "log", "import", str(file), "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (4, "import_format")


def test_a_method_in_words_is_the_registrys(log: Log) -> None:
    words = ("Tiles", "--kernel", "gemm", "--outcome", "success", "--speedup", "1.2")
    added(log, *words, "--method", "shared-memory-tiling{tile-size=16}")
    (entry,) = data(log("list", "--method", "Shared memory tiling", "--json"))["entries"]
    one = entry["experiment"]
    assert (one["methods"], one["parameters"]) == (["tiling_smem"], {"tile_size": "16"})
    assert "tile_size=16" in log("show", one["id"]).out


def test_a_receipt_makes_it_measured(log: Log, tmp_path: Path) -> None:
    home = tmp_path / "home"
    sealed = seal(any_receipt(), ensure_key(home))
    file = tmp_path / "receipt.json"
    file.write_bytes(render(sealed))
    done = log("add", "Nothing", "--receipt", str(file), "--outcome", "success", "--json")
    one = data(done)["entry"]["experiment"]
    assert (one["provenance"], one["receipt"], one["kernel"]) == ("measured", sealed.id, sealed.candidate.name)
    assert one["outcome"] == "unmeasured", "no time was compared"
    assert "outcome is taken from the receipt" in done.json["warnings"]
    boast = log("add", "Faster", "--receipt", str(file), "--speedup", "5", "--chip", "H200", "--json")
    assert not data(boast)["added"]
    assert {"speedup is left out: the receipt has none", "gpu is taken from the receipt"} <= {*boast.json["warnings"]}
    assert not data(log("add", "Again", "--receipt", str(file), "--json"))["added"]
    file.write_bytes(file.read_bytes().replace(b"accepted", b"incorrect", 1))
    refused = log("add", "Forged", "--receipt", str(file), "--json")
    assert refused.code == 2
    assert refused.json["errors"][0]["code"] == "receipt_refused"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("add", "", "--kernel", "k", "--outcome", "neutral"), "experiment_invalid"),
        (("add", "x", "--kernel", "k"), "experiment_invalid"),
        (("add", "x", "--kernel", "k", "--outcome", "great"), "experiment_invalid"),
        (("list", "--op", "nothing"), "op_unknown"),
        (("list", "--outcome", "great"), "outcome_unknown"),
        (("list", "--since", "yesterday"), "since_unknown"),
        (("list", "--since", "2026-13"), "since_unknown"),
        (("search", "x", "--until", "2026-02-30"), "until_unknown"),
        (("stats", "--since", "2026-02-28T24"), "since_unknown"),
        (("stats", "--bottleneck", "sorrow"), "bottleneck_unknown"),
        (("show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), "log_unknown"),
        (("mask", "nothing", "--why", "x"), "log_unknown"),
        (("export",), "no_output"),
        (("export", "--format", "xml"), "format_unknown"),
        (("recommend", "--kernel", "softmax", "--bottleneck", "sorrow"), "bottleneck_unknown"),
        (("sync",), "no_repository"),
    ],
)
def test_words_that_make_no_sense(log: Log, words: tuple[str, ...], code: str) -> None:
    done = log(*words, "--json")
    assert done.code == 2, done.out
    (error,) = done.json["errors"]
    assert (error["code"], bool(error["hint"])) == (code, True)


def test_a_torn_line_and_a_broken_one_are_warned_of(log: Log, tmp_path: Path) -> None:
    added(log, *WIDE, "--outcome", "neutral")
    (file,) = (tmp_path / "home" / "experience").glob("*.jsonl")
    with file.open("a") as stream:
        stream.write("nonsense\n{")
    for words in (("list",), ("search", "loads"), ("export", "--output", str(tmp_path / "out.json"))):
        warnings = log(*words, "--json").json["warnings"]
        assert any(":2:" in warning for warning in warnings), words
        assert any("not complete" in warning for warning in warnings), words
    done = log("add", *WIDE, "--outcome", "neutral", "--json")
    assert any("set aside" in warning for warning in done.json["warnings"])
    assert data(log("list", "--json"))["total"] == 2


def test_two_clones_through_the_command(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", "s.git"], cwd=tmp_path, check=True)
    for name in ("a", "b"):
        subprocess.run(["git", "clone", "--quiet", "s.git", name], cwd=tmp_path, check=True, capture_output=True)
        subprocess.run(["git", "checkout", "--quiet", "-B", "main"], cwd=tmp_path / name, check=True)
        where = {"KOPT_EXPERIENCE": str(tmp_path / name)}
        assert run_kopt(tmp_path, "log", "add", *WIDE, "--outcome", "neutral", env=where).code == 0
        done = run_kopt(tmp_path, "log", "sync", "--json", env=where)
        assert data(done)["pushed"] >= 1
    assert data(done)["experiments"] == 2


def test_heavy_packages_stay_out_of_the_log(tmp_path: Path) -> None:
    for words in (["log", "list"], ["log", "stats"], ["log", "recommend", "--kernel", "softmax"]):
        done = subprocess.run(
            [sys.executable, "-c", PROBE.format(words=words, heavy=HEAVY)],
            env={**os.environ, "KOPT_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        [line] = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
        assert line.split()[2:] == [], words
