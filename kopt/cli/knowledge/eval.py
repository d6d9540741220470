"""`kopt eval`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kopt.cli.command import RARE, command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines

if TYPE_CHECKING:
    from kopt.services.evaluation.service import Evaluation


@command("eval", reads_wikis=True)
def evaluate(
    questions: Annotated[
        list[Path] | None,
        typer.Option("--questions", help="JSONL file of questions. Repeatable."),
    ] = None,
    set: Annotated[
        Literal["development", "golden"],
        typer.Option("--set", metavar="NAME", help="Questions of kopt's repository: development or golden."),
    ] = "development",
    report: Annotated[
        Path | None, typer.Option("--report", help="Folder for a report: tables, plots and JSON.")
    ] = None,
    require: Annotated[
        Path | None, typer.Option("--require", help="TOML file with the figures that must be reached.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare with the --json output of an earlier run.")
    ] = None,
    planted: Annotated[
        int,
        typer.Option("--planted", min=0, max=100_000, help="Number of wrong citations to plant.", rich_help_panel=RARE),
    ] = 1000,
) -> Reply:
    """Measure search, answers, refusals and citations on questions whose right answers are known.

    Search: where a section that answers stands, beside words alone, vectors of text alone, and the search without each
    of its stages. Answers: facts that must be there, and where; what must not be. Citations: all of every answer are
    checked, and wrong ones are made, which the check must refuse.

    Exit code 4 if a bar of --require is not met. Nothing is logged as a gap.
    """
    # One thread: matrices of one question are small, and threads that share cores wait for each other. Read once, when
    # numpy is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from kbs.common.errors import ExitCode
    from kopt.services.evaluation.questions import find_set, read_questions
    from kopt.services.evaluation.report import check_folder, write_report
    from kopt.services.evaluation.service import Plan
    from kopt.services.evaluation.service import evaluate as measure

    asked = read_questions(questions or find_set(set))
    if report:
        check_folder(report)
    with engine() as eng:
        made = measure(eng, Plan(asked, planted, require, against))
        warnings = list(eng.warnings)
    if report:
        write_report(report, made)
    code = ExitCode.OK if made.passed else ExitCode.REJECTED
    return Reply(made, print_lines(_summary(made, report)), code, warnings)


def _summary(made: Evaluation, report: Path | None) -> Iterator[str]:
    from kopt.services.evaluation.report import PAGE, group_row, search_row

    yield f"{len(made.answers)} questions in {made.seconds:g} s"
    if made.searches:
        yield from ("", f"{'search':<20} recall@1, @2, @5, MRR")
        for search in made.searches:
            name, *values = search_row(search)
            yield f"{name:<20} {'  '.join(values)}"
    yield from ("", "answers: n, right, partial, wrong, offered, refused, facts first, facts, say what they must not")
    for group in made.groups:
        by, name, *values = group_row(group)
        yield f"{by:<8} {name:<28} {' '.join(f'{value:>7}' for value in values)}"
    yield ""
    for figure, value in made.figures.items():
        yield f"{figure}: {value:g}"
    for citation in made.citations.failed:
        yield f"failed: {citation}"
    for planted in made.citations.planted:
        yield from (f"accepted: {example}" for example in planted.examples)
    if made.changes:
        yield f"right now, not in {made.changes.file}: {', '.join(made.changes.gained) or 'none'}"
        yield f"right in {made.changes.file}, not now: {', '.join(made.changes.lost) or 'none'}"
    for bar in made.bars:
        if not bar.met:
            ends = " and ".join(
                f"{word} {end:g}" for word, end in (("at least", bar.least), ("at most", bar.most)) if end is not None
            )
            yield f"not met: {bar.figure} must be {ends}"
    if report:
        yield f"report: {report / PAGE}"
