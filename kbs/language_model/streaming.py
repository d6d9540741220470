"""Reads an answer that comes as it is written: server-sent events, or one document from a service that has none.

Source: the event stream of the HTML standard, https://html.spec.whatwg.org/multipage/server-sent-events.html (accessed
2026-11-22), of which only `data` lines matter here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kbs.language_model.wire import Piece, Wire

MOST = 2 * 1024 * 1024
"""Bytes of an answer with all that is around it."""
_LINE = 256 * 1024
"""Bytes of one event."""


class AnswerStream:
    """The texts of an answer, as its bytes come."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._buffer = b""
        self._read = 0
        self._document = False
        """The service answers with one document, without events."""
        self.ended: Literal["", "whole", "cut", "refused"] = ""
        """How the answer ended, by its own words."""
        self._finished = False
        self.wrong = ""
        """Why it cannot be read; empty while it can."""
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.model = ""

    def take(self, chunk: bytes) -> Iterator[str]:
        """The texts that these bytes complete."""
        begin = not self._read and not self._buffer
        self._read += len(chunk)
        self._buffer += chunk
        if self._read > MOST:
            self.wrong = f"it wrote more than {MOST:,} bytes"
        if begin:
            self._document = self._buffer.lstrip()[:1] == b"{"
        if self._document or self.wrong:
            return
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if self.wrong or self.ended in ("whole", "refused"):
                return
            yield from self._line(line.rstrip(b"\r"))
        if len(self._buffer) > _LINE:
            self.wrong = "it wrote an event without an end"

    def close(self) -> Iterator[str]:
        """The bytes have ended: the texts that are left."""
        if self.wrong or self.ended in ("whole", "refused"):
            return
        if not self._document:
            yield from self._line(self._buffer)
            if self._finished and not self.ended:
                self.ended = "whole"
            return
        try:
            said = self._wire.read(self._buffer)
        except ValueError:
            self.wrong = "it wrote no answer of its form"
            return
        self.ended, self.model = said.ended, said.model
        self.input_tokens, self.output_tokens = said.usage or (None, None)
        if said.ended != "refused":
            yield said.text

    @property
    def stopped(self) -> bool:
        """Nothing more need be read."""
        return bool(self.wrong) or self.ended in ("whole", "refused")

    def _line(self, line: bytes) -> Iterator[str]:
        field, colon, data = line.partition(b":")
        if not line.strip() or (colon and field in (b"", b"event", b"id", b"retry")):
            return
        if not colon or field != b"data" or len(line) > _LINE:
            self.wrong = "it wrote no events of its form"
            return
        try:
            piece = self._wire.piece(data)
        except ValueError:
            self.wrong = "it wrote an event that cannot be read"
            return
        yield from self._piece(piece)

    def _piece(self, piece: Piece) -> Iterator[str]:
        # The end of a chat comes twice: with a reason, and then with the last event.
        self.ended = self.ended if self.ended == "cut" else piece.ended
        self._finished = self._finished or piece.finished
        self.input_tokens = self.input_tokens if piece.input_tokens is None else piece.input_tokens
        self.output_tokens = self.output_tokens if piece.output_tokens is None else piece.output_tokens
        self.model = piece.model or self.model
        if piece.text:
            yield piece.text
