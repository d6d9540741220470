"""A language model as a run has it: which one is asked, what it may use, what each call used, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, computed_field, model_validator

from kbs.common.json_model import FrozenModel, JsonDataclass
from kbs.language_model.wire import MAX_TOKENS, Provider

Money = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False, decimal_places=9)]
"""US dollars."""
LEAST_ANSWER = 256
"""Tokens that an answer has room for: where a limit leaves less, nothing more is asked."""
PER = 1_000_000
"""Prices are for so many tokens."""


class ModelChoice(FrozenModel):
    """Which model a run asks, and within which limits. Where it is asked, and with which key, is no part of a run."""

    provider: Provider
    """The form that requests and answers have: OpenAI's chat completions, or Anthropic's messages."""
    name: str = Field(pattern=r"^[\x21-\x7e]{1,200}$")
    """As the service calls it."""
    seconds: float = Field(gt=0, le=86400)
    """Time for one answer."""
    output_tokens: int = Field(ge=LEAST_ANSWER, le=1_000_000)
    """Tokens that one answer may have."""
    input_price: Money | None = None
    """Of a million tokens of the prompt; None: unknown."""
    output_price: Money | None = None
    """Of a million tokens of the answer; None: unknown."""
    max_calls: int | None = Field(default=None, ge=1, le=1_000_000)
    """Calls that the whole run may make; None: no limit, as with the next two."""
    max_tokens: int | None = Field(default=None, ge=LEAST_ANSWER, le=MAX_TOKENS)
    """Of prompts and answers together."""
    max_cost: Money | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _a_cost_needs_prices(self) -> Self:
        if self.max_cost is not None and not self.priced:
            raise ValueError("a limit on the cost needs the prices of the prompt's and of the answer's tokens")
        return self

    @property
    def priced(self) -> bool:
        """Whether both prices are known."""
        return self.input_price is not None and self.output_price is not None

    @property
    def id(self) -> str:
        """provider:name"""
        return f"{self.provider}:{self.name}"

    def limits(self) -> str:
        """`40 calls, 500,000 tokens, 5 USD`, or `none`."""
        said = (
            None if self.max_calls is None else f"{self.max_calls:,} {'call' if self.max_calls == 1 else 'calls'}",
            None if self.max_tokens is None else f"{self.max_tokens:,} tokens",
            None if self.max_cost is None else f"{self.max_cost} USD",
        )
        return ", ".join(filter(None, said)) or "none"

    def prices(self) -> str:
        """`2.5 USD for a million tokens in, 10 USD out`, or that they are not known."""
        if not self.priced:
            return "unknown: no cost will be told"
        return f"{self.input_price} USD for a million tokens in, {self.output_price} USD out"

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """What so many tokens cost; None where a price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / PER


class ModelCall(FrozenModel):
    """One answer that a model gave, or was asked for in vain, and what it used."""

    model: str = Field(max_length=300)
    """provider:name"""
    answered_by: str = Field(max_length=300)
    """What the service says that answered; empty where it does not say."""
    sends: int = Field(ge=1)
    """How often the question was sent: more than once where the service was busy."""
    seconds: float = Field(ge=0)
    """From the first sending to the end of the answer."""
    input_tokens: int = Field(ge=0, le=MAX_TOKENS)
    output_tokens: int = Field(ge=0, le=MAX_TOKENS)
    reported: bool
    """Whether the service said how many tokens there were. Where it did not, both are bounds that they cannot exceed:
    the bytes of the request, and the tokens that the answer may have."""
    cost: Decimal | None
    """US dollars, by the prices of the run; None: a price is unknown."""


@dataclass(frozen=True)
class Spent(JsonDataclass):
    """What asking a language model used in a run."""

    calls: int
    input_tokens: int
    """Of its prompts."""
    output_tokens: int
    """Of its answers."""
    unreported: int
    """Calls of which the service did not say it: the tokens counted for them are an upper bound."""
    cost: Decimal | None
    """US dollars, a decimal; None where a price is not set."""

    @classmethod
    def of(cls, calls: Sequence[ModelCall]) -> Self:
        """The sum."""
        costs = [call.cost for call in calls]
        known = [cost for cost in costs if cost is not None]
        return cls(
            calls=len(calls),
            input_tokens=sum(call.input_tokens for call in calls),
            output_tokens=sum(call.output_tokens for call in calls),
            unreported=sum(not call.reported for call in calls),
            cost=sum(known, Decimal(0)) if len(known) == len(costs) else None,
        )

    @property
    def tokens(self) -> int:
        """Of prompts and answers."""
        return self.input_tokens + self.output_tokens

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def words(self) -> str:
        """`3 calls, 12,400 tokens in, 2,310 out, 0.0719 USD`"""
        bound = (
            f"; of {self.unreported} of them an upper bound, since the service did not say" if self.unreported else ""
        )
        cost = "cost unknown: no price was given" if self.cost is None else f"{self.cost:.4f} USD"
        calls = f"{self.calls} {'call' if self.calls == 1 else 'calls'}"
        return f"{calls}, {self.input_tokens:,} tokens in, {self.output_tokens:,} out{bound}, {cost}"


def allowance(choice: ModelChoice, spent: Spent) -> int:
    """Tokens that the next answer may have: as many as the run's limits leave, its prompt not counted."""
    most = choice.output_tokens
    if choice.max_tokens is not None:
        most = min(most, choice.max_tokens - spent.tokens)
    if choice.max_cost is not None and spent.cost is not None:
        left = choice.max_cost - spent.cost
        if left <= 0:
            return 0
        if choice.output_price:
            most = min(most, int(left * PER / choice.output_price))
    return max(0, most)


def exhausted(choice: ModelChoice, spent: Spent) -> str:
    """Which limit leaves no room for another answer, with its figures; empty while none does."""
    if choice.max_calls is not None and spent.calls >= choice.max_calls:
        return f"the limit of {choice.max_calls} calls of the model is reached: {spent.words}"
    if allowance(choice, spent) >= LEAST_ANSWER:
        return ""
    if choice.max_tokens is not None and choice.max_tokens - spent.tokens < LEAST_ANSWER:
        return f"the limit of {choice.max_tokens:,} tokens leaves no room for another answer: {spent.words}"
    return f"the limit of {choice.max_cost} USD leaves no room for another answer: {spent.words}"
