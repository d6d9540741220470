"""The git repository of a wiki, which may be somebody else's: what it names to be run is not run.

Hooks, and the programs that the repository's own configuration names (filters, credential helpers, ssh commands …), are
left out; those of the user's own configuration count. Everything is worked out in objects and in temporary folders, so
that until a branch moves nothing of the repository is changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kbs.common.errors import ConfigurationError, KoptError, UsageError
from kbs.common.git import GitCommands, GitUse
from kbs.common.locks import file_lock
from kbs.common.visible_text import visible
from wiki.library import Wiki

_USE = GitUse(reason="proposals are branches of it", repository="the wiki's", retry="run the command again.")
_SECONDS = 300.0
"""A git command that takes longer is ended."""
_LOCK_SECONDS = 10.0
PROPOSE = "propose/"
"""Of the branches of proposals: `propose/technique-split-k`."""
REJECTED = "refs/rejected/"
"""What was rejected is kept below it."""
ACCEPTED = "refs/accepted/"
"""What was accepted is kept below it until the remote's main branch has it, should somebody rebase by hand."""
NONE = ""
"""No object; to `git update-ref`, that there is no such ref."""
_UNDER_WAY = {
    "rebase-merge": ("a rebase", "git rebase"),
    "rebase-apply": ("a rebase", "git rebase"),
    "MERGE_HEAD": ("a merge", "git merge"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "git cherry-pick"),
    "REVERT_HEAD": ("a revert", "git revert"),
}
"""File of the git folder → what is under way, and the command that continues or aborts it."""
_PROGRAMS = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass|editor|pager|alternaterefscommand|attributesfile)"
    r"|credential\.(?:.+\.)?helper|filter\..+\.(?:clean|smudge|process|required)"
    r"|gpg\.(?:.+\.)?(?:program|defaultkeycommand)|remote\..+\.(?:uploadpack|receivepack)",
    re.DOTALL,
)
"""Settings that name a program, or files that do, and that nothing below switches off for all."""
_NEUTRAL = {
    "core.alternaterefscommand": "true",
    "core.editor": "true",
    "core.pager": "cat",
    "uploadpack": "git-upload-pack",
    "receivepack": "git-receive-pack",
    "program": "false",
}
_SETTINGS = (
    ("safe.bareRepository", "explicit"),  # a folder of a wiki may look like a repository
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
    ("log.showSignature", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
)
_PROTOCOLS = ("file", "git", "http", "https", "ssh")


@dataclass(frozen=True)
class Repository:
    """The repository in which a wiki is kept. `open_repository` makes one."""

    wiki: Wiki
    top: Path
    prefix: str
    """The wiki's folder below `top`: `pages/`, or nothing."""
    git: GitCommands
    folder: Path
    """git's own folder, of this work tree."""
    main: str
    """The branch of what is accepted."""

    def path(self, page: str) -> str:
        """The path in the repository of a file of the wiki."""
        return self.prefix + page

    def page(self, path: str) -> str:
        """The path in the wiki of a file of the repository; empty for one that is elsewhere."""
        return path[len(self.prefix) :] if path.startswith(self.prefix) else ""

    def commit(self, name: str) -> str:
        """The commit that a name stands for; empty if there is none."""
        found, out = self.git.ask("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        return out if found else ""

    @property
    def tip(self) -> str:
        """The newest commit of the main branch."""
        return self.commit(f"refs/heads/{self.main}")

    def contains(self, newer: str, older: str) -> bool:
        """Whether a commit is `newer` or one before it."""
        return self.git.ask("merge-base", "--is-ancestor", older, newer)[0]

    def base(self, one: str, other: str) -> str:
        """The newest commit that two have both; an empty tree if there is none."""
        found, out = self.git.ask("merge-base", one, other)
        return out.splitlines()[0] if found and out else self.empty

    @property
    def empty(self) -> str:
        """A tree without files."""
        return self.git.tell("hash-object", "-w", "-t", "tree", os.devnull)

    def refs(self, below: str) -> dict[str, str]:
        """Commit by full name of each ref below `refs/heads/propose/`, say."""
        out = self.git.tell("for-each-ref", "--format=%(objectname) %(refname)", below)
        return {name: commit for commit, _, name in (line.partition(" ") for line in out.splitlines())}

    @cached_property
    def checked_out(self) -> dict[str, Path]:
        """Branch → the work tree that has it."""
        found: dict[str, Path] = {}
        where = self.top
        for line in self.git.tell("worktree", "list", "--porcelain").splitlines():
            what, _, value = line.partition(" ")
            if what == "worktree":
                where = Path(value)
            elif what == "branch":
                found[value.removeprefix("refs/heads/")] = where
        return found

    @property
    def main_here(self) -> bool:
        """Whether the main branch is checked out in the folder in which the wiki is."""
        return self.git.ask("symbolic-ref", "--quiet", "HEAD") == (True, f"refs/heads/{self.main}")

    # --- writing ----------------------------------------------------------------------------------------------------

    def changed(self, old: str, new: str) -> dict[str, tuple[str, str, str, str]]:
        """Path → mode and object in `old`, then in `new`, of what differs; both empty where it is not there."""
        out = self.git.tell("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new)
        parts = out.split("\0")
        found = {}
        for about, path in zip(parts[::2], parts[1::2], strict=False):
            mode, new_mode, digest, new_digest, _ = about.removeprefix(":").split(" ")
            before, after = mode.strip("0") and (mode, digest), new_mode.strip("0") and (new_mode, new_digest)
            found[path] = (*(before or ("", NONE)), *(after or ("", NONE)))
        return found

    @contextlib.contextmanager
    def scratch(self) -> Iterator[tuple[GitCommands, Path]]:
        """git with an index of its own, and a folder: the repository's index stays as it is."""
        with tempfile.TemporaryDirectory(prefix="kopt-wiki-") as name:
            yield self.git.with_environment(GIT_INDEX_FILE=str(Path(name) / "index")), Path(name)

    def with_files(self, tree: str, files: dict[str, bytes]) -> str:
        """A tree with these files in place of what stands at their paths."""
        with self.scratch() as (git, folder):
            git.tell("read-tree", tree)
            for path, data in files.items():
                (folder / "file").write_bytes(data)
                digest = git.tell("hash-object", "-w", "--no-filters", "--", str(folder / "file"))
                git.tell("update-index", "--add", "--cacheinfo", f"100644,{digest},{path}")
            return git.tell("write-tree")

    @contextlib.contextmanager
    def files_of(self, commit: str) -> Iterator[Wiki]:
        """The wiki as a commit or tree has it, in a temporary folder."""
        with self.scratch() as (git, folder):
            out = folder / "pages"
            out.mkdir()
            inside = f"{commit}:{self.prefix.rstrip('/')}" if self.prefix else f"{commit}^{{tree}}"
            found, tree = git.ask("rev-parse", "--quiet", "--verify", inside)
            if found and git.tell("cat-file", "-t", tree) == "tree":
                git.tell("read-tree", tree)
                git.tell("checkout-index", "--all", "--quiet", f"--prefix={out}/")
            yield Wiki(self.wiki.name, out)

    def written(self, tree: str, parents: Sequence[str], message: str, author: str = "") -> str:
        """A new commit; `author`: of this commit, instead of the user."""
        git = self.git
        if author:
            name, email, date = git.tell("show", "-s", "--format=%an%n%ae%n%ad", "--date=raw", author).split("\n")
            git = git.with_environment(GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=email, GIT_AUTHOR_DATE=date)
        words = [word for parent in parents for word in ("-p", parent)]
        return git.tell("commit-tree", tree, *words, "-m", message)

    def move(self, ref: str, new: str, old: str, why: str) -> None:
        """Move a ref, if it still is where it was. Raises `KoptError` (`branch_moved`)."""
        if not self.git.ask("update-ref", "-m", f"kopt wiki: {why}", ref, new, old)[0]:
            now = self.commit(ref) or NONE
            if now == old:  # it did not move, so git says what is wrong
                self.git.tell("update-ref", ref, new, old)
            raise KoptError(
                f"{ref} was moved by another command meanwhile",
                code="branch_moved",
                hint="Nothing was changed. Run the command again.",
            )

    def drop(self, ref: str, old: str) -> bool:
        """Remove a ref whose commit another one holds, unless it is checked out or has moved."""
        branch = ref.removeprefix("refs/heads/")
        return branch not in self.checked_out and self.git.ask("update-ref", "-d", ref, old)[0]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command of kopt at a time changes the repository. Raises `KoptError` (`wiki_busy`)."""
        common = Path(self.git.tell("rev-parse", "--git-common-dir"))
        place = (self.top / common).resolve() / "kopt-wiki.lock"

        def busy(holder: str) -> KoptError:
            return KoptError(
                f"{holder} works on {self.top}", code="wiki_busy", hint="Wait for it to end; then run it again."
            )

        with file_lock(place, _LOCK_SECONDS, busy):
            yield

    def check_ready(self) -> None:
        """Whether the main branch may be moved now.

        Raises `UsageError` (`git_under_way`, `detached_head`, `branch_elsewhere`) and `KoptError` (`git_locked`).
        """
        for name, (what, command) in _UNDER_WAY.items():
            if (self.folder / name).exists():
                raise UsageError(
                    f"{what} is under way in {self.top}",
                    code="git_under_way",
                    hint=f"Finish it with `{command} --continue`, or take it back with `{command} --abort`.",
                )
        if not self.git.ask("symbolic-ref", "--quiet", "HEAD")[0]:
            raise UsageError(
                f"no branch is checked out in {self.top} (detached head)",
                code="detached_head",
                hint=f"`git switch {self.main}` first; `git branch NAME` keeps commits that are on no branch.",
            )
        lock = self.folder / "index.lock"
        if lock.exists():
            raise KoptError(
                f"git is locked: {lock} is there",
                code="git_locked",
                hint="If no git process runs there, remove that file; then run the command again.",
            )
        where = self.checked_out.get(self.main)
        if where is not None and not self.main_here:
            raise UsageError(
                f"{self.main} is checked out in another folder, {where}",
                code="branch_elsewhere",
                hint="Run the command with --wiki and the wiki's folder there.",
            )


def open_repository(wiki: Wiki, branch: str | None) -> Repository:
    """The repository of a wiki; `branch`: its main branch, where that is not `main`, `master` or what is checked out.

    Raises `ConfigurationError` (`git_missing`, `git_environment`, `wiki_not_in_git`), `UsageError` (`branch_unknown`).
    """
    root = wiki.root.resolve()
    plain = GitCommands(root, _USE, seconds=_SECONDS, settings=_SETTINGS)
    inside, top = plain.ask("rev-parse", "--show-toplevel")
    said = "" if inside else plain.attempt("rev-parse", "--show-toplevel")[1]
    if inside and top:
        git = GitCommands(
            Path(top), _USE, seconds=_SECONDS, settings=(*_SETTINGS, *_without_programs(plain)),
            environment=_environment(plain),
        )  # fmt: skip
        folder = plain.tell("rev-parse", "--absolute-git-dir")
        # The repository's configuration may name another work tree, whose files are none of the wiki's.
        inside = git.ask("rev-parse", "--absolute-git-dir") == (True, folder) and root.is_relative_to(Path(top))
    if not inside or not top:
        why = " / ".join(said.split(" / ")[:1]) if "dubious" in said else ""
        raise ConfigurationError(
            f"the wiki {wiki.name} is in no git repository: {root}" + (f" ({visible(why)})" if why else ""),
            code="wiki_not_in_git",
            hint="`git init` in its folder, commit the pages, and add the remote that the team shares.",
        )
    prefix = "" if root == Path(top) else f"{root.relative_to(top).as_posix()}/"
    made = Repository(wiki, Path(top), prefix, git, Path(folder), _main(git, Path(top), branch))
    if prefix and wiki.files() and not git.ask("rev-parse", "--quiet", "--verify", f"{made.tip}:{prefix[:-1]}")[0]:
        raise ConfigurationError(
            f"{made.main} of {top} has nothing of {prefix}",
            code="wiki_not_in_git",
            hint="Commit the wiki's pages on that branch first, or name another with --branch.",
        )
    return made


def _main(git: GitCommands, top: Path, asked: str | None) -> str:
    _, here = git.ask("symbolic-ref", "--quiet", "--short", "HEAD")
    own = [] if here.startswith(PROPOSE) or not here else [here]
    for name in [asked] if asked is not None else ["main", "master", *own]:
        if name and git.ask("rev-parse", "--quiet", "--verify", f"refs/heads/{name}^{{commit}}")[0]:
            return name
    raise UsageError(
        f"{top} has no branch {visible(asked)}" if asked is not None else f"{top} has no main branch with a commit",
        code="branch_unknown",
        hint="Commit the wiki's pages first, or name the branch of what was accepted with --branch.",
    )


def _without_programs(git: GitCommands) -> Iterator[tuple[str, str]]:
    """For each program that the repository's own configuration names, the user's one or none."""
    out = git.tell("config", "--list", "--show-scope", "-z")
    parts = out.split("\0")
    users: dict[str, list[str]] = {}
    named: list[str] = []
    for scope, setting in zip(parts[::2], parts[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if _PROGRAMS.fullmatch(name.lower()):
            if scope in ("local", "worktree"):
                named.append(name)
            elif scope != "command":
                users.setdefault(name, []).append(value)
    if any(name.lower().startswith("credential.") for name in named):
        # An empty one takes all away that were named before, those of the user too.
        yield "credential.helper", ""
        yield from ((n, v) for n, values in users.items() if n.lower().startswith("credential.") for v in values)
    for name in dict.fromkeys(named):
        low = name.lower()
        if low.startswith("filter."):
            neutral = "false" if low.endswith("required") else ""
        elif low.startswith("credential."):
            continue
        else:
            neutral = _NEUTRAL.get(low) or _NEUTRAL.get(low.rpartition(".")[2], "")
        yield name, users.get(name, [neutral])[-1]


def _environment(git: GitCommands) -> dict[str, str]:
    """ssh and git ask nothing, and speak only protocols that name no program."""
    users = [git.ask("config", f"--{scope}", "--get", "core.sshCommand")[1] for scope in ("global", "system")]
    program = os.environ.get("GIT_SSH")
    command = os.environ.get("GIT_SSH_COMMAND") or next(filter(None, users), shlex.quote(program) if program else "ssh")
    ssh = command.split(" ")[0].rsplit("/", 1)[-1] == "ssh"
    allowed = os.environ.get("GIT_ALLOW_PROTOCOL", "").split(":")
    return {
        "GIT_SSH_COMMAND": f"{command} -o BatchMode=yes" if ssh else command,
        "GIT_ASKPASS": os.environ.get("GIT_ASKPASS", ""),
        "GIT_PROXY_COMMAND": os.environ.get("GIT_PROXY_COMMAND", ""),
        "GIT_ALLOW_PROTOCOL": ":".join(name for name in _PROTOCOLS if allowed == [""] or name in allowed),
    }
