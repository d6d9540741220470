"""Several questions of one text: what stands alone, and how their answers are put together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.answers.model import Answer, Claim, ClaimKind, Section
from kbs.answers.several import stands_alone, together
from kbs.evidence.citation import Citation
from kbs.experience.entry import Entry
from kbs.questions.question import Question
from tests.kbs.answers.small_wiki import read
from tests.kbs.experience.records import experiment

CITED = (Citation("w", "p.md", 1, 1, "", "", "line"),)
ASKED = Question("a? b? c?")
QUESTIONS = [Question(f"{name}?", read=f"{name}?") for name in "abc"]


def said(text: str) -> Claim:
    return Claim(text, ClaimKind.STATEMENT, CITED)


def answer(*sections: tuple[str, str], abstained: bool = False, reason: str = "") -> Answer:
    """An answer of (title, what its one claim says)."""
    made = Answer("x", "value", abstained=abstained, reason=reason)
    made.sections = [Section(title, (said(text),)) for title, text in sections]
    return made


def shown(made: Answer) -> list[tuple[str, list[str]]]:
    return [(section.title, [claim.text for claim in section.claims]) for section in made.sections]


def test_the_first_leads_and_each_other_stands_under_its_question() -> None:
    made = together(ASKED, QUESTIONS, [answer(("", "A"), ("Why", "A1")), answer(("", "B")), answer(("", "C"))])
    assert shown(made) == [("", ["A"]), ("b?", ["B"]), ("c?", ["C"]), ("Why", ["A1"])]
    assert (made.question, made.form, made.abstained) == ("a? b? c?", "value", False)


def test_the_first_that_has_an_answer_leads() -> None:
    none = answer(("", "not known"), abstained=True, reason="not_in_wiki")
    made = together(ASKED, QUESTIONS, [none, answer(("", "B")), none])
    assert shown(made) == [("", ["B"]), ("a?", ["not known"]), ("c?", ["not known"])]
    assert (made.abstained, made.reason) == (False, "")
    nothing = together(ASKED, QUESTIONS, [none, replace(none, reason="unpublished"), none])
    assert (nothing.abstained, nothing.reason) == (True, "not_in_wiki")


@pytest.mark.parametrize("sure", ["unknown_product", "wrong_premise"])
def test_of_those_without_an_answer_a_sure_one_leads(sure: str) -> None:
    near, no = (
        answer(("", "near"), abstained=True, reason="not_in_wiki"),
        answer(("", "no"), abstained=True, reason=sure),
    )
    made = together(ASKED, QUESTIONS, [near, no, near])
    assert shown(made) == [("", ["no"]), ("a?", ["near"]), ("c?", ["near"])]
    assert (made.abstained, made.reason) == (True, sure)
    assert shown(together(ASKED, QUESTIONS, [no, answer(("", "B")), near]))[0] == ("", ["B"])


def test_what_two_are_answered_with_is_said_once() -> None:
    made = together(
        ASKED, QUESTIONS, [answer(("", "A"), ("Why", "X")), answer(("", "A")), answer(("", "C"), ("Why", "X"))]
    )
    assert shown(made) == [("", ["A"]), ("c?", ["C"]), ("Why", ["X"])]


def test_that_nothing_is_known_is_said_of_each() -> None:
    """Such a line cites nothing: of two questions it says two things."""
    unknown = Answer("x", abstained=True, sections=[Section("", (Claim("Not known.", ClaimKind.ABSENCE),))])
    made = together(ASKED, QUESTIONS, [unknown, unknown, unknown])
    assert shown(made) == [("", ["Not known."]), ("b?", ["Not known."]), ("c?", ["Not known."])]


def test_what_each_could_not_say_is_told_once() -> None:
    parts = [answer(("", name)) for name in "ABC"]
    parts[0].gaps, parts[1].gaps = ["no row", "no page"], ["no page", "no type"]
    parts[1].warnings, parts[2].warnings = ["old"], ["old", "slow"]
    parts[0].read, parts[2].read = ["read “x” as “y”"], ["read “x” as “y”"]
    parts[0].dropped, parts[2].dropped = 1, 2
    parts[0].asked, parts[1].asked = ["Chroma"], ["more"]
    made = together(ASKED, QUESTIONS, parts)
    assert (made.gaps, made.warnings) == (["no row", "no page", "no type"], ["old", "slow"])
    assert (made.read, made.dropped, made.asked) == (["read “x” as “y”"], 3, ["Chroma"])


def test_records_of_the_one_that_leads_come_first_each_once() -> None:
    parts = [answer(("", name)) for name in "ABC"]
    one, two, three = (Entry(experiment()) for _ in range(3))
    parts[0].abstained = True
    parts[0].experiments, parts[1].experiments, parts[2].experiments = [one, two], [three], [two, three]
    assert together(ASKED, QUESTIONS, parts).experiments == [three, two, one]


_ANSWERS = st.lists(
    st.builds(
        lambda sections, abstained: answer(*sections, abstained=abstained),
        st.lists(st.tuples(st.sampled_from(["", "Why", "b?"]), st.sampled_from("ABCDE")), min_size=1, max_size=4),
        st.booleans(),
    ),
    min_size=2,
    max_size=3,
)


@given(_ANSWERS)
def test_nothing_that_was_said_is_lost_or_made_up(parts: list[Answer]) -> None:
    made = together(ASKED, QUESTIONS, parts)
    assert {claim.text for claim in made.claims} == {claim.text for part in parts for claim in part.claims}
    lead = next((part for part in parts if not part.abstained), parts[0])
    assert made.abstained is lead.abstained
    assert made.sections[0] == lead.sections[0]
    assert all(section.claims for section in made.sections)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("what is its L2 capacity?", True),
        ("how do I fix bank conflicts?", True),
        ("when should I use TMA?", True),
        ("is it memory-bound?", True),
        ("what is sm__cycles_active?", True),
        ("which tiles suit a softmax?", True),
        ("how can I fix it?", False),
        ("and on T4?", False),
        ("what about softmax?", False),
    ],
)
def test_what_asks_for_something_of_its_own(text: str, alone: bool) -> None:
    assert stands_alone(read(text)) is alone
