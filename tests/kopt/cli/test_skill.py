"""The skill: its form, its installation, and a test that does what it says, word for word."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kopt import __version__
from kopt.skill import NAME
from tests.conftest import Run
from tests.kopt.run_workspace import answer, workspace


@pytest.fixture
def installed(kopt: Callable[..., Run], tmp_path: Path) -> Path:
    """A folder with the skill in it."""
    done = kopt("skill", "install", str(tmp_path / "plugin"), "--json")
    assert done.code == 0
    assert [file["status"] for file in done.json["data"]["files"]] == ["new", "new", "new"]
    return tmp_path / "plugin"


def skill(folder: Path) -> str:
    return (folder / "skills" / NAME / "SKILL.md").read_text("utf-8")


def test_the_skill_has_the_form_that_agents_read(installed: Path) -> None:
    _, front, body = skill(installed).split("---\n", 2)
    head = yaml.safe_load(front)
    assert head["name"] == NAME
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", NAME)
    assert len(NAME) <= 64
    assert 0 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert len(body.splitlines()) < 500
    manifest = json.loads((installed / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    assert (manifest["name"], manifest["version"]) == ("kopt", __version__)


def test_another_content_is_never_overwritten_unasked(kopt: Callable[..., Run], installed: Path) -> None:
    again = kopt("skill", "install", str(installed), "--json")
    assert (again.code, [file["status"] for file in again.json["data"]["files"]]) == (0, ["same"] * 3)
    path = installed / "skills" / NAME / "SKILL.md"
    path.write_text("mine\n", "utf-8")
    refused = kopt("skill", "install", str(installed), "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (2, "output_exists")
    shown = kopt("skill", "install", str(installed), "--dry-run")
    assert (shown.code, path.read_text("utf-8")) == (0, "mine\n")
    assert "-mine" in shown.out
    assert kopt("skill", "install", str(installed), "--force").code == 0
    assert path.read_text("utf-8") != "mine\n"


def test_a_folder_that_cannot_be_written_is_an_error(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    done = kopt("skill", "install", str(tmp_path / "file" / "below"), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (1, "not_writable")


def commands(text: str) -> list[list[str]]:
    """Every command of its blocks, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.strip()]


def test_the_skill_can_be_followed_literally(
    run: Callable[..., Run], home: Path, installed: Path, tmp_path: Path
) -> None:
    folder = workspace(tmp_path / "work")
    listed = commands(skill(installed))
    assert all(words[0] == "kopt" for words in listed)
    said = {tuple(words[1:3]): words[1:] for words in listed}
    steps = [tuple(words[1:3]) for words in listed]
    loop = [("run", "next"), ("schema", "run-proposal"), ("run", "submit")]
    assert [step for step in steps if step in loop] == loop

    def do(*step: str) -> Run:
        return run(home, *said[step], cwd=folder)

    done: dict[tuple[str, ...], Run] = {}
    for step in steps[: steps.index(("run", "next"))]:
        done[step] = do(*step)
        assert done[step].code == 0, (step, done[step].out, done[step].err)
    schema = json.loads(do("schema", "run-proposal").out)
    for _ in range(10):
        found = run(home, *said["run", "next"], "--json", cwd=folder)
        if found.code == 3:
            break
        request = found.json["data"]["request"]
        proposal = answer(request)
        assert set(proposal) <= set(schema["properties"])
        assert set(schema["required"]) <= set(proposal)
        (folder / "proposal.json").write_text(json.dumps(proposal), "utf-8")
        handed = do("run", "submit")
        assert handed.code == 0, handed.out
    else:
        pytest.fail("the run does not end")
    assert "finished" in do("run", "status").out
    assert "Final report" in do("run", "report").out or "final" in do("run", "report").out.lower()
    question = next(step for step in steps if step[0] == "ask")
    assert do(*question).code in (0, 3)
    applied = do("run", "apply")
    assert applied.code == 3, "on the CPU nothing was kept, so there is nothing to apply"
    untried = {words[1:3][1] for words in listed if words[1] == "run"} - {step[1] for step in (*done, *loop)}
    assert untried <= {"status", "report", "apply"}


def test_the_example_does_what_it_shows(run: Callable[..., Run], home: Path, installed: Path, tmp_path: Path) -> None:
    example = skill(installed).split("## A whole iteration\n")[1]
    folder = tmp_path / "work"
    folder.mkdir()
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", example, re.DOTALL):
        (folder / name).write_text(text, "utf-8")
    change = re.search(r"```diff\n-(.*?)\n\+(.*?)\n```", example)
    assert change is not None
    reference = ""
    done = 0
    for block in re.findall(r"```console\n(.*?)```", example, re.DOTALL):
        for typed, shown in re.findall(r"(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block):
            words = shlex.split(typed.replace("\\\n", " ").replace("gpu-wiki/…", reference))
            if words[0] == "cp":
                text = (folder / words[1]).read_text("utf-8")
                assert text.count(change[1]) == 1
                (folder / words[2]).write_text(text.replace(change[1], change[2]), "utf-8")
                continue
            said = run(home, *words[1:], cwd=folder)
            done += 1
            lines = said.out.splitlines()
            for wanted in filter(str.strip, shown.splitlines()):
                parts = [part for part in wanted.split("…") if part]
                assert not parts or any(all(part in line for part in parts) for line in lines), (wanted, said)
            if words[1:3] == ["run", "next"] and not reference:
                found = run(home, "run", "next", "--json", cwd=folder).json["data"]["request"]["searches"]
                reference = next(one for one in found if one["about"] == "kernel")["hits"][0]["reference"]
    assert done == 7
