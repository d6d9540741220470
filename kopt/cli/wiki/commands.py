"""`kopt wiki`: lint, stats, show, propose."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver, tell

if TYPE_CHECKING:
    from rich.console import Console

    from kopt.services.engine import Engine
    from wiki.library import Wiki

wiki = typer.Typer(help="Read and check the wikis, and propose pages.", no_args_is_help=True)

Which = Annotated[
    str | None, typer.Option("--wiki", help="Only this wiki, by name or folder; by default all known ones.")
]


def _chosen(eng: Engine, which: str | None) -> list[Wiki]:
    from kbs.common.errors import UsageError
    from wiki.library import open_wiki

    if which is None:
        return eng.wikis
    named = [known for known in eng.wikis if known.name == which]
    if named or not Path(which).is_dir():
        if not named:
            names = ", ".join(known.name for known in eng.wikis)
            raise UsageError(
                f"there is no wiki {which}", code="wiki_unknown", hint=f"Known wikis: {names}; or give a folder."
            )
        return named
    return [open_wiki(Path(which))]


@wiki.command()
def lint(
    which: Which = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended mechanically, after showing the change.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Check every page: front matter, names, sources, numbers, links, code. Exit code 4 if there are errors."""

    def work() -> Reply:
        import difflib
        import sys

        from kbs.common.errors import ExitCode
        from kopt.cli.support import engine
        from kopt.services.results.wiki import LintData, ProblemData
        from wiki.lint import apply_fix, fixes
        from wiki.lint import lint as lint_wiki

        with engine() as eng:
            wikis = _chosen(eng, which)
            fixed: list[str] = []
            for chosen in wikis if fix else ():
                for change in fixes(chosen, eng.terms):
                    diff = difflib.unified_diff(
                        change.old.splitlines(True), change.new.splitlines(True), f"a/{change.path}", f"b/{change.path}"
                    )
                    tell("".join(diff))
                    if yes or (sys.stdin.isatty() and not json and typer.confirm("Write this change?", err=True)):
                        apply_fix(chosen, change)
                        fixed.append(f"{chosen.name}/{change.path}")
            problems = [
                ProblemData(wiki=chosen.name, **vars(problem))
                for chosen in wikis
                for problem in lint_wiki(chosen, eng.terms, today=datetime.date.today())
            ]
            pages = sum(len(chosen.files()) for chosen in wikis)
            warnings = list(eng.warnings)
        errors = sum(problem.error for problem in problems)

        def show(console: Console) -> None:
            for problem in problems:
                level = "error" if problem.error else "warning"
                console.print(
                    f"{problem.wiki}/{problem.path}:{problem.line}: {level}: {problem.rule}: {problem.message}",
                    markup=False,
                )
            for path in fixed:
                console.print(f"mended {path}", markup=False)
            console.print(f"{pages} pages, {errors} errors, {len(problems) - errors} warnings", markup=False)

        return Reply(
            LintData(pages=pages, problems=problems, fixed=fixed),
            show,
            ExitCode.REJECTED if errors else ExitCode.OK,
            warnings,
        )

    deliver("wiki lint", json, debug, work)


@wiki.command()
def stats(which: Which = None, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Count pages, specs, sources and confidence of each wiki."""

    def work() -> Reply:
        from kopt.cli.support import engine
        from kopt.services.results.wiki import StatsData

        with engine() as eng:
            counted = [_count(chosen, eng) for chosen in _chosen(eng, which)]
            warnings = list(eng.warnings)

        def show(console: Console) -> None:
            for one in counted:
                console.print(
                    f"{one['name']}: {one['pages']} pages, {one['broken']} broken, {one['lines']} lines, {one['root']}",
                    markup=False,
                )
                for what in ("kinds", "confidence of pages", "confidence of specs", "kinds of sources"):
                    console.print(
                        f"  {what}: " + ", ".join(f"{name} {count}" for name, count in one[what].items()), markup=False
                    )
                rows = ", ".join(
                    f"{one[what]} {what}"
                    for what in ("specs", "unpublished", "costs", "advice", "thresholds", "measured")
                )
                console.print(f"  rows: {rows}", markup=False)
                console.print(f"  revision {one['revision']}", markup=False)

        return Reply(StatsData(wikis=counted), show, warnings=warnings)

    deliver("wiki stats", json, debug, work)


def _count(chosen: Wiki, eng: Engine) -> dict[str, Any]:
    from collections import Counter

    from wiki.page import Page

    read = list(chosen.pages(eng.terms))
    pages = [page for page in read if isinstance(page, Page)]
    specs = [spec for page in pages for spec in page.specs]
    return {
        "name": chosen.name,
        "root": str(chosen.root),
        "revision": chosen.revision,
        "pages": len(pages),
        "broken": len(read) - len(pages),
        "lines": sum(len(page.lines) for page in pages),
        "kinds": dict(Counter(page.meta.kind for page in pages).most_common()),
        "confidence of pages": dict(Counter(page.meta.confidence for page in pages).most_common()),
        "confidence of specs": dict(Counter(spec.confidence for spec in specs).most_common()),
        "kinds of sources": dict(Counter(source.kind for page in pages for source in page.meta.sources).most_common()),
        "specs": len(specs),
        "unpublished": sum(not spec.published for spec in specs),
        "costs": sum(len(page.costs) for page in pages),
        "advice": sum(len(page.advice) for page in pages),
        "thresholds": sum(len(page.thresholds) for page in pages),
        "measured": sum(len(page.measured) for page in pages),
    }


@wiki.command()
def show(
    page: Annotated[str, typer.Argument(help="A page's id or path, such as kernel/softmax.")],
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Print a page with its line numbers."""

    def work() -> Reply:
        from kopt.cli.knowledge.cite import lines_reply
        from kopt.cli.support import engine

        with engine() as eng:
            reply = lines_reply(eng.library, page, 0)
            reply.warnings += eng.warnings
            return reply

    deliver("wiki show", json, debug, work)


@wiki.command()
def propose(
    from_run: Annotated[
        str,
        typer.Option("--from-run", metavar="RUN", help="A finished run: its folder or its id."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new file outside of all wikis; without it the page is printed.")
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Propose a wiki page of what a run taught: a file for review, which is written into no wiki.

    Its sources are the run's receipts, by hash, device and date; each figure is a row of them. A run that has not
    ended, or in which no improvement was measured, gives no page.
    """

    def work() -> Reply:
        from kopt.services.results.wiki import ProposeData
        from kopt.services.runs.service import look
        from kopt.services.runs.wiki_proposal import propose as propose_page
        from kopt.services.runs.wiki_proposal import write

        eng, view = look(from_run)
        made = propose_page(view, eng.settings.home, eng.terms, datetime.date.today())
        file = str(write(made, out, eng.wikis)) if out is not None else ""
        data = ProposeData.from_domain(made).model_copy(update={"file": file})

        def show(console: Console) -> None:
            console.print(f"{data.page}: written to {file}, to be reviewed" if file else data.markdown, markup=False)

        warnings = [f"{problem.rule}, line {problem.line}: {problem.message}" for problem in data.problems]
        return Reply(data, show, warnings=[*eng.warnings, *data.left_out, *warnings])

    deliver("wiki propose", json, debug, work)
