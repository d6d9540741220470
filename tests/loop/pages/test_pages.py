"""Pages are rendered from files alone, the same each time; reports hold no number that was not measured."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.verdict import Improvement
from kbs.common.canonical_json import dumps
from kbs.evidence.arithmetic import equation_holds
from loop import pages
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.pages import citations, movement, standalone
from loop.pages.artifacts import VersionFiles
from loop.pages.movement import movements
from loop.proposals.proposal import Expected, Selected
from loop.run.driver import View, read_run
from tests.loop.gate import valid

pytestmark = pytest.mark.processes

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_NAMES = re.compile(r"[0-9a-f]{16,}|\b(?:v|L|a)\d+\b|[\w-]*\d{8}-\d{6}-\w+|\b\w*[a-z_]\w*\d\w*\b|95\\?%? interval")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> valid.ValidRun:
    return valid.build(tmp_path_factory.mktemp("run"), end=True)


@pytest.fixture
def view(ended: valid.ValidRun) -> View:
    return read_run(ended.root)


def every(view: View) -> dict[str, bytes]:
    made = pages.run_files(view.folder, view.record, view.state)
    made |= pages.final_files(view.folder, view.record, view.state)
    for version in view.state.versions:
        found = pages.version_files(view.folder, view.record, version.number)
        made |= {f"v{version.number}/{name}": data for name, data in found.items()}
    return made


def test_all_pages_are_those_on_the_disk_and_the_same_again(view: View) -> None:
    made = every(view)
    assert made == every(view)
    assert {"README.md", "final_report.md", "v0/correctness.md", "v2/hypothesis.txt", "v1/sass_check.json"} <= set(made)
    assert "v0/hypothesis.txt" not in made
    for name, data in made.items():
        assert (view.folder.root / name).read_bytes() == data, name


def test_a_version_that_was_not_accepted_has_no_pages(view: View) -> None:
    last = view.state.versions[-1]
    assert last.accepted is None
    assert pages.version_files(view.folder, view.record, last.number) == {}


def test_a_later_event_changes_no_page_of_a_version(view: View) -> None:
    before = pages.version_files(view.folder, view.record, 1)
    view.state.versions[1].masked = True
    view.state.best = 0
    assert pages.version_files(view.folder, view.record, 1) == before


# --- numbers ----------------------------------------------------------------------------------------------------------


def values(found: Any) -> Iterator[Decimal]:
    """Every number of a JSON document, those within its texts too."""
    if isinstance(found, dict):
        for key, one in found.items():
            yield from values(key)
            yield from values(one)
    elif isinstance(found, list):
        yield Decimal(len(found))
        for one in found:
            yield from values(one)
    elif isinstance(found, bool) or found is None:
        return
    elif isinstance(found, (int, float)):
        yield Decimal(repr(found))
    else:
        for number in re.findall(r"\d+(?:\.\d+)?", str(found)):
            yield Decimal(number)


def sources(root: Path) -> set[Decimal]:
    """What was measured, recorded or proposed: receipts, profiles, the journal, run.json, step 0, proposals."""
    numbers: set[Decimal] = set()
    for path in root.rglob("*"):
        if path.name in ("receipt.json", "run.json", "roofline.json", "proposal.json", "diagnosis.json"):
            numbers |= set(values(json.loads(path.read_bytes())))
        elif path.name in ("journal.jsonl", "profile.csv"):
            for line in path.read_text().splitlines():
                numbers |= set(values(json.loads(line) if path.suffix == ".jsonl" else line))
    return numbers


class Known:
    """What numbers are held against: as they are, as per cent, and µs as ms, rounded to as many places."""

    def __init__(self, found: set[Decimal]) -> None:
        self.exact = {value * factor for value in found for factor in (1, 100, Decimal("0.001"))}
        self.rounded: dict[int, set[Decimal]] = {}

    def has(self, number: str) -> bool:
        """Whether it is one of them; a number with decimals may be one off in the last."""
        shown, places = Decimal(number), len(number.partition(".")[2])
        unit = Decimal(1).scaleb(-places)
        if places not in self.rounded:
            self.rounded[places] = {value.quantize(unit) for value in self.exact if abs(value) < 10**18}
        near = (shown, shown + unit, shown - unit) if places else (shown,)
        return any(value in self.rounded[places] for value in near)


@pytest.mark.parametrize("name", ["final_report.md", "benchmark.md", "ITERATIONS.md"])
def test_every_number_of_a_report_stands_in_what_was_measured(view: View, name: str) -> None:
    known = Known(sources(view.folder.root))
    text = (view.folder.root / name).read_text()
    for line in text.splitlines():
        if line.startswith(("#", "kopt ", "python ")):
            continue
        for number in _NUMBER.findall(_NAMES.sub(" ", line.replace("\\", "").replace("ratio |", ""))):
            assert known.has(number), f"{number} in {line}"


def test_the_number_test_finds_an_invented_one(view: View) -> None:
    known = Known(sources(view.folder.root))
    assert known.has("88.6")
    assert not known.has("123.457")


def test_arithmetic_that_is_shown_holds(view: View) -> None:
    for version in (0, 1, 2):
        shown = json.loads(pages.version_files(view.folder, view.record, version)["roofline.json"])
        assert len(shown["arithmetic"]) == 3
        for line in shown["arithmetic"]:
            assert equation_holds(line.partition(": ")[2]), line


# --- what a report says -----------------------------------------------------------------------------------------------


def test_the_report_tells_every_version_and_the_end(view: View) -> None:
    text = (view.folder.root / "final_report.md").read_text()
    final = view.state.final
    assert final is not None
    assert final.ratio is not None
    assert f"| best version | v{view.state.best} |" in text
    assert "{:.3f}x, 95% interval {:.3f} to {:.3f}".format(*final.ratio) in text
    assert "| end | user: ` enough ` |" in text
    for version in view.state.versions:
        assert f"\n| v{version.number} |" in text
    assert "88.6 % -\\> 89.6 % | as foretold" in text
    assert "N/A: none could be drawn" in text


def test_a_movement_the_other_way_is_said(view: View, ended: valid.ValidRun, tmp_path: Path) -> None:
    run = ended.copy(tmp_path)
    files = VersionFiles(RunFolder(run.root), view.record, 1)
    proposal = files.proposal
    assert proposal is not None
    expected = (
        Expected(metric="dram_throughput", direction="down", size="far"),
        Expected(metric="time", direction="down", size="by a tenth"),
        Expected(metric="sm_throughput", direction="up", size="a little"),
        Expected(metric="no_such_metric", direction="up", size="much"),
    )
    changed = proposal.model_copy(update={"hypothesis": proposal.hypothesis.model_copy(update={"expected": expected})})
    (run.root / "v1" / "proposal.json").write_bytes(dumps(changed.model_dump(mode="json")))
    found = movements(VersionFiles(RunFolder(run.root), view.record, 1))
    assert [one.outcome for one in found] == ["the other way", "N/A", "no change", "N/A"]
    assert found[0].observed == "88.6 % -> 89.6 %"
    assert found[1].after == "90.00 µs"


def test_a_time_that_the_receipt_calls_the_same_did_not_move(
    view: View, ended: valid.ValidRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its median was a little lower than the parent's, within what both scatter."""
    files = VersionFiles(RunFolder(ended.copy(tmp_path).root), view.record, 1)
    proposal = files.proposal
    assert proposal is not None
    expected = (Expected(metric="time", direction="down", size="by a little"),)
    foretold = proposal.model_copy(update={"hypothesis": proposal.hypothesis.model_copy(update={"expected": expected})})
    vars(files)["proposal"] = foretold
    monkeypatch.setattr(movement, "_parent_us", lambda _: 90.1)
    assert [one.outcome for one in movements(files)] == ["as foretold"]
    assert files.receipt is not None
    vars(files)["receipt"] = files.receipt.model_copy(update={"improvement": Improvement.SAME})
    assert [one.outcome for one in movements(files)] == ["no change"]


def test_what_was_not_measured_is_said_plainly(view: View) -> None:
    record = view.record.model_copy(
        update={"device": "cpu", "accept_unmeasured": True, "profile": "none", "profile_why": "there is no GPU"}
    )
    text = pages.final_files(view.folder, record, view.state)["final_report.md"].decode()
    assert "- unmeasured: this run took place on the CPU" in text
    assert "- profile grade none: there is no GPU" in text
    assert "--accept-unmeasured" in text


def test_a_receipt_of_somebody_else_is_called_external(view: View, ended: valid.ValidRun, tmp_path: Path) -> None:
    run = ended.copy(tmp_path)
    proposal = VersionFiles(RunFolder(run.root), view.record, 1).proposal
    assert proposal is not None
    own = view.state.versions[0].attempts[0].evaluated
    assert own is not None
    more = tuple(
        Selected(reference=f"receipt/{id}#timing", quote="", why="it says so") for id in ("f" * 64, own.receipt[:16])
    )
    evidence = proposal.evidence.model_copy(update={"selected": (*proposal.evidence.selected, *more)})
    changed = proposal.model_copy(update={"evidence": evidence})
    (run.root / "v1" / "proposal.json").write_bytes(dumps(changed.model_dump(mode="json")))
    text = pages.final_files(RunFolder(run.root), view.record, view.state)["final_report.md"].decode()
    assert text.count("external:") == 1
    assert f"external: receipt/{'f' * 64}" in text


def test_foreign_text_is_inert(view: View, ended: valid.ValidRun, tmp_path: Path) -> None:
    run = ended.copy(tmp_path)
    proposal = VersionFiles(RunFolder(run.root), view.record, 1).proposal
    assert proposal is not None
    evil = "# Heading\n| a | b |\n<script>x</script> [link](http://x) ```sh\nrm```\x1b[31m"
    said = proposal.hypothesis.model_copy(update={"single_change": evil, "decision_link": evil, "decision_rule": evil})
    changed = proposal.model_copy(update={"hypothesis": said})
    (run.root / "v1" / "proposal.json").write_bytes(dumps(changed.model_dump(mode="json")))
    folder = RunFolder(run.root)
    made = pages.version_files(folder, view.record, 1)
    made |= pages.final_files(folder, view.record, view.state)
    for name in ("hypothesis.txt", "plan.md", "kbs_evidence.md", "final_report.md"):
        text = made[name].decode()
        assert "\x1b" not in text, name
        if name.endswith(".md"):
            assert "<script>" not in text, name
            assert "[link](" not in text, name
            assert not re.search(r"^# Heading", text, re.MULTILINE), name
        else:
            assert text.splitlines()[3].startswith("Single change: # Heading | a | b |")


def test_a_cited_line_is_kept_when_its_page_changes(ended: valid.ValidRun, tmp_path: Path) -> None:
    run = ended.copy(tmp_path)
    view = read_run(run.root)
    before = citations.citations(view.folder, view.record, view.state)
    pinned = view.record.wikis["gpu-wiki"]
    moved = pinned.model_copy(update={"root": str(run.wiki.root)})
    record: RunRecord = view.record.model_copy(update={"wikis": {"gpu-wiki": moved}})
    page = run.wiki.root / valid.ADVICE
    page.write_text("nothing\n" + page.read_text())
    assert citations.citations(view.folder, record, view.state) == before
    (run.root / "citations.json").unlink()
    found = json.loads(citations.citations(view.folder, record, view.state))
    assert "the page has changed since the run began" in {one["why"] for one in found}


def test_a_damaged_file_is_named(ended: valid.ValidRun, tmp_path: Path) -> None:
    from kbs.common.errors import KoptError

    run = ended.copy(tmp_path)
    view = read_run(run.root)
    (run.root / "v1" / "diagnosis.json").write_text("{}")
    with pytest.raises(KoptError) as caught:
        pages.version_files(view.folder, view.record, 1)
    assert caught.value.code == "artifact_damaged"
    assert "v1/diagnosis.json" in caught.value.message


def test_pictures_are_named_where_they_are_drawn(view: View) -> None:
    seen: list[pages.Drawing] = []

    def paint(drawing: pages.Drawing) -> dict[str, bytes]:
        seen.append(drawing)
        return {"timeline.png": b"png", "timeline.svg": b"svg"}

    made = pages.final_files(view.folder, view.record, view.state, paint)
    assert made["pictures/timeline.png"] == b"png"
    assert b"![timeline](pictures/timeline.png)" in made["final_report.md"]
    accepted = [version.number for version in view.state.versions if version.accepted]
    assert [point.version for point in seen[0].points] == accepted
    assert len(accepted) > 2
    assert ("hbm_bandwidth", 4.8e12) in [(metric, rate) for metric, _, rate in seen[0].rates]


# --- test_kernel.py ---------------------------------------------------------------------------------------------------


def test_the_script_stands_alone(view: View, tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "test_kernel.py").write_bytes(pages.final_files(view.folder, view.record, view.state)["test_kernel.py"])
    (tmp_path / "ref.py").write_text("def reference(x):\n    return x.softmax(-1)\n")
    (tmp_path / "inputs.json").write_text('[["n", 8]]')
    (tmp_path / "best" / "kernel.py").write_text("def run(x):\n    return x.softmax(-1) * 1.0\n")
    done = subprocess.run([sys.executable, "-I", "test_kernel.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "the kernel's results are the reference's" in done.stdout
    (tmp_path / "best" / "kernel.py").write_text("def run(x):\n    return x.softmax(-1) * 1.5\n")
    done = subprocess.run([sys.executable, "-I", "test_kernel.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "not close" in done.stderr


def test_names_stand_in_the_script_as_they_are(view: View) -> None:
    dims = {"is_true": 1, "nullable": 8, "größe": 2}
    problem = view.record.problem.model_copy(update={"dims": dims})
    made = standalone.standalone(VersionFiles(view.folder, view.record.model_copy(update={"problem": problem}), 2))
    assert made is not None
    stated = next(node for node in ast.parse(made).body if isinstance(node, ast.Assign))
    assert ast.literal_eval(stated.value)["dims"] == dims
