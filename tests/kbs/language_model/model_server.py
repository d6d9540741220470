"""A language model's service for tests: both forms on the wire, and every way to answer badly.

The script says what happens at each call; the last entry holds for all further ones.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-3b1f0c9a7e5d4820bb66"
"""Looks like a key, and must be found nowhere but in a header."""
TOKENS = (1200, 340)
"""What each answer says that it used, in and out."""


@dataclass(frozen=True)
class Asked:
    """One request, as the service got it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def anthropic(self) -> bool:
        """Which form it has."""
        return self.path.endswith("/v1/messages")

    @property
    def system(self) -> str:
        """What the model is told first."""
        return str(self.body["system"] if self.anthropic else self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        """The task and its data."""
        return str(self.body["messages"][-1]["content"])

    @property
    def fence(self) -> str:
        """The mark of the data."""
        found = re.search(r"<<<([0-9a-f]+) NAME", self.system)
        assert found, self.system
        return found[1]

    def section(self, name: str) -> str:
        """What stands between the marks of this name; empty where there is no such section."""
        found = re.search(rf"^<<<{self.fence} {name}\n(.*?)\n{self.fence}>>>$", self.user, re.DOTALL | re.MULTILINE)
        return found[1] if found else ""

    def lines(self, name: str) -> list[dict[str, Any]]:
        """A section of JSON lines."""
        return [json.loads(line) for line in self.section(name).split("\n") if line]

    @property
    def request(self) -> dict[str, Any]:
        """What a proposal needs of the request, read back out of the prompt."""
        head = r"Propose version (\d+) of the kernel \(attempt (\d+)\)\. Change version (\d+);"
        found = re.match(head, self.user)
        assert found, self.user[:200]
        version, attempt, parent = map(int, found.groups())
        whole = {name: json.loads(self.section(name) or "null") for name in ("measured", "diagnosis")}
        lists = {name: self.lines(name) for name in ("methods", "searches", "history", "attempts", "refused")}
        text = {"version": parent, "language": "python", "text": self.section("parent")}
        return {"version": version, "attempt": attempt, "parent": text, **whole, **lists}


@dataclass
class Call:
    """One call that a reaction answers."""

    asked: Asked
    handler: BaseHTTPRequestHandler
    stopping: threading.Event

    def send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, promised: int | None = None
    ) -> None:
        """A whole response; with `promised`, one that says it is longer than it is."""
        self.handler.send_response(status)
        self.handler.send_header("Content-Length", str(len(body) if promised is None else promised))
        for name, value in (headers or {}).items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def write(self, data: bytes) -> None:
        """Bytes, at once."""
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def envelope(self, text: str, *, ended: str = "whole", usage: Any = TOKENS) -> bytes:
        """A response as the service's form has it, around what a model wrote."""
        if self.asked.anthropic:
            return json.dumps(self._message(text, ended, usage)).encode()
        reason = {"whole": "stop", "cut": "length", "refused": "stop"}[ended]
        refused = ended == "refused"
        said = {"role": "assistant", "content": None if refused else text, "refusal": text if refused else None}
        counted = usage if not isinstance(usage, tuple) else {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        made = {"model": "m-1", "choices": [{"index": 0, "message": said, "finish_reason": reason}], "usage": counted}
        return json.dumps(made).encode()

    def _message(self, text: str, ended: str, usage: Any) -> dict[str, Any]:
        reason = {"whole": "tool_use", "cut": "max_tokens", "refused": "refusal"}[ended]
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        called = {"type": "tool_use", "id": "t1", "name": "propose", "input": document}
        spoken = {"type": "text", "text": text}
        counted = usage if not isinstance(usage, tuple) else {"input_tokens": usage[0], "output_tokens": usage[1]}
        block = called if isinstance(document, dict) else spoken
        return {"model": "m-1", "type": "message", "content": [block], "stop_reason": reason, "usage": counted}


Reaction = Callable[[Call], None]
Writer = Callable[[Asked], str]
"""What a model writes when it is asked."""


def well(write: Writer, **envelope: Any) -> Reaction:
    """A whole answer."""
    return lambda call: call.send(200, call.envelope(write(call.asked), **envelope))


def status(code: int, said: str = "busy", headers: dict[str, str] | None = None) -> Reaction:
    """Another status than 200; `{key}` in the words is the key that was sent."""

    def react(call: Call) -> None:
        given = call.asked.headers
        key = given.get("x-api-key") or given.get("authorization", "").removeprefix("Bearer ")
        call.send(code, said.replace("{key}", key).encode(), headers)

    return react


def late(call: Call) -> None:
    """Says nothing until the server stops."""
    call.stopping.wait(60)


def hang_up(call: Call) -> None:
    """Takes the whole question, and ends the connection without a word."""
    call.handler.close_connection = True


def late_headers(call: Call) -> None:
    """A line of headers now and then, for ever: each byte comes in time."""
    call.write(b"HTTP/1.1 200 OK\r\n")
    while not call.stopping.wait(0.05):
        call.write(b"X-More: x\r\n")


def endless(call: Call) -> None:
    """A body of no length, a little now and then, for ever."""
    call.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    while not call.stopping.wait(0.05):
        call.write(b" " * 64)


def huge(call: Call) -> None:
    """A body that does not end, as fast as it goes."""
    call.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    while not call.stopping.is_set():
        call.write(b" " * 65536)


def broken(write: Writer) -> Reaction:
    """The connection ends in the middle of the body."""

    def react(call: Call) -> None:
        body = call.envelope(write(call.asked))
        call.send(200, body[: len(body) // 2], promised=len(body))

    return react


def cut_off(write: Writer) -> Reaction:
    """The model ran out of tokens in the middle of its answer."""
    return lambda call: call.send(200, call.envelope(write(call.asked)[:-40], ended="cut"))


@dataclass(frozen=True)
class Streamed:
    """An answer that comes in events."""

    write: Writer
    size: int = 7
    """Characters of a piece."""
    pause: float = 0.0
    """Seconds between two pieces."""
    until: int | None = None
    """The connection ends after so many characters, in the middle of the answer."""
    ended: str = "whole"
    marked: bool = True
    """Whether the last event says that the answer is whole."""

    def __call__(self, call: Call) -> None:
        """Write the events, whatever the form."""
        call.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        text = self.write(call.asked)
        events = _anthropic_events if call.asked.anthropic else _openai_events
        pieces = [text[at : at + self.size] for at in range(0, len(text), self.size)]
        if self.until is not None:
            pieces = [piece for at, piece in enumerate(pieces) if at * self.size < self.until]
        first, *more = events(pieces, self.ended)
        call.write(first)
        for event in more[: -2 if self.until is not None or not self.marked else None]:
            if self.pause and call.stopping.wait(self.pause):
                return
            call.write(event)


def _openai_events(pieces: Sequence[str], ended: str) -> Iterator[bytes]:
    def event(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        chunk = {"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    reason = {"whole": "stop", "cut": "length", "refused": "content_filter"}[ended]
    yield event({"role": "assistant", "content": ""})
    yield from (event({"content": piece}) for piece in pieces)
    yield event({}, reason, usage={"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1]})
    yield b"data: [DONE]\n\n"


def _anthropic_events(pieces: Sequence[str], ended: str) -> Iterator[bytes]:
    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    reason = {"whole": "end_turn", "cut": "max_tokens", "refused": "refusal"}[ended]
    used = {"input_tokens": TOKENS[0], "output_tokens": 1}
    yield event("message_start", message={"model": "m-1", "type": "message", "content": [], "usage": used})
    yield event("ping")
    yield from (event("content_block_delta", delta={"type": "text_delta", "text": piece}) for piece in pieces)
    yield event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": TOKENS[1]})
    yield event("message_stop")


def raw_stream(*parts: bytes) -> Reaction:
    """Any bytes in place of events."""

    def react(call: Call) -> None:
        call.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for part in parts:
            call.write(part)

    return react


@dataclass
class ModelServer:
    """The service, as long as it runs."""

    address: str
    """Of this form's base: what OPENAI_BASE_URL is; Anthropic's is `anthropic`."""
    script: Sequence[Reaction]
    seen: list[Asked] = field(default_factory=list)

    @property
    def anthropic(self) -> str:
        """What ANTHROPIC_BASE_URL is."""
        return self.address.removesuffix("/v1")


@contextlib.contextmanager
def model_server(*script: Reaction) -> Iterator[ModelServer]:
    """A service on this machine that follows a script."""
    stopping, lock = threading.Event(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Any request."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            with lock:
                found.seen.append(asked)
                reaction = script[min(len(found.seen), len(script)) - 1]
            self.close_connection = True
            with contextlib.suppress(ConnectionError):
                reaction(Call(asked, self, stopping))

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = ModelServer(f"http://127.0.0.1:{server.server_address[1]}/v1", script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
