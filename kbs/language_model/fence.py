"""The mark between which data stands in a prompt, so that no text in it can end the data."""

from __future__ import annotations

import secrets
from collections.abc import Iterable


def draw_fence(texts: Iterable[str]) -> str:
    """A mark that is in none of the texts."""
    whole = list(texts)
    while True:
        fence = secrets.token_hex(16)
        if not any(fence in text for text in whole):
            return fence
