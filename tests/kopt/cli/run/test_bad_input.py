"""Everything that can be given wrongly to `kopt run`: a clear error, and nothing created or lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import KERNEL, REFERENCE, WRONG, answer, wanted, workspace

AGENT = ("--proposer", "agent", "--device", "cpu", "--yes", "--json")


def error(done: Run) -> tuple[int, str]:
    """(exit code, the error's name)."""
    assert done.json["errors"], done.out
    assert done.json["errors"][0]["hint"]
    return done.code, str(done.json["errors"][0]["code"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--proposer", "nobody"), "proposer_unknown"),
        (("--command", "python x.py"), "command_not_asked"),
        (("--proposer", "agent", "--command", "python x.py"), "command_not_asked"),
        (("--proposer", "command"), "command_missing"),
        (("--proposer", "command", "--command", "'"), "command_invalid"),
        (("--proposer", "agent", "--target", "fast"), "target_invalid"),
        (("--proposer", "agent", "--time", "soon"), "time_invalid"),
        (("--proposer", "agent", "--iterations", "0"), "limit_invalid"),
        (("--proposer", "agent", "--iterations", "5000"), "limit_invalid"),
        (("--proposer", "agent", "--forbid", "no_such_method"), "method_unknown"),
        (("--proposer", "agent", "--forbid", "split_k", "--prefer", "split_k"), "hints_contradict"),
        (("--proposer", "agent", "--dims", "M=x"), "dims_invalid"),
        (("--proposer", "agent", "--tolerance", "x"), "tolerance_invalid"),
        (("--proposer", "agent", "--baselines", "fastest"), "baseline_unknown"),
        (("--proposer", "agent", "--kernel", "absent.py"), "file_not_found"),
        (("--proposer", "agent", "--gpu", "h9000"), "gpu_unknown"),
        (("--proposer", "agent", "--least-confidence", "rumour"), "confidence_unknown"),
        (("--proposer", "agent", "--env", "SCALE=2"), "variable_invalid"),
        (("--proposer", "agent", "--env", "KOPT_TEST_NOT_SET"), "variable_invalid"),
        (("--proposer", "agent", "--python", "no-such-python"), "python_not_found"),
    ],
)
def test_words_that_make_no_sense(kopt: Callable[..., Run], tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    folder = workspace(tmp_path)
    done = kopt("run", "start", "--device", "cpu", "--yes", "--json", *words, cwd=folder)
    assert error(done) == (2, code)
    assert sorted(path.name for path in folder.iterdir()) == ["kernel.py", "ref.py"]


def test_hints_that_contradict_each_other(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    (folder / "HINTS.md").write_text("- forbid: split_k\n- at most 5 iterations\n- prefer: split_k\n", "utf-8")
    done = kopt("run", "start", *AGENT, cwd=folder)
    assert error(done) == (2, "hints_contradict")
    message = done.json["errors"][0]["message"]
    assert "HINTS.md:L1" in message
    assert "HINTS.md:L3" in message
    assert not (folder / "runs").exists()


def test_a_plan_that_nobody_accepts_creates_nothing(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    done = kopt("run", "start", "--proposer", "agent", "--device", "cpu", "--json", cwd=folder)
    assert error(done) == (2, "not_accepted")
    assert "will be created" in done.err
    dry = kopt("run", "start", "--proposer", "agent", "--device", "cpu", "--dry-run", "--json", cwd=folder)
    assert (dry.code, dry.json["data"]["run"]) == (0, None)
    assert not (folder / "runs").exists()


def test_two_kernels_are_listed_and_none_is_chosen(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    (folder / "other.py").write_text(KERNEL, "utf-8")
    done = kopt("run", "plan", "--proposer", "agent", "--device", "cpu", "--json", cwd=folder)
    assert error(done) == (2, "kernel_ambiguous")
    assert "kernel.py" in done.json["errors"][0]["message"]
    assert "other.py" in done.json["errors"][0]["message"]


def test_a_program_that_is_not_there(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    words = ("--proposer", "command", "--command", "./no-such-program", "--device", "cpu", "--yes", "--json")
    assert error(kopt("run", "start", *words, cwd=folder)) == (5, "command_missing")
    assert not (folder / "runs").exists()


def test_no_git(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path / "work")
    (tmp_path / "empty").mkdir()
    done = kopt("run", "start", *AGENT, cwd=folder, env={"PATH": str(tmp_path / "empty")}, fresh=True)
    assert error(done) == (5, "git_missing")
    assert not (folder / "runs").exists()


def repository(folder: Path) -> Path:
    """A workspace that is committed."""
    workspace(folder)
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin"),
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True, timeout=60)
    return folder


def test_in_place_wants_a_repository(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    assert error(kopt("run", "start", *AGENT, "--in-place", cwd=folder)) == (2, "no_repository")


def test_in_place_wants_a_branch(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = repository(tmp_path)
    subprocess.run(["git", "-C", str(folder), "checkout", "-q", "--detach"], check=True, timeout=60)
    assert error(kopt("run", "start", *AGENT, "--in-place", cwd=folder)) == (2, "detached_head")


def test_in_place_leaves_uncommitted_work_alone(kopt: Callable[..., Run], tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "ref.py").write_text(REFERENCE + "# not committed\n", "utf-8")
    done = kopt("run", "start", *AGENT, "--in-place", cwd=folder)
    assert error(done) == (2, "dirty_tree")
    assert "ref.py" in done.json["errors"][0]["message"]
    assert (folder / "ref.py").read_text("utf-8").endswith("# not committed\n")


def test_a_reference_that_fails(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    broken = REFERENCE.replace("return torch.relu(x) * 2.0", "raise ValueError('not today')")
    folder = workspace(tmp_path / "work", reference=broken)
    done = run(home, "run", "start", *AGENT, cwd=folder)
    assert error(done) == (2, "reference_failed")
    assert "not today" in done.json["errors"][0]["message"]
    status = run(home, "run", "status", "--json", cwd=folder).json["data"]
    assert (status["phase"], status["best"]) == ("signal", None)
    assert error(run(home, "run", "resume", "--json", cwd=folder)) == (2, "reference_failed")


def test_a_kernel_that_is_wrong_to_begin_with(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "work", kernel=WRONG)
    done = run(home, "run", "start", *AGENT, cwd=folder)
    assert done.code == 4
    assert done.json["data"]["run"]["phase"] == "baseline_failed"
    assert done.json["data"]["run"]["versions"][0]["attempts"][0]["verdict"] == "incorrect"
    assert (Path(done.json["data"]["run"]["folder"]) / "v0" / "kernel.py").exists()
    assert "nothing to improve on" in run(home, "run", "status", cwd=folder).out
    assert error(run(home, "run", "extend", "2", "--json", cwd=folder)) == (2, "baseline_failed")
    assert "mend it, and begin another run" in run(home, "run", "next", cwd=folder).out
    assert "no version is profiled yet" in run(home, "run", "gate", cwd=folder).err


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import time\ntime.sleep(600)\n", "command-timeout"),
        ("print('no idea')\n", "schema"),
        ("import os\nos.abort()\n", "command-failed"),
    ],
)
def test_a_program_that_is_of_no_use(run: Callable[..., Run], home: Path, tmp_path: Path, text: str, rule: str) -> None:
    folder = workspace(tmp_path / "work")
    (folder / "program.py").write_text(text, "utf-8")
    words = ("--proposer", "command", "--command", f"{sys.executable} program.py", "--command-timeout", "2")
    done = run(home, "run", "start", *words, "--iterations", "1", "--device", "cpu", "--yes", "--json", cwd=folder)
    found = done.json["data"]["run"]
    assert (done.code, found["phase"]) == (1, "finished"), "it ends as any run, with its reports"
    [wrong] = done.json["errors"]
    assert wrong["code"] == "no_proposal"
    assert f"{words[-3]} was asked 3 times and gave no proposal; the last time: " in wrong["message"]
    assert run(home, "run", "resume", cwd=folder).code == 3
    assert (found["versions"][1]["outcome"], found["versions"][1]["refused"]) == ("failed", 3)
    assert rule in (Path(found["folder"]) / "v1" / "refused" / "s3" / "reasons.json").read_text("utf-8")


def test_a_full_disk_loses_nothing(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "work")
    begun = run(home, "run", "start", *AGENT, cwd=folder)
    assert begun.code == 0, begun.out + begun.err
    journal = Path(begun.json["data"]["run"]["folder"]) / "journal.jsonl"
    before = journal.read_bytes()

    def as_if_full() -> None:
        """No file may grow beyond what the journal has."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), len(before)))

    words = [sys.executable, "-m", "kopt", "run", "submit", "-", "--json"]
    full = subprocess.run(
        words,
        input="no proposal",
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "KOPT_HOME": str(home)},
        preexec_fn=as_if_full,
        timeout=120,
        check=False,
    )
    assert full.returncode == 1, full.stdout + full.stderr
    assert '"code": "disk_full"' in full.stdout
    assert journal.read_bytes() == before

    def kopt(*said: str, **more: object) -> Run:
        return run(home, *said, **more)

    done = run(home, "run", "submit", "-", "--json", cwd=folder, stdin="no proposal")
    assert (done.code, done.json["data"]["outcome"]) == (4, "refused")
    assert answer(wanted(kopt, folder))["version"] == 1


@pytest.mark.parametrize("command", ["status", "next", "submit", "gate", "resume", "show", "report", "final", "apply"])
def test_no_run(kopt: Callable[..., Run], tmp_path: Path, command: str) -> None:
    words = ("run", command, *(["-"] if command == "submit" else []), "--json")
    assert error(kopt(*words, cwd=tmp_path)) == (2, "run_not_named")
    assert error(kopt(*words, "--run", "nothing", cwd=tmp_path)) == (2, "run_unknown")


def test_no_runs_to_list(kopt: Callable[..., Run], tmp_path: Path) -> None:
    done = kopt("run", "list", "--json", cwd=tmp_path)
    assert (done.code, done.json["data"]["runs"]) == (0, [])


def test_a_damaged_run_is_listed_with_what_is_wrong(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "runs" / "kernel-001").mkdir(parents=True)
    (tmp_path / "runs" / "kernel-001" / "run.json").write_text("{}", "utf-8")
    [found] = kopt("run", "list", "--json", cwd=tmp_path).json["data"]["runs"]
    assert found["phase"] == "damaged"
    assert "run.json" in found["problem"]
    assert error(kopt("run", "status", "--json", cwd=tmp_path)) == (1, "record_damaged")
