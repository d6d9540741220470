"""Data of `kopt ask --model`: what a model made of the claims."""

from __future__ import annotations

from typing import Self

from kbs.common.json_model import JsonModel
from kbs.wording.wording import Status, Worded


class SentenceData(JsonModel):
    """A sentence that passed the check."""

    text: str
    claims: list[str]
    """Ids: c1 is the first of `claims`."""


class LeftOutData(JsonModel):
    """Sentences that did not pass. Their texts are not kept."""

    reason: str
    count: int


class WordingData(JsonModel):
    """What a model made of the claims; `answer` has its sentences with their sources."""

    model: str
    """provider:name"""
    status: Status
    """`worded`: the sentences are the answer. `withdrawn`: too little of them passed. `failed`: the service gave no
    sentence. `not_asked`: there was no answer to put into words. Except with `worded`, the answer is that without a
    model."""
    why: str
    """Why it is that one, or why the model's sentences ended early."""
    sentences: list[SentenceData]
    left_out: list[LeftOutData]
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    """Null where the service does not say."""

    @classmethod
    def of(cls, made: Worded) -> Self:
        """From the internal form."""
        return cls(
            model=made.model,
            status=made.status,
            why=made.why,
            sentences=[SentenceData(text=kept.text, claims=[one.id for one in kept.claims]) for kept in made.sentences],
            left_out=[LeftOutData(reason=reason, count=count) for reason, count in made.left_out.most_common()],
            seconds=made.seconds,
            input_tokens=made.input_tokens,
            output_tokens=made.output_tokens,
        )
