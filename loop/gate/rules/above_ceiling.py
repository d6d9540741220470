"""Nothing is claimed above a peak."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from kbs.evidence.quantities import Stated
from loop.gate.context import GateContext
from loop.gate.figures import Sentence, sentences
from loop.gate.rule import Broken, rule
from loop.gate.texts import Text, comment_texts, grounds, kernel_text, proposal_texts

_THROUGHPUTS = ("throughput", "of peak", "of the peak", "utilization", "utilisation", "bandwidth")
_CACHES = ("l1", "l2", "shared", "smem", "cache", "nvlink", "register")


@rule("above-ceiling", "Nothing is claimed or expected above a cited or measured peak.", "proposal")
def above_ceiling(context: GateContext) -> Iterator[Broken]:
    """A bandwidth above the GPU's cited peak, a rate above its highest cited throughput, more than 100 % of a peak,
    or an expected time below the measured floor cannot be. Expected movements are looked at too. State what the
    hardware allows: README.md of the run has the peaks and the floor."""
    if context.proposal is None:
        return
    texts = [(text, 0, text.text) for text in proposal_texts(context)]
    kernel = kernel_text(context)
    texts += [(kernel, line - 1, comment) for line, comment in comment_texts(kernel)] if kernel else []
    peaks = _peaks(context)
    for text, before, said in texts:
        for sentence in sentences(said):
            for stated in sentence.stated:
                peak = _above(stated, sentence, text, peaks, context)
                if peak:
                    message = f"{stated.text} lies above {peak}: “{sentence.text.strip()[:160]}”"
                    mend = "Claim no more than the hardware allows."
                    yield Broken(file=text.file, line=stated.line + before, message=message, mend=mend)


def _above(
    stated: Stated, sentence: Sentence, text: Text, peaks: dict[str, tuple[Decimal, str]], context: GateContext
) -> str:
    lower, value = sentence.text.lower(), stated.readings[0].base
    expected = "#hypothesis.expected" in text.file
    if stated.dimension == "percent" and value > 1:
        return "100 % of a peak" if any(word in lower for word in _THROUGHPUTS) and "faster" not in lower else ""
    if stated.dimension == "seconds" and expected and lower.startswith("time") and "floor" in peaks:
        return peaks["floor"][1] if 0 < value < peaks["floor"][0] and "by " not in lower else ""
    if stated.dimension not in peaks or any(word in lower for word in _CACHES):
        return ""
    peak, said = peaks[stated.dimension]
    # What was cited or measured is a fact, of another product perhaps.
    if value <= peak or grounds(context).cited.has(stated.readings) or grounds(context).profiled.has(stated.readings):
        return ""
    return said


def _peaks(context: GateContext) -> dict[str, tuple[Decimal, str]]:
    """Dimension → highest value that is cited for the run's GPU, or measured, and where it is from."""
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
