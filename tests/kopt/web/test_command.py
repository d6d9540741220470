"""`kopt web` as it is typed: what it prints, how it ends, ports, tokens and folders that do not go."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from kopt.services.serving.port import listen
from tests.conftest import run_kopt

pytestmark = pytest.mark.processes


def test_it_prints_an_address_that_lets_in_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    environment = {**os.environ, "KOPT_HOME": str(tmp_path / "home")}
    environment.pop("KOPT_WEB_TOKEN", None)
    words = [sys.executable, "-m", "kopt", "web", "--port", "0"]
    process = subprocess.Popen(words, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        address = re.fullmatch(r"kopt web: (http://127\.0\.0\.1:\d+/\?token=[\w-]{32})\n", said)
        assert address is not None, said
        with httpx.Client() as client:
            assert client.get(address[1].partition("?")[0]).status_code == 401
            assert client.get(address[1]).status_code == 200
            assert "No run is known" in client.get(address[1].partition("?")[0] + "runs").text
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        process.stderr.close()
    assert code in (0, -signal.SIGINT, 128 + signal.SIGINT)


def test_ports_tokens_and_folders_that_do_not_go(tmp_path: Path) -> None:
    taken = listen(0)
    try:
        done = run_kopt(tmp_path, "web", "--port", str(taken.getsockname()[1]), "--json")
        assert (done.code, done.json["errors"][0]["code"]) == (2, "port_taken")
    finally:
        taken.close()
    done = run_kopt(tmp_path, "web", "--json", "--runs", str(tmp_path / "nothing"))
    assert (done.code, done.json["errors"][0]["code"]) == (2, "runs_not_found")
    done = run_kopt(tmp_path, "web", "--json", env={"KOPT_WEB_TOKEN": "short"}, fresh=True)
    assert (done.code, done.json["errors"][0]["code"]) == (2, "token_weak")
