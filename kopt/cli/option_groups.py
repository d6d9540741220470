"""Options that commands share as a whole: a dataclass with a field for each, which a command takes as one parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, cast, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which each parameter that is a dataclass stands for the options that its fields are.

    Fields are annotated as options are, and their defaults are the options'. Such a parameter must be keyword-only.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if not is_dataclass(annotation):
            parameters.append(parameter.replace(annotation=annotation))
            continue
        groups[parameter.name] = cast(type[Any], annotation)
        options = get_type_hints(annotation, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=options[field.name]
            )
            for field in fields(annotation)
        ]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    cast(Any, call).__signature__ = inspect.Signature(parameters)  # what Typer reads the options from
    return call
