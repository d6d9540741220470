"""One valid run for all tests of the gate; each test breaks a copy of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loop.gate.valid import ValidRun, build


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> ValidRun:
    """A run whose fourth version is open. Nobody writes to it."""
    return build(tmp_path_factory.mktemp("valid"))


@pytest.fixture(scope="session")
def pristine_end(tmp_path_factory: pytest.TempPathFactory) -> ValidRun:
    """The same run after its end."""
    return build(tmp_path_factory.mktemp("ended"), end=True)


@pytest.fixture
def valid(pristine: ValidRun, tmp_path: Path) -> ValidRun:
    """A copy that a test may break."""
    return pristine.copy(tmp_path)


@pytest.fixture
def ended(pristine_end: ValidRun, tmp_path: Path) -> ValidRun:
    """A copy of the ended run, with its history."""
    copy = pristine_end.copy(tmp_path / "ended")
    shutil.copytree(pristine_end.root / ".git", copy.root / ".git")
    # A home of its own: it remembers the last commit of the run, and a test may drive its copy.
    return replace(copy, home=shutil.copytree(copy.home, tmp_path / "home", symlinks=True))
