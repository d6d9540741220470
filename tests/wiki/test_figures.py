"""The figures of the bundled wiki: drawn from its rows, shown by its pages, and said in words beside them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ingest.passages import passages_of
from kbs.answers.knowledge import sentences
from scripts.figures import FIGURES, FOLDER, row
from tests.bundled_pages import bundled_pages
from wiki.library import bundled_wiki

_STATED = re.compile(r"(?<![\w.,])(\d[\d.,]*) (TB/s|GB/s|KB|MB|GB|cycles|blocks|%)")


@pytest.fixture(scope="module")
def shown() -> dict[str, tuple[str, str]]:
    """name of a figure → (what it shows in words, the section that it stands in)"""
    found = {}
    for page in bundled_pages():
        for section in page.sections:
            text = "\n".join(page.text(section.line_start, section.line_end))
            for alt, name in re.findall(r"(?m)^!\[([^\]]+)\]\(\.\./figures/([\w-]+\.svg)\)$", text):
                found[name] = alt, text
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_drawing_it_again_gives_the_same_bytes(name: str) -> None:
    again = "write it again with `just docs`"
    assert (FOLDER / name).read_bytes() == FIGURES[name]().encode(), again


def test_each_is_drawn_by_the_script_and_shown_by_a_page(shown: dict[str, tuple[str, str]]) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(FIGURES) == sorted(shown)


@pytest.mark.parametrize("name", FIGURES)
def test_the_text_beside_it_has_its_numbers(name: str, shown: dict[str, tuple[str, str]]) -> None:
    alt, section = shown[name]
    assert len(alt) > 60
    said = section.replace(",", "")
    texts = [one.text or "" for one in ElementTree.fromstring(FIGURES[name]()).iter("{*}text")]
    stated = {(value.replace(",", ""), unit) for text in texts for value, unit in _STATED.findall(text)}
    assert [
        f"{value} {unit}" for value, unit in stated if not re.search(rf"(?<![\d.]){re.escape(value)}\b", said)
    ] == []
    for page in re.findall(r"gpu-wiki/(\S+\.md)", " ".join(texts)):
        assert bundled_wiki().read(page) is not None


def test_a_changed_row_changes_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from scripts import figures

    before = FIGURES["memory-hierarchy.svg"]()
    monkeypatch.setattr(figures, "row", lambda *asked: replace(row(*asked), value="7"))
    assert FIGURES["memory-hierarchy.svg"]() != before


@pytest.mark.slow
def test_answers_quote_the_text_and_not_the_line_of_the_figure() -> None:
    (page,) = (page for page in bundled_pages() if page.meta.id == "profiling/roofline")
    quoted = [claim.citations[0].quote for passage in passages_of(page, "") for claim in sentences(passage)]
    assert any("3.35 TB/s" in line for line in quoted)
    assert any(line.startswith("![") for line in page.lines)
    assert not any(line.startswith("![") for line in quoted)


def test_they_take_nothing_from_elsewhere() -> None:
    for name in FIGURES:
        text = Path(FOLDER / name).read_text("utf-8")
        assert "href" not in text
        assert re.findall(r"\w+://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
