"""Data of `kopt doctor` and `kopt skill install`."""

from __future__ import annotations

from typing import Any

from kbs.common.json_model import JsonModel
from kopt.services.doctor import Check
from kopt.skill import SkillFile


class SettingData(JsonModel):
    """A setting and where it came from."""

    name: str
    value: Any
    origin: str


class DoctorData(JsonModel):
    """`kopt doctor`"""

    home: str
    checks: list[Check]
    settings: list[SettingData]


class McpData(JsonModel):
    """`kopt mcp`, when it has ended"""

    address: str
    """Where it listened; empty for stdin and stdout."""
    root: str
    """Folder whose files clients could name."""


class SkillData(JsonModel):
    """`kopt skill install`"""

    folder: str
    dry_run: bool
    files: list[SkillFile]
