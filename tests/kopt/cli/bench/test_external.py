"""`kopt bench external` as a user types it: a record of what a command printed, and marked so."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from evaluator.external.figure_text import UNITS, WORDS
from tests.conftest import Run

KERNEL = "def run(x):\n    return x\n"
Bench = Callable[..., Run]


@pytest.fixture
def bench(tmp_path: Path, run: Callable[..., Run]) -> Bench:
    """Runs `kopt bench` beside a kernel and the given benchmark."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "k.py").write_text(KERNEL)

    def bench(*words: str, benchmark: str = "") -> Run:
        (tmp_path / "b.py").write_text(benchmark)
        return run(home, "bench", *words, cwd=tmp_path)

    return bench


PYTHON = f"{sys.executable} b.py"
OWN = ("external", "k.py", "--command", PYTHON, "--json")


def data(result: Run) -> dict[str, Any]:
    """What stands under `data`."""
    found = result.json["data"]
    assert isinstance(found, dict), result.out + result.err
    assert found["evidence"] == "external"
    return found


def error(result: Run) -> str:
    """The code of the one error, which has a hint."""
    assert "Traceback" not in result.err + result.out
    (found,) = result.json["errors"]
    assert found["hint"]
    assert found["message"]
    return str(found["code"])


def receipts(tmp_path: Path) -> list[Path]:
    """What was kept."""
    return list((tmp_path / "home" / "receipts").glob("*.json"))


def test_the_whole_way_of_a_record(bench: Bench, tmp_path: Path) -> None:
    """Run, verified, not replayed."""
    done = bench(*OWN, "--receipt", "r.json", benchmark="print('median latency: 136.3 us')")
    found = data(done)
    assert (done.code, done.json["status"], done.json["errors"], done.json["warnings"]) == (0, "ok", [], [])
    assert [(f["name"], f["value"], f["unit"], f["line"]) for f in found["figures"]] == [
        ("median", 136.3, "us", 1),
        ("latency", 136.3, "us", 1),
    ]
    assert found["command"] == [sys.executable, "b.py"]
    assert (found["exit_code"], found["timed_out"], found["plan"]) == (0, False, "verdict")
    assert any("correctness" in text for text in found["not_checked"])
    assert "verdict" not in found

    document = json.loads((tmp_path / "r.json").read_text())
    assert (document["kind"], document["evidence"]) == ("kopt-external-receipt", "external")
    assert document["candidate"]["text"] == KERNEL

    verified = bench("verify", "r.json", "--json").json["data"]
    assert (verified["ok"], verified["seal"], verified["evidence"]) == (True, "own key", "external")
    assert "evidence: external" in bench("verify", "r.json").out
    again = bench("replay", "r.json", "--json")
    assert (error(again), again.code) == ("external_receipt", 2)


def test_the_old_spelling_gives_the_same_and_names_the_new_one(bench: Bench, tmp_path: Path) -> None:
    benchmark, more = "print('time: 2 ms')", ("--signal-command", "true", "--figure", r"t=time: (\d)", "--json")
    new = bench("external", "k.py", "--command", PYTHON, *more, "--receipt", "new.json", benchmark=benchmark)
    old = bench("k.py", "--bench-command", PYTHON, *more, "--receipt", "old.json", benchmark=benchmark)
    assert (new.code, new.json["command"], new.json["warnings"]) == (0, "bench external", [])
    assert (old.code, old.json["command"]) == (0, "bench")
    assert ["kopt bench external" in warning for warning in old.json["warnings"]] == [True]
    unlike = ("seconds", "receipt", "environment")
    assert {k: v for k, v in data(old).items() if k not in unlike} == {
        k: v for k, v in data(new).items() if k not in unlike
    }
    kept = [json.loads((tmp_path / name).read_text()) for name in ("old.json", "new.json")]
    assert kept[0].keys() == kept[1].keys()
    assert kept[0]["time_limit"] == kept[1]["time_limit"] == 600.0
    assert "kopt bench external" in bench("k.py", "--bench-command", "true").err


def test_a_person_reads_whose_evidence_it_is(bench: Bench) -> None:
    done = bench("external", "k.py", "--command", PYTHON, benchmark="print('speedup: 1.70x')")
    assert done.code == 0
    assert done.out.splitlines()[0] == "EXTERNAL  k.py, by a command of the user's (evidence: external)"
    assert "kopt measured nothing of it" in done.out.splitlines()[1]
    assert "speedup" in done.out
    assert "1.7x" in done.out
    assert "not checked   correctness" in done.out
    assert "ACCEPTED" not in done.out


def test_the_signal_command_is_for_the_plan_signal(bench: Bench) -> None:
    both = ("--signal-command", "echo 'time: 1 ms'", "--command", "echo 'time: 2 ms'", "--json")
    for plan, option, value in (("signal", "--signal-command", 1), ("verdict", "--bench-command", 2)):
        found = data(bench("external", "k.py", *both, "--plan", plan))
        assert (found["option"], found["plan"], found["figures"][0]["value"]) == (option, plan, value)
    found = data(bench("external", "k.py", "--command", "echo 'time: 2 ms'", "--plan", "signal", "--json"))
    assert (found["option"], found["figures"][0]["value"]) == ("--bench-command", 2)
    assert error(bench("external", "k.py", "--signal-command", "echo", "--json")) == "bench_command_invalid"


def test_named_figures(bench: Bench) -> None:
    words = ("--figure", r"ours=ours\s+([\d.]+)", "--figure", "bw=(.*)/s of peak", "--figure", r"none=none (\d)")
    done = bench(*OWN, *words, benchmark="print('ours 12.5 us\\nbaseline time: 20 us')")
    assert [(f["name"], f["value"], f["unit"], f["source"]) for f in data(done)["figures"]] == [
        ("ours", 12.5, "us", "pattern")
    ]
    assert done.json["warnings"] == ["the pattern bw matched nothing", "the pattern none matched nothing"]


def test_no_figure_is_a_warning(bench: Bench) -> None:
    done = bench(*OWN, benchmark="print('all is well')")
    assert (done.code, data(done)["figures"]) == (0, [])
    assert "no figure was found" in done.json["warnings"][0]
    assert "none" in bench("external", "k.py", "--command", PYTHON).out


def test_the_published_schemas(bench: Bench, tmp_path: Path, run: Callable[..., Run]) -> None:
    """`kopt schema bench` is of both, told apart by their evidence; the receipt has one of its own."""
    jsonschema = pytest.importorskip("jsonschema")
    done = bench(*OWN, "--receipt", "r.json", benchmark="print('time: 1 ms')")
    home = tmp_path / "home"
    schema = json.loads(run(home, "schema", "bench").out)
    assert set(schema["discriminator"]["mapping"]) == {"measured", "external"}
    jsonschema.Draft202012Validator(schema).validate(data(done))
    document = json.loads((tmp_path / "r.json").read_text())
    of_receipts = json.loads(run(home, "schema", "external-receipt").out)
    jsonschema.Draft202012Validator(of_receipts).validate(document)
    assert "external-receipt" in run(home, "schema").out.split()


# --- commands that go wrong -------------------------------------------------------------------------------------------


def test_a_failed_command_is_exit_code_1_and_its_record_is_kept(bench: Bench, tmp_path: Path) -> None:
    text = "import sys; print('time: 1 ms'); sys.exit('out of memory')"
    done = bench(*OWN, benchmark=text)
    assert (done.code, error(done), done.json["status"]) == (1, "bench_command_failed", "error")
    found = data(done)
    assert (found["exit_code"], found["figures"][0]["value"]) == (1, 1)
    assert receipts(tmp_path) == [Path(found["receipt"])]
    shown = bench("external", "k.py", "--command", PYTHON, benchmark=text)
    assert shown.code == 1
    assert shown.out.startswith("FAILED  k.py, by a command of the user's (evidence: external)")
    assert "out of memory" in shown.out


def test_a_hanging_command_is_ended(bench: Bench, tmp_path: Path) -> None:
    started = time.monotonic()
    done = bench(*OWN, "--timeout", "1", benchmark="print('time: 1 ms', flush=True)\nwhile True: pass")
    assert time.monotonic() - started < 30
    assert (done.code, error(done)) == (1, "bench_command_timeout")
    found = data(done)
    assert (found["timed_out"], found["exit_code"], found["figures"][0]["value"]) == (True, None, 1)
    assert bench("verify", str(receipts(tmp_path)[0])).code == 0


def test_the_time_limit_is_600_seconds_unless_one_is_given(bench: Bench, tmp_path: Path) -> None:
    for words, limit in (((), 600.0), (("--timeout", "60"), 60.0)):
        bench(*OWN, *words, "--receipt", "r.json", benchmark="print('time: 1 ms')")
        assert json.loads((tmp_path / "r.json").read_text())["time_limit"] == limit


def test_a_flood_of_output(bench: Bench) -> None:
    done = bench(*OWN, benchmark="import sys\nfor n in range(400000): print('x' * 20)\nprint('time: 3 ms')")
    found = data(done)
    assert [figure["value"] for figure in found["figures"]] == [3]
    assert found["stdout"]["size"] > 8_000_000
    assert len(found["stdout"]["text"]) <= 65536
    assert len(done.out) < 200_000
    assert any("only its end was read" in warning for warning in done.json["warnings"])


NONSENSE = r"""
import sys
for stream in (sys.stdout, sys.stderr):
    stream.buffer.write(bytes(range(256)) * 20 + b"\x1b]0;title\x07time: 3 ms\x1b[2J\n{\"a\": 1e999}\n[")
"""


def test_nonsense_does_nothing_to_the_readers_terminal(bench: Bench) -> None:
    done = bench(*OWN, "--figure", r"a=time: (\d)", benchmark=NONSENSE)
    assert done.code == 0
    assert {figure["stream"] for figure in data(done)["figures"]} == {"stdout", "stderr"}
    shown = bench("external", "k.py", "--command", PYTHON, "--figure", r"a=time: (\d)", benchmark=NONSENSE)
    assert all(c.isprintable() or c == "\n" for c in shown.out + shown.err)


def test_children_that_outlive_the_command_are_ended(bench: Bench) -> None:
    text = (
        "import os, time\n"
        "if os.fork():\n    os.write(1, b'time: 1 ms\\n'); time.sleep(0.2); os._exit(0)\n"
        "os.write(2, str(os.getpid()).encode()); time.sleep(300)"
    )
    started = time.monotonic()
    done = bench(*OWN, benchmark=text)
    assert time.monotonic() - started < 30
    assert (done.code, data(done)["figures"][0]["value"]) == (0, 1)
    assert done.json["warnings"] == ["the command left 1 processes running, which were ended"]
    child = int(data(done)["stderr"]["text"])
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("k.py", "--bench-command", ""), "bench_command_invalid", 2),
        (("external", "k.py"), "bench_command_invalid", 2),
        (("external", "k.py", "--command", "true", "--ref", "k.py"), "usage", 2),
        (("k.py", "--bench-command", "python 'b.py"), "bench_command_invalid", 2),
        (("k.py", "--bench-command", "no-such-program-anywhere --n 3"), "bench_command_missing", 5),
        (("k.py", "--bench-command", "./k.py"), "bench_command_not_started", 5),
        (("k.py", "--bench-command", "true", "--plan", "guess"), "plan_unknown", 2),
        (("k.py", "--bench-command", "true", "--figure", "a"), "figure_invalid", 2),
        (("k.py", "--bench-command", "true", "--receipt", "k.py"), "receipt_exists", 2),
        (("k.py", "--bench-command", "true", "--receipt", "none/r.json"), "receipt_folder", 2),
        (("none.py", "--bench-command", "true"), "file_not_found", 2),
        (("k.py", "--figure", "a=(1)"), "options_do_not_fit", 2),
        (("k.py", "--bench-command", "true", "--ref", "k.py"), "options_do_not_fit", 2),
        (("k.py", "--signal-command", "true", "--plan", "signal", "--device", "cpu"), "options_do_not_fit", 2),
    ],
)
def test_what_can_be_given_wrongly(
    bench: Bench, tmp_path: Path, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    done = bench(*words, "--json")
    assert (error(done), done.code) == (code, exit_code)
    assert receipts(tmp_path) == []


def test_all_options_that_would_mean_nothing_are_named(bench: Bench) -> None:
    words = ("--allow-library", "--dims", "n=3", "--tolerance", "1,1", "--env", "HOME", "-I", "include", "--seed", "7")
    done = bench("k.py", "--bench-command", PYTHON, *words, "--json")
    assert error(done) == "options_do_not_fit"
    message = done.json["errors"][0]["message"]
    for word in ("--allow-library", "--dims", "--tolerance", "--env", "--include", "--seed"):
        assert word in message
    assert "--bench-command" not in message.partition(" cannot")[0]


def test_the_page_lists_the_words_and_units_that_are_read() -> None:
    page = (Path(__file__).parents[4] / "docs" / "evaluator.md").read_text("utf-8")
    (section,) = re.findall(r"(?ms)^## The user's own benchmark\n(.*?)(?=^## )", page)
    (rows,) = re.findall(r"(?ms)^\| name \|.*?\n\n", section)
    listed = set(re.findall(r"`([^`]+)`", rows))
    assert {*WORDS, "p50", "speedup", "bandwidth", "flops"} <= listed
    (units,) = re.findall(r"(?s)Units are (.*?)\.\n", section)
    assert set(re.findall(r"`([^`]+)`", units)) == set(UNITS)
