"""The pictures of the README show what a terminal showed, load nothing, and cite lines that still say it."""

from __future__ import annotations

import re

import pytest

from kbs.evidence.checking import Status, check_text
from kbs.evidence.vocabulary import vocabulary
from scripts.pictures import PICTURES, SHOWN, draw
from wiki.library import Wikis, bundled_wiki


@pytest.mark.parametrize("name", SHOWN)
def test_a_picture_is_of_its_text_and_loads_nothing(name: str) -> None:
    svg = (PICTURES / f"{name}.svg").read_text("utf-8")
    assert svg == draw((PICTURES / f"{name}.txt").read_text("utf-8"), name), "run python -m scripts.pictures"
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert set(re.findall(r"url\((.)", svg)) <= {"#"}
    assert not re.search(r"<script|@import|@font-face|href=", svg)


def test_the_answer_shown_is_still_right() -> None:
    told = re.sub(r"\x1b\[\d*m", "", (PICTURES / "answer.txt").read_text("utf-8"))
    checked = check_text(told, Wikis([bundled_wiki()]), vocabulary())
    assert len(checked) >= 5
    assert {one.status for one in checked} == {Status.OK}, "run python -m scripts.pictures --record"
