"""Answers that come in events: wherever the bytes are cut, and whatever they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.language_model.anthropic_wire import AnthropicWire
from kbs.language_model.openai_wire import OpenAIWire
from kbs.language_model.streaming import MOST, AnswerStream
from kbs.language_model.wire import Wire

WIRES: list[Wire] = [OpenAIWire(), AnthropicWire()]


def openai(*texts: str, done: bool = True) -> bytes:
    chunks = [{"model": "m", "choices": [{"delta": {"content": text}, "finish_reason": None}]} for text in texts]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": None})  # type: ignore[dict-item]
    chunks.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}})  # type: ignore[dict-item]
    lines = [f"data: {json.dumps(one, ensure_ascii=False)}" for one in chunks] + ["data: [DONE]"] * done
    return ("\r\n\r\n".join([": a comment", *lines]) + "\r\n\r\n").encode()


def anthropic(*texts: str, done: bool = True) -> bytes:
    used = {"input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 1}
    events = [{"type": "message_start", "message": {"model": "m", "content": [], "usage": used}}, {"type": "ping"}]
    events += [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}} for text in texts]
    events.append({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}})
    events += [{"type": "message_stop"}] * done
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


FORMS = [(WIRES[0], openai), (WIRES[1], anthropic)]


def read(wire: Wire, data: bytes, *cuts: int) -> tuple[str, AnswerStream]:
    stream, texts, at = AnswerStream(wire), [], 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        if not stream.stopped:
            texts += stream.take(data[at:cut])
        at = cut
    texts += stream.close()
    return "".join(texts), stream


@pytest.mark.parametrize(("wire", "form"), FORMS)
@pytest.mark.parametrize("done", [True, False])
def test_an_answer_is_read_to_its_end(wire: Wire, form: type, done: bool) -> None:
    text, stream = read(wire, form("Hello ", "wörld\n", "", done=done))
    assert (text, stream.ended, stream.wrong, stream.model) == ("Hello wörld\n", "whole", "", "m")
    assert (stream.input_tokens, stream.output_tokens) == (5, 7)


@pytest.mark.parametrize(("wire", "form"), FORMS)
@given(texts=st.lists(st.text(max_size=9), max_size=5), cuts=st.lists(st.integers(0, 5000), max_size=6))
def test_where_the_bytes_are_cut_does_not_matter(wire: Wire, form: type, texts: list[str], cuts: list[int]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    text, stream = read(wire, form(*texts), *cuts)
    assert (text, stream.ended, stream.wrong) == ("".join(texts), "whole", "")


EVENTS = st.binary(max_size=80).map(lambda data: b"data: " + data + b"\n\n")


@pytest.mark.parametrize("wire", WIRES)
@given(st.binary(max_size=300) | EVENTS, st.integers(0, 400))
def test_any_bytes_are_read_or_refused(wire: Wire, data: bytes, cut: int) -> None:
    text, stream = read(wire, data, cut)
    assert not text
    assert stream.ended != "whole" or b"[DONE]" in data


@pytest.mark.parametrize("wire", WIRES)
def test_what_has_no_end_is_not_read_on(wire: Wire) -> None:
    for data in (b"data: " + b"x" * 300_000, b": comment\n" * (MOST // 8), b'{"x": "' + b"y" * MOST):
        stream = AnswerStream(wire)
        for at in range(0, len(data), 65536):
            assert not list(stream.take(data[at : at + 65536]))
        assert stream.stopped


def test_an_answer_that_is_cut_off_stays_one() -> None:
    event = {"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}]}
    text, stream = read(WIRES[0], f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode())
    assert (text, stream.ended) == ("x", "cut")
