"""What names mean that a tool wrote: found whole, with a suffix of their own, or without their last parts."""

from __future__ import annotations

import pytest

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.tools import meaning
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis

NAME = "l1tex__data_bank_conflicts_pipe_lsu"
LINE = f"The metric {NAME}.sum counts those conflicts."
ROW = f"shared-memory bank conflicts: {NAME}.sum"


@pytest.mark.parametrize(
    "name",
    [
        f"{NAME}.sum",
        f"{NAME.upper()}.sum",
        NAME,  # the page has it with a suffix alone
        f"{NAME}.sum.pct",
        f"{NAME}.avg",
    ],
)
def test_a_name_is_found(name: str, knowledge: Knowledge, pages: Wikis) -> None:
    found = meaning(read(f"what is {name}"), knowledge)
    assert found is not None
    assert (texts(found.direct), found.refusal, found.gaps) == ([LINE], "", ())
    [rows] = found.sections
    assert (rows.title, texts(rows.claims)) == ("Thresholds", [f"{ROW} · > · 10 %"] * 2 + [f"{ROW} · > · 20 %"])
    assert [claim.note for claim in rows.claims] == ["by src p. 10", "by src p. 11", "by src p. 12"]
    assert cited(found.direct[0]) == [f"{LINE}[^a]"]
    assert found.uses == ("identifier", "product", "language", "symptom")
    assert unsound(found, pages) == []


def test_lines_that_begin_with_a_name_come_first_and_rows_last(knowledge: Knowledge) -> None:
    found = meaning(read("what is ptxas.spill_stores"), knowledge)
    assert found is not None
    assert texts(found.direct) == ["ptxas.spill_stores counts the bytes of all stores."]
    [rest] = found.sections
    assert rest.title == "Lines that have it"
    assert texts(rest.claims) == [  # six in all, so that the row is left out
        "No ptxas.spill_stores is printed for a kernel that spills nothing.",
        "The fifth line has ptxas.spill_stores too.",
        "A kernel spills where ptxas.spill_stores is above zero.",
        "Even so, the sixth line has ptxas.spill_stores.",
        "And at last the seventh line has ptxas.spill_stores.",
    ]


@pytest.mark.parametrize("name", ["sm__nothing", "sm__nothing.sum.pct", "data_bank_conflicts", "lsu.sum", f"{NAME}2"])
def test_a_name_that_no_line_has(name: str, knowledge: Knowledge) -> None:
    found = meaning(read(f"what is {name}"), knowledge)
    assert found is not None
    assert texts(found.direct) == [f"Not known: I found no line about {name}, whole or in part."]
    assert (found.direct[0].kind, found.refusal) == (ClaimKind.ABSENCE, "not_in_wiki")
    assert found.gaps == (f"I found no line about {name}.",)


def test_of_two_names_one_may_be_known(knowledge: Knowledge) -> None:
    found = meaning(read(f"what do {NAME}.sum and sm__nothing mean"), knowledge)
    assert found is not None
    assert (texts(found.direct), found.gaps) == ([LINE], ("I found no line about sm__nothing.",))


@pytest.mark.parametrize("text", ["what is a bank conflict", "what is 3.5", "e.g. this"])
def test_a_question_without_such_a_name(text: str, knowledge: Knowledge) -> None:
    assert meaning(read(text), knowledge) is None
