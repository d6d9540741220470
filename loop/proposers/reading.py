"""Reads the answer of a proposer: untrusted bytes that are a proposal, or the reasons why they are not."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from kbs.common.visible_text import visible
from loop.proposals.proposal import MAX_KERNEL, Proposal

RULE = "schema"
"""The rule of a refusal without a proposal that could be checked."""
MAX_BYTES = 8 * MAX_KERNEL
"""Limit of an answer: a kernel with every character escaped, and its reasons."""
_SHOWN = 12
"""Mistakes that are listed."""
_SCHEMA = (
    "`kopt schema run-proposal` prints the schema. A kernel's file is handed in by `kopt run submit --kernel FILE` with"
    " --method and --why, which needs no JSON."
)


@dataclass(frozen=True)
class Unread:
    """Why an answer is not a proposal."""

    rule: str
    """`schema`, or what a program did instead of answering: `command-timeout`, `command-failed`, `command-flood`."""
    reasons: tuple[str, ...]
    """Each mistake with its place in the document."""
    fix: str
    """What to do about it."""


def read_proposal(data: bytes) -> Proposal | Unread:
    """The proposal in a document, or all its mistakes. Never raises."""
    if not data.strip():
        return Unread(RULE, ("there is nothing in it",), f"Hand in one JSON object. {_SCHEMA}")
    if len(data) > MAX_BYTES:
        return Unread(RULE, (f"it has {len(data):,} bytes, and at most {MAX_BYTES:,} are read",), "Hand in less.")
    try:
        return Proposal.model_validate_json(data)
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
        reasons = [f"{_place(mistake['loc'])}: {visible(str(mistake['msg']))}" for mistake in mistakes[:_SHOWN]]
        if len(mistakes) > _SHOWN:
            reasons.append(f"and {len(mistakes) - _SHOWN} more")
        return Unread(RULE, tuple(reasons), _SCHEMA)


def _place(location: tuple[int | str, ...]) -> str:
    """`hypothesis.expected[0].metric`, or `the document`."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{visible(str(part))[:80]}" for part in location)
    return shown.lstrip(".") or "the document"
