"""JSON of `kopt doctor`: what was looked at, and the settings with their origin."""

from __future__ import annotations

from typing import Any, Literal

from kopt.cli.data import Data


class CheckData(Data):
    """One thing that `kopt doctor` looked at."""

    name: str
    status: Literal["ok", "warning", "error", "absent"]
    detail: str
    hint: str


class SettingData(Data):
    """A setting and where it came from."""

    name: str
    value: Any
    origin: str


class DoctorData(Data):
    """`kopt doctor`"""

    home: str
    checks: list[CheckData]
    settings: list[SettingData]
