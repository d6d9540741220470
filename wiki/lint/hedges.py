"""A number is said without hedging: either a source gives it, or it gives a range."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import MeasuredRow, ThresholdRow
from wiki.lint.quantities import Quantities
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, prose_lines, text_lines

_BEFORE = re.compile(
    r"(?:\b(?P<word>about|approximately|approx\.?|roughly|around|circa|ca\.|nearly|almost|some|similar products?)"
    r"(?:\s+(?:a|the|to|at|of))?\s+|(?P<mark>[~≈]\s?)|\b(?P<should>should be)\s+(?:\w+\s+){0,3})$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\s+(?P<word>or so|approximately|roughly|similar products?|on similar products?)\b", re.IGNORECASE)


@rule("hedge", "A hedging word stands beside a number.")
def hedge(view: WikiView) -> Iterator[Finding]:
    """Every quantity in prose, and every row of specs or measurements, that is not said plainly."""
    quantities = Quantities(view.vocabulary)
    for page in view.pages:
        prose, lines = prose_lines(page), text_lines(page)
        rows: tuple[Spec | ThresholdRow | MeasuredRow, ...] = (*page.specs, *page.thresholds, *page.measured)
        for number in sorted({*prose, *(row.citation.line_start for row in rows)}):
            sentence = quantities.sentence(lines.get(number, ""))
            for match in (*quantities.measured.finditer(sentence), *quantities.counted.finditer(sentence)):
                found = _BEFORE.search(sentence[: match.start()]) or _AFTER.match(sentence, match.end())
                if found:
                    said = next(part for part in found.groups() if part).strip()
                    message = f"“{said}” stands beside {match[0].strip()}; say the number or a range"
                    yield Finding(page.path, number, message)
