"""Commands as people type them who have not read the help: names in other forms, words in a pipe, `help`, Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from kopt.cli.output import Reply, deliver

Kopt = Callable[..., Any]
SHIPPED = {"KOPT_BASE_LOG": "true"}
"""The log has the records that ship with kopt."""
WAYS = [
    "softmax:36",
    "softmax.md:L36",
    "kernel/softmax#L36",
    "gpu-wiki/kernel/softmax.md:36",
    "gpu-wiki/kernel/softmax.md#36",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_line_is_shown_as_editors_and_websites_write_it(kopt: Kopt, way: str) -> None:
    assert kopt("show", way).out == kopt("show", "gpu-wiki/kernel/softmax.md:L36").out


def test_lines_that_no_page_has_are_told(kopt: Kopt) -> None:
    assert "ends at line" in kopt("show", "softmax:99999").err
    assert "line 40 comes after line 36" in kopt("show", "softmax:40-36").err
    assert "no page" in kopt("show", "nosuchpage:36").err


@pytest.mark.parametrize("folder", ["kernel/", "gpu-wiki/kernel"])
def test_a_folder_tells_its_pages(kopt: Kopt, folder: str) -> None:
    done = kopt("show", folder)
    assert done.code == 2
    assert f"{folder} is a folder of" in done.err
    assert "kernel/all-reduce" in done.err


def test_a_record_is_shown_by_its_id_alone(kopt: Kopt) -> None:
    shipped = kopt("log", "list", "--limit", "1", env=SHIPPED).out.split()[0]
    shown = kopt("show", shipped, env=SHIPPED).out
    assert shown.startswith(shipped)
    assert kopt("show", shipped.removeprefix("log/"), env=SHIPPED).out == shown
    assert "kopt log list" in kopt("show", "log/").err


def test_help_is_a_word_too(kopt: Kopt) -> None:
    assert kopt("help").out == kopt("--help").out
    assert kopt("help", "ask").out == kopt("ask", "--help").out
    assert kopt("help", "run", "start").out == kopt("run", "start", "--help").out
    assert "kopt ask help me with softmax" in kopt("help", "me", "with", "softmax").err
    assert "kopt --version" in kopt("version").err


@pytest.mark.parametrize("words", ["ask --gpu", "spec --qualifier", "bench k.py --ref", "run start --gpu"])
def test_an_option_without_its_value_is_said_to_lack_it(kopt: Kopt, words: str) -> None:
    done = kopt(*words.split())
    assert done.code == 2
    assert "requires an argument" in done.err
    assert "Traceback" not in done.err


def test_a_question_comes_through_a_pipe(kopt: Kopt) -> None:
    asked = "what is a bank conflict"
    assert kopt("ask", "-", stdin=f"{asked}\n").out == kopt("ask", asked).out
    assert "the question is empty" in kopt("ask", "-").err
    for command in ("ask", "cite"):
        assert "Give - to read a pipe" in kopt(command, stdin=asked).err
    assert "Give -" not in kopt("show").err


def test_a_gpu_may_have_several_words(kopt: Kopt) -> None:
    assert kopt("spec", "h100", "sxm", "hbm", "bandwidth").out == kopt("spec", "h100-sxm", "hbm_bandwidth").out
    both = kopt("spec", "compare", "h100-sxm", "h200").out
    for words in (["h100", "sxm", "vs", "h200"], ["h100-sxm,h200"], ["h100-sxm,", "h200"]):
        assert kopt("spec", "compare", *words).out == both
    assert "at least two" in kopt("spec", "compare", "h100", "sxm").err


def test_a_value_that_is_not_published_has_no_unit(kopt: Kopt) -> None:
    out = kopt("spec", "compare", "h100-nvl", "b200").out
    assert "not published [L" in out
    assert "unpublished" not in out


def test_an_architecture_is_near_to_its_gpus(kopt: Kopt) -> None:
    assert "h100-sxm, h100-pcie" in kopt("occupancy", "--gpu", "hopper", "--regs", "72", "--threads", "256").out
    assert "h100-sxm, h100-pcie" in kopt("spec", "Hopper").out


def test_one_word_that_is_no_file_is_no_text(kopt: Kopt) -> None:
    done = kopt("cite", "nofile")
    assert done.code == 3
    assert "There is no file nofile" in done.out
    assert "There is no file" not in kopt("cite", "no citation here").out + kopt("cite", "-", stdin="nofile").out


def test_what_has_no_schema_gets_near_names(kopt: Kopt) -> None:
    assert "Did you mean run start" in kopt("schema", "run strat").err
    assert "`kopt schema` lists" in kopt("schema", "zzzz").err


def test_a_reference_that_is_no_option_is_told_its_option(kopt: Kopt) -> None:
    assert "kopt roofline --ref ref.py" in kopt("roofline", "ref.py", "--gpu", "h200").err


def test_a_gpu_that_is_not_known_is_told_above_the_answer(kopt: Kopt) -> None:
    assert kopt("ask", "why is softmax slow on h1000").out.startswith("(no GPU named h1000 is known)")
    assert kopt("ask", "why is softmax slow", "--gpu", "h1000").out.startswith("(no GPU named h1000 is known)")
    assert "no GPU named" not in kopt("ask", "why is softmax slow on h100").out


def test_the_letter_o_is_read_as_a_zero(kopt: Kopt) -> None:
    read = kopt("ask", "what is the memory bandwidth of the H1OO SXM").out.split("\n")
    assert read[0] == "(read “H1OO” as “H100”)"
    assert "3.35 TB/s" in read[2]


def test_long_words_are_not_repeated_whole(kopt: Kopt) -> None:
    done = kopt("ask", "a" * 3000)
    assert done.code == 3
    assert len(done.out) < 1500


def test_a_misspelled_operation_is_told_the_one_that_has_records(kopt: Kopt) -> None:
    assert "there are some of softmax" in kopt("log", "recommend", "--kernel", "softmx", env=SHIPPED).out


def test_a_home_that_is_a_file(kopt: Kopt, run: Kopt, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("", "utf-8")
    done = run(tmp_path / "home", "spec", "h100", cwd=tmp_path)
    assert done.code == 5
    assert "home is not a folder" in done.err


def test_ctrl_c_at_a_question_is_no_fault_of_kopt(capsys: pytest.CaptureFixture[str]) -> None:
    def ask() -> Reply:
        raise typer.Abort

    with pytest.raises(typer.Exit) as ended:
        deliver("run start", False, False, ask)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "error: interrupted\nNothing is done without an answer.\n"


def test_an_export_of_nothing_says_so(kopt: Kopt) -> None:
    done = kopt("log", "export", env=SHIPPED)
    assert done.json["records"] == []
    assert "that ship with kopt are left out; --shipped writes them" in done.err


@pytest.mark.parametrize(("columns", "of_a_table"), [(30, False), (80, True)])
def test_a_terminal_too_narrow_for_a_table_gets_lines(built_home: Path, columns: int, of_a_table: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "KOPT_HOME": str(built_home),
        "COLUMNS": str(columns),
        "TERM": "xterm",
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", "kopt", "spec", "h100-sxm", "--no-pager"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as shown:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            text += part
    os.close(ours)
    assert shown.returncode == 0
    read = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).split())
    assert ("metric value confidence" in read) is of_a_table
    assert ("H100 SXM HBM bandwidth: 3.35 TB/s" in read) is not of_a_table
    assert "…" not in read
