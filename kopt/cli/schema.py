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
        typer.Argument(help="A command, such as ask or wiki lint, or receipt; without it all are listed."),
    ] = None,
) -> None:
    """Print the JSON Schema of a command's `data`, or of a receipt (`external-receipt`: of a command of the user's)."""
    from kbs.errors import ExitCode
    from kopt.cli.output import fail
    from kopt.cli.schemas import COMMANDS, json_schema

    name = " ".join(command or ())
    with whole_pipe():
        if not name:
            sys.stdout.write("\n".join([*COMMANDS, "receipt", "external-receipt"]) + "\n")
        elif name == "receipt":
            from evaluator.receipt import Receipt

            sys.stdout.write(json_module.dumps(Receipt.model_json_schema(), indent=2) + "\n")
        elif name == "external-receipt":
            from evaluator.external import ExternalReceipt

            sys.stdout.write(json_module.dumps(ExternalReceipt.model_json_schema(), indent=2) + "\n")
        elif name in COMMANDS:
            sys.stdout.write(json_module.dumps(json_schema(name), indent=2) + "\n")
        else:
            fail(
                "schema",
                False,
                ExitCode.USAGE,
                "command_unknown",
                f"{name!r} prints no JSON",
                f"Commands: {', '.join(COMMANDS)}.",
            )
