"""`kopt skill`: what coding agents are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply, tell

if TYPE_CHECKING:
    from rich.console import Console

skill = typer.Typer(help="Set coding agents up: a skill, and the entry of the MCP server.", no_args_is_help=True)
_NEXT = {
    "claude-code": "Start `claude` in the folder and allow the server `kopt`.",
    "codex": "Start `codex` in the folder; it reads .codex/config.toml in projects that you trust.",
    "cursor": "Open the folder in Cursor and switch the server `kopt` on in its settings.",
    "prompt": "Give kopt-prompt.md to any model that can run commands.",
}


@skill.callback()
def root() -> None:
    """Set coding agents up: a skill, and the entry of the MCP server."""


@command("skill install", skill)
def install(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Project of the agent (default: this folder); without --for, a new folder for a plugin."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--for", metavar="NAME", help="claude-code, codex, cursor, or prompt: one file for any model."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files with other content.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, without writing.")] = False,
) -> Reply:
    """Set a coding agent up to use kopt: a skill that teaches it to drive a run, and the entry of `kopt mcp`.

    Without --for, writes a Claude Code plugin: the skill in the Agent Skills format, a manifest and the entry.

    What stands in a project stays: AGENTS.md gets a section, mcp.json and config.toml an entry, and again changes
    nothing. Files or entries with other content are not overwritten, and the exit code is 2, unless --force is given.

    kopt skill install --for codex · kopt skill install --for cursor --dry-run · kopt skill install plugin-folder
    """
    from kbs.common.errors import UsageError
    from kopt.services.results.installation import SkillData
    from kopt.skill import AGENTS, COMMAND, PLUGIN, command_here, look
    from kopt.skill import install as install_files

    if folder is None and agent is None:
        raise UsageError(
            "name an agent or a folder",
            code="agent_missing",
            hint=f"kopt skill install --for NAME, one of {', '.join(AGENTS)}; or give a folder for a plugin.",
        )
    place, command = folder or Path(), command_here()
    found = look(place, PLUGIN if agent is None else agent, command)
    if not dry_run:
        install_files(place, found, force=force)
    done = {"new": "wrote", "same": "unchanged", "added": "added to", "other": "replaced"}
    if dry_run:
        done |= {"new": "would write", "added": "would add to"}
        done |= {"other": "would replace" if force else "would replace, with --force,"}
    if command != COMMAND:
        where = f"{COMMAND} is not on the PATH, so an entry has its full path; for the commands of the skill"
        tell(f"{where} put {Path(command).parent} on the agent's PATH.\n")
    data = SkillData(folder=str(place), dry_run=dry_run, files=list(found))

    def show(console: Console) -> None:
        for file in found:
            console.print(f"{done[file.status]} {place / file.path}", markup=False)
            if dry_run and file.change:
                console.print(file.change, markup=False, end="")
        if agent is not None and not dry_run:
            console.print(_NEXT[agent], markup=False)

    return Reply(data, show)
