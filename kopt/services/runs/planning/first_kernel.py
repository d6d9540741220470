"""Version 0 where the user has a reference alone: the tested code of a wiki page if it is right, else the reference."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.receipt.verdict import Verdict
from evaluator.sandbox.fork_server import ForkServer
from evaluator.source.source_file import read_source
from kbs.common.errors import KoptError
from kbs.experience.transfer.operators import operation_of
from kopt.services.engine import Engine
from kopt.services.runs.request import request_of
from kopt.services.work_counts import count, declared_work, operators
from kopt.version import VERSION
from loop.planning.wanted import Wanted
from loop.workspace.first_kernel import FirstKernel, of_code, of_reference
from loop.workspace.inventory import Inventory
from wiki.library import BUNDLED
from wiki.lint.view import code_blocks
from wiki.page import Page


def choose_first(engine: Engine, inventory: Inventory, wanted: Wanted, device: str) -> tuple[Inventory, list[str]]:
    """(the inventory with the kernel that the run begins with, why it is not a page's).

    The code of the page on the reference's operation, if there is one that the evaluator accepts for this problem; else
    the reference through torch.compile, on the CPU as it is. Raises `UsageError` of the reference.
    """
    reference, name = read_source(inventory.reference, "reference"), inventory.kernel.name
    notes = []
    if wanted.backend in (None, "triton"):
        found = _of_page(engine, inventory, wanted, device)
        if isinstance(found, FirstKernel):
            return inventory.starting_from(found), []
        notes.append(f"version 0 is not the code of a page: {found}")
    first = of_reference(reference, name, compiled=device != "cpu")
    assert first is not None  # one was made of it already
    return inventory.starting_from(first), notes


def _of_page(engine: Engine, inventory: Inventory, wanted: Wanted, device: str) -> FirstKernel | str:
    """The code of a page that is right, or why there is none."""
    reference = read_source(inventory.reference, "reference")
    try:
        request = request_of(inventory, wanted, "cpu")
        known = request.recognised()
        declared = declared_work(request, known)
        operation = operation_of(operators(count(engine, request, known, declared)))
    except KoptError as error:
        return f"what the reference computes was not found out ({error.message})"
    if not operation:
        return "the reference computes no operation that the vocabulary has, or several"
    tried = ""
    kind = "cpu" if device == "cpu" else "cuda"
    with ForkServer(kind, request.python, request.environment) as server:
        for page, line_start, code in _code(engine, engine.terms.operations[operation].page):
            citation = f"{BUNDLED}/{page}:L{line_start}-L{line_start + len(code) - 1}"
            for first in of_code(reference, inventory.kernel.name, code, citation):
                tried = _against(engine, inventory.starting_from(first), wanted, device, server)
                if not tried:
                    return first
                tried = f"{citation} does not do what the reference does: {tried}"
    return tried or f"no page has code for {operation} that takes a row a program"


def _code(engine: Engine, named: str) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """(path, first line, lines) of every Triton block of a page of the bundled wiki, whose blocks are tested."""
    page = engine.library.page(BUNDLED, f"{named}.md") if BUNDLED in engine.library.all else None
    for block in code_blocks(page) if isinstance(page, Page) else ():
        if block.info == "python":
            yield f"{named}.md", block.line_start, block.code


def _against(engine: Engine, inventory: Inventory, wanted: Wanted, device: str, server: ForkServer) -> str:
    """What a signal says against a made kernel; empty if it is accepted."""
    from evaluator.evaluate import evaluate

    request = request_of(inventory, wanted, device).model_copy(update={"plan": "signal", "baselines": ()})
    try:
        found = evaluate(request, kopt=VERSION, server=server, progress=engine.progress)
    except KoptError as error:
        return error.message
    return "" if found.verdict is Verdict.ACCEPTED else f"{found.verdict.value}: {found.reason}"
