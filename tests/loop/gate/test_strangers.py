"""Proposals that strangers wrote, hostile and harmless, against the gate: what is known to go wrong is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from evaluator.receipt import timing
from kopt.services.engine import Engine
from kopt.services.runs.tools import RunTools
from kopt.services.settings import load_settings
from loop.proposals.proposal import Proposal
from loop.tools import Search
from tests.evaluator import receipts
from tests.loop.gate import strangers_cpu
from tests.loop.gate.strangers import RUNS, SETS, Waiting, build

pytestmark = [pytest.mark.processes, pytest.mark.slow]

TAKEN: dict[int, dict[str, str]] = {
    1: {},
    2: {"h01": "the receipt has it", "h13": "the receipt has it"},
    3: {"h49": "nothing calls for it", "h50": "nothing calls for it"},
    4: {},
}
"""Hostile proposals that the gate lets run."""
REFUSED = {2: {"g03": "a spec without a quotation", "g30": "a spec without a quotation"}}
"""Harmless proposals that it does not."""


@pytest.fixture(scope="module")
def look(built_home: Path) -> Callable[[str, str], Search]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOPT_HOME", str(built_home))
        engine = Engine(load_settings())

    class Looks:
        """The part of `RunTools` that searches."""

        def __init__(self) -> None:
            self.engine = engine

    @cache
    def found(about: str, text: str) -> Search:
        return RunTools.search(Looks(), about, text)  # type: ignore[arg-type]  # it needs the engine alone

    return found


@pytest.mark.parametrize("number", SETS)
def test_the_gate_judges_proposals_of_strangers(
    number: int, look: Callable[[str, str], Search], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RUNS[SETS[number]]
    plain = receipts.workload_timing

    def timed(**fields: object) -> timing.WorkloadTiming:
        moved = made.dims["M"] * made.dims["N"] * (4 if made.operation == "softmax" else 2)
        ceiling = timing.Ceiling(floor_us=made.floor_us, made_of="copy", read_bytes=moved, written_bytes=moved, n=50)
        return plain(**{"ceiling": ceiling, **fields})

    monkeypatch.setattr(receipts, "workload_timing", timed)
    run: Waiting = build(tmp_path / "base", made, look)
    taken, refused, harmless = dict[str, str](), dict[str, str](), 0
    for case in run.cases(number):
        found = run.submit(Proposal.model_validate(case["proposal"]), tmp_path / case["id"])
        harmless += case["kind"] == "harmless"
        if case["kind"] == "hostile" and found.accepted:
            taken[case["id"]] = case["what"]
        if case["kind"] == "harmless" and not found.accepted:
            refused[case["id"]] = "; ".join(one.message for one in found.broken)
    assert set(taken) == set(TAKEN[number]), taken
    assert set(refused) == set(REFUSED.get(number, {})), refused
    assert harmless == (30 if number == 4 else 40)


SOURCED = "README.md registers the value"
TAKEN_CPU: dict[int, dict[str, str]] = {
    5: {
        "h04": SOURCED, "h05": SOURCED, "h30": "the cited figure is right, and told of a block in place of an SM",
        "h33": "a ratio that the log has, told of another GPU than the record's",
        "h39": "“leaves behind” has two libraries between its words",
    },
    6: {"h02": SOURCED, "h03": SOURCED, "h26": "the receipts that are made up have its 64"},
}  # fmt: skip
"""Hostile proposals for runs on the CPU that the gate lets run."""
REFUSED_CPU = {5: {"g08": "the search of this test does not find its record"}, 6: {"g33": "this run has no notes"}}
"""Harmless proposals that it does not."""


@pytest.mark.parametrize("number", strangers_cpu.SETS)
def test_the_gate_judges_proposals_for_runs_on_the_cpu(
    number: int, look: Callable[[str, str], Search], tmp_path: Path
) -> None:
    made = {name: strangers_cpu.build(tmp_path / name, one, look) for name, one in strangers_cpu.runs(number).items()}
    taken, refused, harmless = dict[str, str](), dict[str, str](), 0
    for case in strangers_cpu.cases(number):
        run = made[case["run"]]
        text = json.dumps(case["proposal"]).replace("${receipt16}", run.receipt[:16])
        found = run.submit(Proposal.model_validate_json(text), tmp_path / case["id"])
        harmless += case["kind"] == "harmless"
        if case["kind"] == "hostile" and found.accepted:
            taken[case["id"]] = case["what"]
        if case["kind"] == "harmless" and not found.accepted:
            refused[case["id"]] = "; ".join(one.message for one in found.broken)
        shutil.rmtree(tmp_path / case["id"])
    assert (set(taken), set(refused)) == (set(TAKEN_CPU[number]), set(REFUSED_CPU[number])), (taken, refused)
    assert harmless == 40
