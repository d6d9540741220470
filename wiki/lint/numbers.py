"""A number that states a fact says where it is from.

In prose such a number is one of these: a number with a physical unit (bytes, rates, times, clocks, cycles, per cent,
SMs, banks, links); a count of threads, warps, blocks, registers or sectors after a word of limit ("at most 64
registers"); a gain ("1.5 times as fast", "2x"); a threshold, which is a comparison with a number in a line that names a
profiler's metric. Its line needs a footnote reference or a citation, or begins with `Derived:`.

These need none: counts without a word of limit ("a block of 256 threads") and single FLOP, which describe a choice or
a convention; adjectives ("a 32-byte sector", "128-bit loads"), which name a thing; 0 and 1 in a comparison, which are
"any" and "none"; and whatever stands in code, headings, tables, link texts, names of products and footnotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbs.evidence.citation import find_citations
from wiki.lint.quantities import Quantities
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, is_derived, prose_lines

_REFERENCE = re.compile(r"\[\^[^\]\s]+\]")
_METRIC = re.compile(r"`[a-z0-9]+__\w[\w.]*`")
_COMPARISON = re.compile(
    r"(?:\b(?:above|below|over|under|exceeds|(?:more|less|fewer|greater|higher|lower) than|at least|at most)|[<>≤≥])"
    r"\s+(?P<number>\d[\d.,]*)(?![\w.]*-\w)(?!\s?[A-Z×(])"
)


@rule("number-without-source", "A number with a unit, a threshold or a performance claim has no reference on its line.")
def number_without_source(view: WikiView) -> Iterator[Finding]:
    """Every prose line that states a number and does not say where it is from."""
    quantities = Quantities(view.vocabulary)
    for page in view.pages:
        for number, line in prose_lines(page).items():
            whole = page.lines[number - 1]
            if _REFERENCE.search(line) or is_derived(line) or next(find_citations(whole), None):
                continue
            stated = [*quantities.facts(line), *_thresholds(line, whole)]
            if stated:
                said = ", ".join(f"“{part.strip()}”" for part in dict.fromkeys(stated))
                yield Finding(page.path, number, f"{said} needs a reference, or the line begins with `Derived:`")


def _thresholds(line: str, whole: str) -> Iterator[str]:
    if _METRIC.search(whole):
        for match in _COMPARISON.finditer(line):
            if match["number"].rstrip(".,") not in ("0", "1"):
                yield match[0]
