"""The end of a run tells all that was proposed and tried: none of that keeps the run from ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.canonical_json import dumps
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.proposals.proposal import Expected, Proposal
from loop.run.driver import Driver, read_run
from tests.loop.gate.valid import GpuTools, RealParts, ValidRun, build, kernel, place

pytestmark = pytest.mark.processes

CITED = "H100 SXM HBM bandwidth: 3.35 TB/s"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> ValidRun:
    """A run whose last version has an attempt that was wrong, and one that was right and slower than the best."""
    run = build(tmp_path_factory.mktemp("told"))
    reference, _, _ = place(run.wiki, "hardware/h100-sxm.md", "| HBM bandwidth |")
    tools = GpuTools(run.home, run.record, wiki=run.wiki)
    with Driver.open(
        run.root, tools, run.home, RealParts(RunFolder(run.root), run.record, tools, wiki=run.wiki)
    ) as driver:
        foretold = Expected(metric="dram_bandwidth", direction="up", size="to about 4.2 TB/s")
        hands_in(driver, run.proposal(
            kernel="# verdict=incorrect\n" + kernel(4, 90),
            hypothesis={"single_change": f"Loads are made for an {CITED}.", "expected": (foretold,),
                        "rationale": f"{CITED} <- {reference}"},
        ))  # fmt: skip
        assert driver.advance() is Phase.PROPOSE
        hands_in(driver, run.proposal(
            parent=3, kernel=kernel(4, 97),
            hypothesis={"current_evidence": "In v3 DRAM throughput was 91.6 %.", "expected": (foretold,)},
            evidence={"ncu_facts": ()},
        ))  # fmt: skip
        assert driver.advance() is Phase.PROPOSE
        driver.stop("the L2 bandwidth of an H200 is about 12.5 TB/s, says `somebody`")
        driver.advance()
        assert driver.rejected is None, "\n".join(driver.rejected.lines())
    return run


def hands_in(driver: Driver, proposal: Proposal) -> None:
    """The gate lets it run."""
    taken = driver.submit(proposal, dumps(proposal.model_dump(mode="json")))
    assert taken.accepted, taken.broken


def test_the_run_ends(told: ValidRun) -> None:
    state = read_run(told.root).state
    assert (state.best, [len(version.attempts) for version in state.versions]) == (2, [1, 1, 1, 1, 2, 0])
    assert state.reported is not None
    assert told.gate(2, "final").passed
    assert told.gate(4).passed


def test_what_was_proposed_stands_in_the_report(told: ValidRun) -> None:
    text = (told.root / "final_report.md").read_text("utf-8")
    assert f"change: Loads are made for an {CITED}." in text
    assert text.count("to about 4.2 TB/s") == 2


def test_a_reason_of_the_user_is_quoted(told: ValidRun) -> None:
    for name in ("final_report.md", "ITERATIONS.md"):
        assert "user: `` the L2 bandwidth of an H200 is about 12.5 TB/s, says `somebody` ``" in (
            told.root / name
        ).read_text("utf-8")


def test_a_code_span_that_somebody_adds_to_a_page_is_found(told: ValidRun, tmp_path: Path) -> None:
    run = told.copy(tmp_path)
    for name in ("final_report.md", "README.md"):
        with (run.root / name).open("a", encoding="utf-8") as page:
            page.write("` The L2 bandwidth is 12.5 TB/s `\n")
    found = {(result.rule, one.file) for result in run.gate(2, "final").results for one in result.broken}
    assert {("final-rendered", "final_report.md"), ("final-rendered", "README.md")} <= found
