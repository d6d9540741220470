"""What a text says to a reader who sees it rendered: entities, LaTeX, emphasis, other scripts' digits and number words
as plain characters, on as many lines. Everything that reads numbers for the gate reads this.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

from loop.gate.numbers.numerals import counted, in_digits

_SUPERSCRIPT = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_GROUPED = re.compile(r"(?<=\d)[\u2009\u202f\u00a0'’_](?=\d{3}(?!\d))")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>|<!--[^\n]{0,200}?-->")
_DASH = re.compile(r"[\u00ad\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_TEX = (
    (re.compile(r"\\(?:math|text|operator)?(?:rm|bf|it|sf|tt|text|normal|name)?\s*\{([^{}\n]{0,80})\}"), r"\1"),
    (re.compile(r"\\[td]?frac\s*\{([^{}\n]{1,40})\}\s*\{([^{}\n]{1,40})\}"), r"\1/\2"),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\{([,.])\}"), r"\1"),
    (re.compile(r"\^\s*\{([^{}\n]{1,20})\}"), r"^\1"),
    (re.compile(r"\\[,;:! ]"), " "),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\[()\[\]]|\$"), " "),
)
_TIE = re.compile(r"(?<=\d)~(?=[A-Za-z\\])")
_EMPHASIS = re.compile(r"\*\*|~~|`|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_STARS = re.compile(r"(?<![\w)\s])\*(?=\w)|(?<=\w)\*(?![\w(\s])")
_HYPHEN = re.compile(r"(?<=\d)-(?=(?:[kKMGTPE]?i?(?:B|b|FLOP|OP|Hz|hz|W)\b|[A-Za-z]{2,}))")
_COMMA = re.compile(r"(?<![\d.,])(\d{1,4}),(\d{1,2})(?=\s?(?:[kKMGTPE]?i?(?:[BbWo]|FLOP|OP|Hz)|%|[mnuµ]s\b))")
_OCTETS = re.compile(r"(?<=\d)(\s?)([kKMGTP]?)i?o(?=/s|ps|\b)(?=/s|ps|\s|[.,;)]|$)")
_EVERY = re.compile(
    r"\b((?:bytes?|bits?|octets?|operations?|flops?|ops))\s+(?:(?:in|for)\s+)?(?:a|an|each|every|one)\s+sec(?:ond)?\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """The text as it reads, line by line: `$3{,}9\\,\\mathrm{TB/s}$` and `3.9&nbsp;TB/s` as a number with its unit."""
    return "\n".join(_line(line) for line in text.split("\n"))


_LOOKS_LATIN = str.maketrans("АВЕЅІЈКМНОРСТХѕіјаеорсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABESIJKMHOPCTXsijaeopcyxABEZHIKMNOPTYXo")
"""Letters of other scripts that show as Latin ones."""


def _line(line: str) -> str:
    line = html.unescape(line).replace("\n", " ").replace("\r", " ")
    line = counted(_TAG.sub("", line))
    line = _SUPERSCRIPT.sub(lambda m: "^" + m[0].translate(_POWERS), line)
    line = _GROUPED.sub("", line)
    line = "".join(_character(one) for one in unicodedata.normalize("NFKC", line))
    line = _DASH.sub("-", line).replace("⁄", "/")
    for pattern, by in _TEX:
        line = pattern.sub(by, line)
    line = _STARS.sub("", _EMPHASIS.sub("", _TIE.sub(" ", line)))
    line = in_digits(line).translate(_LOOKS_LATIN)
    line = _COMMA.sub(r"\1.\2", line)
    line = _OCTETS.sub(r"\1\2B", line)
    line = _EVERY.sub(r"\1 per second", line)
    return _HYPHEN.sub(" ", line)


def _character(one: str) -> str:
    """One that shows: digits of any script as 0 to 9, blanks as a blank, and nothing for what has no width."""
    if one.isascii():
        return one
    digit = unicodedata.digit(one, None)
    if digit is not None:
        return str(digit)
    category = unicodedata.category(one)
    return " " if category == "Zs" else "" if category == "Cf" else one


_ALWAYS_HIDDEN = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u115f\u1160\u3164\uffa0"
)
"""What turns the order of letters round, and letters without a width."""


def hidden_characters(text: str) -> Iterator[tuple[int, str]]:
    """(line, character) of each that no reader sees, and that changes what a word or a number is to a program: inside
    one of Latin letters or digits, or where it turns the order round. Joiners of other scripts and of emoji stay."""
    for number, line in enumerate(text.split("\n"), start=1):
        for at, one in enumerate(line):
            category = unicodedata.category(one)
            unseen = category in ("Cf", "Co", "Cn", "Cc") or one in "\u034f\u2800" or "\ufe00" <= one <= "\ufe0f"
            turns = one in _ALWAYS_HIDDEN or "\U000e0000" <= one <= "\U000e0fff"
            if turns or (unseen and one not in "\t\r" and _inside_a_word(line, at)):
                yield number, f"U+{ord(one):04X}"


def _inside_a_word(line: str, at: int) -> bool:
    """Whether Latin letters or digits stand on both sides."""
    before, after = line[at - 1 : at], line[at + 1 :].lstrip("\u200b\u200c\u200d\u2060\ufeff\u00ad")[:1]
    return all(one.isalnum() and (one.isascii() or one.isdigit()) for one in (before, after))
