"""Data of `kopt doctor` and `kopt skill install`."""

from __future__ import annotations

from typing import Any, Self

from kbs.common.json_model import JsonModel
from kopt.services.doctor import Check
from kopt.services.settings import LoadedSettings
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

    @classmethod
    def of(cls, loaded: LoadedSettings, checks: list[Check]) -> Self:
        """Of what was looked at, with the settings in force; secrets are not told."""
        values = loaded.values.model_dump(mode="json")
        settings = [SettingData(name=name, value=value, origin=loaded.origins[name]) for name, value in values.items()]
        return cls(home=str(loaded.home), checks=checks, settings=settings)


class McpData(JsonModel):
    """`kopt mcp`, when it has ended"""

    address: str
    """Where it listened; empty for stdin and stdout."""
    root: str
    """Folder whose files clients could name."""


class WebData(JsonModel):
    """`kopt web`, when it has ended"""

    address: str
    """Where it listened."""
    root: str
    """Folder that it was started in."""


class SkillData(JsonModel):
    """`kopt skill install`"""

    folder: str
    dry_run: bool
    files: list[SkillFile]
