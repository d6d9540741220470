"""What a text says to a reader who sees it rendered: entities, LaTeX, emphasis, other scripts' digits and number words
as plain characters, on as many lines. Everything that reads numbers for the gate reads this.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

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

_ONES = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
_MAGNITUDES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "quadrillion": 10**15, "dozen": 12,
}  # fmt: skip
_WORD = "|".join(sorted((*_ONES, *_TENS, *_MAGNITUDES), key=len, reverse=True))
_AND = "|".join(rf"(?<={word})[ \t]+and[ \t]+" for word in _MAGNITUDES)
_SPELLED = re.compile(
    rf"(?<![\w-])(?:(?:a|an)\s+(?=(?:{'|'.join(_MAGNITUDES)})\b))?(?:{_WORD})\b"
    rf"(?:(?:[ \t-]+|{_AND}|[ \t]+point[ \t]+)(?:{_WORD})\b){{0,16}}",
    re.IGNORECASE,
)
_PARTS_OF = {
    "thirds": 3, "quarters": 4, "fourths": 4, "fifths": 5, "sixths": 6, "sevenths": 7, "eighths": 8, "ninths": 9,
    "tenths": 10, "twelfths": 12, "sixteenths": 16, "twentieths": 20, "hundredths": 100,
}  # fmt: skip
_FRACTION = re.compile(rf"(?<!\d)(\d{{1,4}})[ \t-]+({'|'.join(_PARTS_OF)})\b", re.IGNORECASE)
_BIG = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[ \t-]*(hundred|thousand|million|billion|trillion|quadrillion)\b", re.I)


def plain(text: str) -> str:
    """The text as it reads, line by line: `$3{,}9\\,\\mathrm{TB/s}$` and `3.9&nbsp;TB/s` as a number with its unit."""
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    line = html.unescape(line).replace("\n", " ").replace("\r", " ")
    line = _TAG.sub("", line)
    line = _SUPERSCRIPT.sub(lambda m: "^" + m[0].translate(_POWERS), line)
    line = _GROUPED.sub("", line)
    line = "".join(_character(one) for one in unicodedata.normalize("NFKC", line))
    line = _DASH.sub("-", line).replace("⁄", "/")
    for pattern, by in _TEX:
        line = pattern.sub(by, line)
    line = _STARS.sub("", _EMPHASIS.sub("", _TIE.sub(" ", line)))
    line = _BIG.sub(lambda m: _written(Decimal(m[1]) * _MAGNITUDES[m[2].lower()]), line)
    line = _SPELLED.sub(_number, line)
    line = _FRACTION.sub(lambda m: f"{m[1]}/{_PARTS_OF[m[2].lower()]}", line)
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


def _number(match: re.Match[str]) -> str:
    words = [word for word in re.split(r"[ \t-]+", match[0].lower()) if word not in ("a", "an", "and")]
    if words in (["one"], ["dozen"]):
        return match[0]
    if "point" in words:
        whole, after = words[: words.index("point")], words[words.index("point") + 1 :]
        digits = [word for word in after if word in _ONES and _ONES[word] < 10]
        rest = after[len(digits) :]
        value = Decimal(f"{_value(whole)}.{''.join(str(_ONES[word]) for word in digits) or 0}")
        for word in rest:
            value *= _MAGNITUDES.get(word, 1)
        return _written(value)
    return str(_value(words))


def _written(value: Decimal) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"


def _value(words: Sequence[str]) -> int:
    """`two thousand one hundred` is 2100, `one four four` is 144."""
    if len(words) > 1 and all(_ONES.get(word, 10) < 10 for word in words):
        return int("".join(str(_ONES[word]) for word in words))
    total = current = 0
    for word in words:
        if word in _MAGNITUDES:
            size = _MAGNITUDES[word]
            current = max(current, 1) * size
            if size >= 1000:
                total, current = total + current, 0
        else:
            current += _ONES.get(word, _TENS.get(word, 0))
    return total + current
