"""Messages of commits, whose parts may be a proposer's words."""

from __future__ import annotations

from kbs.common.visible_text import visible

_SUBJECT = 72
"""Characters of a commit's first line."""


def commit_message(subject: str, body: str) -> str:
    """A commit's message; both parts may be a proposer's words."""
    line = " ".join(visible(subject).split())
    short = line if len(line) <= _SUBJECT else f"{line[: _SUBJECT - 1]}…"
    return f"{short}\n\n{' '.join(visible(body).split())}"
