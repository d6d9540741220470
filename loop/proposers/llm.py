"""The proposer `llm`: a language model behind HTTP, asked for one proposal at a time.

Its answer is untrusted: bounded in time and size, read by schema, checked by the gate. A bad answer is refused. A
service that does not answer, or refuses the key, is an error, and the run waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from kbs.common.visible_text import visible
from kbs.language_model.http import Lost, Received
from kbs.language_model.service import Access, Patience, Service
from kbs.language_model.wire import Question, Said, Wire
from loop.journal.language_model import ModelCall, ModelChoice
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest
from loop.proposers.prompts import answer_schema, prompt
from loop.proposers.reading import Unread, read_proposal

_AGAIN = "`kopt run resume` continues"
_FENCED = ("```json\n", "```\n")
"""How models of services without schemas start a JSON document."""


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of a model."""

    outcome: Proposal | Unread
    data: bytes
    """What it answered, as far as it was read."""
    call: ModelCall


def ask(
    choice: ModelChoice,
    access: Access,
    request: NextRequest,
    output_tokens: int,
    wait: Callable[[float], None] = time.sleep,
) -> ModelAnswer:
    """Ask a model for a proposal with at most `output_tokens` tokens.

    Raises ConfigurationError (`model_key_refused`, `model_unknown`, `model_redirected`) and KoptError
    (`model_request_refused`, `model_unavailable`) if the service gives no answer: then nothing was used.
    """
    asked = prompt(request)
    question = Question(choice.name, asked.system, asked.user, answer_schema(), output_tokens)
    service = Service(choice.provider, choice.name, access)
    body = json.dumps(service.wire.body(question), ensure_ascii=False).encode("utf-8", "replace")
    started = time.monotonic()
    got, sends = service.send(body, choice.seconds, Patience(_AGAIN, wait=wait))
    said, outcome = _understand(got, access, service.wire, choice)
    reported = said.usage if said else None
    used = reported or (len(body), output_tokens)
    call = ModelCall(
        model=choice.id,
        answered_by=visible(access.hidden(said.model))[:200] if said else "",
        sends=sends,
        seconds=round(time.monotonic() - started, 3),
        input_tokens=used[0],
        output_tokens=used[1],
        reported=reported is not None,
        cost=choice.cost(*used),
    )
    return ModelAnswer(outcome, _kept(got, said, access), call)


def _understand(
    got: Received | Lost, access: Access, wire: Wire, choice: ModelChoice
) -> tuple[Said | None, Proposal | Unread]:
    if isinstance(got, Lost):
        return None, _unread_loss(got, choice)
    try:
        said = wire.read(got.body)
    except ValueError:
        why = f"the service answered with {len(got.body):,} bytes that are no answer of the form {choice.provider!r}"
        return None, Unread("model-envelope", (why,), "Check the address and the form of the service.")
    if said.ended == "refused":
        words = visible(access.hidden(said.text))[:600]
        return said, Unread("model-declined", (f"the model declined: {words}",), "Propose a change of the kernel.")
    if said.ended == "cut":
        why = f"the answer was cut off after {len(said.text):,} characters: it had more tokens than it may have"
        return said, Unread(
            "model-cut-off", (why,), "Answer in fewer words, or allow more with KOPT_MODEL_OUTPUT_TOKENS."
        )
    return said, read_proposal(_bare(access.hidden(said.text)).encode("utf-8", "replace"))


def _unread_loss(got: Lost, choice: ModelChoice) -> Unread:
    if got.how == "timeout":
        why = f"the model gave no whole answer within {choice.seconds:g} s"
        return Unread("model-timeout", (why,), "Answer in fewer words, or allow more time with KOPT_MODEL_TIMEOUT.")
    if got.how == "flood":
        why = f"the service wrote {got.words}, and was not read further"
        return Unread("model-flood", (why,), "Answer in fewer words.")
    why = f"the connection ended before the answer was whole: {got.words}"
    return Unread("model-broken", (why,), "Answer again.")


def _bare(text: str) -> str:
    """The text without the Markdown fence around it."""
    text = text.strip()
    for opening in _FENCED:
        if text.startswith(opening) and text.endswith("\n```"):
            return text[len(opening) : -len("\n```")]
    return text


def _kept(got: Received | Lost, said: Said | None, access: Access) -> bytes:
    """What is kept of an answer that was refused."""
    if said is not None:
        return access.hidden(said.text).encode("utf-8", "replace")
    if isinstance(got, Lost):
        return f"{access.hidden(got.words)}\n".encode("utf-8", "replace")
    return access.hidden(got.body.decode("utf-8", "replace")).encode("utf-8", "replace")
