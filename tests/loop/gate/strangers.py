"""Two runs, made up, for which people who saw the docs alone wrote proposals: hostile ones and harmless ones.

`strangers/set-N.jsonl` has the proposals. `${receipt}` in them is the id of the receipt of version 1, and `${profile}`
the hash of its profile as a reference begins with it. `strangers/lines.json` has what the cited lines said to the
people who cited them: a line that stands elsewhere on its page by now is cited there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.receipt.receipt import Receipt
from evaluator.request import Request
from kbs.common.canonical_json import dumps
from kbs.evidence.vocabulary import vocabulary
from loop.gate.context import Stage
from loop.gate.report import GateReport
from loop.journal.folder import RunFolder
from loop.journal.record import KeptFile, PinnedWiki
from loop.journal.state import Phase, RunState
from loop.pages.run import plan
from loop.planning.step0 import spec_notes
from loop.proposals import evidence
from loop.proposals import experience as past
from loop.proposals.proposal import Evidence, Expected, Hypothesis, Proposal, Query, Selected
from loop.run.driver import Driver, create_run, read_run
from loop.run.submission import Submission
from loop.tools import DiagnosisNote, Named, Search, TakenProfile, Targets
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv
from tests.loop.gate import valid
from tests.loop.tools import run_files, run_record
from wiki.library import Wikis, bundled_wiki

FOLDER = Path(__file__).with_name("strangers")
SETS = {1: "softmax", 2: "rmsnorm", 3: "rmsnorm", 4: "rmsnorm"}
"""Operation of each set. Set 4 is ours: what somebody who had read the gate thought of, each in one place of a harmless
proposal of set 3."""
SOFTMAX_KERNEL = '''"""Softmax of rows."""
# us={us}

import torch
import triton
import triton.language as tl

VARIANT = {number}


@triton.jit
def softmax_kernel(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # first the maximum, then the sum, then the quotient: the row is read three times
    top = -float("inf")
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + place, mask=place < columns, other=-float("inf"))
        top = tl.maximum(top, tl.max(value, 0))
    total = 0.0
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + place, mask=place < columns, other=-float("inf"))
        total += tl.sum(tl.exp(value - top), 0)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + place, mask=place < columns, other=-float("inf"))
        tl.store(y + row * stride + place, tl.exp(value - top) / total, mask=place < columns)


def run(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, y, columns, x.stride(0), BLOCK={block}, num_warps=8)
    return y
'''
RMSNORM_KERNEL = '''"""RMSNorm of rows with a weight."""
# us={us}

import torch
import triton
import triton.language as tl

VARIANT = {number}


@triton.jit
def rmsnorm_kernel(x, w, y, columns, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # the mean of squares first, then the scaled row: the row is read twice
    total = 0.0
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + place, mask=place < columns, other=0.0).to(tl.float32)
        total += tl.sum(value * value, 0)
    scale = 1.0 / tl.sqrt(total / columns + eps)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < columns
        value = tl.load(x + row * stride + place, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(w + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * stride + place, (value * scale * weight).to(y.dtype.element_ty), mask=inside)


def run(x, w):
    y = torch.empty_like(x)
    rows, columns = x.shape
    rmsnorm_kernel[(rows,)](x, w, y, columns, x.stride(0), 1e-6, BLOCK={block}, num_warps=4)
    return y
'''


@dataclass(frozen=True)
class Made:
    """A run that is made up."""

    operation: str
    kernel: str
    gpu: str
    device: str
    said: str
    """The GPU in a query."""
    inputs: bytes
    dims: dict[str, int]
    page: str
    metrics: tuple[str, ...]
    floor_us: float
    us: tuple[int, int, int]
    """Of versions 0, 1 and 2."""
    blocks: tuple[int, int, int]
    throughput: float
    """Of DRAM in version 0, in per cent; each version has one more."""
    counted: dict[str, tuple[str, str]]
    """What ncu counts otherwise than in the softmax of `ncu_reports`."""

    def text(self, number: int) -> str:
        """A version's kernel."""
        changes = {"us": self.us[number], "number": number, "block": self.blocks[number]}
        return re.sub(r"\{(us|number|block)\}", lambda match: str(changes[match[1]]), self.kernel)


RUNS = {
    "softmax": Made(
        operation="softmax", kernel=SOFTMAX_KERNEL, gpu="h200-sxm", device="NVIDIA H200", said="H200",
        inputs=b'{"x": {"shape": [8192, 8192], "dtype": "float32"}}', dims={"M": 8192, "N": 8192},
        page="hardware/h200-sxm.md", metrics=("hbm_bandwidth", "l2_bandwidth", "fp32_throughput"), floor_us=90.0,
        us=(100, 90, 95), blocks=(1024, 2048, 4096), throughput=88.6, counted={},
    ),
    "rmsnorm": Made(
        operation="rmsnorm", kernel=RMSNORM_KERNEL, gpu="h100-sxm", device="NVIDIA H100 80GB HBM3", said="H100 SXM",
        inputs=b'{"x": {"shape": [16384, 4096], "dtype": "bfloat16"}, "w": {"shape": [4096], "dtype": "bfloat16"}}',
        dims={"M": 16384, "N": 4096}, page="hardware/h100-sxm.md",
        metrics=("hbm_bandwidth", "l2_capacity", "fp32_throughput"), floor_us=92.0,
        us=(130, 112, 118), blocks=(512, 1024, 2048), throughput=71.3,
        counted={
            "device__attribute_display_name": ("", "NVIDIA H100 80GB HBM3"),
            "dram__bytes_read.sum": ("Mbyte", "134.2259"), "dram__bytes_write.sum": ("Mbyte", "133.87"),
            "launch__grid_size": ("", "16,384"), "launch__block_size": ("", "128"),
            "launch__registers_per_thread": ("register/thread", "40"),
            "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "68.4"),
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "24.9"),
            "lts__t_sector_hit_rate.pct": ("%", "63.8"),
        },
    ),
}  # fmt: skip
Look = Callable[[str, str], Search]
"""Searches the knowledge base: about what, the question."""


@dataclass
class _Tools(valid.GpuTools):
    made: Made = field(kw_only=True)
    look: Look = field(kw_only=True)

    def profile(self, request: Request) -> TakenProfile:
        found = re.search(r"VARIANT = (\d)", request.candidate.text)
        number = int(found[1]) if found else 9
        share = f"{self.made.throughput + number:.1f}"
        times = 131.5 - 9 * number if self.made.operation == "rmsnorm" else 128.5 - 10 * number
        counted = dict(SOFTMAX) | self.made.counted
        counted |= {
            "gpu__time_duration.sum": ("us", str(times)),
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", share),
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", share),
        }
        csv = raw_csv((f"{self.made.operation}_kernel", counted))
        return TakenProfile(grade="full", csv=csv, report=b"report", why="")

    def diagnose(self, csv: str, receipt: Receipt, name: str) -> DiagnosisNote:
        said = f"DRAM throughput {self.made.throughput + (self.made.operation == 'rmsnorm'):.1f} %"
        symptom = Named(id="dram-bound", name="DRAM is nearly full", text=said, techniques=())
        changes = {"symptoms": (symptom,), "resource": said, "text": f"memory-bound: {said}", "headroom": ()}
        return super().diagnose(csv, receipt, name).model_copy(update=changes)

    def targets(self) -> Targets:
        specs = Wikis([self.wiki]).specs(self.wiki.name, self.made.page)
        moved = 2 * self.made.dims["M"] * self.made.dims["N"]
        width = 4 if self.made.operation == "softmax" else 2
        changes = {
            "specs": tuple(spec_notes(specs, self.made.gpu, self.made.metrics, vocabulary())),
            "lines": (), "bytes": moved * width, "operations": moved * 2, "floor_us": self.made.floor_us,
            "target_us": self.made.floor_us / 0.9,
        }  # fmt: skip
        return super().targets().model_copy(update=changes)

    def search(self, about: str, text: str) -> Search:
        return self.look(about, text)


@dataclass
class TakenParts(valid.RealParts):
    """Parts of a run whose gate can be told to let all pass."""

    taken: bool = False
    """Whether the gate lets everything pass: while the run is made."""

    def gate(self, state: RunState, version: int, stage: Stage, proposal: Proposal | None = None) -> GateReport:
        found = super().gate(state, version, stage, proposal)
        if not self.taken:
            return found
        results = tuple(one.model_copy(update={"broken": ()}) for one in found.results)
        return found.model_copy(update={"passed": True, "results": results})


class _Parts(TakenParts):
    def look_up(self, state: RunState, parent: int) -> tuple[Search, ...]:
        assert isinstance(self.tools, _Tools)
        made = self.tools.made
        words = ["softmax" if made.operation == "softmax" else "rms norm", "import triton"]
        diagnosis = self.tools.diagnose("", None, "")  # type: ignore[arg-type]  # it does not look at the receipt
        asked = evidence.queries(made.operation, words, made.said, diagnosis, vocabulary())
        return (past.look_up(self.log, self.folder, state, parent), *evidence.look_up(self.tools, asked))


@dataclass(frozen=True)
class Waiting:
    """A run that waits for version 3."""

    root: Path
    home: Path
    made: Made
    look: Look

    def submit(self, proposal: Proposal, folder: Path) -> Submission:
        """Hand a proposal in to a copy of the run."""
        root = folder / "run"
        shutil.copytree(self.root, root, symlinks=True)
        record = read_run(root).record
        tools = _Tools(self.home, record, wiki=bundled_wiki(), made=self.made, look=self.look)
        parts: Any = _Parts(RunFolder(root), record, tools, wiki=bundled_wiki())
        with Driver.open(root, tools, self.home, parts) as driver:
            return driver.submit(proposal, dumps(proposal.model_dump(mode="json")))

    def cases(self, number: int) -> Iterator[dict[str, Any]]:
        """The proposals of a set, with this run's receipt and profile."""
        receipt = json.loads((self.root / "v1/receipt.json").read_text("utf-8"))["id"]
        profile = hashlib.sha256((self.root / "v1/profile.csv").read_bytes()).hexdigest()[:16]
        text = (FOLDER / f"set-{number}.jsonl").read_text("utf-8").replace("${profile}", profile)
        text = re.sub(r"\$\{receipt(\d*)\}", lambda match: receipt[: int(match[1] or 64)], text)
        yield from (json.loads(line) for line in as_it_stands_now(text, "lines.json").splitlines())


def as_it_stands_now(text: str, lines: str) -> str:
    """A text whose references have the numbers that the lines have on the pages of today. `lines`: the file that says
    what they said."""
    known = json.loads((FOLDER / lines).read_text("utf-8"))
    return re.sub(r"gpu-wiki/([\w./-]+\.md):L\d+(?:-L?\d+)?", lambda one: _now(one, known.get(one[1], {})), text)


def _now(reference: re.Match[str], said: dict[str, str]) -> str:
    page = (bundled_wiki().root / reference[1]).read_text("utf-8").split("\n") if said else []

    def line(number: re.Match[str]) -> str:
        places = [at for at, text in enumerate(page, start=1) if text == said.get(number[1])]
        return f"L{min(places, key=lambda at: abs(at - int(number[1])), default=number[1])}"

    head, colon, lines = reference[0].rpartition(":")
    return head + colon + re.sub(r"L?(\d+)", line, lines)


def _proposal(made: Made, number: int, parent: int, method: str) -> Proposal:
    reference = valid.place(bundled_wiki(), valid.ADVICE, valid.QUOTE)[0]
    return Proposal(
        version=number,
        parent=parent,
        kernel=made.text(number),
        methods=(method,),
        hypothesis=Hypothesis(
            current_evidence="Loads lead.",
            decision_link="Fewer iterations of each loop.",
            single_change="Other block size.",
            rationale="Fewer iterations of each loop.",
            expected=(Expected(metric="time", direction="down", size="a little"),),
            risk="More registers.",
            decision_rule="Keep it if the time falls.",
        ),
        evidence=Evidence(
            selected=(Selected(reference=reference, quote=valid.QUOTE, why="It is near."),),
            queries=(Query(about="other", text="vectorized access"),),
        ),
    )


def build(base: Path, made: Made, look: Look) -> Waiting:
    """Drive a run of two versions after the first; the second was slower."""
    home, wiki = base / "home", bundled_wiki()
    home.mkdir(parents=True)
    pinned = {file.path: hashlib.sha256(wiki.read(file.path) or b"").hexdigest() for file in wiki.files()}
    record = run_record(
        home, device="cuda:0", device_name=made.device, gpu=made.gpu, profile="full", profile_why="",
        accept_unmeasured=False, iterations=6,
        inputs=KeptFile(origin="inputs.json", name="inputs.json", hash=hashlib.sha256(made.inputs).hexdigest()),
        wikis={wiki.name: PinnedWiki(root=str(wiki.root), revision=wiki.revision, pages=pinned)},
    )  # fmt: skip
    record = record.model_copy(update={"problem": record.problem.model_copy(update={"dims": made.dims})})
    hints = b"- forbid: tensor_core\n- precision: fp32\n"
    files = {**run_files(made.text(0)), "HINTS.md": hints, "inputs.json": made.inputs, "plan.md": plan(record)}
    folder = create_run(base / "run", record, files, home)
    tools = _Tools(home, record, wiki=wiki, made=made, look=look)
    parts: Any = _Parts(RunFolder(folder.root), record, tools, wiki=wiki, taken=True)
    with Driver.open(folder.root, tools, home, parts) as driver:
        assert driver.advance() is Phase.PROPOSE
        for number, parent, method in ((1, 0, "launch_config"), (2, 1, "vectorized_access")):
            handed = _proposal(made, number, parent, method)
            taken = driver.submit(handed, dumps(handed.model_dump(mode="json")))
            assert taken.accepted, taken.broken
            assert driver.advance() is Phase.PROPOSE
    return Waiting(folder.root, home, made, look)
