"""What speaks against no rule: variations of a valid run that the gate accepts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from evaluator.receipt.receipt import parse
from loop.gate.report import GateReport, run_gate
from loop.proposals.evidence import render
from loop.proposals.proposal import Expected, Selected, Skipped
from loop.run.driver import read_run
from loop.tools import Search
from tests.loop.gate.test_breaks import RECORD, Way, _filled, adds, comments, finds_record, proposes, says, writes
from tests.loop.gate.valid import ValidRun, context, kernel

pytestmark = pytest.mark.processes

CUDA = '__global__ void f(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; } extern "C" void solve() {}\n'


def cites(text: str) -> Way:
    """A proposal that says something about a cited value."""
    return says(text)


def _receipt(run: ValidRun) -> GateReport:
    found = parse((run.root / "v2/receipt.json").read_bytes())
    one = Selected(reference=f"receipt/{found.id}#verdict", quote="", why="It was right.")
    times = found.timing.workloads[0].candidate.summary if found.timing else None
    assert times is not None
    said = f"The parent takes {times.median_us} us."
    return run.look(run.proposal(evidence={"selected": (one,)}, hypothesis={"current_evidence": said}))


def _profile(run: ValidRun) -> GateReport:
    hash = hashlib.sha256((run.root / "v2/profile.csv").read_bytes()).hexdigest()
    one = Selected(
        reference=f"profile/{hash}#dram_throughput", quote="DRAM throughput: 90.6 %", why="DRAM is what binds."
    )
    return run.look(run.proposal(evidence={"selected": (one,)}))


def _spec_as_evidence(run: ValidRun) -> GateReport:
    reference = _filled(run, "{ref}")
    one = Selected(reference=reference, quote="H200 SXM HBM bandwidth: 4.8 TB/s", why="It is the peak.")
    return run.look(run.proposal(evidence={"selected": (one,)}))


ADVISED = (
    "It is launched with a block of 256 threads.",
    "The tile takes 128 * 96 * 4 B = 49,152 B of shared memory.",
    "H200 SXM HBM bandwidth: UNKNOWN (gpu-wiki not found)",
)
"""Sentences that docs/gate.md advises."""


@pytest.mark.parametrize("sentence", ADVISED)
def test_what_the_docs_advise_passes(valid: ValidRun, sentence: str) -> None:
    for look in (says(sentence), says(sentence, "decision_rule"), comments(sentence)):
        assert look(valid).passed


def _new_page(run: ValidRun) -> GateReport:
    (run.own_wiki().root / "kernel/new.md").write_text("no page at all", "utf-8")
    return run.look()


def _other_hints(run: ValidRun) -> GateReport:
    (run.root / "HINTS.md").write_text("- prefer: warp_shuffle\n", "utf-8")
    return run.gate(2)


def _numbers_of_the_parent(run: ValidRun) -> GateReport:
    facts = (
        "DRAM throughput: 90.6 %; L1 throughput is 40.2 %.",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed = 90.6 %",
        "Achieved occupancy of 92.3 %, 32 registers per thread, 8,192 blocks.",
        "268.435456 MB are read, and 263.1 MB written, in 108.5 us.",
        "The SM clock was 1.755 GHz; long scoreboard: 48.2.",
    )
    return run.look(run.proposal(evidence={"ncu_facts": facts}))


def _with_circumstances(run: ValidRun) -> GateReport:
    finds_record(run)
    return run.look(run.proposal(circumstances="The rows are four times as long here."))


def _record(run: ValidRun) -> GateReport:
    finds_record(run, method="async_copy")
    quote = "regression, measured, 0.9 times as fast"
    one = Selected(reference=f"log/{RECORD}", quote=quote, why="It happened before.")
    return run.look(run.proposal(evidence={"selected": (one,)}, hypothesis={"risk": f"As before <- log/{RECORD}"}))


def _time_of_a_record(run: ValidRun) -> GateReport:
    finds_record(run, method="async_copy", lesson="\nlesson: it took 43.25 us")
    said = f"time there: 43.25 us <- log/{RECORD}"
    return run.look(run.proposal(hypothesis={"risk": said}))


def _users_constant(run: ValidRun) -> GateReport:
    state = read_run(run.root).state
    path = run.root / "v0/kernel.py"
    path.write_text(path.read_text("utf-8") + "\n\nNUM_SMS = 144\n", "utf-8")
    state.files["v0/kernel.py"] = hashlib.sha256(path.read_bytes()).hexdigest()
    handed_in = run.proposal(kernel=kernel(4, 70) + "\n\nNUM_SMS = 144\n")
    found = run_gate(context(run.root, run.wiki, run.home, 4, "proposal", handed_in, state=state))
    assert run_gate(context(run.root, run.wiki, run.home, 0, "version", state=state)).rules == ("receipt-kernel",)
    return found


def _own_record(run: ValidRun) -> GateReport:
    """The log's advice on v4 rests on what this run brought."""
    lines = (run.root / "v4/searches.jsonl").read_text("utf-8").splitlines()
    hits = json.loads(lines[0])["hits"]
    assert hits[0]["past"] == {"method": "warp_shuffle", "advice": "recommended"}, "of the largest gain"
    one = Selected(reference=hits[0]["reference"], quote="warp_shuffle", why="It helped in this run.")
    return run.look(run.proposal(evidence={"selected": (one,)}))


def _nearest(run: ValidRun) -> GateReport:
    """The log names the nearest record where none is similar, and pages of the version print that."""
    why = f"the nearest record, log/{RECORD}, has a similarity of 0.012, less than 0.05: shape 0.10"
    path = run.root / "v4/searches.jsonl"
    path.write_bytes(path.read_bytes() + render([Search(about="experience", text="x", hits=(), degraded="", why=why)]))
    return run.look(run.proposal(hypothesis={"risk": f"None similar: {why}."}))


HARMLESS: dict[str, Callable[[ValidRun], GateReport]] = {
    "a known failure whose circumstances changed": _with_circumstances,
    "a record of the log that was found": _record,
    "this run's own record": _own_record,
    "the nearest record of the log": _nearest,
    "a cited spec": cites("H200 SXM HBM bandwidth: 4.8 TB/s <- {ref}"),
    "a cited spec with its hash": cites("H200 SXM HBM bandwidth: 4.8 TB/s <- {ref}@{hash}"),
    "a cited spec in another unit": cites("H200 SXM HBM bandwidth: 4,800 GB/s <- {ref}"),
    "a constant that README.md registers": proposes(kernel=kernel(4, 70) + "\n\nHBM_BANDWIDTH = 4.8e12\n"),
    "constants that a kernel chooses": proposes(
        kernel=kernel(4, 70) + "\n\nL2 = 512\nSMEM_BYTES = 48 * 1024\nBANDWIDTH = 64\nMAX_THREADS = 1024\n"),
    "a constant of the user's own kernel": _users_constant,
    "a spec that README.md registers": cites("The HBM bandwidth of 4.8 TB/s is far from reached."),
    "a cited spec in a comment": comments("# H200 SXM HBM bandwidth: 4.8 TB/s <- {ref}"),
    "a spec that is not known": cites("H200 SXM L2 latency: UNKNOWN (gpu-wiki not found)"),
    "arithmetic from cited values": cites("The ridge point is 67 TFLOPS / 4.8 TB/s = 13.96 FLOP/byte."),
    "arithmetic from the profile": cites("268.435456 MB / 108.5 us = 2.474 TB/s are read, 2.474 TB/s in all."),
    "arithmetic of sizes": cites("A tile uses 2 * 64 * 96 * 4 B = 49152 B of shared memory, 48 KiB."),
    "shapes and counts": cites("A 4096 x 4096 input, blocks of 256 threads, 4 warps, 2 stages, 8 rows, 3 of 7 loads."),
    "versions and lines": cites("CUDA 13.0 and Triton 3.7.1 compile line 120 for compute capability 9.0 (sm_90)."),
    "adjectives": cites("A 128-bit load takes a whole 32-byte sector with its neighbour."),
    "a limit in the decision rule": says("Keep it if it takes less than 75 us, or DRAM throughput rises above 95 %.",
                                         "decision_rule"),
    "predictions": proposes(hypothesis={"expected": (
        Expected(metric="dram_throughput", direction="up", size="from 90 % to 97 %"),
        Expected(metric="gpu__time_duration.sum", direction="down", size="by 12.5 us"))}),
    "a rate that is foretold": proposes(hypothesis={"expected": (
        Expected(metric="dram_bandwidth", direction="up", size="from 3 TB/s to about 4.2 TB/s"),)}),
    "a time of the log": _time_of_a_record,
    "numbers of the parent": _numbers_of_the_parent,
    "numbers of a version that is named": says("In v1 the DRAM throughput was 89.6 %.", "current_evidence"),
    "a receipt as evidence": _receipt,
    "a profile as evidence": _profile,
    "a spec as evidence": _spec_as_evidence,
    "a failed method with its circumstances": proposes(methods=("async_copy",), circumstances="The parent is v2 now."),
    "another language": proposes(kernel=CUDA, language="cuda", methods=("rewrite",)),
    "a skipped method": proposes(skipped=(Skipped(method="tensor_core", reason="HINTS.md forbids it."),)),
    "an older parent": proposes(parent=1, hypothesis={"current_evidence": "DRAM throughput is 89.6 %."},
                                evidence={"ncu_facts": ()}),
    "more comments": comments("# rows are independent; each is read once, and kept in registers"),
    "words of another script": cites("Строка читается один раз. 行は一度だけ読まれる。"),
    "a new page that nobody cites": _new_page,
    "other hints": _other_hints,
    "notes of the user": writes("notes/todo.txt", adds("The H200 might have 12 TB/s of L2 bandwidth?")),
    "a torn line of the journal that was set aside": writes("journal.torn-1", adds("{")),
    "a version that is masked in words": says("v3 was slower: it is left out.", "risk"),
    "a kernel of many lines": proposes(kernel=kernel(4, 70) + "\n".join(f"x{n} = {n % 4}" for n in range(3000)) + "\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_variation_is_accepted(name: str, valid: ValidRun) -> None:
    found = HARMLESS[name](valid)
    assert found.passed, "\n".join(found.lines())


def test_there_are_enough() -> None:
    assert len(HARMLESS) >= 20


def test_a_report_says_what_it_found(valid: ValidRun) -> None:
    found = proposes(
        methods=("tensor_core", "warp_shuffle"), kernel=kernel(4, 70) + "\n\ndef extra():\n    return 1\n"
    )(valid)
    assert found.rules == ("discipline", "forbidden-method")
    assert "skipped-priority" in valid.gate(0).lapsed
    assert len(found.reasons) == 2
    assert found.reasons[0].startswith("discipline: proposal.json#methods: 2 methods are declared")
    text = "\n".join(found.lines(explain=True))
    assert "with two changes at once nobody knows which one helped." in text
    assert any("places differ" in note for note in found.notes)
    assert found.checked["v2/kernel.py"] == hashlib.sha256((valid.root / "v2/kernel.py").read_bytes()).hexdigest()
    assert GateReport.model_validate_json(found.model_dump_json()) == found


def test_lines_of_a_kernel_are_named(valid: ValidRun) -> None:
    found = comments("# an SM has 300 KB of shared memory")(valid)
    broken = next(result.broken[0] for result in found.results if result.rule == "unsourced-spec")
    assert (broken.file, broken.line) == ("kernel.py", 7)
    assert "300 KB" in broken.message


def test_the_report_is_not_swayed_by_the_text(valid: ValidRun) -> None:
    found = says("\x1b[2J about \u202e 5.5 TB/s of HBM bandwidth")(valid)
    assert not found.passed
    assert all("\x1b" not in line and "\u202e" not in line for line in found.lines())
    assert json.loads(found.model_dump_json())["passed"] is False
