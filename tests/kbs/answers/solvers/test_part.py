"""How much of a question a part accounts for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.answers.model import Claim, ClaimKind, Section
from kbs.answers.solvers.part import OTHER_FORM, Part, fit, parts
from kbs.evidence.vocabulary import words
from kbs.questions.forms import Form
from kbs.questions.question import Question

KINDS = ("product", "metric", "operation", "number")
TEXT = "why is the bandwidth of alpha beta"
SPANS = {"form": frozenset({0, 1, 2, 4}), "metric": frozenset({3}), "product": frozenset({5})}
WEIGHTS = {"bandwidth": 2.0, "alpha": 1.0, "beta": 5.0}


def question(form: Form = Form.REASON, text: str = TEXT, spans: dict[str, frozenset[int]] = SPANS) -> Question:
    return Question(text, read=text, form=form, spans=spans)


def part(*uses: str, whole: bool = False) -> Part:
    return Part((), uses, (Form.REASON, Form.VALUE), whole=whole)


@pytest.mark.parametrize(
    ("uses", "share"),
    [
        ((), 0.0),
        (("metric",), 2 / 8),
        (("product",), 1 / 8),
        (("metric", "product"), 3 / 8),
        (("operation",), 0.0),
    ],
)
def test_the_share_of_the_words_by_their_weight(uses: tuple[str, ...], share: float) -> None:
    assert fit(part(*uses), question(), WEIGHTS) == pytest.approx(share)
    assert fit(part(*uses), question(Form.REMEDY), WEIGHTS) == pytest.approx(OTHER_FORM * share)


def test_what_is_whole_leaves_no_word() -> None:
    assert fit(part(whole=True), question(), WEIGHTS) == 1.0
    assert fit(part(whole=True), question(Form.REMEDY), WEIGHTS) == OTHER_FORM


def test_without_a_word_of_weight_nothing_is_left() -> None:
    assert fit(part(), question(), {}) == 1.0
    assert fit(part(), question(Form.TOPIC, "why is the"), WEIGHTS) == OTHER_FORM


def test_the_sentence_that_asks_counts_as_much_as_the_whole_text() -> None:
    spans = {**SPANS, "asking": frozenset({3, 4, 5})}
    whole = fit(part("metric"), question(), WEIGHTS)
    assert fit(part("metric"), question(spans=spans), WEIGHTS) == pytest.approx((2 / 3 + whole) / 2)
    assert whole < 2 / 3, "beta tells the circumstances"


@given(
    st.dictionaries(st.sampled_from(KINDS), st.frozensets(st.integers(0, 6)), max_size=4),
    st.lists(st.sampled_from(KINDS), max_size=3),
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(words(TEXT)), st.floats(0.01, 9), max_size=7),
    st.sampled_from(Form),
)
def test_more_uses_never_leave_more(
    spans: dict[str, frozenset[int]], uses: list[str], more: str, weights: dict[str, float], form: Form
) -> None:
    asked = question(form, spans=spans)
    less, all_ = fit(part(*uses), asked, weights), fit(part(*uses, more), asked, weights)
    top = 1.0 if form in (Form.REASON, Form.VALUE) else OTHER_FORM
    assert -1e-9 <= less <= all_ + 1e-9
    assert all_ <= top + 1e-9 <= fit(part(whole=True), asked, weights) + 2e-9


def test_sections_without_claims_are_left_out() -> None:
    one = Claim("It is so.", ClaimKind.ABSENCE)
    assert parts({"A": [one], "B": [], "C": [one, one]}) == (Section("A", (one,)), Section("C", (one, one)))
    assert parts({}) == ()
