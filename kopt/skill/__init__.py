"""The skill that teaches a coding agent to drive a run: its files, and writing them to a folder."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kbs.common.errors import KoptError, UsageError
from kbs.common.files import make_folder, write_whole
from kbs.common.json_model import JsonDataclass

NAME = "optimize-gpu-kernel"
"""Of the skill, and of its folder, as the Agent Skills form wants it."""
PLACES = {".claude-plugin/plugin.json": "plugin.json", f"skills/{NAME}/SKILL.md": "SKILL.md"}
"""Where each file goes below the chosen folder, and what it is called here."""
Status = Literal["new", "same", "other"]


@dataclass(frozen=True)
class SkillFile(JsonDataclass):
    """A file of the skill, and what stands at its place."""

    path: str
    """Below the chosen folder."""
    content: Annotated[bytes, Field(exclude=True)]
    status: Status
    """`new`: nothing stands there; `same`: this; `other`: something else."""
    change: str
    """For `other`: what would become different, as a unified diff."""


def look(folder: Path) -> tuple[SkillFile, ...]:
    """The skill's files against what stands in a folder. Writes nothing. KoptError `file_unreadable`."""
    return tuple(_look(folder, place, (files(__name__) / name).read_bytes()) for place, name in PLACES.items())


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
            make_folder((folder / file.path).parent)
            write_whole(folder / file.path, file.content)


def _look(folder: Path, place: str, content: bytes) -> SkillFile:
    path = folder / place
    try:
        there = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return SkillFile(place, content, "new", "")
    except OSError as error:
        raise KoptError(
            f"cannot read {path}: {error.strerror}", code="file_unreadable", hint="Choose another folder."
        ) from error
    if there == content:
        return SkillFile(place, content, "same", "")
    lines = (there.decode("utf-8", "replace").splitlines(True), content.decode().splitlines(True))
    return SkillFile(place, content, "other", "".join(difflib.unified_diff(*lines, f"a/{place}", f"b/{place}")))
