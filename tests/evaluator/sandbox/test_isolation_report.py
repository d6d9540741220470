"""What is said of the isolation on this machine."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from evaluator.sandbox import isolation_report as jail_report
from evaluator.sandbox.isolation_report import try_isolation
from evaluator.worker.process import probe
from evaluator.worker.process.isolation import Layer

NAMES = {
    *("pid namespace", "mount namespace", "ipc namespace", "network namespace", "private /proc"),
    *("landlock files", "landlock tcp", "landlock signals"),
    *("no new privileges", "unprivileged user", "resource limits"),
}
HOLDS = {
    "read a file outside its folder": "landlock files",
    "write a file outside its folder": "landlock files",
    "connect over TCP": "network namespace",
    "signal the process that started it": "pid namespace",
    "see other processes": "private /proc",
}
"""Which layer alone forbids an attempt."""


@pytest.mark.processes
def test_every_layer_is_told_and_what_is_in_force_holds() -> None:
    before = set(Path(tempfile.gettempdir()).glob("kopt-*"))
    found = try_isolation()
    assert found.failed == ""
    assert {layer.name for layer in found.layers} == NAMES
    applied = {layer.name for layer in found.layers if layer.applied}
    assert all(layer.detail for layer in found.layers if not layer.applied)
    assert [escape for escape in found.escapes if HOLDS[escape] in applied] == []
    assert not [path for path in set(Path(tempfile.gettempdir()).glob("kopt-*")) - before if (path / "secret").exists()]


@pytest.mark.processes
def test_the_probe_imports_nothing_from_the_users_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('this json was imported')\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert try_isolation().failed == ""


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the probe print this."""
    done = subprocess.CompletedProcess([], 0, text, "")
    monkeypatch.setattr(jail_report.subprocess, "run", lambda *_, **__: done)


def test_layers_and_escapes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [{"name": "landlock files", "applied": False, "detail": "this kernel has no landlock"}]
    answer(monkeypatch, json.dumps({"layers": layers, "escapes": ["connect over TCP"]}))
    found = try_isolation()
    assert found.layers == [Layer("landlock files", False, "this kernel has no landlock")]
    assert found.escapes == ["connect over TCP"]


@pytest.mark.parametrize("text", ["", "{", "Traceback (most recent call last):"])
def test_a_probe_that_says_nothing_is_no_result(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answer(monkeypatch, text)
    found = try_isolation()
    assert (found.layers, found.escapes) == ([], [])
    assert "JSONDecodeError" in found.failed


@pytest.mark.parametrize("error", [OSError("no such file"), subprocess.TimeoutExpired("python", 30)])
def test_a_probe_that_does_not_start_or_end_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(jail_report.subprocess, "run", run)
    assert type(error).__name__ in try_isolation().failed


def test_attempts_that_succeed_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of any sandbox, all of them do: none is a test that cannot fail."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    monkeypatch.setattr(probe.os, "kill", lambda *_: None)
    monkeypatch.setattr(probe.socket, "create_connection", lambda *_: io.StringIO())
    assert probe._escapes(str(secret), 1, os.getpid()) == list(HOLDS)


def test_attempts_that_fail_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(probe.os, "kill", refuse)
    monkeypatch.setattr(probe.socket, "create_connection", refuse)
    assert probe._escapes(str(tmp_path / "nowhere" / "secret"), 1, 2) == []
