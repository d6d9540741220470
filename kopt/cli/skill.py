"""`kopt skill`: the skill for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

skill = typer.Typer(help="A skill that tells a coding agent how to drive a run.", no_args_is_help=True)


@skill.callback()
def root() -> None:
    """A skill that tells a coding agent how to drive a run."""


@skill.command("install")
def install(
    folder: Annotated[Path, typer.Argument(help="Where to put it; a plugin's folder. It is made if it is not there.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files that have another content.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Write a skill in the Agent Skills form, with a plugin manifest, into a folder.

    Files that have another content there are left alone, and the exit code is 2, unless --force is given.
    """

    def work() -> Reply:
        from kopt.services.results.installation import SkillData
        from kopt.skill import install as install_files
        from kopt.skill import look

        found = look(folder)
        if not dry_run:
            install_files(folder, found, force=force)
        words = {
            "new": "would write" if dry_run else "wrote",
            "same": "unchanged",
            "other": "would replace, with --force," if dry_run and not force else "would replace",
        }
        if not dry_run:
            words["other"] = "replaced"
        data = SkillData(
            folder=str(folder),
            dry_run=dry_run,
            files=list(found),
        )

        def show(console: Console) -> None:
            for file in found:
                console.print(f"{words[file.status]} {folder / file.path}", markup=False)
                if dry_run and file.change:
                    console.print(file.change, markup=False, end="")

        return Reply(data, show)

    deliver("skill install", json, debug, work)
