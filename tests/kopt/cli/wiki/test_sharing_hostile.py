"""`kopt wiki propose`, `accept`, `reject` and `sync` in a repository of somebody else, or in no fit state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kopt.cli.wiki.clones import SCAN, SUM, Clones, git, page

pytestmark = [pytest.mark.processes, pytest.mark.slow]
SWIZZLE = page("technique/swizzle", "A swizzle permutes tiles.", links="../kernel/scan.md")
HOOKS = (
    "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "post-merge", "pre-push",
    "pre-rebase", "post-rewrite", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc",
    "pre-receive", "update", "post-receive", "post-update", "proc-receive", "push-to-checkout",
)  # fmt: skip


@pytest.fixture
def clones(built_home: Path, tmp_path: Path) -> Clones:
    return Clones.make(tmp_path / "work", built_home)


def traps(folder: Path, program: Path, hooks: Path) -> None:
    """Everything that git would run of this repository runs the program."""
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\n{program} hook-{name}\n")
        (hooks / name).chmod(0o755)
    for name in (
        "core.fsmonitor", "core.editor", "sequence.editor", "core.sshCommand", "core.askPass", "core.pager",
        "core.gitProxy", "core.alternateRefsCommand", "gpg.program", "gpg.ssh.program", "credential.helper",
        "credential.https://example.org.helper", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
        "diff.evil.command", "diff.evil.textconv", "diff.external", "merge.evil.driver", "trailer.x.command",
        "remote.origin.uploadpack", "remote.origin.receivepack", "uploadpack.packObjectsHook", "alias.fetch",
    ):  # fmt: skip
        value = f"!{program} {name}" if "credential" in name or "alias" in name else f"{program} {name}"
        git(folder, "config", name, value)
    for name in ("commit.gpgSign", "tag.gpgSign", "push.gpgSign", "log.showSignature", "filter.evil.required"):
        git(folder, "config", name, "true")
    git(folder, "config", "core.hooksPath", str(hooks))
    for name in ("diff", "merge"):
        git(folder, "config", f"{name}.tool", "evil")
    attributes = "*.md filter=evil diff=evil merge=evil\n"
    (Path(git(folder, "rev-parse", "--absolute-git-dir")) / "info").mkdir(exist_ok=True)
    (Path(git(folder, "rev-parse", "--absolute-git-dir")) / "info/attributes").write_text(attributes)


def test_nothing_that_a_repository_names_is_run(clones: Clones) -> None:
    """Not of the wiki's repository, nor of a remote that is a folder."""
    ran = clones.root / "ran"
    program = clones.root / "program"
    program.write_text(f'#!/bin/sh\necho "$@" >> {ran}\ncat\n')
    program.chmod(0o755)
    clones.commit("two", "kernel/sum", SUM.replace("It reads each", "It reads any"))
    assert clones.kopt("sync", clone="two").code == 0
    for name in ("one", "remote.git"):
        traps(clones.root / name, program, clones.root / f"{name}-hooks")
    git(clones.root / "one", "hash-object", "-w", "--path", "x.md", str(clones.wiki("one") / "README.md"), check=False)
    assert ran.exists(), "the traps work"
    ran.unlink()
    clones.propose("technique/swizzle", SWIZZLE)
    clones.propose("kernel/scan", SCAN.replace("adds up", "folds"))
    clones.propose("technique/pad", page("technique/pad", "A pad is unused.", links="../kernel/sum.md"))
    assert clones.kopt("accept", "technique/swizzle").code == 0
    assert clones.kopt("accept", "kernel/scan").code == 0
    assert clones.kopt("reject", "technique/pad", "--reason", "no").code == 0
    done = clones.json("sync")
    assert (done["pulled"], done["pushed"]) == (1, 4)
    assert "folds" in (clones.root / "one/kernel/scan.md").read_text()
    assert "reads any" in (clones.root / "one/kernel/sum.md").read_text()
    assert clones.kopt("sync").code == 0
    assert not ran.exists(), ran.read_text()
    assert not clones.lost()


@pytest.mark.parametrize(
    "address", ["ext::sh -c touch% {ran}", "ssh://-oProxyCommand=touch {ran}/x", "--upload-pack=touch {ran}", "evil::x"]
)
def test_an_address_that_names_a_program(clones: Clones, address: str) -> None:
    ran = clones.root / "ran"
    config = clones.root / "one/.git/config"
    text = config.read_text()
    config.write_text(text.replace(f"url = {clones.root / 'remote.git'}", f"url = {address.format(ran=ran)}"))
    git(clones.root / "one", "config", "protocol.ext.allow", "always")
    error = clones.json("sync", code=1)
    assert error["code"] == "remote_unreachable"
    assert not ran.exists()


def test_the_users_own_filters_and_helpers_are_run(clones: Clones) -> None:
    """What the user's own configuration names, such as git-lfs, is used: the wiki's may not take it away."""
    own = clones.root / "own.config"
    own.write_text('[filter "mark"]\n\tclean = sed s/SHOWN/moves/\n\tsmudge = sed s/moves/SHOWN/\n')
    (clones.root / "one/.git/info/attributes").write_text("technique/*.md filter=mark\n")
    git(clones.root / "one", "config", "filter.mark.smudge", f"touch {clones.root / 'ran'}; cat")
    text = SWIZZLE.replace("\n[^src-a]: ", "\nIt moves rows.[^src-a]\n\n[^src-a]: ")
    env = {"GIT_CONFIG_GLOBAL": str(own)}
    clones.propose("technique/swizzle", text, env=env)
    done = clones.kopt("accept", "technique/swizzle", env=env)
    assert not (clones.root / "ran").exists(), done.out
    assert done.code == 0
    assert "It SHOWN rows" in (clones.root / "one/technique/swizzle.md").read_text()
    assert "It moves rows" in clones.text("one", "technique/swizzle")
    assert git(clones.root / "one", "status", "--porcelain", env=env) == ""


def test_a_folder_that_looks_like_a_repository_is_none(clones: Clones) -> None:
    """Files of a wiki may be HEAD, config, objects and refs: git would take them for a repository of its own."""
    ran = clones.root / "ran"
    inner = clones.root / "one/inner"
    git(clones.root, "init", "-q", "--bare", str(inner))
    git(inner, "config", "core.worktree", str(clones.root))
    git(inner, "config", "core.fsmonitor", f"touch {ran}")
    (inner / "kernel").mkdir()
    (inner / "kernel/sum.md").write_text(page("kernel/sum", "A sum."))
    (clones.root / "page.md").write_text(SWIZZLE)
    assert clones.json("propose", "--page", "page.md", clone="one/inner", code=5)["code"] == "wiki_not_in_git"
    assert not ran.exists()


def test_a_configuration_that_names_another_work_tree(clones: Clones) -> None:
    (clones.root / "aim").mkdir()
    git(clones.root / "one", "config", "core.worktree", str(clones.root))
    error = clones.json("sync", code=5)
    assert error["code"] == "wiki_not_in_git"


def test_states_that_are_explained(clones: Clones) -> None:
    """Nothing is changed, and each error names what to do."""
    one = clones.root / "one"
    clones.propose("technique/swizzle", SWIZZLE)
    accept = ("accept", "technique/swizzle")

    (one / ".git/index.lock").touch()
    for words in (accept, ("sync",)):
        error = clones.json(*words, code=1)
        assert (error["code"], str(one / ".git/index.lock") in error["message"]) == ("git_locked", True)
    (one / ".git/index.lock").unlink()

    git(one, "switch", "-q", "--detach")
    for words in (accept, ("sync",)):
        assert clones.json(*words, code=2)["code"] == "detached_head"
    git(one, "switch", "-q", "main")

    for name, command in (("rebase-merge", "git rebase"), ("MERGE_HEAD", "git merge"), ("rebase-apply", "git rebase")):
        (one / ".git" / name).touch()
        for words in (accept, ("sync",)):
            error = clones.json(*words, code=2)
            assert error["code"] == "git_under_way"
            assert f"`{command} --abort`" in error["hint"]
        (one / ".git" / name).unlink()

    git(one, "worktree", "add", "-q", str(clones.root / "aside"), "-b", "aside")
    assert clones.json(*accept, clone="aside", code=2)["code"] == "branch_elsewhere"

    assert clones.json(*accept, "--branch", "nothing", code=2)["code"] == "branch_unknown"
    assert clones.json("accept", "technique/none", code=2)["code"] == "proposal_unknown"
    git(one, "remote", "set-url", "origin", str(clones.root / "gone.git"))
    error = clones.json("sync", code=1)
    assert (error["code"], "gone.git" in error["message"]) == ("remote_unreachable", True)
    git(one, "remote", "set-url", "origin", "https://user:secret@nowhere.invalid/wiki.git")
    error = clones.json("sync", code=1)
    assert error["code"] == "remote_unreachable"
    assert "secret" not in str(error)
    git(one, "remote", "remove", "origin")
    assert clones.json("sync", code=2)["code"] == "no_remote"
    assert clones.json(*accept)["conflicts"] == []


def test_a_wiki_that_is_not_in_git(clones: Clones) -> None:
    shutil.rmtree(clones.root / "one/.git")
    (clones.root / "page.md").write_text(SWIZZLE)
    for words in (("propose", "--page", "page.md"), ("accept", "technique/x"), ("sync",)):
        assert clones.json(*words, code=5)["code"] == "wiki_not_in_git"
    git(clones.root / "one", "init", "-q", "-b", "main")
    assert clones.json("sync", code=2)["code"] == "branch_unknown", "nothing is committed yet"


def test_git_is_missing(clones: Clones) -> None:
    error = clones.json("sync", code=5, env={"PATH": str(clones.root / "nothing")}, fresh=True)
    assert error["code"] == "git_missing"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no front matter", "page_name"),
        ("---\nid: ../../etc/passwd\n---\n", "page_name"),
        ("---\nid: kernel/../x\n---\n", "page_name"),
        ("---\nid: nothing/x\n---\n", "page_name"),
        ("\xff", "page_unreadable"),
        ("x" * 1_000_001, "page_unreadable"),
        (SCAN, "page_unchanged"),
    ],
    ids=["plain", "outside", "dots", "kind", "bytes", "large", "unchanged"],
)
def test_pages_that_cannot_be_proposed(clones: Clones, text: str, code: str) -> None:
    (clones.root / "page.md").write_text(text, "latin-1")
    before = clones.state("one")
    assert clones.json("propose", "--page", "page.md", code=2)["code"] == code
    assert clones.state("one") == before


def test_a_link_in_the_work_tree_is_not_followed(clones: Clones) -> None:
    """A folder of the wiki that was replaced by a link leads out: nothing is written through it."""
    one, out = clones.root / "one", clones.root / "out"
    out.mkdir()
    (one / "technique").symlink_to(out)
    clones.propose("technique/swizzle", SWIZZLE)
    assert clones.json("accept", "technique/swizzle", code=2)["code"] == "uncommitted_changes"
    assert list(out.iterdir()) == []
    assert (one / "technique").is_symlink()
