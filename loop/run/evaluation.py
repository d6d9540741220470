"""One evaluation of a run, which is not repeated where its receipt is there already."""

from __future__ import annotations

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt, parse, render
from evaluator.request import Request
from evaluator.source.source_file import SourceFile
from evaluator.store.seal import load_key, verify
from kbs.common.errors import UsageError
from kbs.common.files import read_if_there
from loop.journal.events import Files
from loop.run.open_run import Kernel, Run


def measured(run: Run, folder: str, kernel: Kernel, request: Request, schedule: SeedSchedule) -> tuple[Receipt, Files]:
    """(receipt, files) of an evaluation: the receipt in the folder if it is of this evaluation, else a new one."""
    there = read_if_there(run.folder.root / folder / "receipt.json")
    receipt = None if there is None else _fitting(run, there, kernel, schedule)
    if receipt is None:
        receipt = run.tools.evaluate(request, schedule)
    files = {"receipt.json": render(receipt), **run.parts.of_attempt(receipt)}
    return receipt, run.put({f"{folder}/{name}": data for name, data in files.items()})


def _fitting(run: Run, data: bytes, kernel: Kernel, schedule: SeedSchedule) -> Receipt | None:
    """The receipt in these bytes; None if it is not of this evaluation."""
    if not verify(data, load_key(run.home)).ok:
        return None
    try:
        receipt = parse(data)
    except UsageError:
        return None
    candidate = SourceFile(name=kernel.name, text=kernel.text)
    wanted = run.record.problem_of(candidate.hash)
    same = receipt.candidate.hash == candidate.hash and receipt.problem.hash == wanted
    return receipt if same and schedule.matches(receipt.plan.seed_commitment) else None
