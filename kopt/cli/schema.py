"""`kopt schema`: the JSON Schema of what a command prints under `data`."""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

import typer

from kopt.cli.output import whole_pipe


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command, such as ask or wiki lint, or receipt; without it they are listed."),
    ] = None,
) -> None:
    """Print the JSON Schema of a command's `data`, or of a receipt."""
    from kbs.errors import ExitCode
    from kopt.cli.output import fail
    from kopt.cli.schemas import COMMANDS

    name = " ".join(command or ())
    with whole_pipe():
        if not name:
            sys.stdout.write("\n".join([*COMMANDS, "receipt"]) + "\n")
        elif name == "receipt":
            from evaluator.receipt import Receipt

            sys.stdout.write(json_module.dumps(Receipt.model_json_schema(), indent=2) + "\n")
        elif name in COMMANDS:
            sys.stdout.write(json_module.dumps(COMMANDS[name].model_json_schema(), indent=2) + "\n")
        else:
            fail(
                "schema",
                False,
                ExitCode.USAGE,
                "command_unknown",
                f"{name!r} prints no JSON",
                f"Commands: {', '.join(COMMANDS)}.",
            )
