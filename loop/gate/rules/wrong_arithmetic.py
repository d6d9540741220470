"""Shown arithmetic is right."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.figures import equations
from loop.gate.rule import Broken, rule
from loop.gate.texts import comment_texts, kernel_text, proposal_texts


@rule("wrong-arithmetic", "Arithmetic that is written out is right to the last place that is shown.", "proposal")
def wrong_arithmetic(context: GateContext) -> Iterator[Broken]:
    """Each equation of numbers, `66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte`, is computed again with its units. Mend the
    result, or the numbers that it begins with."""
    texts = [(text.file, 0, text.text) for text in proposal_texts(context) if "#hypothesis.expected" not in text.file]
    kernel = kernel_text(context) if context.proposal is not None else None
    texts += [(kernel.file, line - 1, comment) for line, comment in comment_texts(kernel)] if kernel else []
    for file, before, said in texts:
        for equation in equations(said):
            if not equation.holds:
                message = f"“{equation.text[:160]}” does not come out"
                yield Broken(
                    file=file, line=equation.line + before, message=message, mend="Compute it again, with the units."
                )
