"""Marks, figures, bars and reports, of answers and searches that are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbs.answers.model import Answer, Claim, ClaimKind, Section
from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.json_model import json_schema, json_value
from kbs.evidence.citation import Citation
from kbs.questions.question import Question as Understood
from kopt.services.engine import Engine
from kopt.services.evaluation import answers, figures, questions
from kopt.services.evaluation.answers import Judged, Mark
from kopt.services.evaluation.questions import Question, find_set, read_questions
from kopt.services.evaluation.report import page, write_report
from kopt.services.evaluation.retrieval import DEPTH, Found, rank
from kopt.services.evaluation.service import CitationFigures, Evaluation
from kopt.services.knowledge.answers import Answered
from kopt.services.settings import load_settings

HERE = Citation("gpu-wiki", "kernel/scan.md", 3, 3, "", "0" * 64, "Row 19 of the page.")


def judge(monkeypatch: pytest.MonkeyPatch, said: list[str], reason: str = "", **stated: Any) -> Judged:
    """The judgement on an answer of one claim a line; with a `reason` it abstains."""
    claims = tuple(Claim(text, ClaimKind.DERIVED, (HERE,)) for text in said)
    answer = Answer("?", "", [Section("", claims)], abstained=bool(reason), reason=reason)
    monkeypatch.setattr(answers, "ask", lambda _, asked: Answered(Understood(asked.text), answer))
    asked = Question.model_validate({"id": "q", "question": "?", **stated})
    return answers.judge(Engine(load_settings()), asked)[0]


LATE = ["One.", "Two.", "Three.", "It is 512 KB."]
CASES: dict[str, tuple[list[str], str, dict[str, Any], Mark]] = {
    "all facts, early": (["It is 512 KB."], "", {"must": [["512"]], "first": [["512 ?KB"]]}, Mark.RIGHT),
    "any form of a fact": (["Half a megabyte."], "", {"must": [["512", "HALF"]]}, Mark.RIGHT),
    "a fact too late": (LATE, "", {"must": [["512"]], "first": [["512"]]}, Mark.PARTIAL),
    "one of two facts": (["It is 512 KB."], "", {"must": [["512"], ["an SM"]]}, Mark.PARTIAL),
    "no fact": (["It is 256 KB."], "", {"must": [["512"]]}, Mark.WRONG),
    "a mark or a source is no fact": (["It is 256 KB."], "", {"must": [[r"\b1\b", "Row 19", "scan"]]}, Mark.WRONG),
    "a source where sources count": (["x"], "", {"must": [["scan"]], "sources": True}, Mark.RIGHT),
    "what must not be": (["512 KB, not 1 MB."], "", {"must": [["512"]], "must_not": ["1 MB"]}, Mark.WRONG),
    "the beginning of the answer": (["Yes, 512.", "Yes"], "", {"must": [["512"]], "must_not": ["^yes"]}, Mark.WRONG),
    "a refusal": (["No page says it."], "not_in_wiki", {"must": [["512"]]}, Mark.REFUSED),
    "three headings": (["How large?"], "partial", {"must": [["512"]], "gold": ["a#How large?"]}, Mark.OFFERED),
    "a refusal that answers": (["512, unpublished."], "unpublished", {"must": [["512"]]}, Mark.RIGHT),
    "a corrected premise": (["512."], "wrong_premise", {"must": [["512"]], "kind": "wrong-premise"}, Mark.RIGHT),
    "a premise that stands": (["256."], "", {"must": [["512"]], "kind": "wrong-premise"}, Mark.WRONG),
    "nobody can know": (["Not here."], "nothing_relevant", {"kind": "unanswerable"}, Mark.RIGHT),
    "answered all the same": (["42."], "", {"kind": "unanswerable"}, Mark.WRONG),
    "told what is known of it": (["Measured: 42."], "", {"kind": "unanswerable", "must": [["measured"]]}, Mark.RIGHT),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_marks(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, reason, stated, mark = CASES[case]
    found = judge(monkeypatch, said, reason, **stated)
    assert found.mark is mark, found
    as_if_right = case in ("a premise that stands", "answered all the same")
    assert found.as_if_right == as_if_right
    assert found.gold_shown == (case == "three headings")


def test_a_question_that_is_an_error_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(engine: Engine, asked: object) -> None:
        raise UsageError("no", code="empty_question", hint="")

    monkeypatch.setattr(answers, "ask", fail)
    found, answer = answers.judge(Engine(load_settings()), Question(id="q", question=" ", must=(("a",),)))
    assert (found.mark, found.reason, answer) == (Mark.REFUSED, "error: empty_question", None)


# --- questions ------------------------------------------------------------------------------------------------------


def test_golden_questions_keep_their_facts(tmp_path: Path) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_text(
        '{"ask": "a?", "must": ["^  - Two$"]}\n\n{"ask": "b?", "must": [], "exit": 3, "reason": "wrong_premise"}\n'
        '{"ask": "c?", "must": [], "exit": 3, "reason": "nothing_relevant"}\n'
    )
    one, two, three = read_questions([file])
    assert (one.kind, two.kind, three.kind) == ("answerable", "wrong-premise", "unanswerable")
    assert answers._stands(one.must[0], "One\n  - Two")
    assert not answers._stands(one.must[0], "One\n  - two")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "line 1"),
        ('{"id": "a", "question": "?"}\n[]', "line 2"),
        ('{"id": "a"}', "line 1: question"),
        ('{"id": "a", "question": "?", "must": [["("]]}', "is no regular expression"),
        ('{"id": "a", "question": "?"}\n{"id": "a", "question": "!"}', "a names several questions"),
        ("\n", "they have no question"),
    ],
)
def test_questions_that_cannot_be_read(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(content)
    with pytest.raises(UsageError, match=r"questions in .*q\.jsonl cannot be read") as raised:
        read_questions([file])
    assert said in raised.value.message


def test_sets_are_those_of_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len(read_questions(find_set("development"))) >= 740
    assert len(read_questions(find_set("golden"))) > 60
    monkeypatch.setitem(questions.SETS, "golden", (tmp_path, "*.jsonl"))
    with pytest.raises(ConfigurationError, match="there is no golden set"):
        find_set("golden")


# --- figures --------------------------------------------------------------------------------------------------------


def found(*ranks: int, score: float = 0.7) -> list[Found]:
    return [Found(f"q{n}", {"sections": one, "words alone": 0}, ("a#b",), (score,)) for n, one in enumerate(ranks)]


def test_ranks_recall_and_mrr() -> None:
    assert (rank(["a", "b", "c"], {"c", "b"}), rank(["a"], {"b"})) == (2, 0)
    engine, words = figures.search_figures(found(1, 2, 6, 0))
    assert [engine.recall[k].value for k in ("1", "2", "5")] == [0.25, 0.5, 0.5]
    assert engine.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 6) / 4, abs=1e-4)
    assert words.mrr == figures.Interval(0, 0, 0)
    assert figures.search_figures([Found("q", {}, (), ())]) == []
    assert max(figures.RECALLS) <= DEPTH


def test_intervals_hold_the_value_and_shrink_with_the_questions() -> None:
    few, many = figures.interval([0, 1] * 5), figures.interval([0, 1] * 200)
    assert few.low < few.value == many.value == 0.5 < few.high
    assert many.high - many.low < (few.high - few.low) / 3
    whole = figures.share(4, 4)
    assert (whole.value, whole.high) == (1, 1)
    assert 0.4 < whole.low < 0.6


def test_bands_of_scores() -> None:
    nothing = [Found("x", {}, ("a#b",), (0.95,)), Found("y", {}, (), ())]
    low, gap, high = figures.bands([*found(1, 2, 1, score=0.75), *nothing])
    assert (low.low, low.right, low.wrong, low.none) == (0.7, 2, 1, 0)
    assert (gap.right + gap.wrong + gap.none, gap.reliability) == (0, None)
    assert (high.low, high.right, high.wrong, high.none) == (0.9, 0, 0, 1)
    assert low.reliability is not None
    assert low.reliability.value == pytest.approx(2 / 3, abs=1e-4)


def some(monkeypatch: pytest.MonkeyPatch) -> list[Judged]:
    """One of each case; ids are the cases."""
    from dataclasses import replace

    return [
        replace(judge(monkeypatch, said, reason, form="value", **stated), id=case)
        for case, (said, reason, stated, _) in CASES.items()
    ]


def test_headline_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = some(monkeypatch)
    told = figures.headline(judged, figures.search_figures(found(1, 0)))
    assert told["answers.right"] == pytest.approx(7 / 17, abs=1e-4)
    assert told["answers.right_or_offered"] == pytest.approx(8 / 17, abs=1e-4)
    assert told["answers.as_if_right"] == pytest.approx(2 / 5)
    assert told["answers.must_not"] == 2
    assert told["retrieval.lead"] == 0.5
    assert "retrieval.mrr" not in figures.headline(judged, [])
    every = figures.groups(judged)
    assert (
        every[0].questions
        == 17
        == every[0].right + every[0].partial + every[0].wrong + every[0].offered + every[0].refused
    )
    assert {one.name for one in every if one.by == "kind"} == {"answerable", "wrong-premise", "unanswerable"}
    assert sum(one.count for one in figures.outcomes(judged)) == 17


def test_bars(tmp_path: Path) -> None:
    file = tmp_path / "bars.toml"
    file.write_text(
        '[[bar]]\nfigure = "a"\nleast = 0.5\n[[bar]]\nfigure = "b"\nmost = 0\n[[bar]]\nfigure = "c"\nleast = 1'
    )
    held = figures.hold(figures.read_bars(file), {"a": 0.5, "b": 1})
    assert [(one.figure, one.value, one.met) for one in held] == [("a", 0.5, True), ("b", 1, False), ("c", None, False)]
    for wrong in ("[[bar]]\nfigure = 3", '[[bar]]\nname = "a"', "nonsense", "bar = []"):
        file.write_text(wrong)
        with pytest.raises(UsageError, match="cannot be read"):
            figures.read_bars(file)


def test_bars_of_the_development_questions_name_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    told = set(figures.headline(some(monkeypatch), figures.search_figures(found(1))))
    told |= {"citations.checked", "citations.failed", "citations.planted", "citations.accepted"}
    assert {one.figure for one in figures.read_bars(questions.SETS["development"][0] / "bars.toml")} <= told


def evaluation(monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    judged, searched = some(monkeypatch), found(1, 3, 0)
    searches = tuple(figures.search_figures(searched))
    return Evaluation(
        kopt="1",
        wikis={"gpu-wiki": "0" * 64},
        model="",
        seconds=1.5,
        figures=figures.headline(judged, searches),
        bars=(figures.Bar("answers.right", 0.9, None, 0.5, False),),
        searches=searches,
        groups=tuple(figures.groups(judged)),
        outcomes=tuple(figures.outcomes(judged)),
        bands=tuple(figures.bands(searched)),
        citations=CitationFigures(3, ("q: a|b: stale",), ()),
        changes=None,
        found=tuple(searched),
        answers=tuple(judged),
    )


def test_changes_against_an_earlier_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, file = evaluation(monkeypatch), tmp_path / "then.json"
    then = json_value(made)
    for one in then["answers"]:
        one["mark"] = {"all facts, early": "wrong", "no fact": "right"}.get(one["id"], one["mark"])
    for content in ({"data": then}, then):
        file.write_text(json.dumps(content))
        changed = figures.changes(file, made.answers)
        assert (changed.file, changed.gained, changed.lost) == ("then.json", ("all facts, early",), ("no fact",))
    for wrong in ("", "[]", "{}", '{"answers": [1]}'):
        file.write_text(wrong)
        with pytest.raises(UsageError, match="no earlier evaluation"):
            figures.changes(file, ())


def test_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made, folder = evaluation(monkeypatch), tmp_path / "new" / "report"
    write_report(folder, made)
    write_report(folder, made)  # its own may be written again
    assert {path.name for path in folder.iterdir()} == {
        "report.md", "evaluation.json", "recall.svg", "marks.svg", "scores.svg",
    }  # fmt: skip
    text = (folder / "report.md").read_text()
    for part in ("![recall](recall.svg)", "0.333", "| answers.right | at least 0.9 | 0.5 | no |", "a\\|b", "lacks 512"):
        assert part in text, part
    assert json.loads((folder / "evaluation.json").read_text()) == json_value(made)
    assert str(tmp_path) not in text
    (folder / "report.md").write_text("# Mine\n")
    with pytest.raises(UsageError, match="is no report"):
        write_report(folder, made)
    assert "pip install" in page(made, [])
    assert "answers" in json_schema(Evaluation)["properties"]
