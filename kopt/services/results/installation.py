"""Data of `kopt doctor` and `kopt skill install`."""

from __future__ import annotations

from typing import Any, Literal

from kbs.common.json_model import JsonModel


class CheckData(JsonModel):
    """One thing that `kopt doctor` looked at."""

    name: str
    status: Literal["ok", "warning", "error", "absent"]
    detail: str
    hint: str


class SettingData(JsonModel):
    """A setting and where it came from."""

    name: str
    value: Any
    origin: str


class DoctorData(JsonModel):
    """`kopt doctor`"""

    home: str
    checks: list[CheckData]
    settings: list[SettingData]


class SkillFileData(JsonModel):
    """A file of the skill."""

    path: str
    status: Literal["new", "same", "other"]
    """What stood at its place before: nothing, this, or something else."""
    change: str
    """For `other`: the difference."""


class SkillData(JsonModel):
    """`kopt skill install`"""

    folder: str
    dry_run: bool
    files: list[SkillFileData]
