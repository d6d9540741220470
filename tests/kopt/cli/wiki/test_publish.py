"""`kopt wiki publish`: the command around the site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Runner = Callable[..., Any]
pytestmark = pytest.mark.processes


def test_the_command(run: Runner, built_home: Path, tmp_path: Path, page: Callable[..., str]) -> None:
    team, out = tmp_path / "team", tmp_path / "site"
    (team / "kernel").mkdir(parents=True)
    (team / "kernel/sum.md").write_text(page("kernel/sum", "# Sum\n\nA sum adds all elements.\n\n![a sum](sum.png)"))

    def publish(*words: str) -> Any:
        return run(built_home, "wiki", "publish", *words)

    first = publish(str(out), "--wiki", str(team), "--json")
    assert first.code == 0
    data = first.json["data"]
    assert (data["wikis"], data["pages"], data["changed"], data["removed"]) == (["team"], 1, data["files"], 0)
    said = "team/kernel/sum.md:16: the picture kernel/sum.png is left out: there is no such file in the wiki"
    assert [line.partition(":")[2] for line in data["left_out"]] == [
        line.partition(":")[2] for line in first.json["warnings"]
    ]
    assert said.partition(": ")[2] in data["left_out"][0]
    assert "A sum adds all elements." in (out / "team/kernel/sum.html").read_text()

    (team / "kernel/sum.md").rename(team / "kernel/scan.md")
    (team / "kernel/scan.md").write_text(page("kernel/scan", "# Scan\n\nA scan keeps each sum."))
    again = publish(str(out), "--wiki", str(team))
    assert again.out.startswith("1 pages of team: ")
    assert " 2 removed; open " in again.out
    assert not (out / "team/kernel/sum.html").exists()

    (tmp_path / "others").mkdir()
    (tmp_path / "others/file").write_text("x")
    refused = publish(str(tmp_path / "others"), "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (2, "site_folder")
    assert [path.name for path in (tmp_path / "others").iterdir()] == ["file"]
    unknown = publish(str(tmp_path / "new"), "--wiki", "nothing", "--json")
    assert (unknown.code, unknown.json["errors"][0]["code"]) == (2, "wiki_unknown")
    assert not (tmp_path / "new").exists()
    blocked = publish(str(tmp_path / "others/file/below"), "--wiki", str(team), "--json")
    assert (blocked.code, blocked.json["errors"][0]["code"]) == (1, "not_writable")
