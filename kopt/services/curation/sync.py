"""Shares a wiki through its remote: fetches, puts this clone's commits on top of the remote's, lints, and pushes.

Nothing is forced. What cannot be merged is explained, and then the main branch and the files stay as they were. Each
proposal that is not decided is shared too, and so is what was rejected; the branch of a proposal that was decided goes,
here and there, once another ref holds its commits.
"""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kbs.common.errors import KoptError, UsageError
from kbs.common.visible_text import visible
from kopt.services.curation.lint_of import brought
from kopt.services.curation.merging import Conflict, merge_trees, with_index
from kopt.services.curation.proposals import is_decided
from kopt.services.curation.repository import ACCEPTED, PROPOSE, REJECTED, Repository
from kopt.services.curation.stale import Stale, made_stale
from kopt.services.curation.work_tree import advance, recover
from kopt.services.engine import Engine
from wiki.page import Problem

_ROUNDS = 4
"""How often a push is tried where others push at the same time."""
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*://|[^/]+:", re.IGNORECASE)
_BARE = ("core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "receive.denyCurrentBranch=refuse")
"""Of a remote that is a folder of this machine: its hooks would run as this user."""
_REMOTE = "refs/remotes"


@dataclass
class Synced:
    """What a sync did."""

    repository: str
    """Its top folder."""
    branch: str
    remote: str
    """`origin/main`"""
    pulled: int = 0
    """Commits that came from the remote's main branch."""
    pushed: int = 0
    """Commits that were given to it."""
    proposals_in: list[str] = field(default_factory=list)
    """Branches of proposals that came, new or with more commits."""
    proposals_out: list[str] = field(default_factory=list)
    """Those that were pushed."""
    decided: list[str] = field(default_factory=list)
    """Those whose branch was removed here or at the remote, since they were accepted or rejected."""
    conflicts: list[Conflict] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """What the lint finds in what this clone would push."""
    stale: list[Stale] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Remote:
    name: str
    branch: str
    """Its main branch."""
    address: str
    push_address: str

    def tracked(self, branch: str) -> str:
        """Where what was fetched of a branch stands."""
        return f"{_REMOTE}/{self.name}/{branch}"


def sync(engine: Engine, repository: Repository, today: datetime.date, workspace: Path) -> Synced:
    """Fetch, rebase, lint, push. Whatever is interrupted can be run again.

    Raises `UsageError` (`no_remote`, and those of `Repository.check_ready` and `advance`) and `KoptError`
    (`remote_unreachable`, `push_refused`).
    """
    with repository.locked():
        repository.check_ready()
        warnings = recover(repository)
        remote = _remote(repository)
        done = Synced(str(repository.top), repository.main, f"{remote.name}/{remote.branch}", warnings=warnings)
        before = repository.tip
        for round in range(_ROUNDS):
            _fetch(repository, remote, done)
            if not _rebase(engine, repository, remote, done):
                break
            if not _lint(engine, repository, remote, done, today):
                break
            if _push(repository, remote, done, last=round == _ROUNDS - 1):
                break
        _proposals(repository, remote, done)
        done.stale = made_stale(engine, repository, before, repository.tip, workspace)
    return done


def _remote(repository: Repository) -> _Remote:
    git, main = repository.git, repository.main
    names = git.tell("remote").splitlines()
    _, name = git.ask("config", "--get", f"branch.{main}.remote")
    _, merged = git.ask("config", "--get", f"branch.{main}.merge")
    if name not in names:
        name, merged = names[0] if len(names) == 1 else "origin", ""
    if name not in names:
        raise UsageError(
            f"{repository.top} has no remote" + (f" for {main}: {', '.join(names)}" if names else ""),
            code="no_remote",
            hint=f"`git remote add origin ADDRESS`, or `git branch --set-upstream-to=REMOTE/{main} {main}`.",
        )
    address, push = (git.tell("remote", "get-url", *words, name).splitlines()[0] for words in ((), ("--push",)))
    return _Remote(name, merged.removeprefix("refs/heads/") or main, address, push)


# --- talking to the remote --------------------------------------------------------------------------------------------


def _program(address: str, service: str) -> list[str]:
    """The option that runs no hook of a remote in a folder, nor a program that its configuration names."""
    if _ELSEWHERE.match(address) and not address.startswith("file://"):
        return []
    words = ["git", *(word for setting in _BARE for word in ("-c", setting)), service]
    return [f"--{service}={shlex.join(words)}"]


def _ask(repository: Repository, remote: _Remote, *words: str) -> str:
    try:
        return repository.git.tell(*words)
    except KoptError as error:
        if error.code not in ("git_failed", "git_timeout"):
            raise
        raise _unreachable(remote, error.message) from error


def _unreachable(remote: _Remote, said: str) -> KoptError:
    hint = "Nothing was changed, and all commits are here. Check the network and the address; then sync again."
    if re.search(r"transport .* not allowed|Unable to find remote helper", said):
        hint = "Only https, ssh, git and folders are used as remotes. Change it with `git remote set-url`."
    elif re.search(r"could not read Username|Authentication failed|Permission denied|Host key", said):
        hint = "kopt asks for no password: set up an ssh key or a credential helper in your own git configuration."
    return KoptError(
        f"the remote {visible(remote.name)} ({visible(_without_secret(remote.address))}) cannot be used: "
        f"{visible(said)[-500:]}",
        code="remote_unreachable",
        hint=hint,
    )


def _without_secret(address: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", address)


def _fetch(repository: Repository, remote: _Remote, done: Synced) -> None:
    """Fetch the main branch, proposals, and what was rejected; nothing of this clone moves."""
    program = _program(remote.address, "upload-pack")
    listed = _ask(repository, remote, "ls-remote", *program, "--", remote.address)
    names = {name for _, _, name in (line.partition("\t") for line in listed.splitlines())}
    wanted = [(f"refs/heads/{remote.branch}", remote.tracked(remote.branch))]
    wanted += [(name, remote.tracked(name[11:])) for name in names if name.startswith(f"refs/heads/{PROPOSE}")]
    specs = [f"+{name}:{to}" for name, to in wanted if name in names]
    specs += [f"{name}:{name}" for name in names if name.startswith((REJECTED, ACCEPTED))]
    before = repository.refs(f"{_REMOTE}/{remote.name}/{PROPOSE.rstrip('/')}")
    if specs:
        words = ("fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-write-fetch-head", "--no-recurse-submodules")
        _ask(repository, remote, *words, *program, "--", remote.address, *sorted(specs))
    for ref, commit in before.items():
        if f"refs/heads/{ref.split('/', 3)[-1]}" not in names:
            if is_decided(repository, commit):
                repository.drop(ref, commit)
            else:
                done.warnings.append(
                    f"{ref.split('/', 3)[-1]} is gone from {remote.name} and was not decided on; it is kept here"
                )
    for ref, commit in repository.refs(f"{_REMOTE}/{remote.name}/{PROPOSE.rstrip('/')}").items():
        branch = ref.split("/", 3)[-1]
        if before.get(ref) != commit and repository.commit(f"refs/heads/{branch}") != commit:
            done.proposals_in += [] if branch in done.proposals_in else [branch]


def _sent(repository: Repository, remote: _Remote, specs: Sequence[str]) -> dict[str, str]:
    """Push refs: full name at the remote → why it was refused, empty where it was not."""
    program = _program(remote.push_address, "receive-pack")
    words = ("push", "--porcelain", "--no-verify", "--no-recurse-submodules", *program)
    leases = [spec for spec in specs if spec.startswith("--")]
    refs = [spec for spec in specs if not spec.startswith("--")]
    done, answer, error = repository.git.run(*words, *leases, "--", remote.push_address, *refs)
    found = {}
    for line in answer.splitlines():
        flag, _, rest = line.partition("\t")
        names, _, why = rest.partition("\t")
        if ":" in names and len(flag.strip()) <= 1:
            found[names.split(":", 1)[1]] = why if flag.strip() == "!" else ""
    if not done and not found:
        raise _unreachable(remote, " / ".join(error.splitlines()))
    return found


# --- the main branch --------------------------------------------------------------------------------------------------


def _rebase(engine: Engine, repository: Repository, remote: _Remote, done: Synced) -> bool:
    """Put this clone's commits on top of the remote's; False, and nothing changed, where that conflicts.

    Each commit of the first line of parents is made anew, with what was merged by it as its further parents: so the
    commits of an accepted proposal stay what they were.
    """
    old, theirs = repository.tip, repository.commit(remote.tracked(remote.branch))
    if not theirs or repository.contains(old, theirs):
        return True
    came = int(repository.git.tell("rev-list", "--count", f"{old}..{theirs}"))
    new, reindex = theirs, False
    own = repository.git.tell("rev-list", "--first-parent", "--reverse", f"{theirs}..{old}").splitlines()
    for commit in own:
        parents = repository.git.tell("show", "-s", "--format=%P", commit).split()
        base = parents[0] if parents else repository.base(theirs, commit)
        merged = merge_trees(repository, base, commit, new)
        if merged.conflicts:
            done.conflicts += merged.conflicts
            return False
        reindex = reindex or merged.reindex
        others = [one for one in parents[1:] if not repository.contains(new, one)]
        if not others and merged.tree == repository.git.tell("rev-parse", f"{new}^{{tree}}"):
            continue  # the remote has this change already
        message = repository.git.tell("show", "-s", "--format=%B", commit)
        new = repository.written(merged.tree, [new, *others], message, author=commit)
    if reindex:
        tree = with_index(repository, new, engine.terms)
        if tree != repository.git.tell("rev-parse", f"{new}^{{tree}}"):
            new = repository.written(tree, [new], "List the pages of both clones")
    advance(repository, old, new, "sync")
    done.pulled += came
    return True


def _lint(engine: Engine, repository: Repository, remote: _Remote, done: Synced, today: datetime.date) -> bool:
    """Whether what would be pushed has no errors."""
    theirs, tip = repository.commit(remote.tracked(remote.branch)), repository.tip
    if theirs and repository.contains(theirs, tip):
        return True
    old = theirs or repository.empty
    changed = repository.changed(old, tip)
    pages = {page for path in changed if (page := repository.page(path))}
    done.problems, other = brought(repository, old, tip, pages, engine.terms, today)
    if other:
        done.warnings.append(
            f"{len(other)} errors of pages that this clone did not change; `kopt wiki lint` lists them"
        )
    return not any(one.error for one in done.problems)


def _push(repository: Repository, remote: _Remote, done: Synced, *, last: bool) -> bool:
    """Push the main branch; False where others pushed meanwhile. Raises `KoptError` (`push_refused`)."""
    tracked, tip = remote.tracked(remote.branch), repository.tip
    theirs = repository.commit(tracked)
    if theirs and repository.contains(theirs, tip):
        return True
    ahead = int(repository.git.tell("rev-list", "--count", f"{theirs}..{tip}" if theirs else tip))
    name = f"refs/heads/{remote.branch}"
    why = _sent(repository, remote, [f"{tip}:{name}"]).get(name, "git said nothing of it")
    if not why:
        repository.move(tracked, tip, theirs, "sync")
        done.pushed += ahead
        return True
    if last or not any(word in why for word in ("fetch first", "non-fast-forward", "stale info", "cannot lock")):
        raise KoptError(
            f"{remote.name} refused {remote.branch}: {visible(why)[-400:]}",
            code="push_refused",
            hint="All commits are here. Fix what the remote reports, then sync again.",
        )
    return False


# --- proposals --------------------------------------------------------------------------------------------------------


def _proposals(repository: Repository, remote: _Remote, done: Synced) -> None:
    """Share proposals and what was rejected; remove the branches of those that were decided on."""
    main = repository.commit(remote.tracked(remote.branch))
    for ref, tip in repository.refs(ACCEPTED).items():
        if main and repository.contains(main, tip):
            repository.drop(ref, tip)
    # While the main branch is not shared, neither is what it has accepted.
    shared = bool(main) and repository.contains(main, repository.tip)
    kept = [REJECTED, *([ACCEPTED] if shared else [])]
    specs = [f"{ref}:{ref}" for below in kept for ref in repository.refs(below)]
    for ref, tip in repository.refs(f"refs/heads/{PROPOSE.rstrip('/')}").items():
        branch = ref.removeprefix("refs/heads/")
        theirs = repository.commit(remote.tracked(branch))
        if is_decided(repository, tip):
            if repository.drop(ref, tip):
                done.decided.append(branch)
        elif theirs and repository.contains(theirs, tip):
            if theirs != tip and branch not in repository.checked_out:
                repository.move(ref, theirs, tip, "sync")
        elif theirs and not repository.contains(tip, theirs):
            done.conflicts.append(_proposed_twice(remote, branch))
        else:
            specs.append(f"{tip}:{ref}")
    refused = _sent(repository, remote, specs) if specs else {}
    for ref, why in refused.items():
        if why:
            done.warnings.append(f"{remote.name} refused {visible(ref)}: {visible(why)[:200]}; it is kept here")
        elif ref.startswith(f"refs/heads/{PROPOSE}"):
            branch = ref.removeprefix("refs/heads/")
            if repository.commit(remote.tracked(branch)) != repository.commit(ref):
                done.proposals_out.append(branch)
            repository.git.tell("update-ref", remote.tracked(branch), repository.commit(ref))
    there = [name for name, why in refused.items() if not why and name.startswith((REJECTED, ACCEPTED))]
    _remove_decided(repository, remote, done, [one for one in (main, *map(repository.commit, there)) if one])


def _remove_decided(repository: Repository, remote: _Remote, done: Synced, held: Sequence[str]) -> None:
    """Remove the remote's branches of proposals whose commits it has in `held`: its main branch, what was decided."""
    gone = {
        ref: tip
        for ref, tip in repository.refs(f"{_REMOTE}/{remote.name}/{PROPOSE.rstrip('/')}").items()
        if any(repository.contains(one, tip) for one in held)
    }
    if not gone:
        return
    names = {ref: f"refs/heads/{ref.split('/', 3)[-1]}" for ref in gone}
    # The lease removes the branch only as it was seen: what was proposed on top of it meanwhile stays.
    specs = [f"--force-with-lease={names[ref]}:{tip}" for ref, tip in gone.items()]
    answers = _sent(repository, remote, [*specs, *(f":{name}" for name in names.values())])
    for ref, tip in gone.items():
        if not answers.get(names[ref], "no answer"):
            repository.drop(ref, tip)
            branch = ref.split("/", 3)[-1]
            done.decided += [] if branch in done.decided else [branch]


def _proposed_twice(remote: _Remote, branch: str) -> Conflict:
    page = branch.removeprefix(PROPOSE).replace("-", "/", 1)
    return Conflict(
        branch,
        "proposed twice",
        f"{remote.name} has another proposal of {page}",
        f"See theirs: `git show {remote.name}/{branch}`. Make one page of both, and propose it again: it then follows "
        f"both. Or `kopt wiki reject {branch} --reason TEXT`, which keeps yours aside.",
    )
