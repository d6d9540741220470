"""How the proposer `search` measures on a GPU before it proposes, with tools whose times are planted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.request import Request
from evaluator.source.source_file import SourceFile
from kbs.common.errors import UsageError
from kopt.services.runs.devices.task import Failure, Found
from kopt.services.runs.proposers import searching
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest, ParentKernel
from loop.proposers.reading import Unread
from loop.run.driver import Driver, create_run, read_run
from loop.search.study import Study
from loop.tools import FoundPassage, PastMethod, Search
from tests.kopt.run_workspace import KERNEL
from tests.loop import tools
from tests.loop.planted import PlantedTools
from tests.loop.proposers.requests import HASH, request

pytestmark = pytest.mark.processes
FASTEST = 8
"""Warps of the fastest kernel."""


class Timed(PlantedTools):
    """A warp too many or too few costs a microsecond; `maxnreg=32` does not compile, and nobody takes `maxnreg=64`."""

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        text = request.candidate.text
        if "maxnreg=64" in text:
            raise UsageError("nothing can take it", code="no_kernel", hint="Change it.")
        warps = re.search(r"num_warps=(\d+)", text)
        us = 50 + abs(int(warps[1]) - FASTEST) if warps else 100
        verdict = "compile_error" if "maxnreg=32" in text else "accepted"
        planted = SourceFile(name="kernel.py", text=f"# us={us}\n# verdict={verdict}\n{text}")
        return super().evaluate(request.model_copy(update={"candidate": planted}), schedule)


@contextmanager
def driving(top: Path, device: str = "cuda:0") -> Iterator[Driver]:
    home, root = top / "home", top / "run"
    if not root.exists():
        named = {"device": device, "device_name": "NVIDIA H200" if device != "cpu" else ""}
        record = tools.run_record(home, proposer="search", branches=4, accept_unmeasured=device == "cpu", **named)
        create_run(root, record, tools.run_files("# us=100\n" + KERNEL), home)
    record = read_run(root).record
    bench = Timed(home, record)
    with Driver.open(root, bench, home, tools.FakeParts(RunFolder(root), record, bench)) as driver:
        assert driver.advance() is Phase.PROPOSE
        yield driver


def asked(**more: object) -> NextRequest:
    parent = ParentKernel(version=0, path="v0/kernel.py", language="python", hash=HASH, text=KERNEL)
    methods = [
        request().methods[0].model_copy(update={"id": name, "tried": ()})
        for name in ("launch_config", "register_pressure", "cache_modifier_hint")
    ]
    fields = {"version": 1, "parent": parent, "history": (), "refused": (), "branches": 4, "methods": tuple(methods)}
    return request(**{**fields, **more})


def proposed(
    driver: Driver, seconds: float = 100.0, several: Any = None, **more: object
) -> tuple[Proposal | Unread, list[str]]:
    told = list[str]()
    return searching.propose(driver, asked(**more), seconds, told.append, several), told


@dataclass
class TwoDevices:
    """What was begun last is done first."""

    tools: Timed
    width: int = 2

    @property
    def devices(self) -> TwoDevices:
        return self

    def quickly(self, asked: Iterable[tuple[Request, SeedSchedule]]) -> Iterator[tuple[int, Found]]:
        waiting = list[tuple[int, Found]]()
        for place, (wanted, schedule) in enumerate(asked):
            try:
                made = Found.of(self.tools.evaluate(wanted, schedule), 0.5)
            except UsageError as error:
                failure = Failure(kind="usage", message=error.message, code=error.code, hint=error.hint)
                made = Found(seconds=0.5, failure=failure)
            waiting.append((place, made))
            if len(waiting) == self.width:
                yield waiting.pop()
        yield from waiting


def test_the_fastest_configurations_are_proposed(tmp_path: Path) -> None:
    with driving(tmp_path) as driver:
        found, told = proposed(driver)
    assert isinstance(found, Proposal)
    assert found.methods == ("launch_config",)
    assert f"num_warps={FASTEST}" in found.kernel
    assert len(found.branches) == 3
    assert "rewrite-warps, num_warps=8: 50 µs" in told
    assert any("compile_error" in line for line in told), "a failure is a result"
    assert any("nothing can take it" in line for line in told)
    assert not any("persistent" in line for line in told), "methods that do not apply are left out"


def test_several_devices_find_the_same(tmp_path: Path) -> None:
    with driving(tmp_path / "one") as driver:
        alone, _ = proposed(driver)
    with driving(tmp_path / "two") as driver:
        bench = driver.run.tools
        assert isinstance(bench, Timed)
        found, more = proposed(driver, several=TwoDevices(bench))
        spent = Study(searching.study_file(driver.run.home, driver.record.id)).seconds()
    assert isinstance(alone, Proposal)
    assert isinstance(found, Proposal)
    assert found.kernel == alone.kernel
    assert any("nothing can take it" in line for line in more)
    assert len(set(more)) == len(more)
    assert spent == 0.5 * len(more), "each measurement counts, once"


def test_without_seconds_nothing_is_measured_and_nothing_proposed(tmp_path: Path) -> None:
    with driving(tmp_path) as driver:
        found, told = proposed(driver, 0.0)
    assert isinstance(found, Unread)
    assert told == []


def test_a_run_that_was_killed_measures_nothing_twice(tmp_path: Path) -> None:
    with driving(tmp_path) as driver:
        first, told = proposed(driver)
    with driving(tmp_path) as driver:
        again, more = proposed(driver)
        path = searching.study_file(driver.run.home, driver.record.id)
    assert told
    assert set(told).isdisjoint(more)
    assert isinstance(first, Proposal)
    assert isinstance(again, Proposal)
    assert again.kernel == first.kernel
    assert Study(path).seconds() > 0


def test_what_was_proposed_is_not_proposed_again(tmp_path: Path) -> None:
    with driving(tmp_path) as driver:
        first, _ = proposed(driver)
        assert isinstance(first, Proposal)
        driver.submit(first, b"{}")
        second, _ = proposed(driver, attempt=2)
    assert isinstance(second, Proposal)
    assert set(first.candidates.values()).isdisjoint(second.candidates.values())


def test_what_helped_elsewhere_comes_first(tmp_path: Path) -> None:
    text = "softmax: the family `rewrite-load-eviction`, with eviction_policy=evict_last: 1.2x"
    hit = FoundPassage(
        reference="log/1", title="softmax", text=text, score=0.9,
        past=PastMethod(method="cache_modifier_hint", advice="recommended"),
    )  # fmt: skip
    passage = request().searches[0]
    with driving(tmp_path, "cpu") as driver:
        searches = (Search(about="experience", text="past", hits=(hit,), degraded=""), passage)
        found, _ = proposed(driver, searches=searches)
    assert isinstance(found, Proposal)
    assert 'eviction_policy="evict_last"' in found.kernel
