"""`kopt wiki`: new, lint, gaps, stats, alike, show, refs, history, publish, trust, distrust."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kopt.cli.command import command
from kopt.cli.output import JsonFlag, Reply, tell
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import pages

if TYPE_CHECKING:
    from kbs.evidence.vocabulary import Vocabulary
    from kopt.services.engine import Engine
    from kopt.services.results.wiki import AlikeData, GapsData, RefsData, TrustedWikiData
    from wiki.library import Wiki

wiki = typer.Typer(
    help="Write, check, read, trust and share wikis, and decide on proposed pages.", no_args_is_help=True
)

WikiOption = Annotated[
    str | None, typer.Option("--wiki", help="Only this wiki, by name or folder (default: all known ones).")
]


@command("wiki new", wiki, reads_wikis=True)
def new(
    page: Annotated[str, typer.Argument(metavar="KIND/SLUG", help="Its id, such as technique/split-k.")],
    into: Annotated[
        str | None,
        typer.Option("--wiki", help="Write it into this wiki, by name or folder (default: print the page)."),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Its title (default: the slug in words).")] = "",
) -> Reply:
    """Begin a page in the right form. `TODO:` marks what must be filled in, and `kopt wiki lint` tells of each mark.

    Kinds: hardware, bottleneck, technique, method, kernel, language, profiling, pitfall, migration, experiment. Each
    gets the keys and the tables that its pages have. With --wiki the page is written to KIND/SLUG.md of that wiki, in
    which kopt reads it as it stands; a file that is there is never replaced.
    """
    from kopt.services.curation.new_page import new_page, notes_on, target_wiki, write_page
    from kopt.services.results.wiki import NewPageData

    with engine() as eng:
        made = new_page(page, title, eng.terms, datetime.date.today())
        target = target_wiki(into, eng.wikis) if into is not None else None
        warnings = [*eng.warnings, *notes_on(made, target, eng.wikis)]
        file = str(write_page(made, target)) if target is not None else ""
    data = NewPageData.from_domain(made).model_copy(update={"file": file, "wiki": target.name if target else ""})
    said = [f"{made.id}: written to {file}; to be filled in:"]
    said += [f"  line {one.line}: {one.message.removeprefix('this is to be filled in: ')}" for one in made.todo]
    return Reply(data, print_lines(said if file else [made.text.rstrip("\n")]), warnings=warnings)


@command("wiki lint", wiki, reads_wikis=True, paged=True)
def lint(
    which: WikiOption = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply automatic fixes, after showing each change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: write without asking.")] = False,
    format: Annotated[
        str, typer.Option("--format", help="text, github (annotations of a workflow) or sarif (2.1.0).")
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for what --format writes (default: standard output).")
    ] = None,
    json: JsonFlag = False,
) -> Reply:
    """Check every page: front matter, names, sources, numbers, links, code. Exit code 4 if there are errors."""
    from kbs.common.errors import ExitCode
    from kbs.common.files import write_whole
    from kopt.services.results.wiki import LintData, ProblemData
    from kopt.services.wikis import check_report, chosen_wikis, report_lines
    from wiki.lint import lint as lint_wiki

    check_report(format, output, json=json)
    with engine() as eng:
        wikis = chosen_wikis(eng, which)
        fixed = list(_fixed(wikis, eng.terms, ask=not yes, may_ask=not json)) if fix else []
        today = datetime.date.today()
        found = [
            (one, problem)
            for one in wikis
            for problem in lint_wiki(one, eng.terms, today=today, told=partial(eng.progress, f"reading {one.name}"))
        ]
        problems = [ProblemData(wiki=one.name, **vars(problem)) for one, problem in found]
        pages = sum(len(one.files()) for one in wikis)
    errors = sum(problem.error for problem in problems)
    last = f"{pages} pages, {errors} errors, {len(problems) - errors} warnings"
    if format == "text":
        lines = [
            f"{one.wiki}/{one.path}:{one.line}: {'error' if one.error else 'warning'}: {one.rule}: {one.message}"
            for one in problems
        ]
        lines += [*(f"fixed {path}" for path in fixed), last]
    else:
        lines = report_lines(format, found)
    if output is not None:
        write_whole(output, "".join(f"{line}\n" for line in lines).encode())
        lines = [last]
    data = LintData(pages=pages, problems=problems, fixed=fixed)
    return Reply(data, print_lines(lines), ExitCode.REJECTED if errors else ExitCode.OK, eng.warnings)


def _fixed(wikis: Iterable[Wiki], terms: Vocabulary, *, ask: bool, may_ask: bool) -> Iterator[str]:
    """The pages that were fixed; each change is shown first and, with `ask`, written only after a yes."""
    import difflib
    import sys

    from wiki.lint import apply_fix, fixes

    for one in wikis:
        for change in fixes(one, terms):
            old, new = change.old.splitlines(True), change.new.splitlines(True)
            tell("".join(difflib.unified_diff(old, new, f"a/{change.path}", f"b/{change.path}")))
            if not ask or (may_ask and sys.stdin.isatty() and typer.confirm("Write this change?", err=True)):
                apply_fix(one, change)
                yield f"{one.name}/{change.path}"


@command("wiki gaps", wiki, paged=True)
def gaps(
    reason: Annotated[
        str | None, typer.Option("--reason", help="Show only questions refused for this reason: not_in_wiki, ...")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Number of questions to show.")] = 30,
) -> Reply:
    """Show what the wikis could not answer: each question that was refused, how often, and what was missing.

    The newest comes first. Questions of `kopt ask`, values of `kopt spec`, `occupancy` and `roofline`, and what a run
    did not find for its step 0 are logged in gaps.jsonl under KOPT_HOME; remove the file to begin anew.
    """
    from kopt.services.curation.gaps import read_gaps
    from kopt.services.engine import GAPS
    from kopt.services.results.wiki import GapData, GapsData
    from kopt.services.settings import load_settings

    file = load_settings().home / GAPS
    found = read_gaps(file)
    if reason is not None:
        found = found.of_reason(reason)
    data = GapsData(
        questions=[GapData.from_domain(gap) for gap in found.questions[:limit]],
        total=len(found.questions),
        refusals=found.refusals,
        unreadable=found.unreadable,
    )
    left = found.unreadable
    warnings = [f"left out, since they are no records: {left} line{'s' if left > 1 else ''} of {file}"] if left else []
    since = min((gap.first for gap in found.questions), default="")[:10]
    return Reply(data, print_lines(_gap_lines(data, since)), warnings=warnings)


_MISSING_SHOWN = 3
"""Of what was missing for a question; --json has more."""


def _gap_lines(data: GapsData, since: str) -> Iterator[str]:
    if not data.questions:
        yield "No question was refused yet."
        return
    for gap in data.questions:
        yield f"{gap.count}x  {gap.last[:10]}  {', '.join(gap.reasons)}  {gap.asked}"
        yield from (f"      {one}" for one in gap.missing[:_MISSING_SHOWN])
        more = len(gap.missing) - _MISSING_SHOWN
        yield from [f"      and {more} more"] if more > 0 else []
    many = f"{data.total} question{'s' if data.total > 1 else ''}"
    times = f"refused {data.refusals} time{'s' if data.refusals > 1 else ''} since {since}"
    yield f"{many}, {times}" + (f"; {len(data.questions)} shown" if len(data.questions) < data.total else "")


@command("wiki stats", wiki, reads_wikis=True, paged=True)
def stats(which: WikiOption = None) -> Reply:
    """Count pages, specs, sources and confidence of each wiki."""
    from kopt.services.results.wiki import StatsData
    from kopt.services.wikis import chosen_wikis, count_wiki

    with engine() as eng:
        counted = [count_wiki(one, eng.terms, eng.progress) for one in chosen_wikis(eng, which)]
    return Reply(StatsData(wikis=counted), print_lines(_stats_lines(counted)), warnings=eng.warnings)


def _stats_lines(counted: Iterable[dict[str, Any]]) -> Iterator[str]:
    for one in counted:
        yield f"{one['name']}: {one['pages']} pages, {one['broken']} broken, {one['lines']} lines, {one['root']}"
        for what in ("kinds", "confidence of pages", "confidence of specs", "kinds of sources"):
            yield f"  {what}: " + ", ".join(f"{name} {count}" for name, count in one[what].items())
        rows = ("specs", "unpublished", "costs", "advice", "thresholds", "measured")
        yield "  rows: " + ", ".join(f"{one[what]} {what}" for what in rows)
        yield f"  revision {one['revision']}"


@command("wiki alike", wiki, reads_wikis=True, paged=True)
def alike(
    which: WikiOption = None,
    least: Annotated[
        float, typer.Option("--least", min=0.5, max=1.0, help="Least similarity (cosine) of a pair.")
    ] = 0.9,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Number of pairs to show.")] = 30,
) -> Reply:
    """List sections of different pages that say nearly the same, so that one of them can go or link to the other.

    Sections are compared by the meaning of their text. Hardware pages are not compared with each other: their tables
    are alike on purpose.
    """
    from kopt.services.knowledge.alike import alike_sections
    from kopt.services.results.wiki import AlikeData, AlikePairData
    from kopt.services.wikis import chosen_wikis

    with engine() as eng:
        found = alike_sections(eng, least, [one.name for one in chosen_wikis(eng, which)])
        pairs = [
            AlikePairData(
                cosine=round(pair.cosine, 4),
                **{"first": pair.first.reference, "first_heading": pair.first.heading},
                **{"second": pair.second.reference, "second_heading": pair.second.heading},
            )
            for pair in found.pairs[:limit]
        ]
        data = AlikeData(pairs=pairs, total=len(found.pairs), compared=found.compared)
        return Reply(data, print_lines(_alike_lines(data)), warnings=eng.warnings)


def _alike_lines(data: AlikeData) -> Iterator[str]:
    for one in data.pairs:
        yield f"{one.cosine:.3f}  {one.first}  {one.first_heading}"
        yield f"       {one.second}  {one.second_heading}"
    more = f"; {len(data.pairs)} shown" if len(data.pairs) < data.total else ""
    yield f"{data.compared} sections compared, {data.total} pair{'' if data.total == 1 else 's'} alike{more}"


@command("wiki show", wiki, reads_wikis=True, paged=True)
def show(
    page: Annotated[str, typer.Argument(autocompletion=pages, help="A page's id or path, such as kernel/softmax.")],
) -> Reply:
    """Print a page with its line numbers."""
    from kopt.cli.knowledge.cite import lines_reply

    with engine() as eng:
        reply = lines_reply(eng.library, page)
        reply.warnings += eng.warnings
        return reply


@command("wiki refs", wiki, reads_wikis=True, paged=True)
def refs(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE[:LINE]", autocompletion=pages, help="A page's id or path; with :30 or :L30-L32, lines of it."
        ),
    ],
) -> Reply:
    """Show what refers to a page: links and citations of other pages, citations of runs, records of the log.

    A citation is marked stale where the cited lines read otherwise now, and where the record of the log is masked. With
    a LINE, only what cites that line is shown, and no links. Runs are those that this KOPT_HOME knows, and those below
    the working folder.
    """
    from kopt.services.curation.refs import find_refs
    from kopt.services.results.wiki import RefsData

    with engine() as eng:
        found = find_refs(eng, page, Path.cwd())
        data = RefsData.from_domain(found)
        return Reply(data, print_lines(_ref_lines(data)), warnings=[*eng.warnings, *found.warnings])


def _ref_lines(data: RefsData) -> Iterator[str]:
    from kbs.evidence.checking import Status

    lines = f":L{data.start}" + (f"-L{data.end}" if data.end != data.start else "") if data.start else ""
    stale = f", {data.stale} of them not up to date" if data.stale else ""
    many = f"{len(data.refs) or 'no'} reference{'' if len(data.refs) == 1 else 's'}"
    yield f"{data.wiki}/{data.path}{lines} ({data.title}): {many}{stale}"
    for one in data.refs:
        mark = f"{one.status}: " if one.status is not Status.OK else ""
        cites = f"cites {one.cites.rpartition(':')[2]}" if one.cites else "links to it"
        where = f" in {', '.join(one.files)}" if one.files else ""
        yield f"  {one.by:<4}  {one.place}  {mark}{cites}{where}{f': {one.detail}' if one.detail else ''}"


@command("wiki history", wiki, reads_wikis=True, paged=True)
def history(
    page: Annotated[str, typer.Argument(autocompletion=pages, help="A page's id or path, such as kernel/softmax.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Number of commits to show.")] = 20,
) -> Reply:
    """Show the commits that changed a page, the newest first, also those under its former names.

    The wiki's folder must be in a git repository.
    """
    from kopt.services.curation.history import page_history
    from kopt.services.results.wiki import HistoryData

    with engine() as eng:
        found = page_history(eng, page, limit)
        lines = [f"{one.hash[:12]}  {one.time[:10]}  {one.author}: {one.subject}" for one in found.commits]
        lines += ["the page has changes that are not committed"] if found.changed else []
        return Reply(HistoryData.from_domain(found), print_lines(lines), warnings=list(eng.warnings))


@command("wiki publish", wiki, reads_wikis=True)
def publish(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write: new, empty, or published before.")],
    which: WikiOption = None,
) -> Reply:
    """Write a static site of all wikis: search, an anchor for every line, figures, and llms.txt.

    A citation `gpu-wiki/kernel/softmax.md:L30` is `gpu-wiki/kernel/softmax.html#L30` there. The site fetches nothing
    from elsewhere and works from a folder as well as from a server. Published again, changed files are replaced one by
    one, and those that are gone are removed; a file that kopt did not write is never touched.
    """
    from kopt.services.publishing.site import build_site, check_folder, write_site
    from kopt.services.results.wiki import PublishData
    from kopt.services.wikis import chosen_wikis

    check_folder(out)
    with engine() as eng:
        site = build_site(chosen_wikis(eng, which), eng.terms, eng.progress)
    data = PublishData.from_domain(write_site(site, out))
    said = f"{data.pages} pages of {', '.join(data.wikis)}: {data.files} files, {data.changed} changed, "
    said += f"{data.removed} removed; open {out / 'index.html'}"
    return Reply(data, print_lines([said]), warnings=[*eng.warnings, *site.left_out])


@command("wiki trust", wiki)
def trust(
    path: Annotated[Path | None, typer.Argument(help="Folder of a wiki that a kopt.toml names.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the wikis that are trusted.")] = False,
) -> Reply:
    """Let the kopt.toml of any folder that you work in bring in this wiki, and say what it overrides.

    A folder may come from a stranger, so a wiki that its kopt.toml names is left out until you trust it, or give a
    command --trust. Trust is of the folder that PATH leads to now: what is written there later counts too, and a
    link that later leads elsewhere is not trusted. `kopt wiki distrust PATH` takes it back.
    """
    from kbs.common.errors import UsageError
    from kopt.services.wikis import trust_wiki

    if list_ == (path is not None):
        raise UsageError("give either the folder of a wiki, or --list", code="trust_what", hint="kopt wiki trust PATH")
    with engine() as eng:
        if path is None:
            return _trust_reply(eng, "", [], [])
        made, overrides = trust_wiki(eng, path)
    with engine() as eng:
        said = [f"{made.folder} is trusted: a kopt.toml may bring it in as the wiki {made.name}"]
        said += (
            []
            if made.named_here
            else ["the kopt.toml here does not name it; `kopt ingest PATH` would add it everywhere"]
        )
        said += [f"  {note}" for note in overrides] or ["it overrides nothing of the wikis before it"]
        return _trust_reply(eng, str(made.folder), overrides, said)


@command("wiki distrust", wiki)
def distrust(path: Annotated[Path, typer.Argument(help="Folder of a wiki that was trusted.")]) -> Reply:
    """Trust a wiki no longer: a kopt.toml that names it does not bring it in."""
    from kopt.services.wikis import distrust_wiki

    with engine() as eng:
        folder = str(distrust_wiki(eng, path))
        return _trust_reply(eng, folder, [], [f"{folder} is not trusted any more"])


def _trust_reply(eng: Engine, changed: str, overrides: list[str], said: list[str]) -> Reply:
    from kopt.services.results.wiki import TrustData, TrustedWikiData
    from kopt.services.wikis import trusted_wikis

    trusted = [
        TrustedWikiData(folder=str(one.folder), name=one.name, problem=one.problem, named_here=one.named_here)
        for one in trusted_wikis(eng)
    ]
    if not changed:
        said = [_trusted_line(one) for one in trusted] or ["No wiki is trusted."]
    data = TrustData(trusted=trusted, changed=changed, overrides=overrides)
    return Reply(data, print_lines(said), warnings=list(eng.warnings))


def _trusted_line(one: TrustedWikiData) -> str:
    notes = [one.problem, "named by the kopt.toml here" if one.named_here else ""]
    shown = ", ".join(filter(None, notes))
    return f"{one.folder}{f'  ({shown})' if shown else ''}"
