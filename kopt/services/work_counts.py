"""What a reference must move and compute: counted in the sandbox, or declared; and what a receipt's seal is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbs.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evaluator.request import Request
    from evaluator.source.forms import Recognised
    from evaluator.work import Work
    from kopt.services.engine import Engine
    from kopt.services.roofline import Declared


def count(engine: Engine, request: Request, recognised: Recognised, said: Mapping[str, Declared]) -> Work:
    """Count it. `said`: what is declared in place of a count. Raises `UsageError` `work_uncountable`, and what
    `count_work` raises."""
    from evaluator.sandbox.fork_server import ForkServer
    from evaluator.work import COUNTING_MODULES, count_work

    engine.progress("counting the reference's work", 0, 1)
    with ForkServer("cpu", request.python, request.environment, COUNTING_MODULES) as server:
        found = count_work(request, recognised, server)
    engine.progress("counting the reference's work", 1, 1)
    if not found.traced and "operations" not in said:
        raise UsageError(
            "the kernel is its own reference, and the operations of its code cannot be counted",
            code="work_uncountable",
            hint="Give a reference with --ref, or say how many there are: --operations '5*M*N'.",
        )
    return found


def declared_work(request: Request, recognised: Recognised) -> dict[str, Declared]:
    """What the command line says, else what the reference declares: `bytes` and `operations`, where it does."""
    from evaluator.work import declared, sizes
    from kopt.services.roofline import declared as evaluated

    dims = sizes(request, recognised)
    stated = declared(request.reference or request.candidate)
    found = {}
    for name, option, asked, own in (
        ("bytes", "--bytes", request.bytes, stated.get("min_bytes", "")),
        ("operations", "--operations", request.operations, stated.get("operations", "")),
    ):
        if asked or own:
            found[name] = evaluated(asked or own, dims, "command line" if asked else "reference", option)
    return found


def seal_notes(engine: Engine, receipt: Path) -> list[str]:
    """What speaks against a receipt's seal."""
    from evaluator.store.seal import load_key, verify
    from evaluator.store.store import read_receipt

    checked = verify(read_receipt(receipt), load_key(engine.settings.home))
    return [] if checked.ok else [f"{receipt.name}: content {checked.content}, seal: {checked.seal}. {checked.detail}"]
