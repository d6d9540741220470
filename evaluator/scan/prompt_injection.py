"""Find text addressed to a language model, and characters that hide text from a person. Both are told to the reader."""

from __future__ import annotations

import re
import unicodedata

from evaluator.scan.hazards import Hazard, Severity

# Names of models keep their case: a_i is no AI. "LLM" alone says nothing, since honest kernels are written for LLMs.
_MODEL = (
    r"(?:(?-i:AI|LLM|GPT)s?|A\.I\.|language models?|ai (?:assistants?|agents?|models?|reviewers?|graders?|judges?)|"
    r"chat ?bots?|ChatGPT|GPT-?\d\w*|Claude|Gemini|Copilot)"
)
_JUDGE = r"(?:reviewers?|graders?|judges?|evaluators?|auditors?)"
_READER = rf"(?:{_MODEL}(?:\s+(?:{_JUDGE}|agents?|assistants?|models?|readers?))?|{_JUDGE})"
_ORDER = (
    r"(?:accept|approve|pass|mark|rate|score|grade|report|classify|label|treat|consider|ignore|skip|disregard|output|"
    r"respond|reply|answer|return|give|trust|assume|say|do not|don't|you must|you should|please)"
)
_GOOD = r"(?:correct|accepted|approved|valid|verified|honest|safe|passing|passed|fast(?:er|est)?|legitimate|trusted)"
_PATTERNS = {
    "tells a reader to ignore its instructions": (
        r"\b(?:ignore|disregard|forget|override|bypass)\b"
        r"(?:\s+(?:all|any|every|the|these|those|your|of|my|other)\b){0,4}"
        r"\s+(?:previous|prior|above|earlier|preceding|foregoing|existing|original|system)"
        r"(?:\s+(?:system|safety|review|and|or|prior))*"
        r"\s+(?:instructions?|prompts?|directives?|guidelines?|directions?|messages?)\b"
    ),
    "is addressed to a language model": (
        r"\b(?:(?:note|message|instructions?|hints?|important|warning|attention|reminder)(?:\s+(?:to|for|all|any))+"
        rf"|dear|hello|hi|hey)\s+(?:(?:all|any|the|every|you)\s+)*{_READER}"
        r"(?:\s+(?:reading|reviewing|evaluating|judging|grading|looking|that|who)\b[^.\n]{0,80})?"
        rf"\s*[:,!.—–-]\W*[\s\S]{{0,200}}?\b{_ORDER}\b|\bif\s+you(?:'re|\s+are)\s+(?:an?\s+|the\s+)?{_MODEL}\b"
    ),
    "tells a language model who it is": (
        rf"\byou\s+are\s+(?:now\s+)?(?:an?|the)\s+(?:[\w-]+\s+){{0,3}}(?:{_MODEL}|assistant|{_JUDGE})\b"
        rf"[\s\S]{{0,200}}?\b{_ORDER}\b"
    ),
    "tells a judge its verdict": (
        rf"(?:^|[.!;\n\"']|\b(?:to|dear|any|all)\b)\s{{0,4}}(?:the\s+)?{_READER}(?:\s*[:,!—–-]\s*(?:please\s+)?|"
        r"\s+(?:please|you\s+must|you\s+should)\s+)(?:you\s+(?:must|should)\s+)?"
        r"(?:accept|approve|mark|rate|score|grade|report|classify|treat|consider)\s+(?:this|the|my|it|these)\b"
        rf"[\s\S]{{0,120}}?\b{_GOOD}\b|\byou\s+(?:must|should|have\s+to|need\s+to|are\s+to)\s+"
        r"(?:now\s+|only\s+|always\s+)*(?:answer|respond|reply|conclude|report|output|return)\b[^.]{0,80}?"
        r"(?:\bverdict\b|\bhazards?\b|\bno\s+cheat\w*)"
    ),
    "holds an order in the marks of a chat": (
        r"(?:<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?(?-i:INST)\]|<</?SYS>>"
        r"|</?(?:system|assistant)(?:[-_](?:prompt|message|reminder|instructions?))?>"
        r"|\n[ \t]*+(?-i:Human|Assistant|SYSTEM):\s{0,4}\S)"
        rf"[\s\S]{{0,200}}?\b{_ORDER}\b[\s\S]{{0,100}}?\b{_GOOD}\b"
    ),
}
_SEARCHED = {what: re.compile(pattern, re.IGNORECASE) for what, pattern in _PATTERNS.items()}
_HIDDEN = re.compile("[\u200b-\u200d\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_MARKS = re.compile(r"(?m)^[ \t]*+(?:[#*/!]++[ \t]?)*+")
_MAX_TEXT = 200_000


def find_instructions(text: str) -> list[Hazard]:
    """Notes `instructions`, the first of each kind, of a text in any language, marks of comments taken off."""
    shown = _MARKS.sub("", _visible(text[:_MAX_TEXT]))
    matches = ((what, pattern.search(shown)) for what, pattern in _SEARCHED.items())
    return [_note("instructions", what, shown, match) for what, match in matches if match]


def find_hidden(text: str) -> list[Hazard]:
    """A note `hidden_text` where the file has characters that do not show, none otherwise."""
    match = _HIDDEN.search(text)
    return (
        [_note("hidden_text", f"{len(_HIDDEN.findall(text))} characters that do not show", text, match)]
        if match
        else []
    )


def _note(id_: str, what: str, text: str, match: re.Match[str]) -> Hazard:
    said = " ".join(match.group().split())[:160]
    quoted = said if said.isprintable() else unicodedata.name(said[:1], f"U+{ord(said[:1]):04X}")
    line = text.count("\n", 0, match.start()) + 1
    return Hazard(id=id_, severity=Severity.NOTE, evidence=f"{what}: {quoted}", line=line)


def _visible(text: str) -> str:
    """`text` as a model reads it: compatibility forms made plain, tag characters as ASCII, hidden ones left out."""
    shown = "".join(chr(ord(c) - 0xE0000) if "\U000e0020" <= c <= "\U000e007e" else c for c in text)
    return unicodedata.normalize("NFKC", _HIDDEN.sub("", shown))
