"""Rules on numbers: hardware specs, values of metrics, shown arithmetic, peaks and expected movements."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache

from kbs.evidence.quantities import Stated
from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.claims import Shown, bare_claims
from loop.gate.constants.hardware import FoundSpec, any_unit, hardware_constants, is_chosen
from loop.gate.constants.unexplained import hidden, unexplained
from loop.gate.context import GateContext
from loop.gate.numbers.accounting import Unaccounted, integers
from loop.gate.numbers.figures import Sentence, equations, sentences
from loop.gate.numbers.plain_text import plain
from loop.gate.rule import Broken, broken, rule
from loop.gate.texts import Text, known_values, ledger, stated_texts
from loop.planning.step0 import ROOFLINE
from loop.tools import Targets

MOST = 500
"""Numbers without a source that are looked for: more tell nothing new."""
_EXPECTED = "#hypothesis.expected"
"""In the name of a text: it states a prediction."""
_THROUGHPUTS = ("throughput", "of peak", "of the peak", "utilization", "utilisation", "bandwidth")
_CACHES = ("l1", "l2", "shared", "smem", "cache", "nvlink", "register")


@rule("unsourced-spec", "proposal")
def unsourced_spec(context: GateContext) -> Iterator[Broken]:
    """Give every hardware spec a source.

    What it checks: each number that states something of hardware, in any notation, rests on a line that the proposal,
    README.md or plan.md cites, a profile, a receipt, or arithmetic that is shown beside it. A line on another GPU
    speaks of that GPU alone. In the code, a constant needs a source if its name or its comment is a hardware fact, if
    it has the value of a spec of this GPU, or if no size of the problem, tile, launch setting or constant of the parent
    explains it; and a number is written as one, not as `ord("a")` or a default of an environment variable. What the
    user's own kernel has is not read. What a kernel uses or chooses is not a spec if it says so (`is launched with a
    block of 256 threads`), nor is what the kernel asks the device while it runs.

    Why: an optimization that rests on a remembered number rests on nothing.

    Fix: add the citation line that `kopt spec GPU METRIC` prints, remove the number, ask the device, or say UNKNOWN.
    """
    fix = "Add `<metric>: <value> <unit> <- <wiki>/<path>:L<line>`, remove the number, or say UNKNOWN."
    for text, found in _unaccounted(context):
        if found.hardware and not found.hedge and not found.is_there:
            message = f"{found.text} has no source: “{found.sentence[:160]}”"
            yield broken(text.place, message, fix, found.line + text.before)
    for spec in _constants(context):
        message = f"{spec.text} has no source; {spec.why}"
        yield broken(context.kernel_file, message, "Ask the device for it, or cite it in a comment.", spec.line)


def _constants(context: GateContext) -> Iterator[FoundSpec]:
    """Hardware constants of the proposed kernel that earlier kernels do not have and nothing cited says."""
    proposal = context.proposal
    if proposal is None:
        return
    known, sources = known_values(context), ledger(context)
    earlier = {0, proposal.parent}
    there = {
        spec.text.split(" = ")[-1]
        for number in earlier
        for spec in hardware_constants(
            context.kernel(number) or "", context.kernel_name(number) or "kernel.py", context.terms, known
        )
    }
    for spec in hardware_constants(proposal.kernel, context.kernel_file, context.terms, known, sources.sizes):
        cited = any(
            given.figures.has(spec.readings, spec.metrics)
            for given in sources.cited
            if given.product in ("", context.record.gpu)
            or sources.accountant.is_capability_of(given.product, context.record.gpu)
        )
        if spec.text.split(" = ")[-1] not in there and not cited:
            yield spec
    yield from _unexplained(context)


def _unexplained(context: GateContext) -> Iterator[FoundSpec]:
    """Numbers of the proposed kernel that nothing explains and nothing cited says, and those that are hidden."""
    proposal, sources = context.proposal, ledger(context)
    assert proposal is not None
    parent, name = context.kernel(proposal.parent) or "", context.kernel_name(proposal.parent) or "kernel.py"
    there = {value for _, _, value in unexplained(parent, name, lambda _: False)}

    said = {number for text in stated_texts(context) if text.mode == "claims" for number in integers(text.text)}

    def explains(value: Decimal) -> bool:
        if is_chosen(value, sources.sizes) or value in sources.sizes.exactly or value in there:
            return True
        cited = sources.cited if value in said else sources.own  # what README.md cites must be spoken of
        return any(given.figures.has(tuple(any_unit(value))) for given in cited)

    seen = set[Decimal]()
    for line, written, value in unexplained(proposal.kernel, context.kernel_file, explains):
        if value not in seen:
            seen.add(value)
            why = "no size of the run, tile, launch setting or constant of the parent explains it"
            yield FoundSpec(line, written, (), (), why)
    before = {expression for _, expression in hidden(parent, name)}
    for line, expression in hidden(proposal.kernel, context.kernel_file):
        if expression not in before:
            yield FoundSpec(line, expression, (), (), "it makes a number of what shows none")


@lru_cache(maxsize=4)
def _unaccounted(context: GateContext) -> tuple[tuple[Text, Unaccounted], ...]:
    """Every number of the proposal that nothing accounts for."""
    found, sources = list[tuple[Text, Unaccounted]](), ledger(context)
    for text in stated_texts(context) if context.proposal is not None else ():
        if text.mode == "predictions" and not sources.accountant.names_hardware(
            text.text.partition(": ")[2] or text.text
        ):
            continue
        for one in sources.accountant.unaccounted(text.text, sources.sources(text), sources.chosen, text.mode):
            found.append((text, one))
            if len(found) > MOST:
                return tuple(found)
    return tuple(found)


@rule("hedged-spec", "proposal")
def hedged_spec(context: GateContext) -> Iterator[Broken]:
    """State hardware specs without hedging.

    What it checks: no word such as “about”, “approximately”, “should be” or “similar product” stands beside a spec, and
    no sentence next to it takes it back (“This may not hold here.”, “I quote from memory.”).

    Why: such a word says that the value was not looked up.

    Fix: state the value as its source does, with the citation, or say UNKNOWN.
    """
    for text, found in _unaccounted(context):
        if found.hedge:
            message = f"“{found.hedge}” stands beside {found.text}: “{found.sentence[:160]}”"
            fix = "State the value as its source does, and cite the line."
            yield broken(text.place, message, fix, found.line + text.before)


@rule("loose-number", "proposal")
def loose_number(context: GateContext) -> Iterator[Broken]:
    """Account for every number.

    What it checks: every number that a proposer writes in hypothesis, evidence, reasons and comments of the kernel, in
    digits or in words, in any notation, is one of these, or the proposal is refused: a value of the parent's profile,
    or of a version that the text names; a value of their receipts; a figure on a line that the proposal cites (of
    another product than the run's only in a clause that names that product; how many times faster only where the
    citation stands in the same text); the result of arithmetic that is shown and correct; a limit in the decision rule
    or what `risk` says may come; a size of the run; a constant of the kernel or its parent, for what a kernel chooses;
    a version; part of a name (H100, fp16, FlashAttention-2); a power of two or a count up to 16 of things that are no
    hardware (`two passes`). In the `why` of selected evidence, figures stand in the words that are quoted there, in the
    profile or in a receipt. Expected movements are predictions, and are not checked.

    Why: the next proposer builds on what this one states.

    Fix: copy the number with its digits, cite the line, show how it is computed, or leave it out. What the change
    should bring belongs under `expected` (`--expect`).
    """
    for text, found in _unaccounted(context):
        if (not found.hardware or found.is_there) and not found.hedge:
            message, fix = _why_loose(found)
            yield broken(text.place, message, fix, found.line + text.before)


def _why_loose(loose: Unaccounted) -> tuple[str, str]:
    """(what is wrong, how to fix it)"""
    if loose.metric and loose.is_there:
        return f"{loose.text}: the profile has {loose.metric} = {loose.is_there}", "Copy the value from the profile."
    if loose.metric:
        message = f"{loose.text}: the parent's profile has no such value of {loose.metric}"
        return message, "Say what it is a value of, and where that is from."
    message = (
        f"{loose.text} is in no profile, receipt or cited line, and no arithmetic shows it: “{loose.sentence[:120]}”"
    )
    fix = "Copy it from its source, cite the line, show the arithmetic (`a / b = c`), or remove it."
    return message, f"{fix} What the change should bring belongs under `expected`."


@rule("bare-claim", "proposal")
def bare_claim(context: GateContext) -> Iterator[Broken]:
    """Claim nothing that only a measurement could show without its figure.

    What it checks: no sentence calls something the fastest that there is, or compares it with a program that the run
    did not write (`ahead of cuDNN`), without a figure or words that the selected evidence quotes; none says that a
    profile shows what its counters do not (`registers spill` where no local access is counted); and none speaks of
    `most of the time` in a proposal that states no measured time or share. A sentence in the present or the past that
    compares speeds (`loses to`, `keeps up with`, `took a tenth off`) rests on a figure, a quotation, or times in the
    journal of the versions that it names, and calls none quicker that was not kept; one that says what limits a kernel
    rests on the parent's profile or a quotation. What may, should or would be is no claim.

    Why: a claim without a number cannot be held against a measurement, and is believed all the same.

    Fix: state the figure with its source, or leave the claim out. What the change should bring belongs under
    `expected`.
    """
    proposal = context.proposal
    if proposal is None:
        return
    texts = [text for text in stated_texts(context) if text.mode == "claims"]
    quoted = " ".join(one.quote for one in proposal.evidence.selected)
    measured = any(re.search(r"\d\s?(?:%|[mnuµμ]s\b)", text.text) for text in texts)
    parent, versions = context.launch(proposal.parent), context.state.versions[: context.version]
    shown = Shown(
        [parent] if parent else [],
        quoted,
        measured,
        timed={one.number for one in versions if one.result is not None and one.result.median_us is not None},
        kept={one.number for one in versions if one.kept},
    )
    for text in texts:
        for line, said, why in bare_claims(text.text, shown):
            fix = "State the figure with its source, or leave the claim out."
            yield broken(text.place, f"{why}: “{said}”", fix, line + text.before)


@rule("wrong-arithmetic", "proposal")
def wrong_arithmetic(context: GateContext) -> Iterator[Broken]:
    """Write arithmetic that is correct to the last digit shown.

    What it checks: each equation of numbers, such as `66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte`, is computed again with
    its units.

    Why: a shown result counts as a source of numbers.

    Fix: correct the result, or the numbers that it starts from.
    """
    for text in stated_texts(context):
        for equation in equations(text.text) if text.mode != "predictions" else ():
            if not equation.holds:
                message = f"“{equation.text[:160]}” is not correct"
                yield broken(text.place, message, "Compute it again, with the units.", equation.line + text.before)


@rule("above-ceiling", "proposal")
def above_ceiling(context: GateContext) -> Iterator[Broken]:
    """Claim and expect nothing above a cited or measured peak.

    What it checks: no bandwidth lies above the GPU's cited peak, no rate above its highest cited throughput, no share
    above 100 % of a peak, and no expected time below the measured floor, or, where none was measured, the floor at the
    cited peaks (roofline.json). Expected movements are checked too.

    Why: what the hardware cannot do is a wrong measurement or a wrong idea.

    Fix: state what the hardware allows: README.md of the run has the peaks and the floor.
    """
    peaks = _peaks(context) if context.proposal is not None else {}
    for text in stated_texts(context):
        for sentence in sentences(text.text):
            for stated in sentence.stated:
                peak = _above(stated, sentence, text, peaks, context)
                if peak:
                    message = f"{stated.text} lies above {peak}: “{sentence.text.strip()[:160]}”"
                    place = stated.line + text.before
                    yield broken(text.place, message, "Claim no more than the hardware allows.", place)
    proposal = context.proposal
    receipt = context.receipt(context.in_version("receipt.json", proposal.parent)) if proposal is not None else None
    taken = (
        receipt.timing.workloads[0].candidate.summary if receipt is not None and receipt.timing is not None else None
    )
    for number, one in enumerate(proposal.hypothesis.expected if proposal is not None else ()):
        share = _foretold(one.size) if one.metric == "time" and one.direction == "down" else None
        if share is not None and taken is not None and "floor" in peaks:
            time = Decimal(repr(taken.median_us)) * Decimal("1e-6") * share
            if time < peaks["floor"][0]:
                message = f"{one.size}: {time * 10**6:.4g} us lies below {peaks['floor'][1]}"
                file = f"{context.proposal_file}{_EXPECTED}[{number}]"
                yield broken(file, message, "Expect no more than the hardware allows.")


_PART = {"half": Decimal(1) / 2, "third": Decimal(1) / 3, "quarter": Decimal(1) / 4, "fifth": Decimal(1) / 5,
         "tenth": Decimal(1) / 10}  # fmt: skip
_SHARES: tuple[tuple[str, Callable[[str], Decimal]], ...] = (
    (r"\bto\s+(?:a\s+)?(half|third|quarter|fifth|tenth)\b", lambda m: _PART[m]),
    (r"\bby\s+(?:a\s+)?(half|third|quarter|fifth|tenth)\b", lambda m: 1 - _PART[m]),
    (r"^to\s+(\d+(?:\.\d+)?)\s?%", lambda m: Decimal(m) / 100),
    (r"\bby\s+(\d+(?:\.\d+)?)\s?%", lambda m: 1 - Decimal(m) / 100),
    (
        r"\b(\d+(?:\.\d+)?)\s?(?:x|×|times)\s+(?:faster|as fast|less|lower)",
        lambda m: 1 / max(Decimal(m), Decimal("0.01")),
    ),
    (r"(?:\bto\s+|^)1/(\d+)\b", lambda m: 1 / max(Decimal(m), Decimal(1))),
    (r"\bby\s+1/(\d+)\b", lambda m: 1 - 1 / max(Decimal(m), Decimal(1))),
    (r"\bmakes (\d[\d.]*) times the\b", Decimal),
    (r"\b(halves?|halved|halving)\b", lambda _: Decimal("0.5")),
)
"""How an expected time is told against the parent's, and the share of it that remains."""


def _foretold(size: str) -> Decimal | None:
    """The share of the parent's time that is expected to remain; None if none is told."""
    for pattern, share in _SHARES:
        match = re.search(pattern, plain(size), re.IGNORECASE)
        if match:
            return share(match[1].lower())
    return None


def _above(
    stated: Stated, sentence: Sentence, text: Text, peaks: dict[str, tuple[Decimal, str]], context: GateContext
) -> str:
    """The peak that a stated value lies above; empty for none."""
    lower, value = sentence.text.lower(), stated.readings[0].base
    if stated.dimension == "percent" and value > 1:
        return "100 % of a peak" if any(word in lower for word in _THROUGHPUTS) and "faster" not in lower else ""
    if stated.dimension == "seconds" and _EXPECTED in text.file and lower.startswith("time") and "floor" in peaks:
        # `2 us to 4 us` is a difference unless it says to what, or from what, the time falls.
        absolute = value > peaks["floor"][0] / 4 or lower.removeprefix("time: ").startswith(("to ", "from ", "below "))
        return peaks["floor"][1] if 0 < value < peaks["floor"][0] and "by " not in lower and absolute else ""
    if stated.dimension not in peaks or any(word in lower for word in _CACHES):
        return ""
    peak, said = peaks[stated.dimension]
    # What was cited or measured is a fact, perhaps of another product.
    sources = ledger(context)
    cited = any(given.figures.has(stated.readings) for given in sources.cited)
    measured = any(figures.has(stated.readings) for figures in sources.sources(text).measured)
    return "" if value <= peak or cited or measured else said


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
    targets = context.read_as(ROOFLINE, Targets.model_validate_json)
    if "floor" not in found and targets is not None and targets.floor_us:
        floor = Decimal(repr(targets.floor_us)) * Decimal("1e-6")
        found["floor"] = floor, f"the floor of {targets.floor_us:g} us at the cited peaks ({ROOFLINE})"
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
