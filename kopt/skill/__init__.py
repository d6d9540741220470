"""What coding agents are told: a skill, the entry of the MCP server, and writing both where each agent looks."""

from __future__ import annotations

import difflib
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from kbs.common.errors import KoptError, UsageError
from kbs.common.files import make_folder, write_whole
from kbs.common.json_model import JsonDataclass
from kopt.skill.parts import Made, Status, json_entry, section, toml_table

NAME = "optimize-gpu-kernel"
"""Of the skill, and of its folder, as the Agent Skills form wants it."""
PLUGIN = "plugin"
"""A folder that Claude Code loads as a plugin; what is written where no agent is named."""
AGENTS = ("claude-code", "codex", "cursor", "prompt")
"""Agents that it can be set up for, in the project of a folder."""
COMMAND = "kopt"
"""How an agent starts kopt where that is on its PATH."""
_ARGS = ["mcp"]
"""The server is started in the project's folder."""
_IN_CURSOR = ["mcp", "--root", "${workspaceFolder}"]
"""Cursor may start it elsewhere, and fills in the folder."""


@dataclass(frozen=True)
class SkillFile(JsonDataclass):
    """A file for an agent, and what stands at its place."""

    path: str
    """Below the chosen folder."""
    content: Annotated[bytes, Field(exclude=True)]
    status: Status
    """`new`: nothing stands there; `same`: this; `added`: all that stands there stays; `other`: something else."""
    change: str
    """For `added` and `other`: what would become different, as a unified diff."""


def command_here() -> str:
    """How an agent that is started from here starts kopt: by its full path where it is not on the PATH, as in an
    environment that was not activated."""
    own = Path(sysconfig.get_path("scripts"), COMMAND)
    return COMMAND if shutil.which(COMMAND) or not own.is_file() else str(own)


def look(folder: Path, agent: str = PLUGIN, command: str = COMMAND) -> tuple[SkillFile, ...]:
    """The files for an agent that starts kopt by `command`, against what stands in a folder. Writes nothing.

    Raises `UsageError` (`agent_unknown`, `file_unsuitable`, `output_exists`, `link_leads_out`), KoptError
    `file_unreadable`.
    """
    if agent not in (PLUGIN, *AGENTS):
        raise UsageError(f"unknown agent {agent!r}", code="agent_unknown", hint=f"Choose from {', '.join(AGENTS)}.")
    return tuple(_look(folder, place, make) for place, make in _places(agent, command).items())


def install(folder: Path, found: tuple[SkillFile, ...], *, force: bool) -> None:
    """Write what is not there. UsageError `output_exists` where another content stands and `force` is not given."""
    others = [file.path for file in found if file.status == "other"]
    if others and not force:
        raise UsageError(
            f"{folder} has other content at {', '.join(others)}",
            code="output_exists",
            hint="--dry-run shows the difference, --force overwrites it; or choose another folder.",
        )
    for file in found:
        if file.status != "same":
            path = _within(folder, file.path)
            make_folder(path.parent)
            write_whole(path, file.content, keep_mode=True)


def _within(folder: Path, place: str) -> Path:
    """Where a file is, through links of the project: `AGENTS.md` may lead to `CLAUDE.md`. UsageError where one leads
    out of it, since a project may come from a stranger."""
    path = folder / place
    try:
        found = path.resolve()
        inside = found.is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links
        inside = False
    if not inside:
        raise UsageError(
            f"{path} leads out of the project", code="link_leads_out", hint="Take the link away, then try again."
        )
    return found


def _places(agent: str, command: str) -> dict[str, Callable[[str, bytes], Made]]:
    """Place of each file below the folder → what makes it of its path and of what stands there."""
    server, in_cursor = ({"command": command, "args": args} for args in (_ARGS, _IN_CURSOR))
    skill, told = _own("SKILL.md"), _own("AGENTS.md").decode()
    plain = skill.split(b"---\n", 2)[2].lstrip()
    places: dict[str, dict[str, Callable[[str, bytes], Made]]] = {
        PLUGIN: {
            ".claude-plugin/plugin.json": _whole(_own("plugin.json")),
            f"skills/{NAME}/SKILL.md": _whole(skill),
            ".mcp.json": partial(_entry, value=server),
        },
        "claude-code": {f".claude/skills/{NAME}/SKILL.md": _whole(skill), ".mcp.json": partial(_entry, value=server)},
        "codex": {
            "AGENTS.md": lambda path, there: section(path, there, told),
            f".agents/skills/{NAME}/SKILL.md": _whole(skill),
            ".codex/config.toml": lambda path, there: toml_table(path, there, ("mcp_servers", "kopt"), server),
        },
        "cursor": {
            ".cursor/rules/kopt.mdc": _whole(_rule(plain)),
            ".cursor/mcp.json": partial(_entry, value=in_cursor),
        },
        "prompt": {"kopt-prompt.md": _whole(f"{told.strip()}\n\n".encode() + plain)},
    }
    return places[agent]


def _entry(path: str, there: bytes, value: Mapping[str, Any]) -> Made:
    return json_entry(path, there, ("mcpServers", "kopt"), value)


def _rule(plain: bytes) -> bytes:
    """A rule of Cursor, which its agent takes by the description."""
    about = "Questions about GPUs, and making a Triton or CUDA kernel faster with kopt"
    return f"---\ndescription: {about}\nglobs:\nalwaysApply: false\n---\n\n".encode() + plain


def _whole(content: bytes) -> Callable[[str, bytes], Made]:
    """A file that is kopt's alone."""
    return lambda _, there: (content, "same" if there == content else "other")


def _own(name: str) -> bytes:
    return (files(__name__) / name).read_bytes()


def _look(folder: Path, place: str, make: Callable[[str, bytes], Made]) -> SkillFile:
    path = folder / place
    try:
        there = _within(folder, place).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return SkillFile(place, make(str(path), b"")[0], "new", "")
    except OSError as error:
        raise KoptError(
            f"cannot read {path}: {error.strerror}", code="file_unreadable", hint="Choose another folder."
        ) from error
    content, status = make(str(path), there)
    if status == "same":
        return SkillFile(place, content, status, "")
    lines = (there.decode("utf-8", "replace").splitlines(True), content.decode().splitlines(True))
    return SkillFile(place, content, status, "".join(difflib.unified_diff(*lines, f"a/{place}", f"b/{place}")))
