"""A run that breaks no rule: a GPU that is made up, real pages, real receipts, the real gate, on a copy of the wiki.

Versions 0 to 3 are closed, the last one was slower, and version 4 is open. `ended` is the same run after its end.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.receipt.receipt import Receipt
from evaluator.request import InputsFile, Request
from evaluator.store.seal import load_key
from kbs.common.canonical_json import dumps
from kbs.evidence.citation import lines_hash
from kbs.evidence.vocabulary import vocabulary
from loop import pages
from loop.gate.context import GateContext, Stage
from loop.gate.report import GateReport, run_gate
from loop.journal.events import HintsRead
from loop.journal.folder import RunFolder
from loop.journal.record import KeptFile, PinnedWiki, RunRecord
from loop.journal.state import Phase, RunState
from loop.pages.run import plan
from loop.planning.hints import parse_hints
from loop.planning.methods import read_methods
from loop.planning.step0 import Check, EnvNote, spec_notes
from loop.proposals.proposal import Evidence, Expected, Hypothesis, Proposal, Query, Selected
from loop.run.driver import Driver, create_run, read_run
from loop.tools import DiagnosisNote, FoundPassage, MachineNote, Named, Search, TakenProfile, Targets
from tests.evaluator.ncu_reports import changed, raw_csv
from tests.loop.tools import FakeParts, FakeTools, run_files, run_record
from wiki.library import Wiki, Wikis, bundled_wiki

PAGES = (
    "hardware/h200-sxm.md",
    "hardware/h100-sxm.md",
    "technique/vectorized-access.md",
    "technique/cache-hints.md",
    "kernel/softmax.md",
    "bottleneck/memory-bound.md",
)
HINTS = b"- forbid: tensor_core\n- registers: 128\n- precision: fp32\n- be kind to the reader\n"
ADVICE = "technique/vectorized-access.md"
INPUTS = b'{"x": {"shape": [64], "dtype": "float32"}}'
QUOTE = "moves 16 bytes a thread in one instruction"


def kernel(number: int, us: float, body: str = "") -> str:
    """A kernel whose time is what it says. `body`: lines of its function."""
    body = body or f"    return x.softmax(-1) + {number} - {number}\n"
    return (
        f'"""Softmax of rows."""\n\nus = {us}\n\n\ndef _softmax_kernel(x):\n    # one pass over the row\n'
        f"    width = {number + 4}\n"
        f"    assert width > 3\n{body}\n\ndef run(x):\n    return _softmax_kernel(x)\n"
    )


def metrics(number: int) -> dict[str, tuple[str, str]]:
    """What ncu counted for a version: each a little less busy than the last."""
    return changed(
        duration=f"{128.5 - 10 * number}", dram_throughput=f"{88.6 + number}", memory_throughput=f"{88.6 + number}"
    )


def place(wiki: Wiki, path: str, words: str) -> tuple[str, int, str]:
    """wiki/path:Ln of the first line with some words, its number, and the line."""
    lines = (wiki.root / path).read_text("utf-8").split("\n")
    number = next(n for n, line in enumerate(lines, start=1) if words in line)
    return f"{wiki.name}/{path}:L{number}", number, lines[number - 1]


@dataclass
class GpuTools(FakeTools):
    """A GPU that is made up."""

    wiki: Wiki = field(default_factory=bundled_wiki)

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        asked = super().request(kernel_text, kernel_name, parent)
        return asked.model_copy(update={"inputs": InputsFile(name="inputs.json", content=INPUTS)})

    def profile(self, request: Request) -> TakenProfile:
        number = int(request.candidate.text.split("width = ")[1].split()[0]) - 4
        csv = raw_csv(("void _softmax_kernel(float *, int)", metrics(number)))
        return TakenProfile(grade="full", csv=csv, report=b"report of " + str(number).encode(), why="")

    def diagnose(self, csv: str, receipt: Receipt, name: str) -> DiagnosisNote:  # noqa: ARG002  # of the protocol
        return DiagnosisNote(
            bottleneck="memory-bound",
            resource="DRAM throughput 88.6 %",
            dominant_stall="long scoreboard",
            headroom=("536.870912 MB / 131 us = 4.1 TB/s",),
            symptoms=(Named(id="made-up", name="made up", text="DRAM throughput 88.6 %", techniques=()),),
            text="memory-bound: DRAM throughput 88.6 %",
        )

    def targets(self) -> Targets:
        wikis = Wikis([self.wiki])
        specs = wikis.specs(self.wiki.name, "hardware/h200-sxm.md")
        notes = spec_notes(specs, "h200-sxm", ("hbm_bandwidth", "l2_bandwidth", "fp32_throughput"), vocabulary())
        return Targets(
            specs=tuple(notes),
            lines=("ridge point: 67 TFLOPS / 4.8 TB/s = 13.96 FLOP/byte", "bytes: 64 * 8 B = 512 B"),
            bytes=512,
            operations=320,
            bound="memory",
            floor_us=90.0,
            target_us=100.0,
            gaps=(),
        )

    def environment(self) -> EnvNote:
        checks = (Check(name="nvcc", found="13.0"), Check(name="git", found="2.43"))
        return EnvNote(device="cuda:0", device_name="NVIDIA H200", checks=checks)

    def search(self, about: str, text: str) -> Search:
        if "nothing" in text:
            return Search.model_validate({"about": about, "text": text, "hits": (), "degraded": ""})
        reference, _, line = place(self.wiki, ADVICE, QUOTE)
        found = FoundPassage(
            reference=f"{reference}@{lines_hash([line])[:16]}", title="Vectorized access", text=line, score=1.0
        )
        return Search.model_validate({"about": about, "text": text, "hits": (found,), "degraded": ""})

    def machine_code(
        self,
        kernel_text: str,
        kernel_name: str,  # noqa: ARG002  # of the protocol
        methods: tuple[str, ...],  # noqa: ARG002  # of the protocol
    ) -> MachineNote:
        code = kernel_text.split("def ", 1)[-1]
        return MachineNote(
            target="sm_90", functions={"_softmax_kernel": hashlib.sha256(code.encode()).hexdigest()}, why=""
        )


@dataclass
class RealParts(FakeParts):
    """Real pages and the real gate."""

    wiki: Wiki = field(default_factory=bundled_wiki)

    def step0(self) -> dict[str, bytes]:
        assert isinstance(self.tools, GpuTools)
        return pages.step0_files(self.record, self.tools.environment(), self.tools.targets())

    def hints(self) -> HintsRead:
        data = self.folder.hints.read_bytes()
        found = parse_hints(data.decode(), read_methods(Wikis([self.wiki])).ids)
        return HintsRead(
            file=hashlib.sha256(data).hexdigest(),
            directives=tuple(one.canonical for one in found.directives),
            passed_on=tuple(one.written for one in found.passed_on),
        )

    def of_attempt(self, receipt: Receipt) -> dict[str, bytes]:
        return {"correctness.md": pages.correctness(receipt)}

    def of_version(self, version: int) -> dict[str, bytes]:
        return pages.version_files(self.folder, self.record, version)

    def of_run(self, state: RunState) -> dict[str, bytes]:
        return pages.run_files(self.folder, self.record, state)

    def of_end(self, state: RunState) -> dict[str, bytes]:
        return pages.final_files(self.folder, self.record, state)

    def gate(self, state: RunState, version: int, stage: Stage, proposal: Proposal | None = None) -> GateReport:
        return run_gate(context(self.folder.root, self.wiki, self.tools.home, version, stage, proposal, state=state))


def context(
    root: Path,
    wiki: Wiki,
    home: Path,
    version: int,
    stage: Stage,
    proposal: Proposal | None = None,
    *,
    state: RunState | None = None,
    machine: Callable[[str, str, tuple[str, ...]], MachineNote] | None = None,
) -> GateContext:
    """What the gate looks at, as a command builds it."""
    view = read_run(root)
    return GateContext(
        view.folder,
        view.record,
        state if state is not None else view.state,
        _library(wiki),
        vocabulary(),
        version,
        stage,
        proposal,
        machine,
        key=load_key(home),
    )


@functools.cache
def _library(wiki: Wiki) -> Wikis:
    """Pages are parsed once for all tests that do not change them."""
    return Wikis([wiki])


def proposal(wiki: Wiki, version: int, parent: int, **changes: Any) -> Proposal:
    """A proposal that keeps every rule. `hypothesis` and `evidence` may be dicts of changes."""
    reference, _, _ = place(wiki, ADVICE, QUOTE)
    said = {
        "current_evidence": f"DRAM throughput is {88.6 + parent} % in v{parent}, and long scoreboard stalls lead.",
        "decision_link": "Fewer, wider loads keep more bytes in flight.",
        "single_change": f"Load 16 bytes a thread in one instruction, step {version}.",
        "rationale": "The cited page says that a streaming kernel issues fewer memory instructions then.",
        "expected": (Expected(metric="dram_throughput", direction="up", size="to 92 %"),),
        "risk": "A row whose length is no multiple of the vector needs a tail.",
        "decision_rule": "Keep it if the time falls by at least 3 %; else undo it.",
        **changes.pop("hypothesis", {}),
    }
    shown = {
        "ncu_facts": (f"Duration: {128.5 - 10 * parent} us.", "Registers per thread: 32."),
        "queries": (Query(about="other", text="how wide can a load be"),),
        "selected": (Selected(reference=reference, quote=QUOTE, why="It is this change."),),
        "rejected": ("Persistent kernels: the grid has one wave already.",),
        **changes.pop("evidence", {}),
    }
    methods = {1: "vectorized_access", 2: "warp_shuffle", 3: "async_copy"}
    fields: dict[str, Any] = {
        "version": version,
        "parent": parent,
        "kernel": kernel(version, 70),
        "methods": (methods.get(version, "mufu_ex2_softmax"),),
        "hypothesis": Hypothesis(**said),
        "evidence": Evidence(**shown),
        **changes,
    }
    return Proposal(**fields)


@dataclass
class ValidRun:
    """A run on disk that a test may break."""

    root: Path
    wiki: Wiki
    home: Path

    @property
    def record(self) -> RunRecord:
        return read_run(self.root).record

    def proposal(self, **changes: Any) -> Proposal:
        """For the version that is open; its parent is the best one."""
        state = read_run(self.root).state
        version = changes.pop("version", len(state.versions) - 1)
        return proposal(self.wiki, version, changes.pop("parent", state.best or 0), **changes)

    def gate(self, version: int = 2, stage: Stage = "version", handed_in: Proposal | None = None) -> GateReport:
        """What the gate says."""
        return run_gate(context(self.root, self.wiki, self.home, version, stage, handed_in))

    def look(self, handed_in: Proposal | None = None) -> GateReport:
        """At a proposal for the version that is open."""
        found = handed_in or self.proposal()
        return self.gate(found.version, "proposal", found)

    def copy(self, root: Path) -> ValidRun:
        """Another one like it, without git's folder, with the same wiki."""
        shutil.copytree(self.root, root / "run", ignore=shutil.ignore_patterns(".git"))
        return ValidRun(root / "run", self.wiki, self.home)

    def own_wiki(self) -> Wiki:
        """A copy of the wiki, in place of the one that all tests share: its pages may be changed."""
        root = self.root.parent / "wiki"
        shutil.copytree(self.wiki.root, root)
        self.wiki = Wiki(self.wiki.name, root)
        return self.wiki


def build(base: Path, *, end: bool = False, **changes: Any) -> ValidRun:
    """Drive a run of three versions after the first; `end` stops it and restores the best."""
    home = base / "home"
    home.mkdir(parents=True)
    root = base / "wiki"
    source = bundled_wiki().root
    for path in (*PAGES, *(f"method/{file.name}" for file in sorted((source / "method").glob("*.md")))):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, root / path)
    wiki = Wiki("gpu-wiki", root)
    pinned = {file.path: hashlib.sha256(wiki.read(file.path) or b"").hexdigest() for file in wiki.files()}
    record = run_record(
        home,
        device="cuda:0",
        device_name="NVIDIA H200",
        gpu="h200-sxm",
        profile="full",
        profile_why="",
        accept_unmeasured=False,
        iterations=6,
        branches=2,
        inputs=KeptFile(origin="inputs.json", name="inputs.json", hash=hashlib.sha256(INPUTS).hexdigest()),
        wikis={"gpu-wiki": PinnedWiki(root=str(root), revision=wiki.revision, pages=pinned)},
        **changes,
    )
    files = {**run_files(kernel(0, 100)), "HINTS.md": HINTS, "inputs.json": INPUTS, "plan.md": plan(record)}
    folder = create_run(base / "run", record, files, home)
    tools = GpuTools(home, record, wiki=wiki)
    parts = RealParts(RunFolder(folder.root), record, tools, wiki=wiki)
    with Driver.open(folder.root, tools, home, parts) as driver:
        assert driver.advance() is Phase.PROPOSE
        for number, us in ((1, 90), (2, 80), (3, 95)):
            handed = proposal(wiki, number, number - 1, kernel=kernel(number, us))
            taken = driver.submit(handed, dumps(handed.model_dump(mode="json")))
            assert taken.accepted, taken.broken
            assert driver.advance() is Phase.PROPOSE
            gated = driver.state.versions[number].gated
            assert gated is not None
            assert gated.passed, gated.rules
        if end:
            driver.stop("enough")
            driver.advance()
            assert driver.rejected is None or driver.rejected.passed, list(driver.rejected.lines())
    return ValidRun(folder.root, wiki, home)
