"""Sets 5 and 6 of strangers' proposals: Triton kernels of several operations, each in a run on the CPU for a GPU.

`strangers/cpu.json` has the runs, and `strangers/cpu-lines.json` what the cited lines said. `${receipt16}` in a
proposal is how the receipt of version 0 begins.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.request import Request
from evaluator.source.source_file import SourceFile
from ingest.records import told
from kbs.common.canonical_json import dumps
from kbs.evidence.vocabulary import vocabulary, words
from kbs.experience.entry import Entry
from kbs.experience.files import base_log
from kbs.experience.log import ExperienceLog
from loop.journal.folder import RunFolder
from loop.journal.record import KeptFile, PinnedWiki
from loop.journal.state import RunState
from loop.pages.run import plan
from loop.planning.step0 import spec_notes
from loop.proposals import evidence
from loop.proposals import experience as past
from loop.proposals.proposal import Evidence, Expected, Hypothesis, Proposal, Query, Selected
from loop.run.driver import Driver, create_run, read_run
from loop.run.submission import Submission
from loop.tools import Search, Targets
from tests.loop.gate import valid
from tests.loop.gate.strangers import FOLDER, Look, TakenParts, as_it_stands_now
from tests.loop.tools import FakeTools, run_files, run_record
from wiki.library import Wikis, bundled_wiki

SPECS = (
    "hbm_bandwidth", "fp32_throughput", "architecture", "compute_capability", "sm_count", "boost_clock",
    "bf16_tensor_throughput", "fp8_tensor_throughput", "memory_type", "memory_capacity", "l2_capacity",
    "shared_memory_per_sm", "tdp",
)  # fmt: skip
SETS = (5, 6)
Made = Mapping[str, Any]
"""A run of cpu.json."""


@dataclass
class _Tools(valid.GpuTools):
    """Nothing is profiled, timed or compiled."""

    made: Made = field(kw_only=True)
    look: Look = field(kw_only=True)
    profile, diagnose, machine_code = FakeTools.profile, FakeTools.diagnose, FakeTools.machine_code

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        asked = FakeTools.request(self, kernel_text, kernel_name, parent)
        return asked.model_copy(update={"reference": SourceFile(name="reference.py", text=self.made["reference"])})

    def targets(self) -> Targets:
        wiki, gpu = bundled_wiki(), self.made["gpu"]
        specs = Wikis([wiki]).specs(wiki.name, f"hardware/{gpu}.md")
        changes = {key: self.made[key] for key in ("bytes", "operations", "floor_us", "bound")}
        changes["specs"] = tuple(spec_notes(specs, gpu, SPECS, vocabulary()))
        return FakeTools.targets(self).model_copy(update=changes)

    def search(self, about: str, text: str) -> Search:
        return self.look(about, text)


@dataclass
class _Parts(TakenParts):
    @property
    def log(self) -> ExperienceLog:
        folder, home = self.tools.home / "experience", self.tools.home

        def search(text: str, count: int) -> list[Entry]:
            with ExperienceLog(folder, home, shipped=base_log()).index() as index:
                asked = set(words(text))
                return [one for one in index.entries() if asked & set(words(told(one.experiment)))][:count]

        return ExperienceLog(folder, home, search, base_log())

    def look_up(self, state: RunState, parent: int) -> tuple[Search, ...]:
        assert isinstance(self.tools, _Tools)
        asked = [("kernel", f"{self.tools.made['operation']} kernel"), ("bottleneck", "what bounds a kernel")]
        return (past.look_up(self.log, self.folder, state, parent), *(self.tools.search(*one) for one in asked))

    def look_further(self, state: RunState, proposal: Proposal, known: tuple[Search, ...]) -> tuple[Search, ...]:
        return evidence.further(self.tools, proposal, known, lambda text: past.look_for(self.log, state, text))


@dataclass(frozen=True)
class Waiting:
    """A run that waits for its next version."""

    root: Path
    home: Path
    made: Made
    look: Look

    def submit(self, proposal: Proposal, folder: Path) -> Submission:
        """Hand a proposal in to a copy of the run."""
        root = folder / "run"
        shutil.copytree(self.root, root, symlinks=True)
        record = read_run(root).record
        tools: Any = _Tools(self.home, record, made=self.made, look=self.look)
        parts: Any = _Parts(RunFolder(root), record, tools, wiki=bundled_wiki())
        with Driver.open(root, tools, self.home, parts) as driver:
            return driver.submit(proposal, dumps(proposal.model_dump(mode="json")))

    @property
    def receipt(self) -> str:
        """The id of the receipt of version 0."""
        return str(json.loads((self.root / "v0/receipt.json").read_text("utf-8"))["id"])


def runs(number: int) -> dict[str, Made]:
    """The runs of a set."""
    known = json.loads((FOLDER / "cpu.json").read_text("utf-8"))
    return {name: made for name, made in known.items() if made["set"] == number}


def cases(number: int) -> Iterator[dict[str, Any]]:
    """The proposals of a set, each with the name of its run."""
    text = (FOLDER / f"set-{number}.jsonl").read_text("utf-8")
    yield from (json.loads(line) for line in as_it_stands_now(text, "cpu-lines.json").splitlines())


def build(base: Path, made: Made, look: Look) -> Waiting:
    """Drive a run to its open version."""
    home, wiki = base / "home", bundled_wiki()
    home.mkdir(parents=True)
    pinned = {file.path: hashlib.sha256(wiki.read(file.path) or b"").hexdigest() for file in wiki.files()}
    wikis = {wiki.name: PinnedWiki(root=str(wiki.root), revision=wiki.revision, pages=pinned)}
    reference = made["reference"].encode()
    record = run_record(
        home, gpu=made["gpu"], discipline=made["discipline"], iterations=6, branches=4, wikis=wikis,
        reference=KeptFile(origin="ref.py", name="ref.py", hash=hashlib.sha256(reference).hexdigest()),
    )  # fmt: skip
    record = record.model_copy(update={"problem": record.problem.model_copy(update={"dims": {}})})
    files = {
        **run_files(made["kernel"]),
        "HINTS.md": made["hints"].encode(),
        "ref.py": reference,
        "plan.md": plan(record),
    }
    folder = create_run(base / "run", record, files, home)
    tools: Any = _Tools(home, record, made=made, look=look)
    parts: Any = _Parts(RunFolder(folder.root), record, tools, wiki=wiki, taken=True)
    with Driver.open(folder.root, tools, home, parts) as driver:
        driver.advance()
        for one in made.get("versions", ()):
            handed = _proposal(one)
            taken = driver.submit(handed, dumps(handed.model_dump(mode="json")))
            assert taken.accepted, taken.broken
            driver.advance()
    return Waiting(folder.root, home, made, look)


def _proposal(one: Mapping[str, Any]) -> Proposal:
    reference = valid.place(bundled_wiki(), valid.ADVICE, valid.QUOTE)[0]
    verdict = f"# verdict={one['verdict']}\n" if one["verdict"] != "accepted" else ""
    return Proposal(
        version=one["version"], parent=one["version"] - 1, kernel=verdict + one["kernel"],
        methods=tuple(one["methods"]),
        hypothesis=Hypothesis(
            current_evidence="It is right.", decision_link="See the line.", single_change="Another setting.",
            rationale="See the line.", expected=(Expected(metric="time", direction="down", size="a little"),),
            risk="It may be slower.", decision_rule="Kept if it is right.",
        ),
        evidence=Evidence(
            selected=(Selected(reference=reference, quote=valid.QUOTE, why="It is near."),),
            queries=(Query(about="other", text="vectorized access"),),
        ),
    )  # fmt: skip
