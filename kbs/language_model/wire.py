"""Question to and answer of a language model's service, independent of the form on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Provider = Literal["openai", "anthropic"]
"""The form of requests and answers: OpenAI's chat completions, or Anthropic's messages."""
MAX_TOKENS = 10**12
"""No count of tokens is larger."""


@dataclass(frozen=True)
class Question:
    """One question to a model."""

    model: str
    """As the service calls it."""
    system: str
    user: str
    schema: dict[str, Any]
    """JSON schema of the answer."""
    output_tokens: int
    """The most that the answer may have."""


@dataclass(frozen=True)
class Said:
    """The content of a service's response. All of it is untrusted."""

    text: str
    """The answer: a JSON document, if the model followed the prompt."""
    ended: Literal["whole", "cut", "refused"]
    """`cut`: it had more tokens than were allowed. `refused`: the model declined."""
    usage: tuple[int, int] | None
    """Tokens of the prompt and of the answer; None where the service does not say."""
    model: str
    """The model that answered, according to the service; empty if it does not say."""


@dataclass(frozen=True)
class Piece:
    """A part of an answer that comes as it is written. All of it is untrusted."""

    text: str = ""
    ended: Literal["", "whole", "cut", "refused"] = ""
    """Empty while the answer goes on; else as `Said` has it."""
    finished: bool = False
    """The model has written its last word, though the service may go on."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """None where this piece does not say."""
    model: str = ""


class Wire(Protocol):
    """A form of requests and answers."""

    path: str
    """Below the service's address."""

    def headers(self, key: str) -> dict[str, str]:
        """Headers that authenticate the request; `key` may be empty."""

    def body(self, question: Question) -> dict[str, Any]:
        """The request's JSON."""

    def read(self, data: bytes) -> Said:
        """The answer in a body. Raises ValueError if the body is not in this form."""

    def stream_body(self, question: Question) -> dict[str, Any]:
        """The request's JSON for an answer in plain words that comes as it is written; the schema is not used."""

    def piece(self, data: bytes) -> Piece:
        """What one event of such an answer says. Raises ValueError if it is not in this form."""


class Envelope(BaseModel):
    """A part of a service's response. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Usage(Envelope):
    first: int = Field(ge=0, le=MAX_TOKENS)
    second: int = Field(ge=0, le=MAX_TOKENS)


def tokens(count: object) -> int | None:
    """A count of tokens; None for what is none."""
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_TOKENS else None


def usage(said: object, first: tuple[str, ...], second: str) -> tuple[int, int] | None:
    """(tokens of the prompt, tokens of the answer) in a service's usage: the sum of the fields `first`, of which only
    the first is required, and the field `second`. None if they are missing or not counts."""
    if not isinstance(said, dict):
        return None
    try:
        parts = [said.get(first[0]), *(said.get(name) or 0 for name in first[1:])]
        counts = [_Usage.model_validate({"first": part, "second": said.get(second)}) for part in parts]
    except ValidationError:
        return None
    whole = sum(count.first for count in counts)
    return (whole, counts[0].second) if whole <= MAX_TOKENS else None
