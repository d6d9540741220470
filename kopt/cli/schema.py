"""`kopt schema`: the JSON Schema of what a command prints under `data`."""

from __future__ import annotations

import json as json_module
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import whole_pipe

if TYPE_CHECKING:
    from pydantic import BaseModel

DOCUMENTS = ("receipt", "external-receipt", "run-request", "run-proposal")
"""Documents that no command prints under `data`, and programs read or write."""


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command, such as ask or wiki lint, or receipt; without it all are listed."),
    ] = None,
) -> None:
    """Print the JSON Schema of a command's `data`, or of a document.

    Documents: `receipt`, `external-receipt` (of a command of the user's), `run-request` and `run-proposal` (what a
    proposer is told and answers).
    """
    from kbs.common.errors import ExitCode
    from kopt.cli.output import fail
    from kopt.cli.schemas import COMMANDS, schema_of

    name = " ".join(command or ())
    with whole_pipe():
        if not name:
            sys.stdout.write("\n".join([*COMMANDS, *DOCUMENTS]) + "\n")
        elif name in DOCUMENTS:
            sys.stdout.write(json_module.dumps(_document(name).model_json_schema(), indent=2) + "\n")
        elif name in COMMANDS:
            sys.stdout.write(json_module.dumps(schema_of(name), indent=2) + "\n")
        else:
            fail(
                "schema",
                False,
                ExitCode.USAGE,
                "command_unknown",
                f"{name!r} prints no JSON",
                f"Commands: {', '.join(COMMANDS)}. Documents: {', '.join(DOCUMENTS)}.",
            )


def _document(name: str) -> type[BaseModel]:
    match name:
        case "receipt":
            from evaluator.receipt.receipt import Receipt

            return Receipt
        case "external-receipt":
            from evaluator.external.record import ExternalReceipt

            return ExternalReceipt
        case "run-request":
            from loop.proposals.request import NextRequest

            return NextRequest
        case _:
            from loop.proposals.proposal import Proposal

            return Proposal
