"""Rules on numbers in text: they have a source, are stated plainly, and add up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kbs.evidence.arithmetic import MAX_LENGTH, equation_holds
from kbs.evidence.citation import find_citations
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import MeasuredRow, ThresholdRow
from kbs.evidence.units import NUMBER
from kbs.evidence.vocabulary import Vocabulary
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, is_derived, prose_lines, text_lines
from wiki.quantities import quantities_of

_REFERENCE = re.compile(r"\[\^[^\]\s]+\]")
_METRIC = re.compile(r"`[a-z0-9]+__\w[\w.]*`")
_COMPARISON = re.compile(
    r"(?:\b(?:above|below|over|under|exceeds|(?:more|less|fewer|greater|higher|lower) than|at least|at most)|[<>≤≥])"
    r"\s+(?P<number>\d[\d.,]*)(?![\w.]*-\w)(?!\s?[A-Z×(])"
)


@rule("number-without-source", alone=True)
def number_without_source(view: WikiView) -> Iterator[Finding]:
    """Give a source for every number that states a fact.

    Checks prose lines for numbers with a physical unit, counts after a word of limit ("at most 64 registers"), gains
    ("1.5 times as fast") and comparisons in a line that names a profiler metric. Such a line needs a footnote
    reference, a citation, or `Derived:` at its start. Not checked: plain counts ("a block of 256 threads"), single
    FLOP, adjectives ("128-bit loads"), 0 and 1 in a comparison, code, headings, tables, link texts and product names.

    Why: answers quote these lines, and a number without a source cannot be verified.

    Example: `Shared memory holds 228 KB per SM.` without `[^guide]`.
    """
    quantities = quantities_of(view.vocabulary)
    for page in view.pages:
        for number, line in prose_lines(page).items():
            whole = page.lines[number - 1]
            if "[^" in line and _REFERENCE.search(line):
                continue
            if not _COUNTED.search(line) or is_derived(line):
                continue
            if next(find_citations(whole), None):
                continue
            stated = [*quantities.facts(line), *_thresholds(line, whole)]
            if stated:
                said = ", ".join(f"“{part.strip()}”" for part in dict.fromkeys(stated))
                yield Finding(page.path, number, f"{said} needs a reference, or the line begins with `Derived:`")


_COUNTED = re.compile(r"\d|\b(?:twice|thrice|half|times)\b")
"""What a line has that states a number."""


def _thresholds(line: str, whole: str) -> Iterator[str]:
    if _METRIC.search(whole):
        for match in _COMPARISON.finditer(line):
            if match["number"].rstrip(".,") not in ("0", "1"):
                yield match[0]


_BEFORE = re.compile(
    r"(?:\b(?P<word>about|approximately|approx\.?|roughly|around|circa|ca\.|nearly|almost|some|similar products?)"
    r"(?:\s+(?:a|the|to|at|of))?\s+|(?P<mark>[~≈]\s?)|\b(?P<should>should be)\s+(?:\w+\s+){0,3})$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\s+(?P<word>or so|approximately|roughly|similar products?|on similar products?)\b", re.IGNORECASE)


_HEDGES = (
    *("about", "approx", "roughly", "around", "circa", "ca.", "nearly", "almost", "some", "similar product"),
    *("~", "≈", "should", "or so"),
)
"""What a line has in which one of them is found."""


@rule("hedge", alone=True)
def hedge(view: WikiView) -> Iterator[Finding]:
    """State numbers plainly, or as a range.

    Checks for hedging words beside a number in prose and in rows of specs, thresholds and measurements.

    Why: "about 80 %" cannot be checked or calculated with; a range can.

    Example: `roughly 80 GB/s`; write `78 to 82 GB/s`.
    """
    quantities = quantities_of(view.vocabulary)
    for page in view.pages:
        prose, lines = prose_lines(page), text_lines(page)
        rows: tuple[Spec | ThresholdRow | MeasuredRow, ...] = (*page.specs, *page.thresholds, *page.measured)
        for number in sorted({*prose, *(row.citation.line_start for row in rows)}):
            said = lines.get(number, "").casefold()
            if not any(word in said for word in _HEDGES):
                continue
            sentence = quantities.sentence(lines[number])
            for match in (*quantities.measured.finditer(sentence), *quantities.counted.finditer(sentence)):
                found = _BEFORE.search(sentence[: match.start()]) or _AFTER.match(sentence, match.end())
                if found:
                    hedged = next(part for part in found.groups() if part).strip()
                    message = f"“{hedged}” stands beside {match[0].strip()}; say the number or a range"
                    yield Finding(page.path, number, message)


_DERIVED = re.compile(r"\bderived:\s*(?P<text>.*)", re.IGNORECASE)
_OPERATOR = r"[-−+*×·/÷]"
_GOES_ON = re.compile(
    rf"(?:{_OPERATOR}|[\^(√²³⁴]|(?<![A-Za-z]),|\b[A-Za-z]|\b(?:log|log2|ln|sqrt|exp|ceil|floor|min|max))\s*$"
)
"""What stands before an expression that is not whole: an operator, a variable, a function."""
_FOLLOWED = re.compile(r"\s*(?:[-−–+*×·/÷^(:x]|(?:to|[kKMGTP]i?|thousand|million|billion|trillion|[A-Z])\b)")
"""What may stand after a number only where the number is not the whole result."""


@rule("wrong-arithmetic", alone=True)
def wrong_arithmetic(view: WikiView) -> Iterator[Finding]:
    """Show only arithmetic that is right.

    Checks every equation after `Derived:`. An equation counts as wrong only if it is false however its units are read;
    what is not clearly an expression of numbers with one number as its result is not judged.

    Why: targets and costs are calculated from these lines.

    Example: `Derived: 132 × 4 = 530 tensor cores`.
    """
    reader = EquationReader(view.vocabulary)
    for page in view.pages:
        for number, line in text_lines(page).items():
            match = _DERIVED.search(line) if "derived:" in line.casefold() else None
            for equation in reader.equations(match["text"]) if match else ():
                if reader.is_wrong(equation):
                    yield Finding(page.path, number, f"this is not so: {equation}")


class EquationReader:
    """Finds equations in sentences, and says which are wrong however they are read."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled = sorted((s for s in vocabulary.unit_spellings if s not in ("x", "×")), key=len, reverse=True)
        self._unit = r"(?:[kKMGTPE]i?)?(?:" + "|".join(map(re.escape, spelled)) + r")(?![\w/])"
        quantity = rf"{NUMBER}(?:\s*{self._unit})?"
        self._left = re.compile(rf"(?:^|(?<=[\s(]))\(*{quantity}(?:[\s)]*{_OPERATOR}[\s(]*{quantity})+[\s)]*$")
        self._alone = re.compile(rf"(?<=[\d\s]){self._unit}")
        self._right = re.compile(rf"\s*(?P<result>{quantity})(?!\w|\.\d)")

    def equations(self, text: str) -> Iterator[str]:
        """The parts of `text` that read as `<expression> = <number>`."""
        sides = re.split(r"(?<![<>!=≈])=(?!=)", text)
        for before, after in pairwise(sides):
            near = before[-MAX_LENGTH:]
            left, right = self._left.search(near), self._right.match(after)
            if not left or not right or _FOLLOWED.match(after, right.end()) or _GOES_ON.search(near[: left.start()]):
                continue
            if left.start() == 0 and len(before) > MAX_LENGTH:
                continue
            yield f"{_balanced(left[0].strip())} = {right['result'].strip()}"

    def is_wrong(self, equation: str) -> bool:
        """Whether the equation is false however it is read.

        Units count as written, with binary prefixes, with bits that a factor of 8 in the equation turns into bytes, and
        not at all if only one side has any; a percentage is a hundredth.
        """
        binary = re.sub(r"(?<=[\d\s])([KMG])(?=B\b)", r"\1i", equation)
        readings = [equation, binary, re.sub(r"\s*\bbits?\b", "", equation)]
        left, _, right = equation.partition("=")
        if "%" in equation:
            hundred = re.sub(rf"({NUMBER})\s*%", r"(\1 / 100)", left)
            readings = [f"({hundred}) {'* 100 ' if '%' in right else ''}= {right.replace('%', '')}"]
        if bool(self._alone.search(left)) != bool(self._alone.search(right)):
            readings.append(self._alone.sub("", equation).rstrip())
        wrong = False
        for reading in dict.fromkeys(readings):
            holds = equation_holds(reading)
            if holds:
                return False
            wrong = wrong or holds is False
        return wrong


def _balanced(expression: str) -> str:
    """The expression without an opening bracket that is closed after the result."""
    while expression.startswith("(") and expression.count("(") > expression.count(")"):
        expression = expression[1:].lstrip()
    return expression
