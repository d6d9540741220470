"""Text in a candidate's file that is addressed to a language model, and characters that hide text from a person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.hazards import Hazard, Severity

_GAP = 2
"""Lines between two comments that still belong to one text."""

_MODEL = r"(?:AIs?|A\.I\.|LLMs?|language models?|chat ?bots?|GPT(?:-?\d\w*)?|ChatGPT|Claude|Gemini|Copilot|AI (?:assistants?|agents?|models?))"
_JUDGE = r"(?:reviewers?|graders?|judges?|evaluators?|auditors?|verifiers?|scorers?)"
_ORDER = (
    r"(?:accept|approve|pass|mark|rate|score|grade|report|classify|label|treat|consider|ignore|skip|disregard|output|"
    r"respond|reply|answer|return|give|trust|assume|say|do not|don't|you must|you should|please)"
)
_VERDICT = r"(?:correct|accepted|approved|valid|verified|honest|safe|passing|passed|fast(?:er|est)?|legitimate|trusted|no hazards?)"

# No honest comment is written to the program that reads it for approval.
_REJECTED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, flags))
    for what, pattern, flags in (
        (
            "tells a reader to ignore its instructions",
            r"\b(?:ignore|disregard|forget|override|bypass)\b(?:\s+(?:all|any|every|the|these|those|your|of|my|other)\b){0,4}"
            r"\s+(?:previous|prior|above|earlier|preceding|foregoing|existing|original|system)"
            r"(?:\s+(?:system|safety|review|and|or|prior))*"
            r"\s+(?:instructions?|prompts?|directives?|guidelines?|directions?|messages?)\b",
            re.IGNORECASE,
        ),
        (
            "is addressed to a language model",
            rf"\b(?:note|notice|attention|message|instructions?|dear|hello|hi|hey|important|warning|reminder)\b[\s:,!-]*"
            rf"(?:(?:to|for|all|any|the|every|you)\b\s*){{0,3}}{_MODEL}\b[\s\S]{{0,200}}?\b{_ORDER}\b",
            re.IGNORECASE,
        ),
        (
            "is addressed to a language model",
            rf"\bif\s+you(?:'re|\s+are)\s+(?:an?\s+|the\s+)?{_MODEL}\b",
            re.IGNORECASE,
        ),
        (
            "tells a language model who it is",
            rf"\byou\s+are\s+(?:now\s+)?(?:an?|the)\s+(?:[\w-]+\s+){{0,3}}(?:{_MODEL}|assistant|{_JUDGE})\b[\s\S]{{0,200}}?\b{_ORDER}\b",
            re.IGNORECASE,
        ),
        (
            "tells a judge its verdict",
            rf"(?:^|[.!:;\n*/#\"']|\b(?:to|for|dear|the|any|all)\s)\s*(?:the\s+)?(?:{_JUDGE}|{_MODEL})\b[\s:,!-]+(?:please\s+|you\s+must\s+|you\s+should\s+|must\s+|should\s+)?"
            r"(?:accept|approve|mark|rate|score|grade|report|classify|label|treat|consider|return|output|answer|reply|respond)\b"
            rf"[\s\S]{{0,120}}?\b{_VERDICT}\b",
            re.IGNORECASE,
        ),
        (
            "tells a judge its answer",
            r"\byou\s+(?:must|should|have\s+to|need\s+to|are\s+to|will)\s+(?:now\s+|only\s+|always\s+)*"
            r"(?:answer|respond|reply|output|report|return|conclude|classify|rate|mark|accept|approve)\b[\s\S]{0,160}?"
            rf"(?:\b{_VERDICT}\b|\bverdict\b|\bno\s+(?:problems?|issues?|cheat\w*))",
            re.IGNORECASE,
        ),
        (
            "holds the marks of a chat",
            r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>"
            r"|</?(?:system|assistant)(?:[-_](?:prompt|message|reminder|instructions?))?>|\n\s*(?:Human|Assistant|SYSTEM):\s*\S",
            0,
        ),
    )
)
_NOTED = re.compile(rf"\b(?:{_MODEL})\b[\s\S]{{0,80}}?\b(?:review|judge|evaluat|grad|accept|verif)\w*", re.IGNORECASE)

_HIDDEN = re.compile("[\u200b-\u200d\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_MAX_TEXT = 100_000


@dataclass(frozen=True)
class Prose:
    """A comment, docstring or string of a file."""

    line: int
    text: str
    comment: bool = False
    """Comments on lines that follow each other are read as one text."""


def find_instructions(prose: Iterable[Prose]) -> list[Hazard]:
    """Hazards `instructions` of the file's texts, the first of each kind."""
    found: dict[tuple[str, Severity], Hazard] = {}
    for item in _joined(prose):
        text = _visible(item.text)
        for what, pattern in _REJECTED:
            match = pattern.search(text)
            if match:
                found.setdefault((what, Severity.REJECT), _hazard(item, text, match, what, Severity.REJECT))
        match = _NOTED.search(text)
        if match:
            what = "speaks of a language model that judges"
            found.setdefault((what, Severity.NOTE), _hazard(item, text, match, what, Severity.NOTE))
    if any(severity is Severity.REJECT for _, severity in found):
        return [hazard for hazard in found.values() if hazard.severity is Severity.REJECT]
    return list(found.values())


def find_hidden(text: str) -> list[Hazard]:
    """A hazard `hidden_text` where the file has characters that do not show, none otherwise."""
    match = _HIDDEN.search(text)
    if match is None:
        return []
    name = unicodedata.name(match.group(), f"U+{ord(match.group()):04X}")
    line = text.count("\n", 0, match.start()) + 1
    count = len(_HIDDEN.findall(text))
    return [Hazard(id="hidden_text", severity=Severity.NOTE, evidence=f"{name}, {count} such characters", line=line)]


def _hazard(item: Prose, text: str, match: re.Match[str], what: str, severity: Severity) -> Hazard:
    quoted = " ".join(match.group().split())[:160]
    line = item.line + text.count("\n", 0, match.start())
    return Hazard(id="instructions", severity=severity, evidence=f"{what}: {quoted}", line=line)


def _joined(prose: Iterable[Prose]) -> list[Prose]:
    """Texts with neighbouring comments as one, and the marks of comments taken off."""
    joined: list[Prose] = []
    end = 0
    for item in sorted(prose, key=lambda p: p.line):
        lines = item.text[:_MAX_TEXT].split("\n")
        text = (
            "\n".join(re.sub(r"^\s*(?:[#*/!]+\s?)*", "", line) for line in lines)
            if item.comment
            else item.text[:_MAX_TEXT]
        )
        last = joined[-1] if joined else None
        if (
            item.comment
            and last is not None
            and last.comment
            and item.line - end <= _GAP
            and len(last.text) < _MAX_TEXT
        ):
            padding = "\n" * max(item.line - end, 0)
            joined[-1] = Prose(last.line, f"{last.text}{padding or ' '}{text}", True)
        else:
            joined.append(Prose(item.line, text, item.comment))
        end = item.line + len(lines) - 1
    return joined


def _visible(text: str) -> str:
    """`text` as a model reads it: compatibility forms made plain, tag characters as ASCII, hidden ones left out."""
    shown = "".join(chr(ord(c) - 0xE0000) if "\U000e0020" <= c <= "\U000e007e" else c for c in text)
    return unicodedata.normalize("NFKC", _HIDDEN.sub("", shown))
