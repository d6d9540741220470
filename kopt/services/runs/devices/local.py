"""The GPUs of this machine: a process for each, started when it is needed and again when it ended."""

from __future__ import annotations

import queue
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from kbs.common.errors import KoptError
from kbs.common.visible_text import visible
from kopt.services.runs.devices.task import Found, Task

_TRIES = 2
"""Processes that a task may cost before it is given up."""
_WORDS = 2000
"""Bytes of what an ended process wrote last that are shown."""


class LocalDevices:
    """Processes of this machine, one for each device: `cuda:0`, `cuda:1`, or `cpu` several times."""

    kept = True

    def __init__(self, devices: tuple[str, ...]) -> None:
        self.notes: list[str] = []
        self.devices = devices
        self._free: queue.Queue[_Process] = queue.Queue()
        self._all = [_Process(device) for device in devices]
        for process in self._all:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(len(devices), thread_name_prefix="device")

    @property
    def width(self) -> int:
        """Tasks at a time."""
        return len(self.devices)

    def submit(self, task: Task) -> Future[Found]:
        """Begin a task on a device that is free, or when one is."""
        return self._threads.submit(self._found, task)

    def _found(self, task: Task) -> Found:
        process = self._free.get()
        try:
            placed = task.model_copy(
                update={"request": task.request.model_copy(update={"device": process.device})}
            ).model_dump_json()
            for _ in range(_TRIES):
                answer = process.ask(placed)
                if answer is not None:
                    return Found.model_validate_json(answer)
            raise KoptError(
                f"the process that measures on {process.device} ended {_TRIES} times: {process.said()}",
                code="device_lost",
                hint="Nothing recorded is lost: `kopt run resume` goes on; without --devices on one GPU.",
            )
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.end()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._all:
            process.remove()


class _Process:
    """One that measures; it reads a task on a line, and answers with a line."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._process: subprocess.Popen[str] | None = None
        self._said = Path(tempfile.mkdtemp(prefix="kopt-")) / "said.txt"
        self._ended = False

    def ask(self, line: str) -> str | None:
        """The answer; None where the process ended in place of it."""
        process = self._started()
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):
            answer = ""
        if answer.endswith("\n"):
            return answer
        self._stop()
        return None

    def _started(self) -> subprocess.Popen[str] | None:
        if self._ended:
            return None
        if self._process is None:
            root = str(Path(__file__).resolve().parents[4])
            start = f"import sys; sys.path.insert(0, {root!r}); from {_WORKER} import main; main()"
            with self._said.open("ab") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", start],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8",
                )  # fmt: skip
        return self._process

    def said(self) -> str:
        """What ended processes wrote last."""
        data = self._said.read_bytes()[-_WORDS:] if self._said.exists() else b""
        return visible(data.decode("utf-8", "replace").strip()) or "it wrote nothing"

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None

    def end(self) -> None:
        """End it; whoever waits for an answer gets none."""
        self._ended = True
        if self._process is not None:
            self._process.kill()

    def remove(self) -> None:
        """Remove what it wrote, once nobody waits for it."""
        self._stop()
        shutil.rmtree(self._said.parent, ignore_errors=True)


_WORKER = "kopt.services.runs.devices.worker"
