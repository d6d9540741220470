"""Ways to break a valid run: each is rejected by the rule that it breaks, and no rule is without one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import parse, render
from evaluator.source.source_file import SourceFile
from evaluator.store.seal import ensure_key, seal
from kbs.evidence.citation import lines_hash
from loop.gate.report import GateReport, run_gate
from loop.gate.rules import RULES
from loop.journal.events import HintsRead
from loop.planning.hints import parse_hints
from loop.planning.methods import Method, Methods
from loop.proposals import evidence
from loop.proposals.proposal import Branch, Expected, Query, Selected, Skipped
from loop.run.driver import read_run
from loop.tools import FoundPassage, MachineNote, PastMethod, Search
from tests.evaluator import receipts
from tests.evaluator.ncu_reports import changed, raw_csv
from tests.loop.gate.valid import ADVICE, QUOTE, GpuTools, ValidRun, context, kernel, metrics, place
from tests.loop.tools import fake_receipt

pytestmark = pytest.mark.processes

Way = Callable[[ValidRun], GateReport]
WAYS: dict[str, tuple[str, Way]] = {}
ENDS: dict[str, tuple[str, Way]] = {}


def way(name: str, rule: str, act: Way) -> None:
    """A way to break the open run."""
    assert name not in WAYS
    WAYS[name] = rule, act


def end(name: str, rule: str, act: Way) -> None:
    """A way to break the ended run."""
    assert name not in ENDS
    ENDS[name] = rule, act


def proposes(**changes: Any) -> Way:
    """A proposal with changes."""
    return lambda run: run.look(run.proposal(**changes))


def says(text: str, part: str = "rationale") -> Way:
    """A proposal that says something; `{ref}` is the line of the HBM bandwidth, `{page}` its page."""
    return lambda run: run.look(run.proposal(hypothesis={part: _filled(run, text)}))


def comments(text: str) -> Way:
    """A kernel with a comment."""
    return lambda run: run.look(
        run.proposal(kernel=kernel(4, 70).replace("# one pass over the row", _filled(run, text)))
    )


def compiles(said: str) -> Way:
    """A proposal whose machine code shows what is said of its method."""

    def act(run: ValidRun) -> GateReport:
        handed = run.proposal(methods=("mufu_ex2_softmax",))

        def machine(text: str, name: str, methods: tuple[str, ...]) -> MachineNote:
            shown = dict.fromkeys(methods, said)
            return MachineNote(target="sm_90a", functions={name: text}, methods=shown, opcodes={}, why="")

        return run_gate(context(run.root, run.wiki, run.home, 4, "proposal", handed, machine=machine))

    return act


def _filled(run: ValidRun, text: str) -> str:
    reference, number, line = place(run.wiki, "hardware/h200-sxm.md", "| HBM bandwidth |")
    return text.format(ref=reference, page=reference.rsplit(":", 1)[0], line=number, hash=lines_hash([line])[:16])


def writes(path: str, change: Callable[[str], str], version: int = 2, stage: Any = "version") -> Way:
    """A file that is changed."""

    def act(run: ValidRun) -> GateReport:
        file = run.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(change(file.read_text("utf-8") if file.exists() else ""), "utf-8")
        return run.gate(version, stage)

    return act


def removes(path: str, version: int = 2, stage: Any = "version") -> Way:
    """A file that is removed."""

    def act(run: ValidRun) -> GateReport:
        (run.root / path).unlink()
        return run.gate(version, stage)

    return act


def adds(text: str) -> Callable[[str], str]:
    """A line at the end."""
    return lambda before: before + text + "\n"


def selects(**changes: str) -> Way:
    """Other evidence."""

    def act(run: ValidRun) -> GateReport:
        reference, _, _ = place(run.wiki, ADVICE, QUOTE)
        fields = {"reference": reference, "quote": QUOTE, "why": "It is this change.", **changes}
        return run.look(run.proposal(evidence={"selected": (Selected(**fields),)}))

    return act


# --- specs ------------------------------------------------------------------------------------------------------------

way("a spec in prose", "unsourced-spec", says("The L2 bandwidth of the H200 is 12.5 TB/s."))
way("a spec with the unit in words", "unsourced-spec", says("The H200 has 5.2 terabytes per second."))
way("a spec in a question", "unsourced-spec",
    proposes(evidence={"queries": (Query(about="other", text="with an L2 bandwidth of 12.5 TB/s"),)}))  # fmt: skip
way("a spec in a prediction", "unsourced-spec",
    proposes(hypothesis={"expected": (
        Expected(metric="dram_throughput", direction="up", size="since the L2 bandwidth is 12.5 TB/s"),)}))  # fmt: skip
way("a spec as a product's rate", "unsourced-spec", says("An H200 does 1234 TFLOPS."))
way("a number of SMs", "unsourced-spec", says("There are 144 SMs to fill."))
way("a spec in a table", "unsourced-spec", says("| metric | value |\n|---|---|\n| L2 capacity | 96 MB |"))
way("a spec with its unit in the head of a table", "unsourced-spec",
    says("| GPU | L2 capacity (MB) |\n|---|---|\n| H200 | 96 |"))  # fmt: skip
way("a spec in a table of three cells", "unsourced-spec", says("| L2 bandwidth | 12.5 | TB/s |"))
way("a spec without a unit", "unsourced-spec", says("L2 bandwidth: 12.5"))
way("a spec in JSON", "rendered",
    writes("v2/roofline.json", lambda text: text.replace("{", '{"l2_bandwidth_tb_s": 12.5, ', 1)))  # fmt: skip
way(
    "a spec in JSON, value and unit apart",
    "rendered",
    writes("v2/ncu_top.json", lambda _: json.dumps({"metric": "l2_bandwidth", "value": 12.5, "unit": "TB/s"})),
)
way("a spec in a comment", "unsourced-spec", comments("# an SM has 300 KB of shared memory"))
way("a spec as a constant", "unsourced-spec", proposes(kernel=kernel(4, 70) + "\n\nNUM_SMS = 144\n"))
way("a spec as a constant in bytes", "unsourced-spec",
    proposes(kernel=kernel(4, 70) + "\n\nL2_BYTES = 96 * 1024 * 1024\n"))  # fmt: skip
way(
    "a spec as a macro",
    "unsourced-spec",
    proposes(kernel="#define NUM_SMS 144\n__global__ void f() {}\n", language="cuda", methods=("rewrite",)),
)
way("a spec in a docstring", "unsourced-spec",
    proposes(kernel=kernel(4, 70).replace("Softmax of rows.", "Softmax. The L2 capacity is 96 MB.")))  # fmt: skip
way("a spec over two comments", "unsourced-spec", comments("# the L2 bandwidth is\n    # 12.5 TB/s"))
way(
    "a spec in a comment of CUDA",
    "unsourced-spec",
    proposes(kernel="// L2 bandwidth: 12.5 TB/s\n__global__ void f() {}\n", language="cuda", methods=("rewrite",)),
)
way("a spec in plain text", "rendered", writes("v2/hypothesis.txt", adds("SM count: 144 SMs")))
way("a spec in Markdown of the version", "rendered", writes("v2/plan.md", adds("The TDP is 900 W.")))
way("a spec in the run's README.md", "changed-file", writes("README.md", adds("Boost clock: 2.4 GHz")))
way("a spec with the value of another metric", "unsourced-spec", says("The L2 bandwidth is 4.8 TB/s."))
way("a spec made of bare numbers", "unsourced-spec", says("L2 capacity: 96 * 1024 * 1024 = 100663296 B"))
way("a spec beside a citation of something else", "unsourced-spec",
    says("H200 SXM HBM bandwidth: 4.8 TB/s <- {ref} and the L2 bandwidth is 12.5 TB/s."))  # fmt: skip
way("about", "hedged-spec", says("The HBM bandwidth is about 4.8 TB/s."))
way("approximately", "hedged-spec", says("HBM bandwidth: approximately 4.8 TB/s <- {ref}"))
way("should be", "hedged-spec", says("The HBM bandwidth should be 4.8 TB/s."))
way("a similar product", "hedged-spec", says("The HBM bandwidth is 4.8 TB/s on a similar product."))
way("a tilde in a comment", "hedged-spec", comments("# HBM bandwidth ~4.8 TB/s"))
way("or so", "hedged-spec", says("The HBM bandwidth is 4.8 TB/s or so."))

# --- citations --------------------------------------------------------------------------------------------------------

way("the wrong line", "citation", says("H200 SXM HBM bandwidth: 4.8 TB/s <- {page}:L3"))
way("the wrong value", "citation", says("H200 SXM HBM bandwidth: 5.8 TB/s <- {ref}"))
way("the wrong unit", "citation", says("H200 SXM HBM bandwidth: 4.8 GB/s <- {ref}"))
way("the wrong metric", "citation", says("H200 SXM L2 bandwidth: 4.8 TB/s <- {ref}"))
way("the wrong product", "citation", says("H100 SXM HBM bandwidth: 4.8 TB/s <- {ref}"))
way("a line past the end", "citation", says("H200 SXM HBM bandwidth: 4.8 TB/s <- {page}:L99999"))
way("no such page", "citation", says("H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h201.md:L33"))
way("words that do not stand there", "citation", says('"eight terabytes each second" <- {ref}'))
way("a wrong citation in a comment", "citation", comments("# H200 SXM HBM bandwidth: 5.8 TB/s <- {ref}"))
way("another hash", "stale-citation", says("H200 SXM HBM bandwidth: 4.8 TB/s <- {ref}@0123456789abcdef"))
way("an unknown wiki", "unpinned-citation", says("H200 SXM HBM bandwidth: 4.8 TB/s <- my-wiki/hardware/h200.md:L33"))


def _written_later(run: ValidRun) -> GateReport:
    root = run.own_wiki().root
    source, fresh = root / "hardware/h200-sxm.md", root / "hardware/h200-new.md"
    fresh.write_text(source.read_text("utf-8").replace("hardware/h200-sxm", "hardware/h200-new"), "utf-8")
    text = _filled(run, "H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-new.md:L{line}")
    return run.look(run.proposal(hypothesis={"rationale": text}))


def _changed_later(run: ValidRun) -> GateReport:
    page = run.own_wiki().root / "hardware/h200-sxm.md"
    page.write_text(page.read_text("utf-8") + "\nOne more line.\n", "utf-8")
    return says("H200 SXM HBM bandwidth: 4.8 TB/s <- {ref}")(run)


def _method_written_later(run: ValidRun) -> GateReport:
    page = run.own_wiki().root / "method/warp_shuffle.md"
    page.with_name("my_trick.md").write_text(page.read_text("utf-8").replace("warp_shuffle", "my_trick"), "utf-8")
    return run.look(run.proposal(methods=("my_trick",)))


way("a method page written after the start", "unknown-method", _method_written_later)
way("a page written after the start", "unpinned-citation", _written_later)
way("a page changed after the start", "unpinned-citation", _changed_later)

# --- numbers ----------------------------------------------------------------------------------------------------------

way("a metric quoted wrongly", "loose-number", says("DRAM throughput is 41.7 %.", "current_evidence"))
way("the value of another metric", "loose-number", says("L1 throughput is 90.6 %.", "current_evidence"))
way("a metric of ncu quoted wrongly", "loose-number",
    says("sm__throughput.avg.pct_of_peak_sustained_elapsed: 99.1 %", "current_evidence"))  # fmt: skip
way("a metric without a unit", "loose-number", says("Registers per thread: 64.", "current_evidence"))
way("a number with a unit", "loose-number", says("It moves 700 MB."))
way("a time", "loose-number", says("A launch takes 4.25 us."))
way("a wrong fact", "loose-number", proposes(evidence={"ncu_facts": ("L2 hit rate: 99.9 %.",)}))
way("a number in a comment", "loose-number", comments("# a row takes 3.75 us"))
way("a number in the circumstances", "loose-number", proposes(circumstances="The row is now 700 MB long."))
way("a number in what was rejected", "loose-number", proposes(evidence={"rejected": ("It saves only 1.5 us.",)}))
way("a statement in the decision rule", "loose-number", says("Keep it: DRAM throughput is 99.5 %.", "decision_rule"))
way("arithmetic from nothing", "loose-number", says("700 MB / 70 us = 10 TB/s"))
way("a rate of bare numbers", "unsourced-spec", says("7 * 1000000000000 = 7000000000000 B/s"))
way("a number with a blank that has no width", "invisible-character", says("It has 6\u200b4 columns."))
way("letters in another order", "invisible-character", comments("# four \u202ecolumns"))
way(
    "a version that was slower called quicker", "bare-claim", says("v3 was faster than its parent.", "current_evidence")
)
way("a comparison with all others", "bare-claim", says("It is then the fastest kernel that exists."))
way("a comparison with a library", "bare-claim", says("It runs ahead of cuDNN."))
way("wrong arithmetic", "wrong-arithmetic", says("536.870912 MB / 128.5 us = 9.13 TB/s"))
way("wrong arithmetic in a comment", "wrong-arithmetic", comments("# 4 * 8 = 33"))
way("a bandwidth above the peak", "above-ceiling", says("The kernel will reach 5.5 TB/s.", "rationale"))
way(
    "an expected bandwidth above the peak",
    "above-ceiling",
    proposes(hypothesis={"expected": (Expected(metric="dram_bandwidth", direction="up", size="to 6 TB/s"),)}),
)
way(
    "more than all",
    "above-ceiling",
    proposes(hypothesis={"expected": (Expected(metric="dram_throughput", direction="up", size="to 120 %"),)}),
)
way("less than the floor", "above-ceiling",
    proposes(hypothesis={"expected": (Expected(metric="time", direction="down", size="to 5 us"),)}))  # fmt: skip
way("a rate above every throughput", "above-ceiling", says("It computes at 9000 TFLOPS."))
way("no metric", "expected-metric",
    proposes(hypothesis={"expected": (Expected(metric="goodness", direction="up", size="much"),)}))  # fmt: skip

SPLIT = "x.sum()\n    part = torch.empty(4)\n    one[(1,)](x, part)\n    other[(1,)](part, x)"


def _forbids(run: ValidRun, method: str, said: str) -> GateReport:
    """A kernel with a hint to the caches under another method, and what is said of it, where HINTS.md forbids one."""
    body = f"    f(x, eviction_policy='evict_last')\n    {said}\n    return x.softmax(-1) + 4 - 4\n"
    found = context(run.root, run.wiki, run.home, 4, "proposal", run.proposal(kernel=kernel(4, 70, body)))
    found.__dict__["hints"] = parse_hints(f"- forbid: {method}\n", found.methods.ids)
    return run_gate(found)


# --- the change -------------------------------------------------------------------------------------------------------


def _parent(change: Callable[[str], str]) -> Way:
    return lambda run: run.look(run.proposal(kernel=change((run.root / "v2/kernel.py").read_text("utf-8"))))


way("nothing changed", "kernel-unchanged", _parent(lambda text: text))
way(
    "white space alone",
    "kernel-unchanged",
    _parent(lambda text: text.replace("x.softmax(-1) + 2", "x.softmax( -1 )+2")),
)
way("comments alone", "kernel-unchanged", _parent(lambda text: text.replace("# one pass", "# exactly one pass")))
way(
    "the docstring alone", "kernel-unchanged", _parent(lambda text: text.replace("Softmax of rows.", "A fast softmax."))
)
way("names of locals alone", "kernel-unchanged", _parent(lambda text: text.replace("width", "columns")))
way("a name in single_change that no kernel has", "discipline", says("exp2, and evict_last", "single_change"))
way(
    "French beside English",
    "loose-number",
    says("v0 atteint quatre-vingts pour cent de la bande passante, as measured."),
)
way("an issue that counts parts", "unsourced-spec", says("The device has #144 SMs."))
way("what an SM keeps", "unsourced-spec", says("An SM keeps 64 warps resident."))
way("a ratio as an adverb", "loose-number", says("L2 is fivefold faster than the memory behind it."))
way("the ratio of an error as a speedup", "loose-number", says("It runs 1.5 times as fast as before."))
way("a share in words", "loose-number", says("In v0 nine in ten warps wait at the barrier."))
way("a promise of half", "loose-number", says("More warps keep more loads under way, which cuts the time in half."))
way("two methods under single", "discipline", proposes(methods=("mufu_ex2_softmax", "ldmatrix_stmatrix")))
way("rewrite within a language", "discipline", proposes(methods=("rewrite",)))
way("another language as something else", "discipline", proposes(kernel="__global__ void f() {}\n", language="cuda"))
way("an unknown method", "unknown-method", proposes(methods=("make_it_fast",)))
way("an unknown skipped method", "unknown-method", proposes(skipped=(Skipped(method="magic", reason="not here"),)))
way("a fault as a method", "unknown-method", proposes(methods=("register_spill",)))
way("a forbidden method", "forbidden-method", proposes(methods=("tensor_core",)))
way("a forbidden method under another name", "forbidden-method", lambda run: _forbids(run, "cache_modifier_hint", "x"))
way("a forbidden split of a sum", "forbidden-method", lambda run: _forbids(run, "split_k", SPLIT))
way("a coarser type", "hint-precision", proposes(kernel=kernel(4, 70, "    return x.to(float16).softmax(-1)\n")))
way("a method that did not help", "known-failure", proposes(methods=("async_copy",)))
way("another version", "addressed", lambda run: run.gate(4, "proposal", run.proposal(version=5)))
way("a parent that is not there", "addressed", proposes(parent=9))


def _with_priorities(run: ValidRun) -> GateReport:
    found = context(run.root, run.wiki, run.home, 4, "proposal", run.proposal())
    pair = [
        Method(id, id, f"gpu-wiki/method/{id}.md", axis="compute", priority=priority, triggers=("made-up",))
        for id, priority in (("mufu_ex2_softmax", 3), ("ldmatrix_stmatrix", 1))
    ]
    found.__dict__["methods"] = Methods(tuple(pair), ())
    return run_gate(found)


way("a skipped priority", "skipped-priority", _with_priorities)

# --- evidence ---------------------------------------------------------------------------------------------------------

way("words that nobody wrote", "evidence-reference", selects(quote="moves 64 bytes a thread in one instruction"))
way("no reference", "evidence-reference", selects(reference="the internet"))
way("a receipt of another run", "evidence-reference", selects(reference=f"receipt/{'0' * 64}#verdict", quote=""))
way("a metric that the profile does not have", "evidence-reference",
    lambda run: selects(reference=f"profile/{_profile(run)}#tex_throughput", quote="")(run))  # fmt: skip
way("a field that the receipt does not have", "evidence-reference",
    lambda run: selects(reference=f"receipt/{_receipt(run)}#timing.luck", quote="")(run))  # fmt: skip
way("a line that is not there", "evidence-reference", selects(reference=f"gpu-wiki/{ADVICE}:L9999", quote=""))


way(
    "another value than the profile has",
    "evidence-reference",
    lambda run: selects(reference=f"profile/{_profile(run)}#dram_throughput", quote="DRAM throughput: 99.9 %")(run),
)
way(
    "another verdict than the receipt has",
    "evidence-reference",
    lambda run: selects(reference=f"receipt/{_receipt(run)}#verdict", quote="the verdict is cheating")(run),
)


def _own_words(run: ValidRun) -> GateReport:
    """The kernel's own comment stands in the receipt: it is no source."""
    one = Selected(reference=f"receipt/{_receipt(run)}#candidate.text", quote="", why="It says so.")
    said = {"rationale": "The kernel's time was us=80, and 12.5 TB/s is what it reaches with 80 us."}
    return run.look(run.proposal(evidence={"selected": (one,)}, hypothesis=said))


def _whole_page(run: ValidRun) -> GateReport:
    one = Selected(reference=f"gpu-wiki/{ADVICE}:L25-L90", quote=QUOTE, why="It is all there.")
    return run.look(run.proposal(evidence={"selected": (one,)}, hypothesis={"rationale": "It does 2894 rows."}))


def _spec_in_a_receipt(run: ValidRun) -> GateReport:
    """A kernel that was measured has a spec in a string of its code, and its receipt has the kernel's text."""
    text = 'WORDS = "the L2 bandwidth is 12.5 TB/s"\n' + kernel(2, 80)
    _receipt_is(_set(text=text))(run)
    return says(f"H200 SXM L2 bandwidth: 12.5 TB/s <- receipt/{_receipt(run)}#candidate.text")(run)


way("a spec of the kernel's own words", "unsourced-spec", _spec_in_a_receipt)
way("the kernel's own words as a source", "unsourced-spec", _own_words)
way("a whole page as a source", "loose-number", _whole_page)


def _of_an_empty_query(run: ValidRun) -> GateReport:
    path = run.root / "v4/searches.jsonl"
    empty = GpuTools(run.home, run.record, wiki=run.wiki).search("other", "nothing about caches")
    path.write_text(path.read_text("utf-8") + json.dumps(empty.model_dump(mode="json")) + "\n", "utf-8")
    reference, _, _ = place(run.wiki, "technique/cache-hints.md", "evict")
    return selects(reference=reference, quote="")(run)


way("evidence from an empty query", "evidence-found", _of_an_empty_query)
way("a page that no query found", "evidence-found",
    lambda run: selects(reference=place(run.wiki, "kernel/softmax.md", "# Softmax")[0], quote="")(run))  # fmt: skip


def _keeps_queries(*about: str) -> Way:
    def act(run: ValidRun) -> GateReport:
        path = run.root / "v4/searches.jsonl"
        lines = [line for line in path.read_text("utf-8").splitlines() if json.loads(line)["about"] in about]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return run.look()

    return act


way("no query about the bottleneck", "evidence-queries", _keeps_queries("kernel", "experience"))
way("no query about the kernel", "evidence-queries", _keeps_queries("bottleneck", "experience"))
way("no query to the experience log", "evidence-queries", _keeps_queries("kernel", "bottleneck"))

RECORD = "01KAJ0000000000000000000AA"
"""A record of the experience log that is of no run here."""


def finds_record(run: ValidRun, version: int = 4, method: str = "mufu_ex2_softmax", lesson: str = "") -> None:
    """What a search of a version finds: a record in which a method failed."""
    past = PastMethod(method=method, advice="known failure")
    text = f"where: softmax, triton\noutcome: regression, measured, 0.9 times as fast{lesson}"
    hit = FoundPassage(reference=f"log/{RECORD}", title="known failure", text=text, score=0.9, past=past)
    found = Search(about="experience", text="what failed", hits=(hit,), degraded="")
    path = run.root / f"v{version}/searches.jsonl"
    path.write_bytes(path.read_bytes() + evidence.render([found]))


def _after(version: int, act: Way) -> Way:
    def done(run: ValidRun) -> GateReport:
        finds_record(run, version)
        return act(run)

    return done


way("a method that failed on similar kernels", "known-failure", _after(4, proposes()))


def _spec_in_a_record(run: ValidRun) -> GateReport:
    """What a kernel wrote before it crashed stands in the log, and is no source."""
    finds_record(run, lesson="\nlesson: crashed; RuntimeError: the L2 bandwidth is 12.5 TB/s")
    return says(f"H200 SXM L2 bandwidth: 12.5 TB/s <- log/{RECORD}")(run)


way("a spec that a record repeats", "unsourced-spec", _spec_in_a_record)
way("a record that nobody found", "evidence-reference", selects(reference=f"log/{RECORD}", quote=""))
way("a record that says something else", "evidence-reference",
    _after(4, selects(reference=f"log/{RECORD}", quote="it was much faster on every kernel")))  # fmt: skip
way("a record that was found for another version", "evidence-found",
    _after(3, selects(reference=f"log/{RECORD}", quote="")))  # fmt: skip
way("a record in prose that nobody found", "citation", says(f"It failed before <- log/{RECORD}"))


def _profile(run: ValidRun) -> str:
    found = context(run.root, run.wiki, run.home, 4, "proposal").hash("v2/profile.csv")
    assert found is not None
    return found


def _receipt(run: ValidRun) -> str:
    return parse((run.root / "v2/receipt.json").read_bytes()).id


# --- artifacts --------------------------------------------------------------------------------------------------------

for missing in ("hypothesis.txt", "kbs_evidence.md", "plan.md", "ncu_summary.md", "correctness.md", "profile.csv"):
    way(f"no {missing}", "artifact", removes(f"v2/{missing}"))
way("no kernel", "artifact", removes("v2/kernel.py"))
way("an empty file", "artifact", writes("v2/methods.json", lambda _: ""))
way("broken JSON", "artifact", writes("v2/diagnosis.json", lambda text: text[:-5]))
way("a search that is none", "artifact", writes("v2/searches.jsonl", adds("{}")))
way("half a profile", "artifact", writes("v2/profile.csv", lambda text: text[: len(text) // 2]))
way(
    "another rendering of correctness",
    "rendered",
    writes("v2/correctness.md", lambda text: text.replace("accepted", "perfect")),
)
way("a number in the summary", "rendered", writes("v2/ncu_summary.md", lambda text: text.replace("90.6", "95.6")))
way("a hypothesis written afterwards", "rendered", writes("v2/hypothesis.txt", adds("And it worked.")))
way(
    "another proposal", "proposal-recorded", writes("v2/proposal.json", lambda text: text.replace("Fewer", "Far fewer"))
)
way("another kernel than was proposed", "proposal-recorded", writes("v2/kernel.py", adds("y = 1")))


def _receipt_is(change: Callable[[ValidRun, dict[str, Any]], None]) -> Way:
    """A receipt that is built anew, and sealed with the right key."""

    def act(run: ValidRun) -> GateReport:
        path = run.root / "v2/receipt.json"
        old = parse(path.read_bytes())
        text = old.candidate.text
        request = GpuTools(run.home, run.record, wiki=run.wiki).request(text, "kernel.py", None)
        fields: dict[str, Any] = {"text": text, "schedule": SeedSchedule.secret(), "problem": None, "plan": {}}
        change(run, fields)
        source = SourceFile(name="kernel.py", text=fields["text"])
        made = fake_receipt(run.home, request.model_copy(update={"candidate": source}), fields["schedule"])
        if fields["problem"] or fields["plan"]:
            parts = {
                name: getattr(made, name) for name in type(made).model_fields if name not in ("id", "seal", "plan_hash")
            }
            parts["problem"] = fields["problem"] or made.problem
            parts["plan"] = made.plan.model_copy(update=fields["plan"])
            if fields["plan"].get("name") == "signal":
                parts["timing"] = made.timing.model_copy(update={"plan": "signal"}) if made.timing else None
            made = seal(receipts.receipt(**parts), ensure_key(run.home))
        path.write_bytes(render(made))
        return run.gate(2)

    return act


def _set(**values: Any) -> Callable[[ValidRun, dict[str, Any]], None]:
    return lambda _, fields: fields.update(values)


way("an edited receipt", "receipt-seal", writes("v2/receipt.json", lambda text: text.replace("1.125", "2.125")))
way("a receipt in another form", "receipt-seal", writes("v2/receipt.json", lambda text: json.dumps(json.loads(text))))
way(
    "a receipt that nobody sealed",
    "receipt-seal",
    writes("v2/receipt.json", lambda text: json.dumps({**json.loads(text), "seal": None}, indent=1, sort_keys=True)),
)
way("the receipt of another problem", "receipt-problem", _receipt_is(_set(problem=receipts.problem(dims={"n": 65}))))
way("a receipt with known seeds", "receipt-problem", _receipt_is(_set(schedule=SeedSchedule.given("17"))))
way("a receipt of the signal plan", "receipt-problem", _receipt_is(_set(plan={"name": "signal"})))
way("a luckier receipt", "receipt-recorded", _receipt_is(_set()))
way("the receipt of another kernel", "receipt-kernel", _receipt_is(_set(text=kernel(9, 10))))
way(
    "the receipt of the parent",
    "receipt-kernel",
    lambda run: writes("v2/receipt.json", lambda _: (run.root / "v1/receipt.json").read_text("utf-8"))(run),
)
way("an edited kernel", "receipt-kernel", writes("v2/kernel.py", lambda text: text.replace("us = 80", "us = 60")))
way("an incorrect kernel", "not-accepted",
    lambda run: _receipt_is(_set(text="# verdict=incorrect\n" + kernel(2, 80)))(run))  # fmt: skip
way("the profile of another kernel", "profile-kernel",
    writes("v2/profile.csv", lambda _: raw_csv(("void fast_gemm(float *)", metrics(2)))))  # fmt: skip
way(
    "the profile of the parent",
    "profile-kernel",
    lambda run: writes("v2/profile.csv", lambda _: (run.root / "v1/profile.csv").read_text("utf-8"))(run),
)
way(
    "too many registers",
    "hint-limit",
    writes("v2/profile.csv", lambda _: raw_csv(("_softmax_kernel", changed(metrics(2), registers="168")))),
)


def _ncu_forbidden(run: ValidRun) -> GateReport:
    state = read_run(run.root).state
    state.hints = HintsRead(file=None, directives=("no ncu",), passed_on=())
    return run_gate(dataclasses.replace(context(run.root, run.wiki, run.home, 2, "version", state=state)))


def _grade_fell(run: ValidRun) -> GateReport:
    state = read_run(run.root).state
    found = state.versions[2]
    assert found.profiled is not None
    found.profiled = found.profiled.model_copy(update={"grade": "none", "why": ""})
    return run_gate(context(run.root, run.wiki, run.home, 2, "version", state=state))


way("ncu in spite of HINTS.md", "profile-grade", _ncu_forbidden)
way("a lower grade without a reason", "profile-grade", _grade_fell)

# --- the folder -------------------------------------------------------------------------------------------------------

way("a later version", "later-artifact", writes("v7/kernel.py", adds("x = 1")))
way("a later trajectory", "later-artifact", writes("trajectory/v9-a1.py", adds("x = 1")))
way("a later profile", "later-artifact", writes("profiles/v7.ncu-rep", adds("x")))
way("a later attempt", "later-artifact", writes("v4/attempts/a5/kernel.py", adds("x = 1")))
way("an earlier kernel", "changed-file", writes("v1/kernel.py", adds("x = 1")))
way("an earlier receipt that is gone", "changed-file", removes("v0/receipt.json"))
way("an edited copy of a candidate", "changed-file", writes("trajectory/v1-a1.py", adds("# faster")))
way("an edited reference", "changed-file", writes("ref.py", adds("# easier")))
way("an earlier refusal or attempt", "changed-file", writes("v1/attempts/a1/proposal.json", adds(" ")))
way("a method that the code lacks", "method-absent", compiles("absent"))
way("an edited memory", "changed-file", writes("v3/memory.json", lambda text: text.replace("false", "true")))
way("another record", "record", writes("run.json", lambda text: text.replace('"iterations": 6', '"iterations": 900')))
way("another current iteration", "current-iteration", writes("current_iteration.txt", lambda _: "7\n"))
way("no current iteration", "current-iteration", removes("current_iteration.txt"))


def _journal(change: Callable[[list[str]], list[str]]) -> Way:
    def act(run: ValidRun) -> GateReport:
        found = context(run.root, run.wiki, run.home, 2, "version")
        path = run.root / "journal.jsonl"
        path.write_text("\n".join(change(path.read_text("utf-8").splitlines())) + "\n", "utf-8")
        return run_gate(found)

    return act


way("an edited line of the journal", "journal",
    _journal(lambda lines: [line.replace('"kept":false', '"kept":true') for line in lines]))  # fmt: skip
way("a line less", "journal", _journal(lambda lines: lines[:5] + lines[6:]))
way("lines in another order", "journal", _journal(lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]]))
way("a journal cut at its end", "journal", _journal(lambda lines: lines[:-2]))
way("no journal", "journal", lambda run: _unlinked(run))


def _unlinked(run: ValidRun) -> GateReport:
    found = context(run.root, run.wiki, run.home, 2, "version")
    (run.root / "journal.jsonl").unlink()
    return run_gate(found)


# --- the end ----------------------------------------------------------------------------------------------------------

end("another best version", "best-restored", writes("best/kernel.py", adds("x = 1"), stage="final"))
end("a second file beside the best", "best-restored", writes("best/faster.py", adds("x = 1"), stage="final"))
end("no best version", "best-restored", removes("best/kernel.py", stage="final"))
end("a version that was not measured", "best-restored", lambda run: run.gate(1, "final"))
end("an edited final receipt", "final-receipt",
    writes("final/v2/receipt.json", lambda text: text.replace("accepted", "perfect"), stage="final"))  # fmt: skip
end("no final receipt", "final-receipt", removes("final/v2/receipt.json", stage="final"))
end(
    "the version's receipt as the final one",
    "final-receipt",
    lambda run: writes(
        "final/v2/receipt.json", lambda _: (run.root / "v2/receipt.json").read_text("utf-8"), stage="final"
    )(run),
)
end(
    "an improved report",
    "final-rendered",
    writes("final_report.md", lambda text: text.replace("v2", "v3"), stage="final"),
)
end("no benchmark", "final-rendered", removes("benchmark.md", stage="final"))
end("a spec in the report", "final-rendered",
    writes("final_report.md", adds("The L2 bandwidth of the H200 is 12.5 TB/s."), stage="final"))  # fmt: skip
end("history edited at the end", "changed-file", writes("v1/kernel.py", adds("x = 1"), stage="final"))


def branching(*branches: tuple[str, str]) -> Way:
    """A proposal with branches."""
    return proposes(branches=tuple(Branch(name=name, kernel=text) for name, text in branches))


way("more candidates than the run allows", "branches", branching(("a", kernel(10, 70)), ("b", kernel(11, 70))))
way("two branches with one name", "branches", branching(("a", kernel(10, 70)), ("a", kernel(11, 70))))
way("a branch with the name of the kernel", "branches", branching(("main", kernel(10, 70))))
way("a branch that is the kernel", "branches", branching(("a", kernel(4, 70))))


@pytest.mark.parametrize("name", WAYS)
def test_a_broken_run_is_rejected(name: str, valid: ValidRun) -> None:
    rule, act = WAYS[name]
    found = act(valid)
    assert rule in found.rules, "\n".join(found.lines())
    assert not found.passed
    for result in found.results:
        for broken in result.broken:
            assert broken.file
            assert broken.message
            assert broken.fix


@pytest.mark.parametrize("name", ENDS)
def test_a_broken_end_is_rejected(name: str, ended: ValidRun) -> None:
    rule, act = ENDS[name]
    found = act(ended)
    assert rule in found.rules, "\n".join(found.lines())


def test_a_method_that_cannot_be_looked_for_is_not_refused(valid: ValidRun) -> None:
    for said in ("present 4 (MUFU.EX2 4)", "unverifiable: the machine code has no kernel"):
        found = compiles(said)(valid)
        assert found.passed, "\n".join(found.lines())
        lapsed = {result.rule: result.lapsed for result in found.results}["method-absent"]
        assert bool(lapsed) is said.startswith("unverifiable")


def test_an_absent_method_is_refused_with_the_cited_instructions(valid: ValidRun) -> None:
    found = compiles("absent")(valid)
    assert found.rules == ("method-absent",)
    broken = next(result for result in found.results if result.broken).broken[0]
    assert "MUFU.EX2 (gpu-wiki/method/mufu_ex2_softmax.md:L" in broken.message
    assert "sm_90a" in broken.message


def test_the_runs_are_valid(valid: ValidRun, ended: ValidRun) -> None:
    for version in range(4):
        found = valid.gate(version)
        assert found.passed, "\n".join(found.lines())
    assert valid.look().passed, "\n".join(valid.look().lines())
    found = ended.gate(2, "final")
    assert found.passed, "\n".join(found.lines())


def test_every_rule_has_a_way_to_break_it() -> None:
    broken = {rule for rule, _ in (*WAYS.values(), *ENDS.values())}
    elsewhere = {"journal-seal", "stray-file", "git-history"}  # tests/loop/gate/test_corruptions.py
    elsewhere |= {"budget", "ablations", "ablation-measured"}  # tests/loop/gate/test_ablations.py
    assert broken | elsewhere == {rule.id for rule in RULES}
    assert len(WAYS) + len(ENDS) >= 60
