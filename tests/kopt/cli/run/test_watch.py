"""`kopt run watch`: beside a run that goes on, without a terminal, on one, and as JSON."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.command_server import start_environment
from tests.conftest import Run
from tests.kopt.run_workspace import answer, hand_in, wanted, workspace
from tests.waiting import wait_until


def watching(home: Path, folder: Path, *words: str, out: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """A view in a process of its own."""
    environment = {**start_environment(), "KOPT_HOME": str(home), "COLUMNS": "200"}
    command = [sys.executable, "-m", "kopt", "run", "watch", *words]
    # Where the tests run in the background, a child would inherit that Ctrl-C is ignored.
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, preexec_fn=listens
    )


@pytest.fixture
def folder(run: Callable[..., Run], home: Path, tmp_path: Path) -> Path:
    """With a run of one iteration that waits for a proposal."""
    made = workspace(tmp_path / "work")
    words = ("--proposer", "agent", "--device", "cpu", "--accept-unmeasured", "--iterations", "1", "--yes")
    assert run(home, "run", "start", *words, cwd=made).code == 0
    return made


def test_lines_and_json_until_the_run_ends(run: Callable[..., Run], home: Path, folder: Path) -> None:
    lines, document = watching(home, folder), watching(home, folder, "kernel-001", "--json")
    try:
        assert lines.stdout is not None
        first = lines.stdout.readline().decode()
        assert first.endswith("created\n")
        assert document.poll() is None
        request = wanted(lambda *words, **more: run(home, *words, **more), folder)
        assert hand_in(lambda *words, **more: run(home, *words, **more), folder, answer(request)).code == 0
        said = first + lines.communicate(timeout=60)[0].decode()
        told = json.loads(document.communicate(timeout=60)[0])
    finally:
        for one in (lines, document):
            one.kill()
    assert (lines.returncode, document.returncode) == (0, 0)
    assert "v1 evaluated: attempt 1 accepted" in said
    assert "finished" in said
    assert said.count("v1 closed") == 1
    assert told["data"]["ended"]
    assert told["data"]["run"]["phase"] == "finished"


def test_ctrl_c_ends_the_view_alone(run: Callable[..., Run], home: Path, folder: Path) -> None:
    journal = (folder / "runs/kernel-001/journal.jsonl").read_bytes()
    view = watching(home, folder)
    try:
        assert view.stdout is not None
        view.stdout.readline()  # it is looking now
        view.send_signal(signal.SIGINT)
        said = view.communicate(timeout=30)[0].decode()
    finally:
        view.kill()
    assert view.returncode == 0, said
    assert "next: kopt run next" in said
    assert (folder / "runs/kernel-001/journal.jsonl").read_bytes() == journal
    assert run(home, "run", "next", cwd=folder).code == 0


def test_on_a_terminal_it_is_one_view(home: Path, folder: Path) -> None:
    terminal, end = pty.openpty()
    view = watching(home, folder, out=end)
    os.close(end)
    said = b""

    def read() -> bool:
        nonlocal said
        said += os.read(terminal, 65536)
        return b"a proposal is awaited" in said and b"v1 opened" in said

    try:
        wait_until(read, 30)
    finally:
        view.send_signal(signal.SIGINT)
        assert view.wait(30) == 0
        os.close(terminal)
    assert b"0 of 1 done" in said


def test_a_run_that_is_not_there(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    done = run(home, "run", "watch", "nothing", "--json", cwd=tmp_path)
    assert (done.code, done.json["errors"][0]["code"]) == (2, "run_unknown")
