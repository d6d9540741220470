"""Envelopes of any content: an answer is taken out of them, or a ValueError says that there is none."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.language_model.anthropic_wire import AnthropicWire
from kbs.language_model.openai_wire import OpenAIWire
from kbs.language_model.wire import MAX_TOKENS, Said, Wire

WIRES: list[Wire] = [OpenAIWire(), AnthropicWire()]
NAMES = (
    "choices", "message", "content", "refusal", "finish_reason", "usage", "prompt_tokens", "completion_tokens", "model",
    "type", "text", "name", "input", "stop_reason", "input_tokens", "cache_read_input_tokens", "output_tokens", "x",
)  # fmt: skip
WORDS = ("stop", "length", "content_filter", "tool_use", "propose", "text", "max_tokens", "refusal", "{}", "")
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
documents = st.recursive(
    scalars,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(NAMES), part, max_size=6),
    max_leaves=25,
)
messages = st.fixed_dictionaries({"content": st.text(max_size=5) | documents}, optional={"refusal": documents})
completions = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({"message": messages}, optional={"finish_reason": documents}), max_size=2
        )
    },
    optional={"usage": documents, "model": documents},
)
blocks = st.fixed_dictionaries({"type": st.sampled_from(WORDS)}, optional=dict.fromkeys(NAMES[10:13], documents))
spoken = st.fixed_dictionaries(
    {"content": st.lists(blocks, max_size=3)},
    optional={"usage": documents, "model": documents, "stop_reason": documents},
)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=documents | completions | spoken)
def test_an_envelope_of_any_content_is_read_or_refused(wire: Wire, document: Any) -> None:
    with contextlib.suppress(ValueError):
        found = wire.read(json.dumps(document).encode())
        assert isinstance(found, Said)
        assert found.usage is None or all(0 <= count <= MAX_TOKENS for count in found.usage)


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.binary(max_size=60))
def test_bytes_that_are_no_json_are_refused(wire: Wire, data: bytes) -> None:
    with contextlib.suppress(ValueError):
        wire.read(data)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data", [b"[" * 10**6, b'{"content": [{"type": "tool_use", "input": ' + b'{"a":' * 10**5, b"1" * 10**5]
)
def test_what_no_reader_should_follow_is_refused(wire: Wire, data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own, of no one text
        wire.read(data)


def test_more_tokens_than_there_can_be_are_not_told() -> None:
    used = {"input_tokens": MAX_TOKENS, "cache_read_input_tokens": 1, "output_tokens": 2}
    found = AnthropicWire().read(json.dumps({"content": [], "usage": used}).encode())
    assert found.usage is None


def test_a_number_that_cannot_be_written_again_is_refused() -> None:
    block = '{"type": "tool_use", "name": "propose", "input": {"version": %s}}' % ("9" * 5000)
    with pytest.raises(ValueError, match=r"digits|limit|number"):
        AnthropicWire().read(b'{"content": [' + block.encode() + b"]}")
