"""An answer in the words and the order of a language model, as far as they are the words of its claims."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kbs.answers.model import Answer
from kbs.common.errors import KoptError
from kbs.common.visible_text import visible
from kbs.evidence.vocabulary import Vocabulary
from kbs.language_model.http import Lost, Received
from kbs.language_model.service import Patience, Service
from kbs.language_model.streaming import AnswerStream
from kbs.language_model.wire import Question
from kbs.wording.check import Kept, Reason
from kbs.wording.pack import Numbered, numbered
from kbs.wording.prompt import wording_prompt
from kbs.wording.wording import Worded, Wording
from kopt.services.knowledge.answer_text import MARKS, Sources, answer_text, ending, reading_lines

_PATIENCE = Patience("ask again", sends=2, longest=5.0)
"""A person waits: a busy service is asked once more."""


def word(
    answer: Answer,
    terms: Vocabulary,
    service: Service,
    seconds: float,
    output_tokens: int,
    tell: Callable[[str], None],
    *,
    long: bool = False,
) -> Worded:
    """Put an answer into words. `tell` gets each line of text as soon as it stands; an answer stands at the end,
    whatever the service does. `long`: without a model, and of each claim all sources."""
    made = Worded(f"{service.provider}:{service.model}")
    teller = _Teller(answer, tell, long=long)
    if answer.abstained or not answer.claims:
        made.why = "what is no answer is not put into words"
        teller.without_model(made.why)
    else:
        _ask(answer, terms, service, seconds, output_tokens, made, teller)
    made.text = "\n".join(teller.lines)
    return made


def unworded(
    answer: Answer, model: str, error: KoptError, tell: Callable[[str], None], *, long: bool = False
) -> Worded:
    """The answer without a model that cannot be asked."""
    teller = _Teller(answer, tell, long=long)
    teller.without_model(error.message)
    return Worded(model, "failed", error.message, error=error, text="\n".join(teller.lines))


def _ask(
    answer: Answer,
    terms: Vocabulary,
    service: Service,
    seconds: float,
    output_tokens: int,
    made: Worded,
    teller: _Teller,
) -> None:
    claims = numbered(answer)
    asked = wording_prompt(answer.question, claims)
    question = Question(service.model, asked.system, asked.user, {}, output_tokens)
    body = json.dumps(service.wire.stream_body(question), ensure_ascii=False).encode("utf-8", "replace")
    wording, stream = Wording(claims, terms), AnswerStream(service.wire)

    def say(texts: Iterator[str]) -> None:
        for text in texts:
            for kept in wording.feed(text):
                teller.sentence(kept)

    def take(chunk: bytes) -> bool:
        say(stream.take(chunk))
        return not (stream.stopped or wording.ended)

    started = time.monotonic()
    try:
        got, _ = service.send(body, seconds, _PATIENCE, take)
    except KoptError as error:
        made.error, made.status, made.why = error, "failed", error.message
        teller.without_model(made.why)
        return
    if not isinstance(got, Lost):
        say(stream.close())
    made.why = service.access.hidden(wording.ended or _why_ended(got, stream, seconds))
    if stream.ended == "whole":
        for kept in wording.finish():
            teller.sentence(kept)
    made.seconds = round(time.monotonic() - started, 3)
    made.input_tokens, made.output_tokens = stream.input_tokens, stream.output_tokens
    made.sentences, made.left_out = wording.kept, wording.left_out
    if withdrawn := wording.why_withdrawn():
        made.status = "withdrawn" if wording.kept or wording.refused else "failed"
        made.why = made.why or withdrawn if made.status == "failed" else withdrawn
        teller.without_model(made.why)
    else:
        made.status = "worded"
        for kept in wording.rest_of_direct():
            teller.sentence(kept)
        teller.end(made, len(claims))


def _why_ended(got: Received | Lost, stream: AnswerStream, seconds: float) -> str:
    """Why the model's answer is not whole; empty where it is."""
    if stream.wrong:
        return stream.wrong
    if isinstance(got, Lost):
        return {
            "timeout": f"it had not ended within {seconds:g} s",
            "flood": f"it wrote {got.words}",
        }.get(got.how, f"the connection ended: {visible(got.words)}")
    return {
        "whole": "",
        "cut": "it had more tokens than it may have",
        "refused": "the model declined",
        "": "the connection ended before the answer did",
    }[stream.ended]


class _Teller:
    """Tells the answer line by line."""

    def __init__(self, answer: Answer, tell: Callable[[str], None], *, long: bool) -> None:
        self._answer, self._tell = answer, tell
        self._without_model = answer_text(answer, long=long).split("\n")
        self._sources = Sources(answer.claims, most=None if long else MARKS)
        self._section = ""
        self.lines: list[str] = []

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.lines.append(line)
            self._tell(line)

    def sentence(self, kept: Kept) -> None:
        """A sentence that passed, with its sources, under the heading of its claims."""
        if not self.lines:
            self._say(*reading_lines(self._answer))
        section = kept.claims[0].section
        if section != self._section:
            self._say("", *([section] if section else []))
            self._section = section
        self._say(f"{'  - ' if section else ''}{self._with_sources(kept.text, kept.claims)}")

    def _with_sources(self, text: str, claims: Sequence[Numbered]) -> str:
        notes = dict.fromkeys(one.claim.note for one in claims if one.claim.note)
        marks = self._sources.marks(*(one.claim for one in claims))
        return " ".join(filter(None, [text, f"({'; '.join(notes)})" if notes else "", marks]))

    def end(self, made: Worded, claims: int) -> None:
        """What stands below the sentences."""
        self._say(*ending(self._answer, self._sources), "")
        self._say(*_left_out(made.left_out))
        if made.why:
            self._say(f"The model's answer is not whole: {made.why}.")
        used = len({one.id for kept in made.sentences for one in kept.claims})
        self._say(f"Ordered by {made.model} from {used} of {claims} claims; each sentence was checked against them.")

    def without_model(self, why: str) -> None:
        """The answer without a model, and why it is that one."""
        if self.lines:
            self._say("", f"The model's sentences end here: {why}. The answer without it:", "")
        told = bool(self.lines)
        self._say(*self._without_model)
        if not told:
            self._say("", f"Without the model: {why}.")


def _left_out(reasons: Counter[Reason]) -> list[str]:
    if not reasons:
        return []
    count = reasons.total()
    told = "; ".join(f"{number} because {reason}" for reason, number in reasons.most_common())
    return [f"{count} {'sentence' if count == 1 else 'sentences'} of the model left out: {told}."]
