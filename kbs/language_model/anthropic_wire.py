"""Messages, as Anthropic has them: POST /v1/messages.

Source: the API reference of Anthropic, https://docs.anthropic.com/en/api/messages (accessed 2026-11-21).
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field

from kbs.language_model.wire import Envelope, Piece, Question, Said, tokens, usage

TOOL = "propose"
"""The one tool that the model is given, and must call: its input is the answer."""
_VERSION = "2023-06-01"
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Block(Envelope):
    type: str
    text: str = ""
    name: str = ""
    input: dict[str, Any] = Field(default_factory=dict)


class _Message(Envelope):
    content: list[_Block]
    model: str = ""
    stop_reason: str | None = None
    usage: Any = None


class _Delta(Envelope):
    type: str = ""
    text: str = ""
    stop_reason: str | None = None


class _Event(Envelope):
    type: str
    delta: _Delta = Field(default_factory=_Delta)
    message: _Message | None = None
    usage: Any = None


class AnthropicWire:
    """The answer's schema is that of a tool's input."""

    path = "v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """The key in a header of its own, and the version of the form."""
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def body(self, question: Question) -> dict[str, Any]:
        """One call of the tool, whole and not in pieces."""
        return {
            "model": question.model,
            "system": question.system,
            "messages": [{"role": "user", "content": question.user}],
            "max_tokens": question.output_tokens,
            "tools": [{"name": TOOL, "description": "Hand the proposal in.", "input_schema": question.schema}],
            "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
        }

    def read(self, data: bytes) -> Said:
        """The tool's input as a JSON document; where the tool was not called, the text that stands in its place."""
        found = _Message.model_validate_json(data)
        called = next((block for block in found.content if block.type == "tool_use" and block.name == TOOL), None)
        spoken = "".join(block.text for block in found.content if block.type == "text")
        refused = found.stop_reason == "refusal"
        return Said(
            text=spoken if called is None or refused else json.dumps(called.input, ensure_ascii=False),
            ended="refused" if refused else "cut" if found.stop_reason == "max_tokens" else "whole",
            usage=usage(found.usage, _INPUT, "output_tokens"),
            model=found.model,
        )

    def stream_body(self, question: Question) -> dict[str, Any]:
        """The answer in pieces, without a tool."""
        whole = self.body(question)
        del whole["tools"], whole["tool_choice"]
        return {**whole, "stream": True}

    def piece(self, data: bytes) -> Piece:
        """An event; `message_stop` ends the answer."""
        found = _Event.model_validate_json(data)
        if found.type == "error":
            raise ValueError("the service reports an error")
        said = found.message.usage if found.message else found.usage
        counted = said if isinstance(said, dict) else {}
        first, _ = usage({**counted, "output_tokens": 0}, _INPUT, "output_tokens") or (None, 0)
        stop = found.delta.stop_reason
        return Piece(
            text=found.delta.text if found.delta.type == "text_delta" else "",
            ended="whole"
            if found.type == "message_stop"
            else {"refusal": "refused", "max_tokens": "cut"}.get(stop or "", ""),  # type: ignore[arg-type]  # as named
            finished=stop is not None,
            input_tokens=first,
            output_tokens=tokens(counted.get("output_tokens")),
            model=found.message.model if found.message else "",
        )
