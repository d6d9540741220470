"""Tools and parts of a run that measure nothing: kernels say in a comment what is to be found of them.

    # verdict=incorrect     what the evaluator says; `accepted` unless it is said
    # us=80                 its time on a run with a GPU
    # unfit=1               that the evaluator cannot take it
    # gate=proposal:RULE    a rule that the stand-in for the gate finds broken at a stage

The receipts are real: sealed, and refused by the model where they contradict themselves.
"""

# ruff: noqa: ARG002 - a stand-in takes what its protocol passes, and uses some of it

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.external.record import ExternalReceipt
from evaluator.receipt.findings import TaskCheck
from evaluator.receipt.plan import BaselineChoice, SeedSchedule, TimingPlan
from evaluator.receipt.problem import CandidateRecord, SourceRecord
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.request import InputsFile, Request
from evaluator.scan.hazards import Hazard, Severity
from evaluator.source.forms import Backend
from evaluator.source.source_file import SourceFile
from evaluator.store.seal import ensure_key, seal
from ingest.records import told
from kbs.common import canonical_json as canonical
from kbs.common.errors import UsageError
from kbs.common.files import read_if_there
from kbs.evidence import vocabulary
from kbs.experience.entry import Entry
from kbs.experience.log import ExperienceLog
from loop.gate.context import Stage
from loop.gate.report import GateReport, RuleResult
from loop.gate.rule import Broken
from loop.journal import seeds
from loop.journal.events import HintsRead, Recorded
from loop.journal.folder import RunFolder
from loop.journal.record import KeptFile, ProblemWords, RunRecord
from loop.journal.state import RunState
from loop.pages import attribution
from loop.pages.artifacts import VersionFiles
from loop.planning.decisions import words
from loop.proposals import evidence
from loop.proposals import experience as past
from loop.proposals.proposal import Evidence, Expected, Hypothesis, Proposal, Query, Selected
from loop.search.variant import Variant
from loop.tools import DiagnosisNote, FoundPassage, MachineNote, Search, TakenProfile, Targets
from tests.evaluator import receipts

RUN = "softmax-20261121-140500-qkzt"
REFERENCE = receipts.REFERENCE
BASELINES = (BaselineChoice(name="eager", how="eager"),)


def kernel(number: int, **says: object) -> str:
    """A kernel's text: `kernel(3, verdict="incorrect", us=80)`."""
    lines = "".join(f"# {name}={value}\n" for name, value in says.items())
    return f"{lines}def run(x):\n    return x.softmax(-1) + {number} - {number}\n"


def proposal(version: int, text: str | None = None, *, parent: int = 0, **changes: Any) -> Proposal:
    """A proposal that nothing speaks against."""
    fields: dict[str, Any] = {
        "version": version,
        "parent": parent,
        "kernel": kernel(version) if text is None else text,
        "methods": ("vectorized_access",),
        "hypothesis": Hypothesis(
            current_evidence="The kernel loads single words.",
            decision_link="Wider loads need fewer instructions.",
            single_change=f"Load four words at once, variant {version}.",
            rationale="Fewer instructions are issued.",
            expected=(Expected(metric="time", direction="down", size="a little"),),
            risk="The tail is read twice.",
            decision_rule="Keep it if it is faster.",
        ),
        "evidence": Evidence(
            queries=(Query(about="other", text=f"wide loads {version}"),),
            selected=(Selected(reference="gpu-wiki/technique/vectorized-access.md:L29", quote="", why="It says so."),),
        ),
    }
    return Proposal(**{**fields, **changes})


def run_record(home: Path, **changes: Any) -> RunRecord:
    """run.json of a run on the CPU; its seed is drawn."""
    id = changes.get("id", RUN)
    original = kernel(0, us=100)
    fields: dict[str, Any] = {
        "id": id,
        "created": "2026-11-21T14:05:00Z",
        "kopt": "0.1.0",
        "workspace": "/workspace",
        "kernel": KeptFile(origin="softmax.py", name="kernel.py", hash=_sha(original.encode())),
        "reference": KeptFile(origin="reference.py", name="ref.py", hash=_sha(REFERENCE.encode())),
        "inputs": None,
        "problem_hash": receipts.problem().hash,
        "problem": ProblemWords(
            dims={"n": 64}, baselines=BASELINES, restarts=5, timing_seconds=1.0, call_seconds=10.0, load_seconds=10.0
        ),
        "seed_commitment": seeds.create(home, id),
        "device": "cpu",
        "device_name": "",
        "gpu": "",
        "profile": "none",
        "profile_why": "there is no GPU",
        "wikis": {},
        "least_confidence": "source-reported",
        "discipline": "single",
        "proposer": "agent",
        "command": (),
        "iterations": 3,
        "attempts": 3,
        "seconds": None,
        "target": "",
        "minimum_effect": 0.01,
        "noise_floor": None,
        "accept_unmeasured": True,
        "partial_restart": False,
        "in_place": False,
        "branch": "main",
    }
    return RunRecord(**{**fields, **changes})


def run_files(first: str | None = None) -> dict[str, bytes]:
    """The user's files of a new run."""
    return {
        "kernel.py": (kernel(0, us=100) if first is None else first).encode(),
        "ref.py": REFERENCE.encode(),
        "HINTS.md": b"- forbid: split_k\n",
        "plan.md": b"# Plan\n",
    }


@dataclass
class FakeTools:
    """What `loop.tools.Tools` asks for, from what kernels say of themselves."""

    home: Path
    record: RunRecord
    asked: list[str] = field(default_factory=list)
    """Each evaluation, by the hash of its kernel."""
    begun: list[int] = field(default_factory=list)
    """How many evaluations were asked for at once, each time."""

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        return Request(
            candidate=SourceFile(name=kernel_name, text=kernel_text),
            reference=SourceFile(name="reference.py", text=REFERENCE),
            incumbent=None if parent is None else SourceFile(name=kernel_name, text=parent),
            inputs=InputsFile(name="inputs.json", content=b"{}"),
            dims={"n": 64},
            device=self.record.device,
            baselines=BASELINES,
        )

    def ahead(self, asked: Sequence[tuple[Request, SeedSchedule]]) -> None:
        self.begun.append(len({schedule.commitment for _, schedule in asked}))

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        if said(request.candidate.text, "unfit", ""):
            raise UsageError("it has two entries", code="two_kernels", hint="Leave one.")
        self.asked.append(request.candidate.hash)
        return fake_receipt(self.home, request, schedule)

    def benchmark(self, kernel_text: str, kernel_name: str) -> ExternalReceipt | None:
        return None

    def profile(self, request: Request) -> TakenProfile:
        return TakenProfile(grade="none", csv="", report=None, why="there is no GPU")

    def diagnose(self, csv: str, receipt: Receipt, name: str) -> DiagnosisNote:
        return DiagnosisNote(
            bottleneck="unknown", resource="", dominant_stall="", headroom=(), symptoms=(), text="nothing was counted"
        )

    def targets(self) -> Targets:
        return Targets(
            specs=(), lines=(), bytes=None, operations=None, bound="", floor_us=None, target_us=None, gaps=()
        )  # fmt: skip

    def families(self) -> tuple[tuple[Variant, ...], str]:
        return (), "nothing was traced"

    def search(self, about: str, text: str) -> Search:
        found = FoundPassage(
            reference="gpu-wiki/technique/vectorized-access.md:L29@0", title="Wide loads", text="Load wide.", score=1.0
        )
        return Search.model_validate({"about": about, "text": text, "hits": (found,), "degraded": ""})

    def machine_code(self, kernel_text: str, kernel_name: str, methods: tuple[str, ...]) -> MachineNote:
        return MachineNote(target="", functions={}, why="there is no GPU")


def fake_receipt(home: Path, request: Request, schedule: SeedSchedule) -> Receipt:
    """A sealed receipt that says of a kernel what it says of itself."""
    text = request.candidate.text
    verdict = Verdict(said(text, "verdict", "accepted"))
    timed = request.device != "cpu" and verdict is Verdict.ACCEPTED
    changes: dict[str, Any] = {
        "candidate": CandidateRecord(
            name=request.candidate.name,
            text=text,
            hash=request.candidate.hash,
            backend=Backend.TORCH,
            entry="run",
            flags=(),
        ),
        "incumbent": SourceRecord.of(request.incumbent) if request.incumbent else None,
        "seed": schedule.reveal(),
        "verdict": verdict,
        "reason": f"as it says: {verdict}",
        "correctness": (receipts.trial(passed=verdict is Verdict.ACCEPTED),),
        "not_tried": tuple(
            {"what": name, "why": "no draw is needed"} for name in receipts.plan().distributions if name != "normal"
        ),
    }
    plan: dict[str, Any] = {
        "candidate_hash": request.candidate.hash,
        "seed_commitment": schedule.commitment,
        "seed_origin": schedule.origin,
        "device": request.device,
    }
    if verdict is Verdict.CHEATING:
        changes["hazards"] = (Hazard(id="cheat", severity=Severity.REJECT, evidence="it says so"),)
    if verdict is Verdict.TASK_REFUSED:
        changes["task_check"] = TaskCheck(refused=True, reasons=("zeros pass",))
    if request.device != "cpu":
        plan["timing"] = TimingPlan(restarts=5, seconds=1.0, baselines=BASELINES)
        changes["environment"] = receipts.gpu()
    if timed:
        changes |= _times(request)
    changes["plan"] = receipts.plan(**plan)
    return seal(receipts.receipt(**changes), ensure_key(home))


def _times(request: Request) -> dict[str, Any]:
    own = float(said(request.candidate.text, "us", "100"))
    other = own if request.incumbent is None else float(said(request.incumbent.text, "us", "100"))
    against = receipts.baseline("eager", other / own, own)
    workload = receipts.workload_timing(
        candidate=receipts.timed(us=own), baselines={"eager": against}, improvement=against.improvement, of_ceiling=0.5
    )
    found = receipts.timing(workload)
    return {
        "timing": found,
        "ceiling": workload.ceiling,
        "physics": workload.physics,
        "improvement": against.improvement if against.improvement is not Improvement.SAME else Improvement.SAME,
    }


def said(text: str, name: str, otherwise: str) -> str:
    """What a kernel says of itself."""
    found = re.search(rf"^(?:# )?{name} ?= ?(\S+)$", text, re.MULTILINE)
    return found[1] if found else otherwise


@dataclass
class FakeParts:
    """Stands in for `loop.run.parts.Parts`, with a gate that finds what kernels say."""

    folder: RunFolder
    record: RunRecord
    tools: FakeTools

    def step0(self) -> dict[str, bytes]:
        return {
            "env.json": b"{}\n",
            "README.md": b"# The run\n",
            "roofline.json": canonical.dumps(self.tools.targets().model_dump(mode="json")),
        }

    def hints(self) -> HintsRead:
        data = read_if_there(self.folder.hints)
        lines = () if data is None else tuple(data.decode().splitlines())
        return HintsRead(file=None if data is None else _sha(data), directives=lines, passed_on=())

    @property
    def log(self) -> ExperienceLog:
        """The real one, in the run's own KOPT_HOME; a search finds records that have a word of the text."""
        folder, home = self.tools.home / "experience", self.tools.home

        def search(text: str, count: int) -> list[Entry]:
            with ExperienceLog(folder, home).index() as index:
                asked = set(vocabulary.words(text))
                return [one for one in index.entries() if asked & set(vocabulary.words(told(one.experiment)))][:count]

        return ExperienceLog(folder, home, search)

    def look_up(self, state: RunState, parent: int) -> tuple[Search, ...]:
        found = tuple(self.tools.search(about, f"{about} of v{parent}") for about in ("kernel", "bottleneck"))
        return (past.look_up(self.log, self.folder, state, parent), *found)

    def look_further(self, state: RunState, proposal: Proposal, known: tuple[Search, ...]) -> tuple[Search, ...]:
        return evidence.further(self.tools, proposal, known, lambda text: past.look_for(self.log, state, text))

    def log_version(self, version: int) -> Recorded:
        return past.record(self.log, self.folder, version, ensure_key(self.tools.home))

    def of_attempt(self, receipt: Receipt) -> dict[str, bytes]:
        return {"correctness.md": f"{receipt.verdict}: {receipt.reason}\n".encode()}

    def of_version(self, version: int) -> dict[str, bytes]:
        made = {"hypothesis.txt": f"Version: {version}\n".encode(), "kbs_evidence.md": b"# KBS Evidence\n"}
        files = VersionFiles(self.folder, self.record, version)
        if files.proposal is not None and files.proposal.ablations:
            made[attribution.NAME] = attribution.attribution(files)
        return made

    def of_run(self, state: RunState) -> dict[str, bytes]:
        lines = [f"v{v.number}: {v.closed.why if v.closed else 'open'}\n" for v in state.versions]
        return {"ITERATIONS.md": "".join(lines).encode(), "citations.json": b"[]\n"}

    def of_end(self, state: RunState) -> dict[str, bytes]:
        final = state.final
        shown = "no time" if final is None or final.ratio is None else words(final.ratio)
        return {"final_report.md": f"# End\n{shown}\n".encode(), "summary.json": b"{}\n"}

    def untried(self, state: RunState) -> tuple[str, ...]:
        return ("split_k",)

    def gate(self, state: RunState, version: int, stage: Stage, proposal: Proposal | None = None) -> GateReport:
        folder = self.folder.version(version)
        data = read_if_there(folder / "kernel.py") or b""
        text = proposal.kernel if proposal is not None else data.decode()
        where, _, rule = said(text, "gate", ":").partition(":")
        found = (Broken(file="kernel.py", line=1, message="it says so", fix="Say otherwise."),)
        broken = found if where == stage else ()
        checked = {
            self.folder.relative(path): _sha(path.read_bytes()) for path in sorted(folder.glob("*")) if path.is_file()
        }
        results = (RuleResult(rule=rule or "none", title="It says nothing.", lapsed="", broken=broken),)
        return GateReport(
            version=version, stage=stage, passed=not broken, results=results, notes=(), checked=checked
        )  # fmt: skip


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
