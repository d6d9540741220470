"""Runs the naive evaluator in a process of its own, and believes what it says."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).resolve().parent
SECONDS = 60.0
"""How long one evaluation may take."""


def _environment(folder: Path, device: str) -> dict[str, str]:
    return {
        **os.environ,
        **({"TRITON_INTERPRET": "1"} if device == "cpu" else {}),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder),
    }


def _evaluator(folder: Path) -> Path:
    """A copy of the evaluator, since a cheat may overwrite it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("closeness.py", "naive_timing.py"):
        shutil.copy(HERE / name, folder)
    return Path(shutil.copy(HERE / "naive.py", folder))


class NaiveServer:
    """One process that has imported torch and triton, and forks for each evaluation. A context manager."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.folder = folder
        self.device = device
        self._process = subprocess.Popen(
            [sys.executable, str(_evaluator(folder / "evaluator")), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=_environment(folder, device),
            start_new_session=True,
        )

    def __enter__(self) -> NaiveServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait()

    def run(self, words: Sequence[str], folder: Path, output: Path) -> int:
        """The exit code of one evaluation; what it prints goes to `output`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"words": list(words), "folder": str(folder), "output": str(output), "seconds": SECONDS}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())["code"]
        assert isinstance(code, int)
        return code


def _run(words: Sequence[str], folder: Path, output: Path, device: str) -> int:
    """The same in an interpreter that starts from nothing."""
    with output.open("ab") as stream:
        command = [sys.executable, str(folder / "naive.py"), *words]
        process = subprocess.Popen(
            command, cwd=folder, stdout=stream, stderr=stream, env=_environment(folder, device), start_new_session=True
        )
        try:
            return process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def naive_accepts(
    candidate: Path,
    reference: Path,
    folder: Path,
    *,
    form: str = "kernelbench",
    inputs: Path | None = None,
    words: Sequence[str] = (),
    device: str = "cpu",
    server: NaiveServer | None = None,
) -> bool:
    """Whether the naive evaluator accepts a candidate.

    The files are copied into `folder`, where it runs twice: to see whether the candidate builds, then to evaluate it.
    The verdict is the last JSON line that came out; where there is none, the exit code 0. Without a server each run
    starts an interpreter of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _evaluator(folder)
    command = [f"candidate{candidate.suffix}", "reference.py", "--form", form, "--device", device, *words]
    shutil.copy(candidate, folder / command[0])
    shutil.copy(reference, folder / "reference.py")
    if inputs is not None:
        shutil.copy(inputs, folder / "inputs.py")
        command += ["--inputs", "inputs.py"]
    code = 0
    for name, more in (("build.txt", ["--build-only"]), ("evaluation.txt", [])):
        output = folder / name
        if server is not None:
            code = server.run([*command, *more], folder, output)
        else:
            code = _run([*command, *more], folder, output, device)
        if code != 0 and more:
            return False
    for line in reversed((folder / "evaluation.txt").read_text("utf-8", "replace").splitlines()):
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and "accepted" in record:
                return bool(record["accepted"])
    return code == 0
