"""Several questions in one text, each to be answered by itself."""

from __future__ import annotations

import re

_ASKS = r"(?:what|how|why|which|when|where|who|does|do|is|are|can|could|should|will|would|has|have)\b"
_OF_IT = r"(?:has|have)\s+(?!it\b|they\b|you\b|we\b|any|some)"
"""What goes on saying something of the same thing, and asks nothing: "and has 64 of them"."""
_END = re.compile(
    rf"(?<=\?)\s+(?=\S)|,?\s+and\s+(?!{_OF_IT})(?=(?:also\s+)?{_ASKS}[^?]*\?\s*$)",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"(?:^|[,.:;]\s*|\band\s+|\bbut\s+|\bso\s+|\bor\s+){_ASKS}|\?", re.IGNORECASE)
LEAST = 3
"""Words that a question of its own has."""
MOST = 4


def questions_of(text: str) -> list[str]:
    """The questions of a text, in its order; the text itself where it is one. What stands before the first question
    tells the circumstances, and stays with it."""
    parts = [part.strip() for part in _END.split(text.strip()) if part and part.strip()]
    made: list[str] = []
    for part in parts:
        if made and (len(part.split()) < LEAST or not _ASKED.search(part)):
            made[-1] = f"{made[-1]} {part}"
        else:
            made.append(part)
    return made if 1 < len(made) <= MOST else [text]
