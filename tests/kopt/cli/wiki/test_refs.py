"""`kopt wiki refs`: what refers to a page, and what of it is not up to date."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import UsageError
from kbs.common.ulid import new_ulid
from kbs.evidence.citation import lines_hash
from kbs.experience.experiment import Experiment
from kopt.services.curation.refs import find_refs
from kopt.services.engine import Engine
from kopt.services.experience.log import open_log
from kopt.services.settings import load_settings

Runner = Callable[..., Any]
PAGE = "team/technique/swizzle.md"


@dataclass
class Team:
    """A wiki with a page that others refer to, and a workspace."""

    root: Path
    work: Path
    engine: Engine

    def refs(self, asked: str = "technique/swizzle") -> list[tuple[str, str, str, str]]:
        """(place, lines cited, status, detail) of each reference."""
        found = find_refs(Engine(self.engine.settings), asked, self.work).found
        return [(one.place, one.cites.rpartition(":")[2], str(one.status), one.detail) for one in found]

    def lines(self, start: int, end: int) -> list[str]:
        """Lines of the page as they are now."""
        return (self.root / "technique/swizzle.md").read_text("utf-8").split("\n")[start - 1 : end]

    def run(self, name: str, document: object) -> None:
        """A run below the workspace, with what it cites."""
        folder = self.work / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
        if document is not None:
            (folder / "citations.json").write_text(document if isinstance(document, str) else json.dumps(document))

    def cited(self, start: int, end: int, said: list[str] | None = None, **changes: Any) -> dict[str, Any]:
        """An entry of a run's citations."""
        lines = self.lines(start, end) if said is None else said
        span = f"L{start}" + (f"-L{end}" if end != start else "")
        entry = {"reference": f"{PAGE}:{span}", "cited_in": ["v1/proposal.json"], "lines": lines, "why": ""}
        return {**entry, "hash": lines_hash(lines), **changes}


@pytest.fixture
def team(tmp_path: Path, page: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    root, work = tmp_path / "team", tmp_path / "work"
    work.mkdir()
    pages = {
        "technique/swizzle": "# Swizzle\nA swizzle permutes tiles.\nIt costs two operations.",  # lines 11 to 13
        "kernel/scan": (
            "# Scan\nSee [it](../technique/swizzle.md#swizzle) and `[code](../technique/swizzle.md)`.\n"
            "[Escaped](../technique/swizz%6Ce.md), [other](../technique/tiling.md).\n"
            f'"A swizzle permutes tiles" <- {PAGE}:L12\n"A swizzle permutes nothing at all" <- {PAGE}:L12\n'
            f"see {PAGE}:L99\n"
        ),
        "technique/tiling": "# Tiling\n\nIt names technique/swizzle.md and team/technique/swizzle.mdx:L1 alone.\n",
    }
    for id, body in pages.items():
        (root / f"{id}.md").parent.mkdir(parents=True, exist_ok=True)
        (root / f"{id}.md").write_text(page(id, body), "utf-8")
    assert "permutes tiles" in (root / "technique/swizzle.md").read_text("utf-8").split("\n")[11]
    return Team(root, work, Engine(load_settings({"wikis": [str(root)]}, workspace=work)))


def test_links_and_citations_of_pages(team: Team) -> None:
    scan = "team/kernel/scan.md:L"
    wrong = team.refs()[3][3]
    assert team.refs() == [
        (f"{scan}12", "", "ok", ""),
        (f"{scan}13", "", "ok", ""),
        (f"{scan}14", "L12", "ok", ""),
        (f"{scan}15", "L12", "mismatch", wrong),
        (f"{scan}16", "L99", "not found", "technique/swizzle.md ends at line 13"),
    ]
    assert wrong
    assert team.refs("team/technique/swizzle.md") == team.refs()
    assert [place for place, *_ in team.refs("technique/tiling")] == [f"{scan}13"]


def test_lines_that_are_asked_for(team: Team) -> None:
    team.run("a", [team.cited(12, 13), team.cited(11, 11)])
    lines = ["L12", "L12", "L12-L13"]
    for asked in (":12", ":L12", ":L12-L12", ".md:12-13"):
        assert [cites for _, cites, *_ in team.refs(f"technique/swizzle{asked}")] == lines, asked
    assert [cites for _, cites, *_ in team.refs("technique/swizzle:L13")] == ["L12-L13"]
    assert team.refs("technique/swizzle:1") == []
    for asked in ("technique/swizzle:14", "technique/swizzle:0", "technique/swizzle:L3-L2", "technique/nothing"):
        with pytest.raises(UsageError) as caught:
            team.refs(asked)
        assert caught.value.code == "not_found"


def test_what_runs_cite_is_stale_where_the_lines_read_otherwise(team: Team) -> None:
    gone = {"lines": None, "hash": None, "why": "the page has changed since the run began"}
    moved, other = team.lines(13, 13), ["It costs three operations."]
    team.run("a", [team.cited(12, 13), team.cited(12, 12, moved), team.cited(13, 13, other)])
    team.run("b", [team.cited(12, 12, **gone), {**team.cited(1, 1), "reference": "team/kernel/scan.md:L1"}])
    team.run("c", None)
    changed = "the lines have changed since they were cited"
    assert [one for one in team.refs() if "/" not in one[0]] == [
        ("a", "L12-L13", "ok", ""),
        ("a", "L12", "stale", f"{changed}; the same text is at L13 now"),
        ("a", "L13", "stale", changed),
        ("b", "L12", "ok", ""),
    ]
    found = find_refs(team.engine, "technique/swizzle", team.work)
    assert next(one for one in found.found if one.by == "run").files == ("v1/proposal.json",)
    assert (found.stale, found.warnings) == (4, [])


@pytest.mark.parametrize(
    "document",
    ["{", "{}", "[1]", "[{}]", "[" * 100_000, '[{"reference": 1, "cited_in": [], "lines": [], "hash": ""}]',
     '[{"reference": "a", "cited_in": "b", "lines": [], "hash": ""}]', "\x00"],
)  # fmt: skip
def test_a_run_that_cannot_be_read_is_told_of(team: Team, document: str) -> None:
    team.run("bad\x1b[31m", document)
    team.run("good", [team.cited(12, 12)])
    found = find_refs(team.engine, "technique/swizzle:12", team.work)
    assert [one.place for one in found.found if one.by == "run"] == ["good"]
    assert found.warnings == ["what the run bad\\x1b[31m cites cannot be read"]


@pytest.mark.processes  # git is asked what lines once said
def test_records_of_the_log(team: Team) -> None:
    fields: dict[str, Any] = {
        "time": "2026-11-21T14:00:00Z", "kernel": "scan.py", "optimization": "Permute the tiles", "outcome": "neutral",
        "provenance": "reported",
    }  # fmt: skip
    stale = lines_hash(["It costs three operations."])[:16]
    cites = [(f"{PAGE}:L12",), (f"{PAGE}:L13@{stale}", "gpu-wiki/kernel/softmax.md:L3"), (f"{PAGE}:L11",), ("nothing",)]
    made = [Experiment(id=new_ulid(), **fields, dims={"M": n}, evidence=e) for n, e in enumerate(cites, 1)]
    said = Experiment(id=new_ulid(), **fields, dims={"M": 9}, lesson=f"As {PAGE}:L12-L13 says, it pays.")
    log = open_log(team.engine.settings)
    log.append([*made, said])
    log.mask(made[2].id, True, "a typing error")
    found = {place: rest for place, *rest in team.refs() if place.startswith("log/")}
    assert found.pop(made[1].reference)[:2] == ["L13@" + stale, "stale"]
    assert found == {
        made[0].reference: ["L12", "ok", ""],
        made[2].reference: ["L11", "stale", "the record is masked"],
        said.reference: ["L12-L13", "ok", ""],
    }


def test_the_command(run: Runner, built_home: Path, team: Team) -> None:
    team.run("a", [team.cited(13, 13, ["It costs three operations."])])
    (team.work / "kopt.toml").write_text(f'wikis = ["{team.root}"]\n')
    done = run(built_home, "wiki", "refs", "technique/swizzle:L13", "--trust", cwd=team.work)
    assert done.out.splitlines() == [
        f"{PAGE}:L13 (swizzle): 1 reference, 1 of them not up to date",
        "  run   a  stale: cites L13 in v1/proposal.json: the lines have changed since they were cited",
    ]
    data = run(built_home, "wiki", "refs", "technique/swizzle", "--trust", "--json", cwd=team.work).json["data"]
    assert [data[name] for name in ("wiki", "path", "start", "stale")] == ["team", "technique/swizzle.md", 0, 3]
    assert data["refs"][0] == {
        "by": "page",
        "place": "team/kernel/scan.md:L12",
        "cites": "",
        "status": "ok",
        "detail": "",
        "files": [],
    }
    none = run(built_home, "wiki", "refs", "kernel/softmax:1", cwd=team.work)
    assert none.out == "gpu-wiki/kernel/softmax.md:L1 (Softmax): no references\n"
    wrong = run(built_home, "wiki", "refs", "kernel/softmax:L999999", "--json", cwd=team.work)
    assert (wrong.code, wrong.json["errors"][0]["code"]) == (2, "not_found")
