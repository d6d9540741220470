"""The git repository of a run: one of its own, or a branch of the user's in which only the run's folder is touched.

In a repository of its own the user's configuration is not read: no hook, filter, signature or ignored pattern of it has
anything to do with a run. In the user's repository hooks and signatures are left out too, and the author is the user.
"""

from __future__ import annotations

import hashlib
import re
import time
from itertools import count
from pathlib import Path

import psutil

from kbs.common import git
from kbs.common.errors import KoptError, UsageError
from kbs.common.files import write_whole
from kbs.common.git import GitCommands, GitUse
from kbs.common.visible_text import visible

_USE = GitUse(
    reason="every run is kept in a git repository",
    repository="the run's",
    retry="run `kopt run resume`: nothing of the run is lost.",
)
ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding\n"
""".gitattributes of a run's folder: what is restored is verbatim."""
TRAILER = "Kopt-Run"
"""Last line of a commit's message: `Kopt-Run: <id> <what>`."""
ORPHAN_SECONDS = 10.0


def check_git() -> None:
    """Raises `ConfigurationError`: `git_missing`, or `git_environment` if variables redirect git."""
    git.check_git(_USE)


def check_in_place(workspace: Path, kernel: str) -> str:
    """The branch for a run inside the user's repository. Nothing is changed.

    Raises `UsageError`: `no_repository`, `detached_head`, `no_commit`, `merge_under_way`, `dirty_tree`.
    """
    where = GitCommands(workspace, _USE)
    inside, top = where.ask("rev-parse", "--show-toplevel")
    if not inside or not top:
        raise UsageError(
            f"{workspace} lies in no git repository",
            code="no_repository",
            hint="Leave --in-place out: the run then has a repository of its own. Or run `git init` and commit.",
        )
    attached, _ = where.ask("symbolic-ref", "-q", "HEAD")
    if not attached:
        raise UsageError(
            f"no branch is checked out in {top} (detached head)",
            code="detached_head",
            hint="`git switch BRANCH`, then start again; or leave --in-place out.",
        )
    if not where.ask("rev-parse", "-q", "--verify", "HEAD")[0]:
        raise UsageError(
            f"the repository {top} has no commit yet",
            code="no_commit",
            hint="Commit your work, or leave --in-place out.",
        )
    if where.ask("rev-parse", "-q", "--verify", "MERGE_HEAD")[0]:
        raise UsageError(
            f"a merge is under way in {top}", code="merge_under_way", hint="Finish it, or leave --in-place out."
        )
    changed = where.tell("status", "--porcelain", "--untracked-files=normal").splitlines()
    if changed:
        shown = ", ".join(visible(line[3:]) for line in changed[:5]) + (" …" if len(changed) > 5 else "")
        raise UsageError(
            f"there is uncommitted work in {top}: {shown}",
            code="dirty_tree",
            hint="Commit or stash it, or leave --in-place out: the run then has a repository of its own.",
        )
    return _free_branch(where, re.sub(r"[^A-Za-z0-9_-]+", "-", Path(kernel).stem).strip("-") or "kernel")


def _free_branch(where: GitCommands, kernel: str) -> str:
    taken = set(where.tell("for-each-ref", "--format=%(refname:short)", "refs/heads/opt/").splitlines())
    names = (f"opt/{kernel}" + (f"-{number}" if number > 1 else "") for number in count(1))
    return next(name for name in names if name not in taken)


def blob_id(data: bytes, digits: int) -> str:
    """Git's id of a file's content: a SHA-1, or a SHA-256 where the repository's ids have 64 digits."""
    made = hashlib.new("sha256" if digits == 64 else "sha1", b"blob %d\0" % len(data), usedforsecurity=False)
    made.update(data)
    return made.hexdigest()


class Repository:
    """The repository of a run that this process holds the lock of."""

    def __init__(self, root: Path, run: str, *, in_place: bool, branch: str, last: Path | None = None) -> None:
        self.last = last  # the file that keeps the hash of the last commit
        self.root, self.run, self.branch, self.own = root.resolve(), run, branch, not in_place
        # A replacement ref would show another commit than the one that is named.
        environment = {"GIT_NO_REPLACE_OBJECTS": "1"}
        self._git = GitCommands(self.root, _USE, private=self.own, environment=environment)

    def begin(self, *, committed: bool) -> None:
        """Make the repository or the branch where it is not there; `committed`: whether the run has commits already.

        Raises `KoptError`: `repository_missing`, `wrong_branch`, `git_locked`, `git_failed`.
        """
        if self.own:
            if not committed:
                self._git.tell("init", "--quiet", "--template=", f"--initial-branch={self.branch}", ".")
            elif not (self.root / ".git").exists():
                raise KoptError(
                    f"the run in {self.root} has commits, and its git repository is gone",
                    code="repository_missing",
                    hint="Restore the folder .git from a backup; a new run can begin from the kernel in best/.",
                )
            return
        _, now = self._git.ask("symbolic-ref", "-q", "--short", "HEAD")
        if now == self.branch:
            return
        if not committed and not self._git.ask("rev-parse", "-q", "--verify", f"refs/heads/{self.branch}")[0]:
            self._git.tell("checkout", "--quiet", "-b", self.branch)
            return
        raise KoptError(
            f"the run's branch is {self.branch}, and {visible(now) or 'no branch'} is checked out",
            code="wrong_branch",
            hint=f"`git switch {self.branch}`, then `kopt run resume`.",
        )

    def settle(self) -> list[str]:
        """Clean up after a killed process: wait for its git, remove locks of a repository of the run's own.

        Returns what was done. Raises `KoptError` (`git_locked`) where git still runs.
        """
        if not self.own:
            return []
        end = time.monotonic() + ORPHAN_SECONDS
        while self._git_runs():
            if time.monotonic() > end:
                raise KoptError(
                    f"a git process still works on {self.root}",
                    code="git_locked",
                    hint="Wait for it to end, or end it; then `kopt run resume`.",
                )
            time.sleep(0.05)
        said = []
        for lock in sorted((self.root / ".git").glob("*.lock")) + sorted((self.root / ".git" / "refs").rglob("*.lock")):
            lock.unlink(missing_ok=True)
            said.append(f"removed {lock.relative_to(self.root)}, which a git process that was ended had left")
        return said

    def commit(self, what: str, message: str, *, again: bool) -> str:
        """Commit the run's folder as it is: the commit's hash. `again`: it may have been made before a kill.

        A commit of this run with the trailer `what` is not made twice.
        """
        trailer = f"{TRAILER}: {self.run} {what}"
        if again and (made := self._made(trailer)):
            return self._kept(made)
        self._git.tell("add", "--all", "--force", "--", ".")
        text = f"{message}\n\n{trailer}\n"
        self._git.tell("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--only", "-m", text, "--", ".")
        return self._kept(self._git.tell("rev-parse", "HEAD"))

    def _kept(self, commit: str) -> str:
        if self.last is not None:
            write_whole(self.last, f"{commit}\n".encode("ascii"), private=True)
        return commit

    def _made(self, trailer: str) -> str:
        """The commit that has this trailer; empty where there is none."""
        known, text = self._git.ask("log", "--fixed-strings", f"--grep={trailer}", "--format=%H%x00%B%x01")
        for one in text.split("\x01") if known else ():
            hash, _, body = one.strip("\n").partition("\0")
            if trailer in body.splitlines():
                return hash
        return ""

    def committed(self, path: str) -> bytes | None:
        """A file of the run's folder as the last commit has it; None where it has none."""
        known, text = self._git.ask("show", f"HEAD:./{path}", raw=True)
        return text.encode("utf-8", "surrogateescape") if known else None

    def commits(self) -> frozenset[str]:
        """Every commit in the history of the branch that is checked out. Raises `KoptError`."""
        return frozenset(self._git.tell("rev-list", "HEAD").split())

    def blobs(self) -> dict[str, str]:
        """Path below the run's folder → git's id of its content, in the last commit. Raises `KoptError`."""
        listed = self._git.tell("ls-tree", "-r", "-z", "HEAD").split("\0")
        return {path: words.split()[2] for words, _, path in (line.partition("\t") for line in listed) if path}

    def damage(self) -> str:
        """What git finds wrong with its own objects; empty if each has the content that its name says."""
        sound, said = self._git.ask("fsck", "--no-dangling", "--no-progress", "--no-reflogs")
        return "" if sound else visible(said.strip().splitlines()[0][:200] if said.strip() else "git fsck failed")

    def restore(self, commit: str, path: str) -> None:
        """Put a file or folder back as a commit has it. Raises `KoptError`."""
        self._git.tell("checkout", "--quiet", commit, "--", path)

    def changed(self) -> list[str]:
        """Files of the run's folder that are not as the last commit has them."""
        listed = self._git.tell("status", "--porcelain", "--untracked-files=all", "--", ".")
        return [line[3:] for line in listed.splitlines()]

    def _git_runs(self) -> bool:
        """Whether a git process works in the folder: one that was started by a process that was killed."""
        processes = (process.info for process in psutil.process_iter(["name", "cwd"]))
        return any((one["name"] or "").startswith("git") and one["cwd"] == str(self.root) for one in processes)
