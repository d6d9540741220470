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


class SkillData(JsonModel):
    """`kopt skill install`"""

    folder: str
    dry_run: bool
    files: list[SkillFile]
