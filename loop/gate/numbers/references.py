"""What of a text is a reference, whose digits are no numbers: citations, files, addresses, issues, dates, hashes.

A reference is none where it hides a number: where it spells a unit of hardware (`l2-reads-7.2TB-per-s.md`), or where
its sentence asks how many of a unit there are and gives no other number (`how many GB/s … is issue #7200`).
"""

from __future__ import annotations

import re

from loop.gate.numbers.wording import HIDDEN, PART

_EXACT = re.compile(
    r"\S{1,80}/\S{1,200}:L\d{1,9}\S{0,80}|(?:receipt|profile|log)/\S{1,300}|\b(?=\d*[a-f])[0-9a-f]{12,64}\b"
    r"|\b01[0-9A-HJKMNP-TV-Z]{24}\b"
)
"""References that are looked up elsewhere, and hashes."""
_UNIT = r"(?:[kKMGTP]i?B/s|[kKMGTP]?(?:B|b)ps|[KMGTP]?FLOP/?[sS]|[kMG]Hz|[MGT]i?B)"
_NAMED = re.compile(
    r"https?://\S{1,300}|\b(?:19|20)\d\d-[01]\d-[0-3]\d\b"
    r"|\b(?i:issues?|prs?|tickets?|pull requests?|discussions?|bugs?)\s*#?\d{1,6}\b"
    rf"|(?<![\d.])#\d{{1,6}}\b(?!\s+(?i:{PART})\b)(?!\s?{_UNIT})"
    r"|\b(?:[0-3]?\d\.?\s+)?(?:January|February|March|April|June|July|August|September|October|November|December)"
    r"(?:\s+\d{1,2},?)?\s+(?:19|20)\d\d\b"
    r"|\S{1,80}\.(?:py|cu|md|txt|json|csv|pdf|html|log|yaml|yml)\b(?::\d+)?"
)
UNNUMBERED = re.compile(
    rf"(?<![\d.])(?<![\d.][ -])(?<![\w/]){_UNIT}(?![\w/])|\b(?i:how many|number of|count"
    rf" of)\s+(?:\w+\s+){{0,2}}?(?:{_UNIT}|(?i:{PART}))\b"
)
"""A unit of hardware without a number before it."""
_SEPARATORS = re.compile(r"[/_=?&#:%~+-]|\.(?!\d)|(?<!\d)\.")
_SENTENCES = re.compile(r"(?<=[.;!?])\s+|\n")


def blanked(text: str) -> str:
    """The text with blanks for its references, and as many characters; a number that one hides is left to be read."""
    text = _EXACT.sub(lambda m: " " * len(m[0]), text)
    found, at = list[str](), 0
    for end in (*(match.end() for match in _SENTENCES.finditer(text)), len(text)):
        sentence, at = text[at:end], end
        bare = bool(UNNUMBERED.search(_NAMED.sub("", sentence)))
        found.append(_NAMED.sub(lambda m, bare=bare: _as_read(m[0], bare), sentence))  # type: ignore[misc]
    return "".join(found)


def _as_read(name: str, bare: bool) -> str:
    hides = HIDDEN.search(name) or (bare and re.search(r"\d{2}", name))
    if not hides:
        return " " * len(name)
    return _SEPARATORS.sub(" ", name) if HIDDEN.search(name) else re.sub(r"\D", " ", name)
