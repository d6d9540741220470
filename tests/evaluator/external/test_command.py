"""A command of the user's: run as it is, ended whole, its output kept within bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.external.command import KEPT, Printed, Ran, run, split
from kbs.common import programs
from kbs.common.errors import ConfigurationError, ExitCode, UsageError
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.processes


def shell(text: str, seconds: float = 20.0) -> Ran:
    """What comes of a line for the shell."""
    return run(["sh", "-c", text], seconds)


# --- as it is ---------------------------------------------------------------------------------------------------------


def test_streams_and_exit_code() -> None:
    ran = shell("echo out; echo err >&2; exit 3")
    assert (ran.exit_code, ran.stdout.text, ran.stderr.text, ran.left) == (3, "out\n", "err\n", 0)
    assert (ran.stdout.size, ran.stdout.cut, ran.stdout.partial) == (4, False, False)
    assert 0 < ran.seconds < 10


def test_words_folder_and_environment_are_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_OWN", "here")
    code = "import os, sys; print(sys.argv[1:], os.getcwd())"
    ran = run([sys.executable, "-c", code, "a b", "$HOME", "*"], 20)
    assert ran.stdout.text == f"['a b', '$HOME', '*'] {tmp_path}\n"
    given = run(["cat", "/proc/self/environ"], 20).stdout.text.split("\0")
    assert set(given) >= {f"{name}={value}" for name, value in os.environ.items()}


def test_a_command_that_reads_gets_nothing() -> None:
    assert shell("cat; echo end").stdout.text == "end\n"


def test_a_signal_that_ends_it() -> None:
    assert shell("kill -SEGV $$").exit_code == -signal.SIGSEGV


def test_the_seconds_are_its_own() -> None:
    assert 0.3 <= shell("sleep 0.3").seconds < 5


# --- what does not end ------------------------------------------------------------------------------------------------


def test_a_hanging_command_is_ended_with_all_that_it_started() -> None:
    started = time.monotonic()
    ran = shell("sleep 300 & echo $!; setsid sleep 300 & echo $!; trap '' TERM; sleep 300", 0.7)
    assert time.monotonic() - started < 10
    assert ran.exit_code is None
    pids = [int(line) for line in ran.stdout.text.split()]
    assert len(pids) == 2
    wait_until(lambda: all(has_ended(pid) for pid in pids))


def test_a_command_that_stops_itself_is_ended() -> None:
    assert shell("kill -STOP $$", 0.5).exit_code is None


def test_children_that_are_left_are_ended() -> None:
    started = time.monotonic()
    ran = shell("sleep 300 & echo $!; echo done")
    assert time.monotonic() - started < 10
    assert (ran.exit_code, ran.left) == (0, 1)
    first, second = ran.stdout.text.splitlines()
    assert second == "done"
    wait_until(lambda: has_ended(int(first)))


@pytest.mark.slow
def test_a_child_that_keeps_the_pipe_in_a_session_of_its_own_does_not_hold_us() -> None:
    started = time.monotonic()
    ran = shell("setsid sleep 20 & echo $!; echo done")
    assert time.monotonic() - started < 10
    assert ran.exit_code == 0
    os.kill(int(ran.stdout.text.split()[0]), signal.SIGKILL)


def test_closed_streams_are_no_end() -> None:
    ran = shell("exec >&- 2>&-; sleep 0.4; exit 5")
    assert ran.exit_code == 5
    assert ran.seconds >= 0.4


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_a_signal_that_comes_while_a_command_is_started(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, raised: type[BaseException]
) -> None:
    """Nobody would end the command, were kopt to leave before it knows of it."""
    started = []

    def interrupted(words: Sequence[str], folder: Path | None, request: bytes | None) -> subprocess.Popen[bytes]:
        started.append(start(words, folder, request))
        os.kill(os.getpid(), number)
        return started[0]

    start = programs.start_program
    monkeypatch.setattr(programs, "start_program", interrupted)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    try:
        with pytest.raises(raised):
            run(["sleep", "300"], 300)
    finally:
        signal.signal(signal.SIGINT, usual)
    wait_until(lambda: has_ended(started[0].pid))


def test_a_signal_that_comes_while_a_command_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError

    monkeypatch.setattr(programs, "start_program", refused)
    with pytest.raises(SystemExit):
        run(["sleep", "300"], 300)


INTERRUPTED = """
import sys
from evaluator.external.command import run
run(["sh", "-c", "echo $$ > pid; sleep 300"], 300)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_does_not_outlive_kopt(tmp_path: Path, number: signal.Signals) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + INTERRUPTED
    root = Path(__file__).parents[3]
    kopt = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    kopt.send_signal(number)
    kopt.wait(20)
    wait_until(lambda: has_ended(int((tmp_path / "pid").read_text())))


def test_signals_are_given_back_and_threads_may_run_commands() -> None:
    before = signal.getsignal(signal.SIGTERM)
    found: list[Ran] = []
    worker = threading.Thread(target=lambda: found.append(shell("echo 1")))
    worker.start()
    worker.join()
    assert [ran.stdout.text for ran in found] == ["1\n"]
    shell("true")
    assert signal.getsignal(signal.SIGTERM) is before


# --- output -----------------------------------------------------------------------------------------------------------


def test_a_flood_is_bounded() -> None:
    tracemalloc.start()
    ran = shell("yes 'flooding the output' & yes err >&2", 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ran.exit_code is None
    assert ran.stdout.size > 10 * KEPT
    assert len(ran.stdout.text) <= KEPT
    assert ran.stdout.text.startswith("flooding the output\n")
    assert peak < 20 * KEPT


def test_the_end_of_a_long_output_is_kept() -> None:
    ran = run([sys.executable, "-c", "for n in range(100000): print(n)"], 30)
    assert ran.stdout.text.endswith("\n99999\n")
    assert ran.stdout.text.splitlines()[0].isdigit()
    assert len(ran.stdout.text.splitlines()[0]) == 5
    assert ran.stdout.size == sum(len(str(n)) + 1 for n in range(100000))


def test_output_that_is_not_utf8() -> None:
    ran = run([sys.executable, "-c", r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\x00b\xc3')"], 20)
    assert ran.stdout.text == "a\ufffd\ufffd\0b\ufffd"
    assert ran.stdout.size == 6


@given(st.binary(max_size=300), st.integers(0, 3))
def test_any_bytes_are_kept_within_bounds(data: bytes, times: int) -> None:
    whole = data * (times * KEPT // max(1, len(data)) + 1)
    kept = Printed.of(whole[-KEPT - 1 :], len(whole))
    assert len(kept.text) <= KEPT
    assert kept.cut == (len(whole) > KEPT)
    assert whole.decode("utf-8", "replace").endswith(kept.text) or kept.partial
    if not kept.cut:
        assert kept.text == whole.decode("utf-8", "replace")


def test_a_whole_first_line_is_not_thrown_away() -> None:
    line = b"x" * (KEPT - 1) + b"\n"
    kept = Printed.of((b"lost\n" + line)[-KEPT - 1 :], KEPT + 5)
    assert kept.text.encode() == line
    assert not kept.partial
    assert Printed.of(b"y" + line, KEPT + 1).partial


def test_partial_means_cut() -> None:
    with pytest.raises(ValidationError, match="nothing was cut"):
        Printed(text="a", size=1, partial=True)


# --- commands that cannot be run --------------------------------------------------------------------------------------


def test_words_are_split_as_a_shell_does() -> None:
    assert split("python 'a b.py' --n 3 $HOME \"c\"", "--bench-command") == (
        "python",
        "a b.py",
        "--n",
        "3",
        "$HOME",
        "c",
    )


@pytest.mark.parametrize("text", ["", "  ", "\n", "''", "python 'a", 'a "b', "a\\", "''  x", "a\0b"])
def test_commands_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(text, "--signal-command")
    assert (caught.value.code, caught.value.exit_code) == ("bench_command_invalid", ExitCode.USAGE)
    assert "--signal-command" in caught.value.message
    assert caught.value.hint


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    (tmp_path / "elf").write_bytes(b"\x7fELF nothing")
    (tmp_path / "elf").chmod(0o755)
    (tmp_path / "script").write_text("#!/nowhere/python\n")
    (tmp_path / "script").chmod(0o755)
    for word, code in (
        ("no-such-program-anywhere", "bench_command_missing"),
        (str(tmp_path / "none"), "bench_command_missing"),
        (str(tmp_path / "script"), "bench_command_missing"),
        (str(tmp_path / "data"), "bench_command_not_started"),
        (str(tmp_path / "elf"), "bench_command_not_started"),
        (str(tmp_path), "bench_command_not_started"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            run([word], 5)
        assert (caught.value.code, caught.value.exit_code) == (code, ExitCode.CONFIGURATION), word
        assert caught.value.hint
    with pytest.raises(ConfigurationError, match=r"interpreter in the first line of .*script"):
        run([str(tmp_path / "script")], 5)
