"""Chat completions, as OpenAI and many other services have them: POST /chat/completions.

Source: the API reference of OpenAI, https://platform.openai.com/docs/api-reference/chat (accessed 2026-11-21). Services
that follow it differ in what they add; only fields that they have in common are read.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kbs.language_model.wire import Envelope, Piece, Question, Said, tokens, usage


class _Message(Envelope):
    content: str | None = None
    refusal: str | None = None


class _Choice(Envelope):
    message: _Message
    finish_reason: str | None = None


class _Completion(Envelope):
    choices: list[_Choice] = Field(min_length=1)
    model: str = ""
    usage: Any = None


class _Delta(Envelope):
    content: str | None = None
    refusal: str | None = None


class _Part(Envelope):
    delta: _Delta = Field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(Envelope):
    choices: list[_Part]
    model: str = ""
    usage: Any = None


class OpenAIWire:
    """The answer's schema goes into `response_format`."""

    path = "chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """A bearer's token; none for a service that wants no key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, question: Question) -> dict[str, Any]:
        """One answer, whole and not in pieces."""
        return {
            "model": question.model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.user},
            ],
            "max_completion_tokens": question.output_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "proposal", "schema": question.schema, "strict": True},
            },
        }

    def read(self, data: bytes) -> Said:
        """The first choice."""
        found = _Completion.model_validate_json(data)
        choice = found.choices[0]
        refused = bool(choice.message.refusal) or choice.finish_reason == "content_filter"
        return Said(
            text=choice.message.refusal or choice.message.content or "",
            ended="refused" if refused else "cut" if choice.finish_reason == "length" else "whole",
            usage=usage(found.usage, ("prompt_tokens",), "completion_tokens"),
            model=found.model,
        )

    def stream_body(self, question: Question) -> dict[str, Any]:
        """The answer in pieces, and the tokens with the last of them."""
        whole = self.body(question)
        del whole["response_format"]
        return {**whole, "stream": True, "stream_options": {"include_usage": True}}

    def piece(self, data: bytes) -> Piece:
        """A chunk; `[DONE]` ends the answer."""
        if data.strip() == b"[DONE]":
            return Piece(ended="whole")
        found = _Chunk.model_validate_json(data)
        part = found.choices[0] if found.choices else _Part()
        refused = bool(part.delta.refusal) or part.finish_reason == "content_filter"
        counted = found.usage if isinstance(found.usage, dict) else {}
        return Piece(
            text=part.delta.content or "",
            ended="refused" if refused else "cut" if part.finish_reason == "length" else "",
            finished=part.finish_reason is not None,
            input_tokens=tokens(counted.get("prompt_tokens")),
            output_tokens=tokens(counted.get("completion_tokens")),
            model=found.model,
        )
