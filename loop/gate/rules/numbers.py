"""Rules on numbers: hardware specs, values of metrics, shown arithmetic, peaks and expected movements."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from decimal import Decimal

from kbs.evidence.quantities import Stated
from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.context import GateContext
from loop.gate.figures import MAX_QUANTITIES, Sentence, equations, sentences
from loop.gate.number_check import LooseNumber, loose_numbers
from loop.gate.rule import Broken, broken, rule
from loop.gate.texts import Text, comment_texts, grounds, hedged, kernel_text, proposal_texts, unsourced

_VERSION = re.compile(r"\bv(\d{1,4})\b")
_EXPECTED = "#hypothesis.expected"
"""In the name of a text: it states a prediction."""
_THROUGHPUTS = ("throughput", "of peak", "of the peak", "utilization", "utilisation", "bandwidth")
_CACHES = ("l1", "l2", "shared", "smem", "cache", "nvlink", "register")


def _stated_texts(context: GateContext) -> Iterator[tuple[Text, int, str]]:
    """(text, lines of the file before it, what it says) of the proposal's sentences and the kernel's comments."""
    if context.proposal is None:
        return
    for text in proposal_texts(context):
        yield text, 0, text.text
    kernel = kernel_text(context)
    for line, comment in comment_texts(kernel) if kernel else ():
        assert kernel is not None
        yield kernel, line - 1, comment


@rule("unsourced-spec", "proposal", always=True)
def unsourced_spec(context: GateContext) -> Iterator[Broken]:
    """Give every hardware spec a source.

    What it checks: each hardware spec rests on a citation that holds, a measurement, or shown arithmetic. A spec is a
    number with a unit beside a hardware name, in prose, a table, JSON or a comment of the kernel, or a constant that a
    proposer gives such a name (`NUM_SMS = 132`). It is searched for in the lines that the same texts, README.md and
    plan.md cite, in profiles and receipts, and in arithmetic on its line. Comments of the user's own kernel are not
    read. What a kernel uses or chooses is not a spec if it says so (`uses 48 KB of shared memory`), nor is what the
    kernel asks the device while it runs.

    Why: an optimization that rests on a remembered number rests on nothing.

    Fix: add the citation line that `kopt spec GPU METRIC` prints, remove the number, or say UNKNOWN.
    """
    for text, spec in unsourced(context):
        what = " or ".join(context.terms.metrics[id].name for id in spec.metrics) or "a hardware value"
        message = f"{spec.text} ({what}) has no source: “{spec.sentence[:160]}”"
        fix = "Add `<metric>: <value> <unit> <- <wiki>/<path>:L<line>`, remove the number, or say UNKNOWN."
        yield broken(text.file, message, fix, spec.line)


@rule("hedged-spec", "proposal", always=True)
def hedged_spec(context: GateContext) -> Iterator[Broken]:
    """State hardware specs without hedging.

    What it checks: no word such as “about”, “approximately”, “should be” or “similar product” stands beside a spec.

    Why: such a word says that the value was not looked up.

    Fix: state the value as its source does, with the citation, or say UNKNOWN.
    """
    for text, spec in hedged(context):
        message = f"“{spec.hedge}” stands beside {spec.text}: “{spec.sentence[:160]}”"
        yield broken(text.file, message, "State the value as its source does, and cite the line.", spec.line)


@rule("loose-number", "proposal")
def loose_number(context: GateContext) -> Iterator[Broken]:
    """Take every number with a unit from a profile, a receipt, a cited line or arithmetic.

    What it checks: numbers in hypothesis, evidence and comments are compared with the parent's raw profile (and those
    of versions that the text names), the run's receipts, the cited lines, and equations that are shown and correct. A
    number beside the name of a metric must be a value of that metric. Expected movements are predictions, and are not
    checked.

    Why: the next proposer builds on what this one states.

    Fix: copy the number with its digits, cite it, or show how it is computed.
    """
    if context.proposal is None:
        return
    kernel = kernel_text(context)
    if kernel and sum(len(s.stated) for _, c in comment_texts(kernel) for s in sentences(c)) > MAX_QUANTITIES:
        message = f"its comments state more than {MAX_QUANTITIES:,} numbers with units"
        yield broken(kernel.file, message, "Keep those that explain the kernel.", line=1)
        return
    found = grounds(context)
    figures = (found.profiled, found.received, found.cited, found.derived, found.logged)
    for text, before, said in _stated_texts(context):
        if _EXPECTED in text.file:
            continue
        named = {int(m[1]) for m in _VERSION.finditer(said)} | {context.proposal.parent}
        launches = [launch for n in sorted(named) if n <= context.version and (launch := context.launch(n)) is not None]
        for loose in loose_numbers(said, launches, figures, conditions=text.file.endswith("decision_rule")):
            message, fix = _why_loose(loose)
            yield broken(text.file, message, fix, loose.line + before)


def _why_loose(loose: LooseNumber) -> tuple[str, str]:
    """(what is wrong, how to fix it)"""
    if loose.metric and loose.is_there:
        return f"{loose.text}: the profile has {loose.metric} = {loose.is_there}", "Copy the value from the profile."
    if loose.metric:
        message = f"{loose.text}: the parent's profile has no such value of {loose.metric}"
        return message, "Say what it is a value of, and where that is from."
    message = f"{loose.text} is in no profile, receipt or cited line, and no arithmetic shows it"
    return message, "Copy it from its source, cite the line, show the arithmetic (`a / b = c`), or remove it."


@rule("wrong-arithmetic", "proposal")
def wrong_arithmetic(context: GateContext) -> Iterator[Broken]:
    """Write arithmetic that is correct to the last digit shown.

    What it checks: each equation of numbers, such as `66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte`, is computed again with
    its units.

    Why: a shown result counts as a source of numbers.

    Fix: correct the result, or the numbers that it starts from.
    """
    for text, before, said in _stated_texts(context):
        for equation in equations(said) if _EXPECTED not in text.file else ():
            if not equation.holds:
                message = f"“{equation.text[:160]}” is not correct"
                yield broken(text.file, message, "Compute it again, with the units.", equation.line + before)


@rule("above-ceiling", "proposal")
def above_ceiling(context: GateContext) -> Iterator[Broken]:
    """Claim and expect nothing above a cited or measured peak.

    What it checks: no bandwidth lies above the GPU's cited peak, no rate above its highest cited throughput, no share
    above 100 % of a peak, and no expected time below the measured floor. Expected movements are checked too.

    Why: what the hardware cannot do is a wrong measurement or a wrong idea.

    Fix: state what the hardware allows: README.md of the run has the peaks and the floor.
    """
    peaks = _peaks(context) if context.proposal is not None else {}
    for text, before, said in _stated_texts(context):
        for sentence in sentences(said):
            for stated in sentence.stated:
                peak = _above(stated, sentence, text, peaks, context)
                if peak:
                    message = f"{stated.text} lies above {peak}: “{sentence.text.strip()[:160]}”"
                    yield broken(text.file, message, "Claim no more than the hardware allows.", stated.line + before)


def _above(
    stated: Stated, sentence: Sentence, text: Text, peaks: dict[str, tuple[Decimal, str]], context: GateContext
) -> str:
    """The peak that a stated value lies above; empty for none."""
    lower, value = sentence.text.lower(), stated.readings[0].base
    if stated.dimension == "percent" and value > 1:
        return "100 % of a peak" if any(word in lower for word in _THROUGHPUTS) and "faster" not in lower else ""
    if stated.dimension == "seconds" and _EXPECTED in text.file and lower.startswith("time") and "floor" in peaks:
        return peaks["floor"][1] if 0 < value < peaks["floor"][0] and "by " not in lower else ""
    if stated.dimension not in peaks or any(word in lower for word in _CACHES):
        return ""
    peak, said = peaks[stated.dimension]
    # What was cited or measured is a fact, perhaps of another product.
    if value <= peak or grounds(context).cited.has(stated.readings) or grounds(context).profiled.has(stated.readings):
        return ""
    return said


def _peaks(context: GateContext) -> dict[str, tuple[Decimal, str]]:
    """Dimension → highest value that is cited for the run's GPU or measured, and where it is from."""
    found: dict[str, tuple[Decimal, str]] = {}
    for wiki, pinned in context.record.wikis.items() if context.record.gpu else ():
        for path in pinned.pages:
            for spec in context.wikis.specs(wiki, path):
                wanted = spec.metric == "hbm_bandwidth" or spec.metric.endswith("_throughput")
                base = spec.base(context.terms) if wanted and spec.product == context.record.gpu else None
                quantity = spec.quantity(context.terms)
                if base is None or quantity is None or not spec.recommended:
                    continue
                dimension = quantity.unit.dimension
                if dimension not in found or base > found[dimension][0]:
                    found[dimension] = base, f"the cited peak, {spec.citation_line(context.terms)}"
    for path, receipt in context.receipts.items():
        ceiling = receipt.ceiling
        if ceiling is not None and ceiling.floor_us:
            floor = Decimal(repr(ceiling.floor_us)) * Decimal("1e-6")
            if "floor" not in found or floor < found["floor"][0]:
                found["floor"] = floor, f"the measured floor of {ceiling.floor_us:g} us ({path})"
            moved = Decimal(ceiling.read_bytes + ceiling.written_bytes) / floor
            if "bytes per second" not in found:
                found["bytes per second"] = moved, f"the measured ceiling of {moved / 10**9:.0f} GB/s ({path})"
    return found


@rule("expected-metric", "proposal")
def expected_metric(context: GateContext) -> Iterator[Broken]:
    """Expect movements of metrics that are measured.

    What it checks: each expected movement names an id of the profile's metrics, such as dram_throughput, a metric of
    Nsight Compute, `time` or `speedup`.

    Why: the record of the version says whether what was expected happened.

    Fix: name the metric that should move.
    """
    known = profile_metrics()
    for number, one in enumerate(context.proposal.hypothesis.expected if context.proposal is not None else ()):
        if one.metric not in known.all and one.metric not in known.by_ncu and one.metric not in ("time", "speedup"):
            near = difflib.get_close_matches(one.metric.lower().replace(" ", "_"), known.all, n=3, cutoff=0.4)
            file = f"{context.proposal_file}{_EXPECTED}[{number}]"
            fix = f"Name one of {', '.join([*near, 'time'])}."
            yield broken(file, f"{one.metric!r} is not a metric of a profile", fix)
