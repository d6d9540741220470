"""`kopt skill install --for`: each agent's files, never over what is there, and twice is as once."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from kopt.skill import AGENTS, NAME
from kopt.skill.parts import BEGIN, END
from tests.conftest import Run, run_kopt
from tests.kopt.mcp.client import environment

Kopt = Callable[..., Run]
MINE = "# Rules of ours\n\nTabs, not blanks.   \r\nNo newline at the end."
THEIRS = '{\n    "other": [1, 2.50],\n    "mcpServers": {"them": {"command": "x", "env": {"Ä": "1"}}}\n}'
TOML = 'model = "o"  # ours\n\n[mcp_servers.them]\ncommand = "x"\n'


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(autouse=True)
def _on_the_path(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path_factory.mktemp("programs") / "kopt"
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def install(kopt: Kopt, folder: Path, agent: str, *more: str) -> list[str]:
    """The statuses of the files."""
    done = kopt("skill", "install", "--for", agent, "--json", *more, cwd=folder)
    assert done.code == 0, done.out
    return [one["status"] for one in done.json["data"]["files"]]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_project_and_again(kopt: Kopt, tmp_path: Path, agent: str) -> None:
    assert set(install(kopt, tmp_path, agent, "--dry-run")) == {"new"}
    assert files(tmp_path) == {}
    assert set(install(kopt, tmp_path, agent)) == {"new"}
    made = files(tmp_path)
    assert set(install(kopt, tmp_path, agent)) == {"same"}
    assert set(install(kopt, tmp_path, agent, "--force")) == {"same"}
    assert files(tmp_path) == made
    assert all(b"\n---\n" in data for path, data in made.items() if path.endswith(("SKILL.md", ".mdc")))


def test_what_a_project_has_stays(kopt: Kopt, tmp_path: Path) -> None:
    for path, text in {
        "AGENTS.md": MINE,
        ".mcp.json": THEIRS,
        ".cursor/mcp.json": THEIRS,
        ".codex/config.toml": TOML,
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    for agent in AGENTS:
        assert "other" not in install(kopt, tmp_path, agent)
    for agent in AGENTS:
        assert set(install(kopt, tmp_path, agent)) == {"same"}
    made = files(tmp_path)
    agents = made["AGENTS.md"].decode()
    assert agents.startswith(MINE)
    assert agents.count(BEGIN) == agents.count(END) == 1
    assert made[".codex/config.toml"].decode().startswith(TOML)
    assert tomllib.loads(made[".codex/config.toml"].decode())["mcp_servers"] == {
        "them": {"command": "x"},
        "kopt": {"command": "kopt", "args": ["mcp"]},
    }
    for path in (".mcp.json", ".cursor/mcp.json"):
        document = json.loads(made[path])
        assert document["mcpServers"].pop("kopt")["command"] == "kopt"
        assert document == json.loads(THEIRS)
        assert list(document) == ["other", "mcpServers"]
        assert b"\n    " in made[path]


@pytest.mark.parametrize(
    ("agent", "path", "text", "code"),
    [
        ("claude-code", ".mcp.json", '{"mcpServers": {"kopt": {"command": "mine"}}}', "output_exists"),
        ("claude-code", f".claude/skills/{NAME}/SKILL.md", "mine\n", "output_exists"),
        ("codex", "AGENTS.md", f"ours\n{BEGIN}\nour own words\n{END}\nmore\n", "output_exists"),
        ("codex", ".codex/config.toml", '[mcp_servers.kopt]\ncommand = "mine"\n', "output_exists"),
        ("cursor", ".cursor/rules/kopt.mdc", "mine\n", "output_exists"),
        ("prompt", "kopt-prompt.md", "mine\n", "output_exists"),
        ("claude-code", ".mcp.json", "{not json", "file_unsuitable"),
        ("claude-code", ".mcp.json", "[1]", "file_unsuitable"),
        ("claude-code", ".mcp.json", '{"mcpServers": []}', "file_unsuitable"),
        ("cursor", ".cursor/mcp.json", "[" * 100_000, "file_unsuitable"),
        ("codex", "AGENTS.md", f"{BEGIN}\nno end\n", "file_unsuitable"),
        ("codex", "AGENTS.md", f"{END}\n{BEGIN}\n", "file_unsuitable"),
        ("codex", "AGENTS.md", "\udcff", "file_unsuitable"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n", "file_unsuitable"),
        ("codex", ".codex/config.toml", "not toml", "file_unsuitable"),
    ],
)
def test_other_content_is_refused_and_nothing_is_written(
    kopt: Kopt, tmp_path: Path, agent: str, path: str, text: str, code: str
) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    before = files(tmp_path)
    done = kopt("skill", "install", "--for", agent, "--json", cwd=tmp_path)
    assert (done.code, done.json["errors"][0]["code"]) == (2, code), done.out
    assert files(tmp_path) == before


def test_force_replaces_what_is_kopts_alone(kopt: Kopt, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(f"before\n{BEGIN}\nchanged\n{END}\nafter\n", "utf-8")
    assert "-changed" in kopt("skill", "install", "--for", "codex", "--dry-run", cwd=tmp_path).out
    assert install(kopt, tmp_path, "codex", "--force")[0] == "other"
    text = (tmp_path / "AGENTS.md").read_text("utf-8")
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "changed" not in text


def test_a_program_that_is_not_on_the_path_is_named_by_its_full_path(home: Path, tmp_path: Path) -> None:
    own = Path(sysconfig.get_path("scripts"), "kopt")
    if not own.is_file():
        pytest.skip("kopt runs from a folder that was not installed")
    environment = {"PATH": "/usr/bin:/bin"}
    for agent, path in (("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("codex", ".codex/config.toml")):
        done = run_kopt(home, "skill", "install", "--for", agent, cwd=tmp_path, env=environment, fresh=True)
        assert done.code == 0, done.err
        assert f"put {own.parent} on the agent's PATH" in done.err
        assert f'"{own}"' in (tmp_path / path).read_text("utf-8")
        again = run_kopt(home, "skill", "install", "--for", agent, "--json", cwd=tmp_path, fresh=True)
        assert {one["status"] for one in again.json["data"]["files"]} == {"same"}


def test_links_of_a_project_are_followed_within_it_alone(kopt: Kopt, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / "CLAUDE.md").write_text("ours\n", "utf-8")
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    install(kopt, project, "codex")
    assert (project / "AGENTS.md").is_symlink()
    assert (project / "CLAUDE.md").read_text("utf-8").startswith("ours\n")
    (project / ".cursor").symlink_to(outside)
    (project / ".mcp.json").symlink_to(outside / "secret.json")
    (project / "kopt-prompt.md").symlink_to("kopt-prompt.md")
    for agent in ("cursor", "claude-code", "prompt"):
        before = files(project)
        done = kopt("skill", "install", "--for", agent, "--force", "--json", cwd=project)
        assert (done.code, done.json["errors"][0]["code"]) == (2, "link_leads_out"), agent
        assert files(project) == before
    assert list(outside.iterdir()) == []


def test_words_that_name_nothing(kopt: Kopt, tmp_path: Path) -> None:
    for words, code in ((["--for", "emacs"], "agent_unknown"), ([], "agent_missing")):
        done = kopt("skill", "install", *words, "--json", cwd=tmp_path)
        assert (done.code, done.json["errors"][0]["code"]) == (2, code)


def test_the_forms_that_agents_read(kopt: Kopt, tmp_path: Path) -> None:
    for agent in AGENTS:
        install(kopt, tmp_path, agent)
    for folder in (".claude/skills", ".agents/skills"):
        _, front, _ = (tmp_path / folder / NAME / "SKILL.md").read_text("utf-8").split("---\n", 2)
        assert yaml.safe_load(front)["name"] == NAME
    _, front, rule = (tmp_path / ".cursor/rules/kopt.mdc").read_text("utf-8").split("---\n", 2)
    assert set(yaml.safe_load(front)) == {"description", "globs", "alwaysApply"}
    prompt = (tmp_path / "kopt-prompt.md").read_text("utf-8")
    assert rule.strip() in prompt
    assert not prompt.startswith("---")


@pytest.mark.parametrize("agent", ["claude-code", "codex", "cursor"])
def test_the_entry_starts_the_server(kopt: Kopt, home: Path, tmp_path: Path, agent: str) -> None:
    install(kopt, tmp_path, agent)
    entries: dict[str, Callable[[], Any]] = {
        "claude-code": lambda: json.loads((tmp_path / ".mcp.json").read_text("utf-8"))["mcpServers"],
        "codex": lambda: tomllib.loads((tmp_path / ".codex/config.toml").read_text("utf-8"))["mcp_servers"],
        "cursor": lambda: json.loads((tmp_path / ".cursor/mcp.json").read_text("utf-8"))["mcpServers"],
    }
    entry = entries[agent]()["kopt"]
    assert entry["command"] == "kopt"
    words = [word.replace("${workspaceFolder}", str(tmp_path)) for word in entry["args"]]

    async def main() -> None:
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "kopt", *words], env=environment(home), cwd=str(tmp_path)
        )
        async with Client(started) as client:
            done = await client.call_tool("spec", {"gpu": ["h100-sxm"], "metric": "hbm_bandwidth"})
            assert "3.35 TB/s <- gpu-wiki/hardware/h100-sxm.md" in str(done.content)

    anyio.run(main)
