"""The process that the tests' commands are forked from: they do what a new interpreter does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_server import Command, start_environment
from tests.conftest import command_server, run_kopt
from tests.kopt.run_workspace import KERNEL, WRONG, workspace

pytestmark = pytest.mark.processes

TIMES = re.compile(r"\d+\.\d+ s\b")


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        (["--version"], "", 0),
        (["--help"], "", 0),
        ([], "", 0),
        (["frobnicate"], "", 2),
        (["ask", "what is a shared memory bank conflict", "--json"], "", 0),
        (["ask", "how do I bake bread"], "", 3),
        (["ask", "memory \udcff bound", "--json"], "", 2),
        (["cite", "-"], "TDP: 700 W <- gpu-wiki/hardware/h100-sxm.md:L99999\n", 4),
        (["show", "kernel/sofmax", "--debug"], "", 2),
        (["ingest"], "", 0),
        (["bench", "nothing.py", "--json"], "", 2),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_fork_does_what_an_interpreter_does(built_home: Path, words: list[str], stdin: str, code: int) -> None:
    forked, fresh = (run_kopt(built_home, *words, stdin=stdin, fresh=fresh) for fresh in (False, True))
    assert (forked.code, fresh.code) == (code, code)
    assert TIMES.sub("", forked.out) == TIMES.sub("", fresh.out)
    assert _without_frames(forked.err) == _without_frames(fresh.err)


def _without_frames(text: str) -> str:
    """A traceback names how the program was started."""
    return "\n".join(line for line in TIMES.sub("", text).splitlines() if not line.startswith("  "))


def test_each_command_has_its_own_folder_and_environment(built_home: Path, tmp_path: Path) -> None:
    (tmp_path / "claims.md").write_text("TDP: 700 W <- gpu-wiki/hardware/h100-sxm.md:L99999\n")
    assert run_kopt(built_home, "cite", "claims.md", cwd=tmp_path).code == 4
    elsewhere = run_kopt(built_home, "cite", "claims.md")
    assert (elsewhere.code, "no such file: claims.md" in elsewhere.err) == (2, True)
    assert run_kopt(built_home, "spec", "h100-sxm", env={"KOPT_RESULTS": "x"}).code == 5
    assert run_kopt(built_home, "spec", "h100-sxm").code == 0


def test_what_a_user_has_set_does_not_reach_the_tests() -> None:
    left = "import tests.conftest, os; print({n: v for n, v in os.environ.items() if n[:5] in ('KOPT_', 'OPENA')})"
    environment = {
        **os.environ,
        "KOPT_EXPERIENCE": "/mine",
        "KOPT_BASE_LOG": "true",
        "KOPT_HOME": "/mine",
        "OPENAI_API_KEY": "mine",
    }
    done = subprocess.run([sys.executable, "-c", left], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{'KOPT_BASE_LOG': 'false'}\n"


def test_variables_that_an_interpreter_reads_need_one() -> None:
    server, started = command_server(), start_environment()
    assert server.can_give({**started, "KOPT_HOME": "/x", "PATH": "/bin", "HOME": "/"})
    for name in ("PYTHONPATH", "PYTHONUTF8", "LC_ALL", "HF_HUB_OFFLINE", "OMP_NUM_THREADS"):
        assert not server.can_give({**started, name: "another"})
    assert not server.can_give({name: value for name, value in started.items() if name != "OMP_NUM_THREADS"})


def test_what_the_tests_set_meanwhile_makes_no_command_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PATH", "/bin")
    assert "HF_HUB_OFFLINE" not in start_environment()
    assert start_environment()["PATH"] == "/bin"
    assert command_server().can_give(start_environment())


@pytest.mark.parametrize("kernel", [KERNEL, WRONG], ids=["right", "wrong"])
def test_a_fork_server_that_is_forked_finds_what_a_new_one_finds(built_home: Path, tmp_path: Path, kernel: str) -> None:
    folder = workspace(tmp_path / "work", kernel=kernel)
    words = ("bench", "kernel.py", "--ref", "ref.py", "--device", "cpu", "--seed", "7", "--json")
    forked, fresh = (run_kopt(built_home, *words, cwd=folder, fresh=fresh) for fresh in (False, True))
    assert forked.code == fresh.code == (0 if kernel is KERNEL else 4)
    for field in ("verdict", "reason"):
        assert forked.json["data"][field] == fresh.json["data"][field]


def test_a_command_that_does_not_end_is_ended(built_home: Path, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("while True: pass\ndef run_kernel(x): pass\ndef setup(): return {}\n")
    environment = {**os.environ, "KOPT_HOME": str(tmp_path / "home")}
    words = ["bench", "k.py", "--device", "cpu"]
    with pytest.raises(subprocess.TimeoutExpired):
        command_server().run(words, "", tmp_path, environment, 0.5)
    with Command(command_server(), words, "", tmp_path, environment) as command:
        assert command.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(command.pid, signal.SIG_DFL)
    with Command(command_server(), ["--version"], "", tmp_path, environment) as command:
        assert command.wait(60) == 0
        assert not command.kill()
