"""Several questions of one text: cut where a new one begins, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.questions.split import LEAST, MOST, questions_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("What is a warp? What is a block?", ["What is a warp?", "What is a block?"]),
        ("what is a warp and how many threads does it have?", ["what is a warp", "how many threads does it have?"]),
        ("what is a warp and has it been changed?", ["what is a warp", "has it been changed?"]),
        ("is it fast, and is it cheap?", ["is it fast", "is it cheap?"]),
        ("does H100 have TMA, and also does A100 have it?", ["does H100 have TMA", "also does A100 have it?"]),
        (
            "I use 64 registers. What is the occupancy? Which limit holds?",
            ["I use 64 registers. What is the occupancy?", "Which limit holds?"],
        ),
        (
            "What is L2? What is L1? What is DRAM? What is smem?",
            ["What is L2?", "What is L1?", "What is DRAM?", "What is smem?"],
        ),
        ("What is a warp?  What is a block? Why?", ["What is a warp?", "What is a block? Why?"]),
    ],
)
def test_questions_of_their_own(text: str, parts: list[str]) -> None:
    assert questions_of(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "What is L2? What is L1? What is DRAM? What is smem? What is TMA?",  # more than are answered apart
        "How fast is H100? And A100?",
        "My kernel is slow. Why?",
        "What is a warp? Thanks a lot for it!",
        "What is the ratio of A and B?",
        "It contains 64 tensor cores and has a CUDA compute capability of 7.2. It should work, correct?",
        "how do I pad and why does it help",  # no mark says where the second one ends
        "what is a warp and how",
        "What is a warp?What is a block?",
        "  one question  ",
        "",
    ],
)
def test_one_question_stays_as_it_is(text: str) -> None:
    assert questions_of(text) == [text]


_PARTS = ("What is a warp?", "How fast is it?", "Why?", "thanks", "and", "is it", "64 registers", ",", "and how is it?")


@given(st.lists(st.sampled_from(_PARTS), max_size=10).map(" ".join))
def test_no_word_is_lost_but_the_one_that_joins(text: str) -> None:
    parts = questions_of(text)
    assert 1 <= len(parts) <= MOST
    if len(parts) == 1:
        assert parts == [text]
        return
    joined = " ".join(parts).replace(",", " ").split()
    assert [word for word in joined if word != "and"] == [w for w in text.replace(",", " ").split() if w != "and"]
    assert all(len(part.split()) >= LEAST for part in parts[1:])
