"""Driving a run with tools that measure nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.run.driver import Driver, create_run, read_run
from tests.loop import tools
from tests.loop.planted import PlantedTools

Made = Callable[[int, int], str]
"""(version, attempt) → the kernel that is proposed"""


@contextmanager
def opened(root: Path, **changes: Any) -> Iterator[Driver]:
    """Hold the run of a folder, which is begun where it is not there."""
    home = root.parent / "home"
    if not root.exists():
        create_run(root, tools.run_record(home, **{"branches": 4, **changes}), tools.run_files(), home)
    record = read_run(root).record
    bench = PlantedTools(home, record)
    with Driver.open(root, bench, home, tools.FakeParts(RunFolder(root), record, bench)) as driver:
        yield driver


def propose(driver: Driver, text: str, **changes: Any) -> bool:
    """Hand in a kernel for the version that is open."""
    version = driver.run.version
    parent = version.opened.parent or 0
    return driver.submit(tools.proposal(version.number, text, **{"parent": parent, **changes}), b"{}").accepted


def drive(driver: Driver, made: Made) -> Phase:
    """Go to the end."""
    for _ in range(40):
        phase = driver.advance()
        if phase is not Phase.PROPOSE:
            return phase
        version = driver.run.version
        propose(driver, made(version.number, len(version.attempts) + 1))
    raise AssertionError("it does not end")


def faster(version: int, attempt: int) -> str:
    """Each version a tenth faster than the one before."""
    return tools.kernel(version, us=100 * 0.9**version)
