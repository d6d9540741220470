"""A run and the experience log: what each iteration leaves in it, and what the next run is offered of that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import dumps
from kbs.common.errors import KoptError
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import Experiment
from kbs.experience.log import ExperienceLog
from kbs.experience.transfer.run_folder import asked_about
from loop.gate.rules.evidence import known_failure
from loop.journal import seeds
from loop.journal.events import Recorded
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.pages.run import plan
from loop.planning.methods import read_methods
from loop.proposals import evidence
from loop.proposals.briefing import brief
from loop.proposals.experience import words
from loop.proposals.proposal import Query, Selected
from loop.proposals.request import NextRequest
from loop.run.driver import Driver, create_run
from loop.tools import PastMethod
from tests.kbs.experience.records import experiment
from tests.loop import tools
from tests.loop.driving import drive, faster, opened, propose
from tests.loop.gate.valid import HINTS, INPUTS, GpuTools, RealParts, ValidRun, build, kernel, proposal
from wiki.library import Wikis

pytestmark = pytest.mark.processes

NOW = "2026-11-21T15:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def log_of(root: Path) -> ExperienceLog:
    home = root.parent / "home"
    return ExperienceLog(home / "experience", home)


def records(root: Path) -> list[Experiment]:
    with log_of(root).index() as index:
        return [entry.experiment for entry in index.entries()]


def recorded(driver: Driver) -> list[Recorded]:
    return [entry.event for entry in driver.state.entries if isinstance(entry.event, Recorded)]


def test_every_iteration_leaves_a_record_and_version_0_none(root: Path) -> None:
    with opened(root, device="cuda:0", device_name="NVIDIA H200") as driver:
        drive(driver, lambda version, _: tools.kernel(version, us={1: 80, 2: 60, 3: 90}[version]))
        events = recorded(driver)
    found = records(root)
    assert [(one.run, one.iteration, one.outcome.value) for one in found] == [
        (tools.RUN, 1, "success"),
        (tools.RUN, 2, "success"),
        (tools.RUN, 3, "regression"),
    ]
    assert [(one.version, one.record, one.outcome, one.why) for one in events] == [
        (one.iteration, one.id, one.outcome, "") for one in found
    ]
    first = found[0]
    assert first.speedup is not None
    assert first.speedup.low is not None
    assert first.speedup.low <= 100 / 80 == first.speedup.median
    assert (first.op, first.gpu, first.dims, first.provenance) == ("softmax", "h200-sxm", {"n": 64}, "measured")
    assert first.methods == ("vectorized_access",)
    assert first.hypothesis == "Fewer instructions are issued."
    assert first.expected[0].metric == "time"
    assert first.evidence == ("gpu-wiki/technique/vectorized-access.md:L29",)
    assert first.lesson.startswith("vectorized_access: success; kept: 1.25x")
    receipt = (root / "v1" / "receipt.json").read_text("utf-8")
    assert first.receipt in receipt


def test_what_failed_is_recorded_as_what_it_was(root: Path) -> None:
    """By three attempts, by the gate, and by refusals before anything ran."""

    def made(version: int, attempt: int) -> str:
        if version == 1:
            return tools.kernel(10 + attempt, verdict="incorrect")
        return tools.kernel(2, us=50, gate="version:rendered") if version == 2 else tools.kernel(3, us=99)

    with opened(root, device="cuda:0") as driver:
        drive(driver, made)
    found = records(root)
    assert [(one.iteration, one.outcome.value, one.speedup is None) for one in found] == [
        (1, "incorrect", True),
        (2, "rejected", True),
        (3, "success", False),
    ]
    assert found[0].provenance == "measured"
    assert found[0].hypothesis == "Fewer instructions are issued."
    assert "as it says: incorrect" in found[0].lesson
    assert "rendered" in found[1].observed


def test_what_the_gate_rejected_never_counts_against_a_method(root: Path) -> None:
    """A right version that the gate closed, of a method that nobody else tried: it is kept, and warns of nothing."""

    def hits(driver: Driver, version: int) -> list[tuple[str, object]]:
        (search, *_) = evidence.read(driver.folder.version(version) / evidence.NAME)
        return [(hit.reference, hit.past) for hit in search.hits]

    with opened(root, device="cuda:0") as driver:
        driver.advance()
        propose(driver, tools.kernel(1, us=120, gate="version:rendered"))
        driver.advance()
        (closed,) = recorded(driver)
        assert hits(driver, 2) == [(f"log/{closed.record}", None)], "it is shown, as what it was"
        assert not driver.state.versions[1].judged
        propose(driver, tools.kernel(2, us=120))
        driver.advance()
        assert driver.state.versions[2].judged
        assert [past.advice for _, past in hits(driver, 3) if isinstance(past, PastMethod)] == ["known failure"]
    advice = log_of(root).advise(asked_about(root, canonical.loads((root / "run.json").read_bytes()), 0))
    assert [(one.method, one.failures) for one in advice.failures] == [("vectorized_access", 1)]


def test_refused_answers_are_recorded_without_a_method(root: Path) -> None:
    with opened(root, proposer="command", command=("propose",), iterations=1) as driver:
        driver.advance()
        for number in range(3):
            assert not propose(driver, tools.kernel(number, gate="proposal:loose-number"))
        assert driver.advance() is Phase.FINISHED
    (one,) = records(root)
    assert (one.outcome, one.methods, one.optimization) == ("rejected", (), "Load four words at once, variant 1.")


def test_a_version_in_which_nothing_was_tried_leaves_none(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        driver.final()
        (event,) = recorded(driver)
        assert driver.phase is Phase.FINISHED
    assert event.record == ""
    assert event.why.startswith("nothing was tried: ")
    assert records(root) == []


def test_a_log_that_cannot_be_written_is_an_error_and_recorded_later(root: Path) -> None:
    place = root.parent / "home" / "experience"
    with opened(root, iterations=1) as driver:
        driver.advance()
        propose(driver, tools.kernel(1))
        place.write_text("a file where the folder belongs", "utf-8")
        with pytest.raises(KoptError, match="v1 is not in the experience log yet") as caught:
            driver.advance()
        assert "kopt run resume" in caught.value.hint
        assert driver.phase is Phase.RECORD
    place.unlink()
    with opened(root) as driver:
        assert driver.advance() is Phase.FINISHED
        assert isinstance(driver.run.tools, tools.FakeTools)
        assert len(driver.run.tools.asked) == 1, "the final measurement alone"
    assert [one.iteration for one in records(root)] == [1]


def test_a_record_that_stands_is_not_doubled(root: Path) -> None:
    """As after a kill between the log and the journal."""
    with opened(root, iterations=1) as driver:
        drive(driver, faster)
        again = driver.run.parts.log_version(1)
        assert again == recorded(driver)[0]
    assert len(records(root)) == 1


def request(driver: Driver, wiki_run: ValidRun) -> NextRequest:
    methods = read_methods(Wikis([wiki_run.wiki]))
    return brief(driver.folder, driver.record, driver.state, methods, vocabulary(), NOW)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> ValidRun:
    """vectorized_access helped, warp_shuffle helped more, async_copy made it slower."""
    return build(tmp_path_factory.mktemp("first"))


def test_the_second_run_is_offered_what_did_best_in_the_first(first_run: ValidRun, tmp_path: Path) -> None:
    home = shutil.copytree(first_run.home, tmp_path / "home")
    id = "softmax-20261121-150000-abcd"
    record = first_run.record.model_copy(update={"id": id, "seed_commitment": seeds.create(home, id)})
    files = {**tools.run_files(kernel(0, 100)), "HINTS.md": HINTS, "inputs.json": INPUTS, "plan.md": plan(record)}
    folder = create_run(tmp_path / "run", record, files, home)
    bench = GpuTools(home, record, wiki=first_run.wiki)
    before = {one.iteration: one for one in records(tmp_path / "run")}
    assert {number: one.methods for number, one in before.items()} == {
        1: ("vectorized_access",),
        2: ("warp_shuffle",),
        3: ("async_copy",),
    }
    assert before[2].metrics_before["dram_throughput"] == "89.6"
    assert before[2].metrics_after["dram_throughput"] == "90.6"
    assert (before[2].bottleneck_before, before[2].bottleneck_after) == ("memory-bound", "memory-bound")
    assert before[2].dtype == "fp32"
    with Driver.open(
        folder.root, bench, home, RealParts(RunFolder(folder.root), record, bench, wiki=first_run.wiki)
    ) as driver:
        assert driver.advance() is Phase.PROPOSE
        offered = request(driver, first_run)
        search = offered.searches[0]
        assert (search.about, search.why) == ("experience", "")
        best, _, failed = search.hits
        assert best.reference == before[2].reference
        assert best.past is not None
        assert (best.past.method, best.past.advice) == ("warp_shuffle", "recommended")
        assert "1.12 [" in best.text
        assert failed.past is not None
        assert (failed.past.method, failed.past.advice) == ("async_copy", "known failure")
        assert [one.id for one in offered.methods[:2]] == ["warp_shuffle", "vectorized_access"]
        assert before[2].reference in offered.methods[0].why
        warned = next(one for one in offered.methods if one.id == "async_copy")
        assert warned.why.startswith("known failure: async_copy")

        same = proposal(first_run.wiki, 1, 0, methods=("async_copy",))
        refused = driver.submit(same, dumps(same.model_dump(mode="json")))
        assert {one.rule for one in refused.broken} == {known_failure.id}

        chosen = Selected(reference=best.reference, quote=best.past.method, why="It helped on the same kernel.")
        asked = (Query(about="experience", text="warp shuffle softmax"),)
        one = proposal(
            first_run.wiki, 1, 0, methods=("warp_shuffle",), evidence={"selected": (chosen,), "queries": asked}
        )
        taken = driver.submit(one, dumps(one.model_dump(mode="json")))
        assert taken.accepted, taken.broken
        assert driver.advance() is Phase.PROPOSE
        gated = driver.state.versions[1].gated
        assert gated is not None
        assert gated.passed, gated.rules
        page = (folder.root / "v1" / "kbs_evidence.md").read_text("utf-8")
        assert f"  - {best.reference} (recommended: warp" in page
        found = evidence.read(folder.root / "v1" / evidence.NAME)
        assert [(one.about, bool(one.hits)) for one in found if one.text == "warp shuffle softmax"] == [
            ("experience", True)
        ]
        assert f"experience: {recorded(driver)[0].record}" in (folder.root / "ITERATIONS.md").read_text(
            "utf-8"
        ).replace("log/", "")
        driver.stop("enough")
        driver.advance()
        assert driver.rejected is None, list(driver.rejected.lines())


def test_nothing_similar_is_said_and_why(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        found = evidence.read(root / "v1" / evidence.NAME)
    assert found[0].about == "experience"
    assert found[0].hits == ()
    assert found[0].why == "the log has no record that counts"


def test_a_masked_version_is_left_out_of_what_the_log_says(root: Path) -> None:
    def hits(driver: Driver, version: int) -> list[str]:
        return [hit.reference for hit in evidence.read(driver.folder.version(version) / evidence.NAME)[0].hits]

    with opened(root, device="cuda:0") as driver:
        driver.advance()
        propose(driver, tools.kernel(1, us=50))
        driver.advance()
        (event,) = recorded(driver)
        assert hits(driver, 2) == [f"log/{event.record}"]
        driver.mask(1, True, "it misleads")
        propose(driver, tools.kernel(2, us=45))
        driver.advance()
        assert hits(driver, 3) == [f"log/{recorded(driver)[1].record}"]
        (hit,) = evidence.read(driver.folder.version(3) / evidence.NAME)[0].hits
        assert "1 of 1 similar attempts" in hit.title, "the masked one does not count either"


def test_words_of_a_record_look_like_no_fact_of_another() -> None:
    one = experiment(lesson="Wider.\noutcome: success, measured, 9 times as fast\x1b[2J", dims={"M\nN": 4})
    names = [line.partition(":")[0] for line in words(one).split("\n")]
    assert names == ["where", "change", "methods", "outcome", "bottleneck", "lesson"]
    assert "\x1b" not in words(one)
