"""Which language model is asked, and where: from the settings, and from the record of a run."""

from __future__ import annotations

from decimal import Decimal

from pydantic import ValidationError

from evaluator.receipt.document import first_of
from kbs.common.errors import UsageError
from kopt.services.models import access, model_invalid, named
from kopt.services.settings import ModelServices, Settings
from loop.journal.language_model import ModelChoice


def choose(
    name: str,
    values: Settings,
    services: ModelServices,
    *,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: Decimal | None = None,
) -> ModelChoice:
    """The model that a run asks. `name`: what the command says; empty for the setting `model`.

    Raises UsageError (`model_missing`, `model_ambiguous`, `model_invalid`, `limit_invalid`), and what `access` raises.
    """
    given = (name or values.model).strip()
    if not given:
        raise UsageError(
            "the proposer `llm` needs a model",
            code="model_missing",
            hint="Give --model openai:NAME or --model anthropic:NAME, or set `model` (KOPT_MODEL).",
        )
    provider, bare = named(given, services)
    try:
        choice = ModelChoice(
            provider=provider,
            name=bare,
            seconds=values.model_timeout,
            output_tokens=values.model_output_tokens,
            input_price=values.model_input_price,
            output_price=values.model_output_price,
            max_calls=max_calls,
            max_tokens=max_tokens,
            max_cost=max_cost,
        )
    except ValidationError as error:
        where, what = first_of(error)
        raise _invalid(given, where, what) from error
    access(choice.provider, services)
    return choice


def _invalid(given: str, where: str, what: str) -> UsageError:
    if where == "name":
        return model_invalid(given)
    if where:
        return UsageError(
            f"--{where.replace('_', '-')}: {what}", code="limit_invalid", hint="See `kopt run start --help`."
        )
    return UsageError(
        "--max-cost needs the model's prices",
        code="price_missing",
        hint="Set KOPT_MODEL_INPUT_PRICE and KOPT_MODEL_OUTPUT_PRICE, in US dollars per million tokens.",
    )
