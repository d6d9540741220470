"""`kopt wiki alike`: sections that repeat each other, in the wikis that are chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Runner = Callable[..., Any]
SPLIT = """A row that is too long for one block is split between several blocks, each of which reduces its part of it.
The partial results are then added by a second kernel, which reads little and takes almost no time beside the first."""
SAID_AGAIN = """Where a row is too long for a single block, several blocks share it, and each block reduces a part.
A second kernel adds up the partial results; it reads little and hardly takes any time compared with the first one."""
OTHER = """The clock of a GPU falls when it is hot or draws too much power, so that a kernel takes longer than before.
Lock the clocks before you measure, or measure candidate and baseline in alternation within the same few seconds."""


def test_sections_that_say_the_same_are_listed_nearest_first(
    run: Runner, built_home: Path, tmp_path: Path, page: Callable[..., str]
) -> None:
    wiki = tmp_path / "team/technique"
    wiki.mkdir(parents=True)
    (tmp_path / "kopt.toml").write_text('wikis = ["team"]\n')
    for name, text in (("one", SPLIT), ("two", SAID_AGAIN), ("three", OTHER)):
        (wiki / f"{name}.md").write_text(page(f"technique/{name}", f"# Page {name}\n\n## Long rows {name}\n\n{text}\n"))

    def alike(*words: str) -> Any:
        return run(built_home, "wiki", "alike", "--wiki", "team", "--trust", *words, cwd=tmp_path)

    data = alike("--least", "0.8", "--json").json["data"]
    assert data["total"] == len(data["pairs"]) == 1
    pair = data["pairs"][0]
    assert {pair["first"].partition(":")[0], pair["second"].partition(":")[0]} == {
        "team/technique/one.md",
        "team/technique/two.md",
    }
    assert 0.8 <= pair["cosine"] < 1
    assert {pair["first_heading"], pair["second_heading"]} == {"Long rows one", "Long rows two"}
    assert alike("--least", "1.0").out.endswith("0 pairs alike\n")
    assert alike("--least", "0.8").out.splitlines()[-1] == "3 sections compared, 1 pair alike"


def test_a_wiki_that_is_not_there_is_an_error(run: Runner, built_home: Path) -> None:
    assert run(built_home, "wiki", "alike", "--wiki", "nothing-like-it").code == 2
