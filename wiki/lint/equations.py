"""Arithmetic that is written out is right.

A sentence is cut into equations with caution: what cannot be read for certain as an expression of numbers on the left
and one number on the right is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kbs.evidence.arithmetic import MAX_LENGTH, equation_holds
from kbs.evidence.units import NUMBER
from kbs.evidence.vocabulary import Vocabulary
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, text_lines

_DERIVED = re.compile(r"\bderived:\s*(?P<text>.*)", re.IGNORECASE)
_OPERATOR = r"[-−+*×·/÷]"
_GOES_ON = re.compile(rf"(?:{_OPERATOR}|[\^,(√²³⁴]|\b[A-Za-z]|\b(?:log|log2|ln|sqrt|exp|ceil|floor|min|max))\s*$")
"""What stands before an expression that is not whole: an operator, a variable, a function."""
_FOLLOWED = re.compile(r"\s*(?:[-−–+*×·/÷^(:x]|(?:to|[kKMGTP]i?|thousand|million|billion|trillion|[A-Z])\b)")
"""What may stand after a number only where the number is not the whole result."""


@rule("wrong-arithmetic", "Arithmetic that a line shows is wrong.")
def wrong_arithmetic(view: WikiView) -> Iterator[Finding]:
    """Every equation of a `Derived:` line or cell that does not hold."""
    reader = EquationReader(view.vocabulary)
    for page in view.pages:
        for number, line in text_lines(page).items():
            match = _DERIVED.search(line)
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
        not at all where only one side has any; a percentage is a hundredth.
        """
        binary = re.sub(r"(?<=[\d\s])([KMG])(?=B\b)", r"\1i", equation)
        readings = [equation, binary, re.sub(r"\s*\bbits?\b", "", equation)]
        left, _, right = equation.partition("=")
        if "%" in equation:
            hundred = re.sub(rf"({NUMBER})\s*%", r"(\1 / 100)", left)
            readings = [f"({hundred}) {'* 100 ' if '%' in right else ''}= {right.replace('%', '')}"]
        unit = re.compile(rf"(?<=[\d\s]){self._unit}")
        if bool(unit.search(left)) != bool(unit.search(right)):
            readings.append(unit.sub("", equation).rstrip())
        verdicts = [equation_holds(reading) for reading in readings]
        return False in verdicts and True not in verdicts


def _balanced(expression: str) -> str:
    """The expression without an opening bracket that is closed after the result."""
    while expression.startswith("(") and expression.count("(") > expression.count(")"):
        expression = expression[1:].lstrip()
    return expression
