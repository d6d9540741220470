"""`kopt wiki`: propose, accept, reject, sync."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import runs
from kopt.cli.wiki.commands import wiki

if TYPE_CHECKING:
    from kopt.services.results.wiki import ConflictData, ProblemData, ProposeData, StaleData, WikiSyncData

_SHOWN = 20
"""Problems, and stale references, that are printed; --json has all."""

KeptOption = Annotated[
    str | None,
    typer.Option("--wiki", help="The wiki, by name or folder (default: the only one besides the bundled one)."),
]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", help="Branch of what was accepted (default: main, master, or what is checked out)."),
]
ProposalArgument = Annotated[
    str, typer.Argument(metavar="PAGE", help="Its id, or its branch, also that of a remote: origin/propose/KIND-SLUG.")
]


@command("wiki propose", wiki, reads_wikis=True)
def propose(
    from_run: Annotated[
        str | None,
        typer.Option("--from-run", metavar="RUN", autocompletion=runs, help="A finished run: its folder or its id."),
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="The file of a page.")] = None,
    into: Annotated[
        str | None,
        typer.Option("--wiki", help="Put the page on a branch of this wiki's repository: its name or folder."),
    ] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option("--evidence", help="What it rests on, such as receipt/HASH or an address. Repeatable."),
    ] = None,
    branch: BranchOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A new file outside all wikis (default: print the page).")
    ] = None,
) -> Reply:
    """Propose a wiki page: one in a file, or what a run learned. The page is for review.

    With --wiki (or --page alone, where there is one wiki of your own) it is put on the branch propose/KIND-SLUG of the
    wiki's git repository, with what the lint finds and its evidence in the message; the work tree stays as it is.
    Proposing it again adds to its branch. `kopt wiki accept` or `kopt wiki reject` decides on it, and `kopt wiki sync`
    shows it to others. Otherwise the page of a run is printed, or written to --out.

    The sources of a run's page are the run's receipts, by hash, device and date; each figure is a row of them. A run
    that has not ended, or measured no improvement, gives no page.
    """
    from kbs.common.errors import UsageError
    from kopt.services.curation.proposals import read_page_file
    from kopt.services.results.wiki import ProposeData

    if (from_run is None) == (page is None):
        raise UsageError("give either --page or --from-run", code="propose_what", hint="kopt wiki propose --page PATH")
    if out is not None and (page is not None or into is not None):
        raise UsageError("--out is for the page of a run alone", code="propose_what", hint="Leave --out out.")
    if page is not None:
        id, text = read_page_file(page)
        data = ProposeData.model_validate({"id": id, "text": text, "problems": []})
        return _on_branch(data, into, branch, evidence or [])
    return _of_run(from_run or "", into, branch, evidence or [], out)


def _of_run(run: str, into: str | None, branch: str | None, evidence: Sequence[str], out: Path | None) -> Reply:
    from kopt.services.results.wiki import ProposeData
    from kopt.services.runs.service import look
    from kopt.services.runs.wiki_proposal import propose as propose_page
    from kopt.services.runs.wiki_proposal import write

    eng, view = look(run)
    made = propose_page(view, eng.settings.home, eng.terms, datetime.date.today())
    if into is not None:
        receipts = [f"receipt/{one}" for one in made.receipts]
        data = ProposeData.from_domain(made)
        return _on_branch(data, into, branch, [f"run {made.run}", *receipts, *evidence])
    file = str(write(made, out, eng.wikis)) if out is not None else ""
    data = ProposeData.from_domain(made).model_copy(update={"file": file})
    line = f"{data.page}: written to {file}, for review" if file else data.markdown
    warnings = [*eng.warnings, *data.left_out, *map(_said, data.problems)]
    return Reply(data, print_lines([line]), warnings=warnings)


def _on_branch(data: ProposeData, into: str | None, branch: str | None, evidence: Sequence[str]) -> Reply:
    from kopt.services.curation.proposals import chosen_wiki
    from kopt.services.curation.proposals import propose as put
    from kopt.services.curation.repository import open_repository

    with engine() as eng:
        target = chosen_wiki(eng, into)
        made = put(
            *(open_repository(target, branch), data.page, data.markdown, evidence),
            *(eng.terms, datetime.date.today()),
        )
    data = data.on_branch(target.name, made.branch, made.commit, made.problems)
    state = "on the branch" if made.new else "already on the branch"
    lines = [f"{data.page}: {state} {made.branch} of {target.name}, commit {made.commit[:12]}"]
    errors = sum(one.error for one in data.problems)
    if errors:
        lines.append(f"It has {errors} error{'s' if errors > 1 else ''} to mend before it can be accepted.")
    lines.append(f"Decide with `kopt wiki accept {data.page}` or `kopt wiki reject {data.page} --reason TEXT`.")
    warnings = [*eng.warnings, *data.left_out, *map(_said, data.problems)]
    return Reply(data, print_lines(lines), warnings=warnings)


@command("wiki accept", wiki, reads_wikis=True)
def accept(
    page: ProposalArgument,
    into: KeptOption = None,
    branch: BranchOption = None,
) -> Reply:
    """Accept a proposed page: lint it again, merge it into the main branch, and remove its branch.

    With lint errors or conflicts nothing is changed and the exit code is 4; each conflict is explained. The wiki's
    generated list of pages is written anew. Then it is said which citations of pages, runs and the experience log the
    change has made stale.
    """
    from kbs.common.errors import ExitCode
    from kopt.services.curation.proposals import accept as accept_page
    from kopt.services.curation.proposals import chosen_wiki
    from kopt.services.curation.repository import open_repository
    from kopt.services.results.wiki import AcceptData, ConflictData, StaleData

    with engine() as eng:
        target = chosen_wiki(eng, into)
        repository = open_repository(target, branch)
        done = accept_page(eng, repository, page, datetime.date.today(), Path.cwd())
    data = AcceptData(
        page=done.page,
        wiki=target.name,
        branch=done.branch,
        commit=done.commit,
        problems=_problems(target.name, done.problems),
        conflicts=[ConflictData.from_domain(one) for one in done.conflicts],
        stale=[StaleData.from_domain(one) for one in done.stale],
    )
    if done.done:
        where = "" if repository.main_here else f"; {repository.main} is not checked out in {repository.top}"
        lines = [f"{data.page}: accepted into {repository.main} of {target.name}, commit {done.commit[:12]}{where}"]
    else:
        why = f"it conflicts with {repository.main}" if done.conflicts else "the lint finds errors"
        lines = [f"{data.page}: not accepted, {why}; nothing was changed"]
    lines += _problem_lines(data.problems)
    lines += _conflict_lines(data.conflicts)
    if data.conflicts:
        lines.append(
            f"To merge by hand: `git switch {done.branch}`, `git merge {repository.main}`, mend the files, commit,"
            f" `git switch {repository.main}`; then accept it again."
        )
    lines += _stale_lines(data.stale)
    code = ExitCode.OK if done.done else ExitCode.REJECTED
    return Reply(data, print_lines(lines), code, [*eng.warnings, *done.warnings])


@command("wiki reject", wiki, reads_wikis=True)
def reject(
    page: ProposalArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept with the proposal.")],
    into: KeptOption = None,
    branch: BranchOption = None,
) -> Reply:
    """Reject a proposed page. It is kept with the reason below refs/rejected/, and its branch is removed."""
    from kopt.services.curation.proposals import chosen_wiki
    from kopt.services.curation.proposals import reject as reject_page
    from kopt.services.curation.repository import open_repository
    from kopt.services.results.wiki import RejectData

    with engine() as eng:
        target = chosen_wiki(eng, into)
        repository = open_repository(target, branch)
        done = reject_page(repository, page, reason)
    data = RejectData(page=done.page, wiki=target.name, branch=done.branch, ref=done.ref, commit=done.commit)
    path = repository.path(f"{done.page}.md")
    lines = [
        f"{done.page}: rejected, and kept as {done.ref}",
        f"`git show {done.ref}:{path}` prints the page.",
    ]
    return Reply(data, print_lines(lines), warnings=list(eng.warnings))


@command("wiki sync", wiki, reads_wikis=True)
def sync(into: KeptOption = None, branch: BranchOption = None) -> Reply:
    """Share a wiki: fetch, put this clone's commits on top of the remote's, lint what changed, and push.

    Proposals and what was rejected are shared too. Nothing is forced: a conflict is explained file by file, the exit
    code is 4, and the main branch and the files stay as they were. Errors that the lint finds in what would be pushed
    stop the push, with exit code 4. No hook is run, nor a program that the repository's own configuration names.
    """
    from kbs.common.errors import ExitCode
    from kopt.services.curation.proposals import chosen_wiki
    from kopt.services.curation.repository import open_repository
    from kopt.services.curation.sync import sync as sync_wiki
    from kopt.services.results.wiki import ConflictData, StaleData, WikiSyncData

    with engine() as eng:
        target = chosen_wiki(eng, into)
        done = sync_wiki(eng, open_repository(target, branch), datetime.date.today(), Path.cwd())
    data = WikiSyncData(
        wiki=target.name,
        problems=_problems(target.name, done.problems),
        conflicts=[ConflictData.from_domain(one) for one in done.conflicts],
        stale=[StaleData.from_domain(one) for one in done.stale],
        **{name: getattr(done, name) for name in _PLAIN},
    )
    stopped = any(one.error for one in data.problems)
    code = ExitCode.REJECTED if data.conflicts or stopped else ExitCode.OK
    return Reply(data, print_lines(_sync_lines(data, stopped)), code, [*eng.warnings, *done.warnings])


_PLAIN = ("repository", "branch", "remote", "pulled", "pushed", "proposals_in", "proposals_out", "decided")


def _sync_lines(data: WikiSyncData, stopped: bool) -> Iterator[str]:
    yield f"{data.wiki}: {data.repository}, branch {data.branch}, {data.remote}"
    yield f"{data.pulled} commits pulled, {data.pushed} pushed"
    for what, names in (
        ("proposals that came", data.proposals_in),
        ("proposals that were pushed", data.proposals_out),
        ("decided, and their branches removed", data.decided),
    ):
        if names:
            yield f"{what}: {', '.join(names)}"
    if stopped:
        yield f"not pushed: the lint finds errors in what is on {data.branch} here and not in {data.remote}"
    yield from _problem_lines(data.problems)
    yield from _conflict_lines(data.conflicts)
    if any(one.kind != "proposed twice" for one in data.conflicts):
        yield f"Nothing of {data.branch} was changed or pushed. To merge by hand, in {data.repository}:"
        yield f"`git rebase {data.remote}`, mend the files, `git add` them, `git rebase --continue`; then sync again."
    yield from _stale_lines(data.stale)


def _problems(wiki: str, problems: Sequence[object]) -> list[ProblemData]:
    from kopt.services.results.wiki import ProblemData

    return [ProblemData(wiki=wiki, **vars(one)) for one in problems]


def _said(problem: ProblemData) -> str:
    return f"{problem.rule}, line {problem.line}: {problem.message}"


def _problem_lines(problems: Sequence[ProblemData]) -> Iterator[str]:
    ordered = sorted(problems, key=lambda one: not one.error)
    for one in ordered[:_SHOWN]:
        what = "error" if one.error else "warning"
        yield f"{one.wiki}/{one.path}:{one.line}: {what}: {one.rule}: {one.message}"
    if len(ordered) > _SHOWN:
        yield f"and {len(ordered) - _SHOWN} more"


def _conflict_lines(conflicts: Sequence[ConflictData]) -> Iterator[str]:
    for one in conflicts:
        yield f"conflict: {one.path}: {one.kind}: {one.detail}. {one.todo}"


def _stale_lines(stale: Sequence[StaleData]) -> Iterator[str]:
    if not stale:
        return
    by = {name: sum(one.ref.by == name for one in stale) for name in ("page", "run", "log")}
    counted = ", ".join(
        f"{count} of {name}" for name, count in zip(("pages", "runs", "the log"), by.values(), strict=True)
    )
    yield f"{len(stale)} reference{'s' if len(stale) > 1 else ''} made stale ({counted}):"
    for one in stale[:_SHOWN]:
        yield f"  {one.page}: {one.ref.by} {one.ref.place}{f': {one.ref.detail}' if one.ref.detail else ''}"
    if len(stale) > _SHOWN:
        yield f"  and {len(stale) - _SHOWN} more"
    for page in dict.fromkeys(one.page for one in stale if not one.gone):
        yield f"`kopt wiki refs {page.removesuffix('.md')}` lists what refers to it"
