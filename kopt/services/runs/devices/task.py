"""What goes to a process that measures, and what it answers: plain texts and numbers, as JSON.

A task is carried out by the evaluator, in its sandbox, as on this machine. This module is what runs there.
"""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

from evaluator.receipt.environment import Environment
from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Verdict
from evaluator.request import InputsFile, Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from kbs.common.errors import KoptError, UsageError
from kbs.common.json_model import FrozenModel
from kopt.version import VERSION
from loop.planning.decisions import median_of

SAME = ("device_name", "driver", "kopt", "torch", "triton")
"""What must be the same where times are held against each other."""


class Task(FrozenModel):
    """A kernel to measure: everything that the evaluator needs, and no path of the machine that asks."""

    request: Request
    """Without its file of inputs, interpreter and variables; without folders where it leaves this machine."""
    seed: str
    """32 bytes in hex that the inputs are made from; they are of this measurement alone."""
    inputs: tuple[str, str] | None = None
    """(name, content as base64) of the file of inputs."""
    variables: tuple[str, ...] = ()
    """Names of variables that the kernels get from where the task is carried out."""
    python: str = ""
    """Interpreter of the kernels; empty: the one that carries the task out."""
    home: str = ""
    """KOPT_HOME to seal the receipt with and to keep it in; empty: it is not kept."""

    @classmethod
    def of(
        cls, request: Request, schedule: SeedSchedule, variables: Iterable[str], python: str, home: Path | None = None
    ) -> Task:
        """The task of a request."""
        file = request.inputs
        inputs = None if file is None else (file.name, base64.b64encode(file.content).decode())
        plain: dict[str, object] = {"inputs": None, "environment": {}, "python": ""}
        if home is None:
            plain |= {"include": (), "cuda_home": None}
        return cls(
            request=request.model_copy(update=plain),
            seed=schedule.reveal(),
            inputs=inputs,
            variables=tuple(variables),
            python=python,
            home="" if home is None else str(home),
        )


class Setting(FrozenModel):
    """Where a measurement was made, as far as times depend on it."""

    device_name: str
    driver: str
    kopt: str
    torch: str
    triton: str

    @classmethod
    def of(cls, environment: Environment) -> Setting:
        """Of a receipt. The versions are those of the interpreter that ran the kernels."""
        worker = environment.worker
        return cls(
            device_name=environment.device_name,
            driver=environment.driver or "",
            kopt=environment.kopt,
            torch=f"{worker.torch or ''} {worker.cuda or ''}".strip(),
            triton=worker.triton or "",
        )

    def differences(self, other: Setting) -> str:
        """`driver 580.1, not 570.2`; empty where all is the same."""
        pairs = ((name, getattr(other, name), getattr(self, name)) for name in SAME)
        return "; ".join(
            f"{name} {theirs or 'none'}, not {own or 'none'}" for name, theirs, own in pairs if theirs != own
        )


class Failure(FrozenModel):
    """An error in place of a measurement."""

    kind: Literal["usage", "other"]
    """`usage`: the evaluator cannot take this kernel; `other`: nothing can be measured where it was tried."""
    message: str
    code: str
    hint: str

    def error(self) -> KoptError:
        """As the exception that it was."""
        return (UsageError if self.kind == "usage" else KoptError)(self.message, code=self.code, hint=self.hint)


class Found(FrozenModel):
    """What came of a task."""

    us: float | None = None
    """Median time; None where none was taken."""
    why: str = ""
    """Why it is not accepted; empty where it is."""
    seconds: float
    """What the measurement took."""
    setting: Setting | None = None
    """Where it was made; None where there is a failure."""
    receipt: str = ""
    """File of the receipt, where it was kept."""
    failure: Failure | None = None

    @classmethod
    def of(cls, receipt: Receipt, seconds: float, place: str = "") -> Found:
        """Of a receipt."""
        why = "" if receipt.verdict is Verdict.ACCEPTED else f"{receipt.verdict.value}: {receipt.reason}"
        setting = Setting.of(receipt.environment)
        return cls(us=median_of(receipt), why=why, seconds=seconds, setting=setting, receipt=place)


def carry_out(text: str) -> str:
    """Measure a task, and say what was found; both are JSON. Raises nothing that `KoptError` covers."""
    started = time.monotonic()
    task = Task.model_validate_json(text)
    try:
        found = _measured(task, started)
    except KoptError as error:
        kind: Literal["usage", "other"] = "usage" if isinstance(error, UsageError) else "other"
        failure = Failure(kind=kind, message=error.message, code=error.code, hint=error.hint)
        found = Found(seconds=time.monotonic() - started, failure=failure)
    return found.model_dump_json()


def _measured(task: Task, started: float) -> Found:
    from evaluator.evaluate import evaluate  # imports torch
    from kopt.services.bench.evaluation import evaluate_and_keep

    interpreter = task.python or sys.executable
    request = task.request.model_copy(
        update={
            "inputs": None if task.inputs is None else _file(*task.inputs),
            "python": interpreter,
            "environment": passed_environment(task.variables),
        }
    )
    schedule = SeedSchedule(bytes.fromhex(task.seed), "secret")
    server = _server("cpu" if request.device == "cpu" else "cuda", interpreter, task.variables)
    if not task.home:
        receipt = evaluate(request, kopt=VERSION, server=server, schedule=schedule)
        return Found.of(receipt, time.monotonic() - started)
    receipt, place = evaluate_and_keep(request, server, Path(task.home), None, lambda *_: None, schedule)
    return Found.of(receipt, time.monotonic() - started, str(place))


def _file(name: str, content: str) -> InputsFile:
    return InputsFile(name=name, content=base64.b64decode(content))


@cache
def _server(device: str, interpreter: str, variables: tuple[str, ...]) -> ForkServer:
    """The server of this process, for all its tasks. It ends when this process ends."""
    return ForkServer(device, interpreter, passed_environment(variables))
