"""Sends a request to the service of a language model: again where it is busy, and with an error that says what to do
where it refuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kbs.common.errors import ConfigurationError, KoptError
from kbs.common.visible_text import visible
from kbs.language_model.anthropic_wire import AnthropicWire
from kbs.language_model.http import Lost, Received, post
from kbs.language_model.openai_wire import OpenAIWire
from kbs.language_model.wire import Provider, Wire

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_WIRES: dict[Provider, Wire] = {"openai": OpenAIWire(), "anthropic": AnthropicWire()}
SECRET = 16
"""Shortest key that is hidden in texts. For a local service a key may be a word such as `none`."""


@dataclass(frozen=True)
class Access:
    """Where a model is asked, and with which key."""

    address: str
    """The address, as `check_address` returns it."""
    key: str = field(repr=False)
    """Empty if none is needed."""
    key_setting: str
    """The name of the key's setting, for messages."""

    def hidden(self, text: str) -> str:
        """The text with the key replaced, if it is in it."""
        return text.replace(self.key, "[the key]") if len(self.key) >= SECRET else text


@dataclass(frozen=True)
class Patience:
    """How often a busy service is asked, and how the user goes on where it does not answer."""

    again: str
    """What continues the work once the cause is mended: "`kopt run resume` continues"."""
    sends: int = 4
    """How often a question is sent to a service that is busy or cannot be reached. A service that received it and then
    ended the connection may charge for it, so that call is counted before the question is sent again."""
    longest: float = 60.0
    """Longest wait in seconds before the question is sent again; if the service asks for more, kopt gives up."""
    wait: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Service:
    """A model behind an address."""

    provider: Provider
    model: str
    """As the service calls it."""
    access: Access

    @property
    def wire(self) -> Wire:
        """The form of its requests and answers."""
        return _WIRES[self.provider]

    def send(
        self, body: bytes, seconds: float, patience: Patience, take: Callable[[bytes], bool] | None = None
    ) -> tuple[Received | Lost, int]:
        """(what came back, how often the request was sent). `take` gets the bytes of an answer as they come.

        Raises ConfigurationError (`model_key_refused`, `model_unknown`, `model_redirected`) and KoptError
        (`model_request_refused`, `model_unavailable`) if the service gives no answer: then nothing was used.
        """
        url, headers = f"{self.access.address}/{self.wire.path}", self.wire.headers(self.access.key)
        for sent in range(1, patience.sends + 1):
            got = post(url, headers, body, seconds, take)
            if isinstance(got, Received) and got.status != 200 and got.status not in _BUSY:
                raise self._refusal(got, patience)
            busy = got.how == "unreachable" if isinstance(got, Lost) else got.status in _BUSY
            if not busy:
                return got, sent
            pause = _pause(got, sent)
            if sent == patience.sends or pause > patience.longest:
                raise self._unavailable(got, sent, pause, patience)
            patience.wait(pause)
        raise AssertionError("the last time around returns or raises")

    def _refusal(self, got: Received, patience: Patience) -> KoptError:
        """The error for a status that another attempt would not change."""
        words = self._words(got)
        where = f"the service at {self.access.address}"
        if got.status in (401, 403):
            how = "it was sent" if self.access.key else "none was sent"
            return ConfigurationError(
                f"{where} refuses the key ({how}, status {got.status}){words}",
                code="model_key_refused",
                hint=f"Set {self.access.key_setting}; then {patience.again}.",
            )
        if got.status == 404:
            return ConfigurationError(
                f"{where} knows no model {self.model}, or is none of the form {self.provider!r} (status 404){words}",
                code="model_unknown",
                hint="Check the name of the model (--model) and the address of the service.",
            )
        if 300 <= got.status < 400:
            return ConfigurationError(
                f"{where} redirects to another address (status {got.status}), and kopt does not follow",
                code="model_redirected",
                hint="Set the address that it redirects to, if you trust it with the key.",
            )
        return KoptError(
            f"{where} does not take the request (status {got.status}){words}",
            code="model_request_refused",
            hint=f"Nothing is lost. Fix what it says; then {patience.again}.",
        )

    def _unavailable(self, got: Received | Lost, sent: int, pause: float, patience: Patience) -> KoptError:
        if isinstance(got, Lost):
            what = f"cannot be reached: {self.access.hidden(got.words)}"
        else:
            longer = f", and wants to be left alone for {pause:.0f} s" if pause > patience.longest else ""
            what = f"does not answer (status {got.status}){longer}{self._words(got)}"
        times = "once" if sent == 1 else f"{sent} times"
        return KoptError(
            f"the service at {self.access.address} {what}; the question was sent {times}",
            code="model_unavailable",
            hint=f"Nothing is lost: {patience.again}.",
        )

    def _words(self, got: Received) -> str:
        said = visible(" ".join(self.access.hidden(got.body.decode("utf-8", "replace")).split()))[:300]
        return f": {said}" if said else ""


def _pause(got: Received | Lost, sent: int) -> float:
    """Seconds until the question is sent again: what the service asks for, else 1, 2, 4 … and a random part."""
    wanted = got.retry_after.strip() if isinstance(got, Received) else ""
    if wanted.isascii() and wanted.isdigit():
        return float(wanted[:9])
    return float(2 ** (sent - 1)) * (1 + random.random() / 4)
