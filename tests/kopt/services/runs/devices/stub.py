"""Stands in for the evaluator where a task is carried out: the kernel's text says what happens.

us=80           its time
kill=PATH       the process is ended, unless PATH is there; it is made before
deadly=1        the process is ended each time
driver=PID      another driver, in the process of this id
unfit=1         the evaluator cannot take it
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from evaluator.receipt.plan import SeedSchedule
from evaluator.request import Request
from evaluator.source.source_file import SourceFile
from kopt.services.runs.devices.task import Failure, Found, Setting, Task

HERE = Setting(device_name="NVIDIA H200", driver="580.1", kopt="1", torch="2.11 13.0", triton="3.6")


def task(**says: object) -> Task:
    """A task whose kernel says what comes of it."""
    text = " ".join(f"{name}={value}" for name, value in says.items())
    request = Request(candidate=SourceFile(name="kernel.py", text=text), plan="signal", device="cuda:0")
    return Task.of(request, SeedSchedule.secret(), (), "")


def answer(text: str) -> str:
    """What `carry_out` does, without an evaluator."""
    asked = Task.model_validate_json(text)
    says = dict(re.findall(r"(\w+)=(\S+)", asked.request.candidate.text))
    if "deadly" in says or ("kill" in says and not Path(says["kill"]).exists()):
        if "kill" in says:
            Path(says["kill"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if "unfit" in says:
        failure = Failure(kind="usage", message="it has no kernel", code="no_kernel", hint="")
        return Found(seconds=0.5, failure=failure).model_dump_json()
    other = says.get("driver") == str(os.getpid())
    setting = HERE.model_copy(update={"driver": "570.2"}) if other else HERE
    return Found(us=float(says["us"]), seconds=0.5, setting=setting).model_dump_json()


def main() -> None:
    """The process of a device, with this in the evaluator's place."""
    from kopt.services.runs.devices import worker

    worker.carry_out = answer
    worker.main()
