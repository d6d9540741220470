"""Shares the log's folder through git: commits new records, merges those of others, and pushes.

Hooks and signatures of the repository are left out, and nothing is asked: what needs a password that git does not have
fails. Remote settings and credentials are the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from kbs.common.errors import KoptError, UsageError
from kbs.common.git import GitCommands, GitUse
from kbs.common.visible_text import visible
from kbs.experience.log import ExperienceLog

_USE = GitUse(
    reason="the experience log is shared through it",
    repository="the log's",
    retry="run `kopt log sync` again: no record is lost.",
)
_SECONDS = 300
"""A git command that takes longer is ended."""
_ROUNDS = 4
"""How often a push is tried where others push at the same time."""


@dataclass(frozen=True)
class Synced:
    """What a sync did."""

    repository: str
    """Its top folder."""
    branch: str
    remote: str
    """Name of the remote branch, `origin/main`; empty if there is none."""
    committed: int
    """Commits that were made of this clone's records."""
    pulled: int
    """Commits that were taken from the remote."""
    pushed: int
    """Commits that were given to it."""
    joined: int
    """Joins that were written since records turned out to be of one experiment."""


def sync(log: ExperienceLog) -> Synced:
    """Commit, pull, join duplicates, push. Whatever is interrupted can be run again.

    Raises `ConfigurationError` (`git_missing`, `git_environment`), `UsageError` (`no_repository`, `detached_head`,
    `merge_under_way`), `KoptError` (`git_failed`, `git_timeout`, `merge_conflict`, `push_refused`). No record is lost:
    all are in the folder.
    """
    git = GitCommands(log.files.root, _USE, seconds=_SECONDS)
    inside, top = git.ask("rev-parse", "--show-toplevel") if log.files.root.is_dir() else (False, "")
    if not inside or not top:
        raise UsageError(
            f"the log's folder {log.files.root} is not in a git repository",
            code="no_repository",
            hint="Clone a shared repository and name a folder of it with the setting `experience` (KOPT_EXPERIENCE), "
            "or run `git init` in the log's folder and add a remote.",
        )
    attached, branch = git.ask("symbolic-ref", "-q", "--short", "HEAD")
    if not attached:
        raise UsageError(
            f"no branch is checked out in {top} (detached head)",
            code="detached_head",
            hint="`git switch BRANCH` first.",
        )
    if git.ask("rev-parse", "-q", "--verify", "MERGE_HEAD")[0]:
        raise UsageError(f"a merge is under way in {top}", code="merge_under_way", hint="Finish it, then sync again.")
    log.files.settle()
    made = _commit(git, log)
    remote = _remote(git, branch)
    pulled = pushed = joined = 0
    if remote:
        name, theirs = remote
        for round in range(_ROUNDS):
            pulled += _pull(git, name, theirs)
            joined += len(log.merge())
            made += _commit(git, log)
            ahead = _ahead(git, name, theirs)
            if not ahead:
                break
            done, said = git.attempt("push", "--quiet", name, f"HEAD:refs/heads/{theirs}")
            if done:
                pushed += ahead
                break
            if round == _ROUNDS - 1 or not any(
                word in said for word in ("fetch first", "non-fast-forward", "cannot lock")
            ):
                raise KoptError(
                    f"git push to {name}/{theirs} was refused: {visible(said)[-400:]}",
                    code="push_refused",
                    hint="All records are committed here. Fix what git reports, then `kopt log sync` again.",
                )
    else:
        joined = len(log.merge())
        made += _commit(git, log)
    return Synced(top, branch, "/".join(remote) if remote else "", made, pulled, pushed, joined)


def _commit(git: GitCommands, log: ExperienceLog) -> int:
    """Commit the log's files and nothing else: how many commits."""
    names = [name for name in log.files.names() if log.files.state(name)]
    if not names:
        return 0
    git.tell("add", "--force", "--", *names)
    if not git.tell("status", "--porcelain", "--untracked-files=no", "--", *names):
        return 0
    git.tell("commit", "--quiet", "--only", "-m", "Add to the experience log", "--", *names)
    return 1


def _remote(git: GitCommands, branch: str) -> tuple[str, str] | None:
    """(remote, its branch): the one that the branch follows, or the only remote and a branch of the same name."""
    known, name = git.ask("config", "--get", f"branch.{branch}.remote")
    _, merged = git.ask("config", "--get", f"branch.{branch}.merge")
    if known and name and name != "." and merged:
        return name, merged.removeprefix("refs/heads/")
    remotes = git.tell("remote").splitlines()
    return (remotes[0], branch) if len(remotes) == 1 else None


def _pull(git: GitCommands, remote: str, theirs: str) -> int:
    """Fetch and merge: how many commits came."""
    listed = git.tell("ls-remote", "--heads", remote, f"refs/heads/{theirs}")
    if not listed:
        return 0
    git.tell("fetch", "--quiet", "--no-tags", remote, f"+refs/heads/{theirs}:{_tracked(remote, theirs)}")
    fetched = _tracked(remote, theirs)
    if not git.ask("rev-parse", "-q", "--verify", "HEAD")[0]:
        git.tell("merge", "--quiet", "--ff-only", fetched)
        return int(git.tell("rev-list", "--count", "HEAD"))
    came = int(git.tell("rev-list", "--count", f"HEAD..{fetched}"))
    if came:
        done, said = git.attempt("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", fetched)
        if not done:
            conflicts = git.ask("diff", "--name-only", "--diff-filter=U")[1].splitlines()
            git.ask("merge", "--abort")
            raise KoptError(
                f"what others wrote cannot be merged: {visible(', '.join(conflicts[:5]) or said)[-400:]}",
                code="merge_conflict",
                hint="The repository is as it was before. Merge it by hand, then `kopt log sync` again.",
            )
    return came


def _tracked(remote: str, theirs: str) -> str:
    return f"refs/remotes/{remote}/{theirs}"


def _ahead(git: GitCommands, remote: str, theirs: str) -> int:
    if not git.ask("rev-parse", "-q", "--verify", "HEAD")[0]:
        return 0
    known = git.ask("rev-parse", "-q", "--verify", _tracked(remote, theirs))[0]
    return int(git.tell("rev-list", "--count", f"{_tracked(remote, theirs)}..HEAD" if known else "HEAD"))
