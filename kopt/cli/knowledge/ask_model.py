"""`kopt ask --model`: sentences are printed as they pass the check."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kopt.cli.output import whole_pipe
from kopt.cli.terminal.console import console

if TYPE_CHECKING:
    from kbs.answers.model import Answer
    from kbs.wording.wording import Worded
    from kopt.services.engine import Engine


def in_words(engine: Engine, answer: Answer, model: str, *, long: bool, quiet: bool) -> Worded:
    """An answer in a model's words, printed as it comes unless `quiet`. What kept the model from being asked is its
    `error`, and the answer stands nevertheless.

    Raises `UsageError` (`model_ambiguous`, `model_invalid`).
    """
    from kbs.common.errors import ConfigurationError
    from kopt.services.knowledge.worded import unworded, word
    from kopt.services.models import service_of
    from kopt.services.settings import ModelServices

    out, values = console(), engine.settings.values

    def tell(line: str) -> None:
        if not quiet:
            with whole_pipe():
                out.print(line, markup=False)
                sys.stdout.flush()

    try:
        service = service_of(model, ModelServices())
    except ConfigurationError as error:
        return unworded(answer, model, error, tell, long=long)
    return word(answer, engine.terms, service, values.answer_timeout, values.answer_output_tokens, tell, long=long)
