"""Proposed pages: each is a branch of the wiki's repository until it is accepted or rejected.

`propose/technique-split-k` has the page `technique/split-k` on top of the main branch, with what the lint said and its
evidence in the message. What is accepted is merged, what is rejected is kept below `refs/rejected/`: no commit is lost.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible, visible_lines
from kbs.evidence.vocabulary import Vocabulary
from kopt.services.curation.lint_of import brought, problems_at
from kopt.services.curation.merging import Conflict, merge_trees, with_index
from kopt.services.curation.new_page import KINDS, is_page_id, target_wiki
from kopt.services.curation.repository import ACCEPTED, NONE, PROPOSE, REJECTED, Repository
from kopt.services.curation.stale import Stale, made_stale
from kopt.services.curation.work_tree import advance, recover
from kopt.services.engine import Engine
from wiki.library import BUNDLED, Wiki
from wiki.page import MAX_PAGE_BYTES, Problem

_MOST_EVIDENCE = 50
_MOST_TEXT = 2_000
"""Characters of a piece of evidence, or of a reason."""
_MOST_PROBLEMS = 50
"""Of a page, that its message lists."""
_ID = re.compile(r"^id:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_PLACE = frozenset({"index-entry"})
"""What accepting mends, so it is no problem of a proposal."""


@dataclass(frozen=True)
class Proposed:
    """A page that was put on a branch."""

    page: str
    """Its id."""
    branch: str
    commit: str
    new: bool
    """False where the branch had this very page already."""
    problems: list[Problem]
    """What the lint finds in the page, among the pages of the main branch."""


@dataclass(frozen=True)
class Accepted:
    """What became of a proposal that was to be accepted."""

    page: str
    branch: str
    commit: str
    """The new tip of the main branch; empty where nothing was merged."""
    problems: list[Problem]
    conflicts: tuple[Conflict, ...]
    stale: list[Stale]
    warnings: list[str]

    @property
    def done(self) -> bool:
        """Whether it is merged."""
        return bool(self.commit)


@dataclass(frozen=True)
class Rejected:
    """A proposal that was put aside."""

    page: str
    branch: str
    ref: str
    """Where it is kept, with the reason."""
    commit: str


def chosen_wiki(engine: Engine, which: str | None) -> Wiki:
    """The wiki that is named, or the only one besides the bundled one. Raises `UsageError` (`wiki_unknown`)."""
    if which is not None:
        return target_wiki(which, engine.wikis)
    own = [wiki for wiki in engine.wikis if not wiki.notes and wiki.name != BUNDLED]
    if len(own) == 1:
        return own[0]
    raise UsageError(
        "say which wiki: " + (", ".join(wiki.name for wiki in own) or "none was added"),
        code="wiki_unknown",
        hint="Give --wiki NAME, or --wiki FOLDER.",
    )


def read_page_file(file: Path) -> tuple[str, str]:
    """(id, text) of a page in a file. Raises `UsageError`: `page_unreadable`, `page_name`."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_PAGE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"cannot read {file}: {why}", code="page_unreadable", hint="Give the file of a page."
        ) from error
    if len(data) > MAX_PAGE_BYTES:
        raise UsageError(
            f"{file} has more than {MAX_PAGE_BYTES:,} bytes", code="page_unreadable", hint="Make two pages of it."
        )
    front = text.partition("\n---")[0] if text.startswith("---") else ""
    named = _ID.search(front)
    if named is None or not is_page_id(named[1]):
        raise UsageError(
            f"{file} does not name its page: its front matter needs `id: KIND/SLUG`",
            code="page_name",
            hint=f"Kinds: {', '.join(KINDS)}. `kopt wiki new KIND/SLUG` begins a page in the right form.",
        )
    return named[1], text


def branch_of(page: str) -> str:
    """`propose/technique-split-k` of `technique/split-k`. No kind has a hyphen, so no two pages share one."""
    return PROPOSE + page.replace("/", "-", 1)


def propose(
    repository: Repository,
    page: str,
    text: str,
    evidence: Sequence[str],
    terms: Vocabulary,
    today: datetime.date,
) -> Proposed:
    """Put a page on its branch; the work tree, the index and all other branches stay as they are.

    Where the branch is there, the page comes on top of what it has, and of what others proposed for the same page.
    Raises `UsageError`: `page_unchanged`, `evidence`.
    """
    said = [visible(" ".join(one.split())) for one in evidence]
    if len(said) > _MOST_EVIDENCE or any(not one or len(one) > _MOST_TEXT for one in said):
        raise UsageError(
            f"evidence is at most {_MOST_EVIDENCE} texts of up to {_MOST_TEXT:,} characters",
            code="evidence",
            hint="Name receipts, records and addresses; what they say belongs on the page.",
        )
    branch, path = branch_of(page), repository.path(f"{page}.md")
    ref = f"refs/heads/{branch}"
    data = text.encode()
    with repository.locked():
        tip = repository.commit(ref)
        theirs = [
            commit
            for name, commit in repository.refs("refs/remotes").items()
            if name.split("/", 3)[-1] == branch and not repository.contains(tip or repository.tip, commit)
        ]
        parents = [one for one in (tip, *theirs) if one]
        if tip and any(repository.contains(one, tip) for one in theirs):
            parents.remove(tip)
        base = parents[0] if parents else repository.tip
        tree = repository.with_files(base, {path: data})
        same = tree == repository.git.tell("rev-parse", f"{base}^{{tree}}")
        if same and base == repository.tip:
            raise UsageError(
                f"{page} reads so in {repository.main} already", code="page_unchanged", hint="Change it first."
            )
        merged = merge_trees(repository, repository.base(repository.tip, base), repository.tip, tree)
        problems = problems_at(repository, merged.tree or tree, terms, today)
        own = [one for one in problems if one.path == f"{page}.md" and one.rule not in _PLACE]
        if same and len(parents) == 1 and base == tip:
            return Proposed(page, branch, tip, False, own)
        known = repository.git.ask("cat-file", "-e", f"{repository.tip}:{path}")[0]
        what = "Revise the proposed page" if parents else "Propose a change of" if known else "Propose the page"
        message = "\n".join([f"{what} {page}", "", *_lint_lines(own), *_evidence_lines(said)])
        commit = repository.written(tree, parents or [base], message)
        repository.move(ref, commit, tip or NONE, "propose")
    return Proposed(page, branch, commit, True, own)


def _lint_lines(problems: Sequence[Problem]) -> list[str]:
    errors = sum(one.error for one in problems)
    lines = [f"Lint: errors {errors}, warnings {len(problems) - errors}"]
    lines += [
        f"- line {one.line}: {'error' if one.error else 'warning'}: {one.rule}: {visible(one.message)[:300]}"
        for one in problems[:_MOST_PROBLEMS]
    ]
    return lines


def _evidence_lines(said: Sequence[str]) -> list[str]:
    return ["", "Evidence:", *(f"- {one}" for one in said)] if said else []


# --- deciding ---------------------------------------------------------------------------------------------------------


def find_proposal(repository: Repository, asked: str) -> tuple[str, str, str]:
    """(page id, full name of the ref, commit) of a proposal, by the page's id or its branch, also a remote's.

    Raises `UsageError` (`proposal_unknown`, `proposal_checked_out`).
    """
    wanted = asked.removesuffix(".md")
    known = {
        name: commit
        for below in ("refs/heads", "refs/remotes")
        for name, commit in repository.refs(below).items()
        if _branch(name).startswith(PROPOSE) and not (below == "refs/remotes" and is_decided(repository, commit))
    }
    names = [name for name in known if wanted in (_page(name), _branch(name), name.split("/", 2)[-1])]
    if not names:
        open_ = ", ".join(dict.fromkeys(visible(_page(name)) for name in known)) or "none"
        raise UsageError(
            f"no proposal of {visible(asked)}",
            code="proposal_unknown",
            hint=f"Proposed pages: {open_}. `kopt wiki sync` fetches those of others.",
        )
    name = names[0]  # this clone's own before those of remotes
    where = repository.checked_out.get(name.removeprefix("refs/heads/"))
    if where is not None:
        raise UsageError(
            f"{_branch(name)} is checked out in {where}",
            code="proposal_checked_out",
            hint=f"`git switch {repository.main}` there first.",
        )
    return _page(name), name, known[name]


def is_decided(repository: Repository, commit: str) -> bool:
    """Whether a proposal is in the main branch, or kept as decided: then its branch may go, and nothing is lost."""
    kept = (*repository.refs(REJECTED).values(), *repository.refs(ACCEPTED).values())
    return any(repository.contains(one, commit) for one in (repository.tip, *kept))


def _branch(name: str) -> str:
    """`propose/technique-split-k` of a branch here or of a remote."""
    return name.split("/", 3)[-1] if name.startswith("refs/remotes/") else name.removeprefix("refs/heads/")


def _page(name: str) -> str:
    return _branch(name).removeprefix(PROPOSE).replace("-", "/", 1)


def accept(engine: Engine, repository: Repository, asked: str, today: datetime.date, workspace: Path) -> Accepted:
    """Lint a proposal again, merge it into the main branch, and remove its branch.

    With errors or conflicts nothing is changed. Raises `UsageError`: those of `find_proposal`, of
    `Repository.check_ready` and of `advance`.
    """
    with repository.locked():
        repository.check_ready()
        warnings = recover(repository)
        page, ref, tip = find_proposal(repository, asked)
        branch, old = _branch(ref), repository.tip
        if repository.contains(old, tip):
            warnings.append("it had been merged already")
            _drop(repository, ref, tip)
            return Accepted(page, branch, old, [], (), [], warnings)
        base = repository.base(old, tip)
        merged = merge_trees(repository, base, old, tip)
        if merged.conflicts:
            return Accepted(page, branch, "", [], merged.conflicts, [], warnings)
        tree = with_index(repository, merged.tree, engine.terms)
        pages = {repository.page(path) for path in repository.changed(base, tip)} - {""}
        problems, other = brought(repository, old, tree, pages, engine.terms, today)
        if other:
            warnings.append(f"{len(other)} errors elsewhere were there before; `kopt wiki lint` lists them")
        if any(one.error for one in problems):
            return Accepted(page, branch, "", problems, (), [], warnings)
        message = "\n".join([f"Accept the proposed page {page}", "", *_lint_lines(problems)])
        commit = repository.written(tree, [old, tip], message)
        stale = made_stale(engine, repository, old, commit, workspace)
        repository.git.tell("update-ref", f"{ACCEPTED}{branch.removeprefix(PROPOSE)}/{tip[:12]}", tip)
        advance(repository, old, commit, "accept")
        _drop(repository, ref, tip)
    return Accepted(page, branch, commit, problems, (), stale, warnings)


def _drop(repository: Repository, ref: str, tip: str) -> None:
    """Remove the branch that was decided on; a remote's goes with the next sync."""
    if ref.startswith("refs/heads/"):
        repository.drop(ref, tip)


def reject(repository: Repository, asked: str, reason: str) -> Rejected:
    """Put a proposal aside: it stays below `refs/rejected/`, with the reason, and its branch is removed.

    Raises `UsageError`: those of `find_proposal`, `reason_missing`.
    """
    said = visible_lines(reason.strip())[:_MOST_TEXT]
    if not said:
        raise UsageError("a rejection needs a reason", code="reason_missing", hint="Give --reason TEXT.")
    with repository.locked():
        page, ref, tip = find_proposal(repository, asked)
        below = f"{REJECTED}{_branch(ref).removeprefix(PROPOSE)}"
        kept, commit = next(
            ((name, one) for name, one in repository.refs(below).items() if repository.contains(one, tip)), ("", "")
        )
        if not commit:
            tree = repository.git.tell("rev-parse", f"{tip}^{{tree}}")
            commit = repository.written(tree, [tip], f"Reject the proposed page {page}\n\n{said}")
            kept = f"{below}/{commit[:12]}"  # two clones may reject one proposal, each for its own reason
            repository.move(kept, commit, NONE, "reject")
        _drop(repository, ref, tip)
    return Rejected(page, _branch(ref), kept, commit)
