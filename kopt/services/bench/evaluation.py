"""Evaluate a kernel, run a user's own benchmark, or replay a receipt; seal and keep what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.external.figures import read_patterns
from evaluator.external.record import TIME_LIMIT, ExternalReceipt, choose, run_external
from evaluator.receipt.plan import Plan, SeedSchedule
from evaluator.receipt.receipt import Receipt, parse
from evaluator.request import InputsFile, Request, check_device, of_receipt
from evaluator.sandbox.fork_server import ForkServer
from evaluator.source.source_file import read_source
from evaluator.store.replay import differences
from evaluator.store.seal import ensure_key, seal
from evaluator.store.store import check_chosen, read_receipt, save_plan, save_receipt
from kopt.version import VERSION

if TYPE_CHECKING:
    from evaluator.evaluate import Progress


def server_for(device: str, interpreter: str, environment: dict[str, str]) -> ForkServer:
    """The server whose processes run kernels on a device; a context manager."""
    return ForkServer("cpu" if device == "cpu" else "cuda", interpreter, environment)


def evaluate_and_keep(
    request: Request,
    server: ForkServer,
    home: Path,
    receipt: Path | None,
    progress: Progress,
    schedule: SeedSchedule | None = None,
) -> tuple[Receipt, Path]:
    """(sealed receipt, its file): `receipt`, or one in KOPT_HOME. Raises `KoptError`."""
    from evaluator.evaluate import evaluate  # imports torch

    if receipt is not None:
        check_chosen(receipt)
    key = ensure_key(home)

    def keep(plan: Plan) -> None:
        save_plan(home, plan)

    found = evaluate(request, kopt=VERSION, server=server, on_plan=keep, progress=progress, schedule=schedule)
    sealed = seal(found, key)
    return sealed, save_receipt(home, sealed, receipt)


@dataclass(frozen=True)
class Replay:
    """A receipt's evaluation, done again."""

    receipt: Receipt
    path: Path
    differences: list[str]
    """In the result; empty: the same."""
    environment: list[str]
    """What is different about machine and software; it does not count as a difference."""


def replay(
    original: Path,
    *,
    inputs: InputsFile | None,
    device: str | None,
    interpreter: str,
    environment: dict[str, str],
    cuda_home: Path | None,
    call_seconds: float,
    home: Path,
    receipt: Path | None,
    progress: Progress,
) -> Replay:
    """Evaluate what a receipt holds again, with its sources and its seed. Raises `KoptError`.

    `environment` is the user's: the variables that a stranger's receipt names are not passed on.
    """
    before = parse(read_receipt(original))
    if device is not None:
        check_device(device)
    request, schedule = of_receipt(
        before, inputs=inputs, device=device, environment=environment, cuda_home=cuda_home, call_seconds=call_seconds
    )
    with server_for(request.device, interpreter, environment) as server:
        again, path = evaluate_and_keep(request, server, home, receipt, progress, schedule)
    mark = "environment: "
    every = differences(before, again)
    return Replay(
        receipt=again,
        path=path,
        differences=[text for text in every if not text.startswith(mark)],
        environment=[text.removeprefix(mark) for text in every if text.startswith(mark)],
    )


def run_own_benchmark(
    candidate: Path,
    *,
    bench_command: str | None,
    signal_command: str | None,
    figures: list[str],
    plan: str,
    seconds: float | None,
    home: Path,
    receipt: Path | None,
    progress: Progress,
) -> tuple[ExternalReceipt, Path]:
    """Run a benchmark of the user's, read what it printed, seal and keep the record. Raises `KoptError`."""
    option, words = choose(bench_command, signal_command, plan)
    patterns = read_patterns(figures)
    source = read_source(candidate, "candidate")
    if receipt is not None:
        check_chosen(receipt)
    key = ensure_key(home)
    progress("the user's benchmark", 0, 1)
    ran = run_external(
        source,
        option,
        words,
        plan="signal" if plan == "signal" else "verdict",
        seconds=TIME_LIMIT if seconds is None else seconds,
        patterns=patterns,
        kopt=VERSION,
    )
    sealed = seal(ran, key)
    return sealed, save_receipt(home, sealed, receipt)
