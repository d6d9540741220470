"""`kopt ask --continue`, as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Run

Kopt = Callable[..., Run]
TITLE = "why is my softmax memory-bound on H100 SXM"


def test_a_follow_up_is_about_what_the_question_before_was(run: Kopt, home: Path) -> None:
    assert run(home, "ask", TITLE, "--dtype", "fp16").code == 0
    done = run(home, "ask", "--continue", "and on H200?")
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.startswith("Memory-bound: softmax in FP16")
    assert "H200 SXM" in first
    assert "H100" not in first
    last = "Taken from the question before: operation softmax, dtype fp16, bottleneck memory-bound"
    assert done.out.splitlines()[-1] == last
    again = run(home, "ask", "--continue", "and for layernorm?", "--json").json["data"]
    assert again["answer"].startswith("Memory-bound: LayerNorm in FP16")
    assert again["inherited"] == ["GPU h200-sxm", "dtype fp16", "bottleneck memory-bound"]


def test_without_the_option_the_user_is_told_of_it(run: Kopt, home: Path) -> None:
    run(home, "ask", TITLE)
    done = run(home, "ask", "and on H200?")
    assert f"reads like a follow-up: --continue takes what it leaves open from “{TITLE}”" in done.err
    assert run(home, "ask", "what is a bank conflict").err == ""


def test_a_follow_up_to_nothing_is_wrong_usage(run: Kopt, home: Path, tmp_path: Path) -> None:
    done = run(home, "ask", "--continue", "and on H200?", "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "no_question_before")
    assert "24 hours" in done.json["errors"][0]["message"]
    run(home, "ask", TITLE)
    assert run(home, "ask", "--continue", "and on H200?", cwd=tmp_path).code == 2, "another folder"


def test_the_file_holds_questions_and_no_answers(run: Kopt, home: Path) -> None:
    run(home, "ask", TITLE, "--gpu", "h200", "--dims", "M=8,N=16")
    found = json.loads((home / "asked.json").read_bytes())["folders"][str(home)]
    assert found["chain"] == [
        {"text": TITLE, "gpus": ["h200"], "dtype": "", "dims": {"M": 8, "N": 16}, "kinds": [], "files": False}
    ]
    assert set(found) == {"time", "chain"}
    wrong = run(home, "ask", "why", "--dtype", "fp99")
    assert wrong.code == 2
    assert json.loads((home / "asked.json").read_bytes())["folders"][str(home)]["chain"][0]["text"] == TITLE


def test_files_are_to_be_given_again(run: Kopt, home: Path, tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text("def softmax(x):\n    return x.softmax(-1)\n", "utf-8")
    run(home, "ask", "why is my softmax slow on H200", "--kernel", str(tmp_path / "softmax.py"), cwd=tmp_path)
    done = run(home, "ask", "--continue", "and on A100?", cwd=tmp_path)
    assert "give --profile, --kernel or --ref again" in done.err


def test_a_question_that_cannot_be_kept_is_answered(run: Kopt, home: Path) -> None:
    long = f"what is a bank conflict {'and why ' * 800}"
    assert run(home, "ask", long).code in (0, 3)
    assert run(home, "ask", "--continue", "and on A100?").code == 2
