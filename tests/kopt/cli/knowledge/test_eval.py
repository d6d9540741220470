"""`kopt eval` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.processes
Kopt = Callable[..., Run]
QUESTIONS = [
    {
        "id": "bank",
        "question": "What is a shared memory bank conflict?",
        "form": "definition",
        "by": "section",
        "gold": ["profiling/bank-conflicts#Shared-memory bank conflicts"],
        "must": [["same (shared-memory )?bank"]],
        "first": [["bank"]],
    },
    {"id": "value", "question": "HBM bandwidth of the H200 SXM?", "form": "value", "must": [[r"4\.8 TB/s"]]},
    {"id": "pizza", "question": "what is the best pizza in Rome", "kind": "unanswerable", "in_wiki": False},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    return path


def test_an_evaluation_as_json_and_as_a_report(kopt: Kopt, file: Path, tmp_path: Path, built_home: Path) -> None:
    (built_home / "gaps.jsonl").unlink(missing_ok=True)
    bars, report = tmp_path / "bars.toml", tmp_path / "report"
    bars.write_text('[[bar]]\nfigure = "citations.accepted"\nmost = 0\n[[bar]]\nfigure = "answers.first"\nleast = 1\n')
    words = ("eval", "--questions", file, "--planted", 14, "--require", bars)
    done = kopt(*map(str, words), "--report", str(report), "--json")
    assert done.code == 0, done.out
    data = done.json["data"]
    assert [one["mark"] for one in data["answers"]] == ["right"] * 3
    assert [(one["figure"], one["met"]) for one in data["bars"]] == [
        ("citations.accepted", True),
        ("answers.first", True),
    ]
    assert data["found"][0]["ranks"]["sections"] in range(1, 6)
    assert data["citations"]["checked"] > 0 == len(data["citations"]["failed"])
    assert data["figures"]["citations.planted"] == 14
    assert json.loads((report / "evaluation.json").read_text()) == data
    assert not (built_home / "gaps.jsonl").exists()

    bars.write_text('[[bar]]\nfigure = "answers.right"\nleast = 1.1\n')
    again = kopt(*map(str, words), "--against", str(report / "evaluation.json"))
    assert again.code == 4
    assert "not met: answers.right must be at least 1.1" in again.out
    assert "right in evaluation.json, not now: none" in again.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--questions", "none.jsonl"], "questions_unreadable"),
        (["--questions", "q.jsonl", "--require", "q.jsonl"], "bars_unreadable"),
        (["--questions", "q.jsonl", "--against", "q.jsonl"], "earlier_unreadable"),
        (["--questions", "q.jsonl", "--report", "."], "report_exists"),
        (["--set", "blind"], "usage"),
    ],
)
def test_what_makes_no_sense(words: list[str], code: str, kopt: Kopt, file: Path, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("# Mine\n")
    done = kopt("eval", *words, "--json", cwd=tmp_path)
    assert done.code == 2
    assert done.json["errors"][0]["code"] == code
