"""README.md names commands that exist, and README.zh.md says the same."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.cli.schema import COMMANDS
from tests.conftest import Run

ROOT = Path(__file__).parents[3]
PARTS = {
    "headings": r"(?m)^(#+) ",
    "rows of tables": r"(?m)^\|()",
    "blocks of code": r"(?s)```(.*?)```",
    "commands and names": r"(?<!`)`([^`\n]+)`(?!`)",
    "links": r"\]\(([^)\s]+)\)",
    "figures": r"(\d[\d,.]*\d|\d)",
}


def parts(text: str, what: str) -> list[str]:
    """All parts of a kind, in their order. The link to the other language is none, and figures stand in no name."""
    text = re.sub(r"\[\w+\]\(README[.\w]*\)", "", text)
    if what == "figures":
        text = re.sub(r"(?s)```.*?```|`[^`\n]*`|\]\([^)]*\)", "", text)
    return re.findall(PARTS[what], text)


@pytest.mark.parametrize("what", PARTS)
def test_the_chinese_readme_is_in_step(what: str) -> None:
    english, chinese = (parts((ROOT / name).read_text("utf-8"), what) for name in ("README.md", "README.zh.md"))
    assert english, what
    if what in ("headings", "rows of tables", "blocks of code"):
        assert chinese == english
    else:  # sentences of two languages have another order
        assert Counter(chinese) == Counter(english)


def test_the_commands_of_the_readme_exist() -> None:
    groups = {command.split()[0] for command in COMMANDS} | {"web", "schema"}
    named = parts((ROOT / "README.md").read_text("utf-8"), "commands and names")
    typed = [words.split()[1] for words in named if words.startswith("kopt ") and words.split()[1].islower()]
    assert len(typed) > 20
    assert set(typed) <= groups


def test_the_answer_of_the_readme_is_what_the_command_prints(kopt: Callable[..., Run]) -> None:
    store = (ROOT / "README.md").read_text("utf-8").partition("## The store")[2].partition("\n## ")[0]
    (words,) = re.findall(r"`kopt ([^`]*)` prints", store)
    (shown,) = re.findall(r"(?s)```\n(.*?)```", store)
    printed = iter(kopt(*shlex.split(words), env={"KOPT_BASE_LOG": "true"}).out.splitlines())
    for line in shown.splitlines():
        assert line in printed, f"{line!r} is not printed, or not in this order"
    assert " <- gpu-wiki/" in shown
    assert " <- log/" in shown


def test_the_latest_first_runs_have_every_figure_of_the_readme() -> None:
    """What a row of the README says of strangers stands on the page of all sets, too."""
    sets = (ROOT / "docs" / "blind-sets.md").read_text("utf-8")
    table = (ROOT / "README.md").read_text("utf-8").partition("strangers, latest first run")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.split("|")]
        for figure in re.findall(r"\d+(?: of \d+)?", f"{cells[2]} {cells[3]}"):
            first, _, _ = figure.partition(" ")
            assert re.search(rf"\b{first}\b", sets), f"{figure} of {cells[1]}"
