"""The git repository of a run, and what the user's git has to do with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbs.common.errors import ConfigurationError, KoptError, UsageError
from loop.journal import repository
from loop.journal.repository import Repository, check_git, check_in_place
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

RUN = "softmax-20261121-140500-qkzt"


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose configuration has a hook, a signature, a filter and ignored files that would break every commit."""
    home = tmp_path / "user"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "commit-msg", "post-checkout", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {home}/hook-ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / "ignored").write_text("*.json\n*.md\n")
    (home / "attributes").write_text("*.py text eol=crlf filter=gone\n")
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\texcludesFile = {home}/ignored\n\tattributesFile = {home}/attributes\n"
        "\tautocrlf = true\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = /nonexistent\n"
        '[filter "gone"]\n\tclean = /nonexistent\n\tsmudge = /nonexistent\n\trequired = true\n'
        f"[init]\n\ttemplateDir = {home}\n\tdefaultBranch = trunk\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def own(tmp_path: Path, user: Path) -> Repository:
    """A repository of a run's own."""
    root = tmp_path / "run"
    root.mkdir()
    (root / ".gitattributes").write_bytes(repository.ATTRIBUTES)
    made = Repository(root, RUN, in_place=False, branch="main")
    made.begin(committed=False)
    return made


def test_nothing_of_the_user_s_configuration_has_to_do_with_a_run(own: Repository, user: Path) -> None:
    (own.root / "kernel.py").write_bytes(b"x = 1\n")
    (own.root / "receipt.json").write_bytes(b"{}\r\n")
    (own.root / "ITERATIONS.md").write_bytes(b"# Log\n")
    made = own.commit("baseline", "[baseline] kernel.py\n\n# not a comment", again=False)
    logged = git(own.root, "log", "--format=%H %an <%ae>|%s").strip()
    assert logged == f"{made} kopt <kopt@localhost>|[baseline] kernel.py"
    assert git(own.root, "log", "--format=%b") == f"# not a comment\n\nKopt-Run: {RUN} baseline\n\n"
    assert git(own.root, "ls-files").split() == [".gitattributes", "ITERATIONS.md", "kernel.py", "receipt.json"]
    assert not (user / "hook-ran").exists()
    assert own.changed() == []
    (own.root / "kernel.py").write_bytes(b"x = 2\n")
    (own.root / "receipt.json").unlink()
    assert own.changed() == ["kernel.py", "receipt.json"]
    own.restore(made, ".")
    assert (own.root / "kernel.py").read_bytes() == b"x = 1\n"
    assert (own.root / "receipt.json").read_bytes() == b"{}\r\n"
    assert not (user / "hook-ran").exists()


def test_a_commit_is_made_once(own: Repository) -> None:
    (own.root / "a").write_text("1")
    first = own.commit("iter 1", "[iter 1] one", again=True)
    (own.root / "a").write_text("2")
    tenth = own.commit("iter 10", "[iter 10] ten", again=True)
    assert own.commit("iter 1", "[iter 1] one", again=True) == first
    assert own.commit("iter 10", "[iter 10] ten", again=True) == tenth
    assert git(own.root, "rev-list", "--count", "HEAD").strip() == "2"
    other = Repository(own.root, "softmax-20261121-140500-abcd", in_place=False, branch="main")
    assert other.commit("iter 1", "[iter 1] of another run", again=True) not in (first, tenth)


def test_a_file_is_read_as_the_last_commit_has_it(own: Repository) -> None:
    assert own.committed("a") is None
    (own.root / "a").write_bytes("π\n\n".encode())
    own.commit("baseline", "one", again=False)
    (own.root / "a").write_bytes(b"other")
    assert own.committed("a") == "π\n\n".encode()
    assert own.committed("b") is None


def test_a_lock_that_a_killed_git_left_is_removed(own: Repository) -> None:
    (own.root / "a").write_text("1")
    for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        (own.root / ".git" / name).touch()
    with pytest.raises(KoptError) as caught:
        own.commit("baseline", "one", again=False)
    assert caught.value.code == "git_locked"
    assert "index.lock" in caught.value.message
    said = own.settle()
    assert len(said) == 3
    assert any(".git/index.lock" in one for one in said)
    assert own.commit("baseline", "one", again=True)


def test_a_git_process_that_outlived_its_kopt_is_waited_for(own: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = own.root / "begun"
    command = ["git", "-c", "alias.wait=!touch begun; sleep 0.6", "wait"]
    with subprocess.Popen(command, cwd=own.root, stdin=subprocess.DEVNULL) as process:
        wait_until(begun.exists)
        (own.root / ".git" / "index.lock").touch()
        own.settle()
        assert process.wait(1) == 0
    assert not (own.root / ".git" / "index.lock").exists()
    monkeypatch.setattr(repository, "ORPHAN_SECONDS", 0.1)
    begun.unlink()
    with subprocess.Popen([*command[:2], "alias.wait=!touch begun; sleep 2", "wait"], cwd=own.root) as process:
        wait_until(begun.exists)
        with pytest.raises(KoptError, match="a git process still works"):
            own.settle()
        process.kill()


def test_a_repository_inside_the_user_s_does_not_reach_out(tmp_path: Path, user: Path) -> None:
    git(tmp_path, "init", "-q", "--template=")
    root = tmp_path / "run"
    root.mkdir()
    made = Repository(root, RUN, in_place=False, branch="main")
    with pytest.raises(KoptError) as caught:
        made.commit("baseline", "one", again=False)
    assert caught.value.code == "git_failed"
    with pytest.raises(KoptError) as caught:
        made.begin(committed=True)
    assert caught.value.code == "repository_missing"
    assert git(tmp_path, "status", "--porcelain", "--", "run") == ""


def test_git_that_is_not_installed_is_said_before_anything_is_made(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom kbs.common.errors import ConfigurationError\nfrom loop.journal.repository import check_git\n"
        "try:\n    check_git()\nexcept ConfigurationError as error:\n    print(error.code)\n"
    )
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "git_missing\n", done.stderr


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"])
def test_variables_that_send_git_elsewhere_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/elsewhere")
    with pytest.raises(ConfigurationError, match=f"{name} is set") as caught:
        check_git()
    assert caught.value.code == "git_environment"


# --- in the user's repository -----------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path, user: Path) -> Path:
    """A repository of the user's with one commit."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "--template=", "-b", "trunk")
    (folder / "softmax.cu").write_text("kernel\n")
    git(folder, "-c", "core.attributesFile=/dev/null", "add", "softmax.cu")
    who = ("-c", "user.name=A User", "-c", "user.email=user@example.org", "-c", "core.hooksPath=/dev/null")
    git(folder, *who, "-c", "commit.gpgSign=false", "commit", "-q", "-m", "first")
    return folder


def test_a_clean_branch_may_be_worked_on(workspace: Path) -> None:
    assert check_in_place(workspace, "softmax.cu") == "opt/softmax"
    git(workspace, "branch", "opt/softmax")
    assert check_in_place(workspace, "softmax.cu") == "opt/softmax-2"
    assert check_in_place(workspace, "my kernel: v2") == "opt/my-kernel-v2"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda w: git(w, "checkout", "-q", "--detach"), "detached_head"),
        (lambda w: (w / "softmax.cu").write_text("changed\n"), "dirty_tree"),
        (lambda w: (w / "notes.txt").write_text("new\n"), "dirty_tree"),
        (lambda w: ((w / "softmax.cu").write_text("staged\n"), git(w, "add", "softmax.cu")), "dirty_tree"),
        (lambda w: (w / ".git" / "MERGE_HEAD").write_text(git(w, "rev-parse", "HEAD")), "merge_under_way"),
    ],
)
def test_work_that_could_be_lost_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, spoil: object, code: str
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert callable(spoil)
    git(workspace, "config", "core.hooksPath", "/dev/null")
    spoil(workspace)
    before = git(workspace, "status", "--porcelain", "--branch")
    with pytest.raises(UsageError) as caught:
        check_in_place(workspace, "softmax.cu")
    assert caught.value.code == code
    assert caught.value.hint
    assert git(workspace, "status", "--porcelain", "--branch") == before


def test_a_folder_that_is_no_repository_and_one_without_a_commit_are_refused(tmp_path: Path, user: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(UsageError) as caught:
        check_in_place(folder, "k.py")
    assert caught.value.code == "no_repository"
    git(folder, "init", "-q", "--template=")
    with pytest.raises(UsageError) as caught:
        check_in_place(folder, "k.py")
    assert caught.value.code == "no_commit"


def test_in_place_nothing_but_the_run_s_folder_is_committed(workspace: Path, user: Path) -> None:
    root = workspace / "runs" / "softmax-001"
    root.mkdir(parents=True)
    (root / ".gitattributes").write_bytes(repository.ATTRIBUTES)
    (root / "kernel.py").write_bytes(b"x = 1\n")
    made = Repository(root, RUN, in_place=True, branch="opt/softmax")
    made.begin(committed=False)
    made.begin(committed=False)
    (workspace / "softmax.cu").write_text("the user goes on\n")
    (workspace / "staged.txt").write_text("and stages\n")
    git(workspace, "add", "staged.txt")
    first = made.commit("baseline", "[baseline] softmax.cu", again=False)
    assert git(workspace, "symbolic-ref", "--short", "HEAD").strip() == "opt/softmax"
    assert git(workspace, "show", "--name-only", "--format=%an", first).split() == [
        "kopt",  # nobody is named in this user's configuration
        "runs/softmax-001/.gitattributes",
        "runs/softmax-001/kernel.py",
    ]
    assert made.changed() == []
    assert made.committed("kernel.py") == b"x = 1\n"
    assert git(workspace, "status", "--porcelain").splitlines() == [" M softmax.cu", "A  staged.txt"]
    (root / "kernel.py").write_bytes(b"x = 2\n")
    made.restore(first, "kernel.py")
    assert (root / "kernel.py").read_bytes() == b"x = 1\n"
    assert (workspace / "softmax.cu").read_text() == "the user goes on\n"
    assert not (user / "hook-ran").exists()


def test_in_place_the_user_is_the_author(workspace: Path, user: Path) -> None:
    with (user / ".gitconfig").open("a") as stream:
        stream.write("[user]\n\tname = A User\n\temail = user@example.org\n")
    root = workspace / "run"
    root.mkdir()
    (root / "a").write_text("1")
    made = Repository(root, RUN, in_place=True, branch="opt/softmax")
    made.begin(committed=False)
    made.commit("baseline", "one", again=False)
    assert git(workspace, "log", "-1", "--format=%an <%ae>").strip() == "A User <user@example.org>"


def test_in_place_another_branch_is_not_written_to(workspace: Path) -> None:
    root = workspace / "run"
    root.mkdir()
    (root / "a").write_text("1")
    made = Repository(root, RUN, in_place=True, branch="opt/softmax")
    made.begin(committed=False)
    made.commit("baseline", "one", again=False)
    git(workspace, "-c", "core.hooksPath=/dev/null", "checkout", "-q", "trunk")
    with pytest.raises(KoptError) as caught:
        made.begin(committed=True)
    assert caught.value.code == "wrong_branch"
    assert "opt/softmax" in caught.value.hint


def test_in_place_a_lock_is_named_and_left(workspace: Path) -> None:
    root = workspace / "run"
    root.mkdir()
    (root / "a").write_text("1")
    made = Repository(root, RUN, in_place=True, branch="opt/softmax")
    made.begin(committed=False)
    (workspace / ".git" / "index.lock").touch()
    assert made.settle() == []
    with pytest.raises(KoptError) as caught:
        made.commit("baseline", "one", again=False)
    assert caught.value.code == "git_locked"
    assert (workspace / ".git" / "index.lock").exists()
