"""The report of an evaluation: a Markdown page with tables, its pictures, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbs.common.errors import UsageError
from kbs.common.files import make_folder, may_overwrite, write_whole
from kbs.common.json_model import json_value
from kbs.common.markdown import bullets, inert, table
from kopt.services.evaluation.answers import Judged, Mark
from kopt.services.evaluation.figures import Band, Bar, GroupFigures, Interval, SearchFigures
from kopt.services.evaluation.pictures import paint
from kopt.services.evaluation.service import Evaluation

PAGE, DATA = "report.md", "evaluation.json"
_BEGIN = "# Evaluation\n"
_SHOWN = 300
"""Characters of a question that a table has."""


def check_folder(folder: Path) -> None:
    """Raises `UsageError` (`report_exists`) for a page in the report's place that is none, before the work."""
    if not may_overwrite(folder / PAGE, _BEGIN.encode()):
        raise UsageError(
            f"{folder / PAGE} exists and is no report of kopt eval",
            code="report_exists",
            hint="Choose another folder with --report, or move that file away.",
        )


def write_report(folder: Path, made: Evaluation) -> None:
    """Write page, data and pictures. Raises as `check_folder`, and `KoptError` where they cannot be written."""
    check_folder(folder)
    make_folder(folder)
    pictures = paint(made.searches, made.groups, made.bands)
    write_whole(folder / DATA, (json.dumps(json_value(made), indent=1, ensure_ascii=False) + "\n").encode())
    for name, picture in pictures.items():
        write_whole(folder / name, picture)
    write_whole(folder / PAGE, page(made, list(pictures)).encode())


def page(made: Evaluation, pictures: Sequence[str]) -> str:
    """The page; `pictures` are the names of those that stand beside it."""
    shown = {name: [f"![{name.partition('.')[0]}]({name})", ""] for name in pictures}
    wikis = ", ".join(f"{name} {revision[:12]}" for name, revision in made.wikis.items())
    lines = [_BEGIN.strip(), "", f"{len(made.answers)} questions, kopt {inert(made.kopt)}, wikis: {inert(wikis)}."]
    lines += ["", f"All of it is in [{DATA}]({DATA}).", ""]
    if not pictures:
        lines += ["Pictures need matplotlib: `pip install 'kopt[plot]'`.", ""]
    lines += [
        "## Figures",
        "",
        *table(("figure", "value"), [(name, f"{value:g}") for name, value in made.figures.items()]),
    ]
    if made.bars:
        lines += ["## Bars", "", *table(("figure", "bar", "value", "met"), map(_bar_row, made.bars))]
    if made.searches:
        lines += ["## Search", "", "Where a gold section stands; in brackets the 95 % interval over questions.", ""]
        lines += shown.get("recall.svg", [])
        lines += table(("search", "recall@1", "recall@2", "recall@5", "MRR"), map(search_row, made.searches))
    lines += ["## Answers", "", "Marks compare versions of kopt; a reader judges whether an answer is right.", ""]
    lines += shown.get("marks.svg", [])
    head = ("by", "questions", "n", "right", "partial", "wrong", "offered", "refused", "first", "must", "must not")
    lines += table(head, map(group_row, made.groups), right=9)
    lines += ["## What they came to", ""]
    came = [(one.kind, "yes" if one.in_wiki else "no", one.outcome, str(one.count)) for one in made.outcomes]
    lines += table(("kind", "in the wiki", "outcome", "n"), came, right=1)
    if made.bands:
        lines += ["## Scores of the first section", "", *shown.get("scores.svg", [])]
        of_bands = ("score from", "gold", "another", "no section answers", "gold among those that a section answers")
        lines += table(of_bands, map(_band_row, made.bands))
    lines += ["## Citations", "", f"{made.citations.checked} were checked, {len(made.citations.failed)} failed.", ""]
    lines += [*bullets(made.citations.failed), ""] if made.citations.failed else []
    wrong = [(one.kind, str(one.planted), str(one.accepted)) for one in made.citations.planted]
    lines += table(("wrong citation", "planted", "accepted"), wrong, right=2)
    lines += bullets(example for one in made.citations.planted for example in one.examples)
    if made.changes:
        lines += [f"## Against {inert(made.changes.file)}", ""]
        lines += [f"Right now and not then: {inert(', '.join(made.changes.gained) or 'none')}.", ""]
        lines += [f"Right then and not now: {inert(', '.join(made.changes.lost) or 'none')}.", ""]
    lines += [
        "## Questions that are not right",
        "",
        *table(("id", "mark", "question", "what is missing or wrong"), _faults(made.answers)),
    ]
    return "\n".join(lines)


def search_row(one: SearchFigures) -> tuple[str, ...]:
    """Name, recalls and MRR, each with its interval."""
    return (one.name, *(_within(value) for value in one.recall.values()), _within(one.mrr))


def group_row(one: GroupFigures) -> tuple[str, ...]:
    """Marks in numbers, facts in percent."""
    counts = (one.questions, one.right, one.partial, one.wrong, one.offered, one.refused)
    return (one.by, one.name, *map(str, counts), _percent(one.first), _percent(one.must), str(one.violated))


def _bar_row(bar: Bar) -> tuple[str, ...]:
    ends = [f"at least {bar.least:g}"] if bar.least is not None else []
    ends += [f"at most {bar.most:g}"] if bar.most is not None else []
    value = "not measured" if bar.value is None else f"{bar.value:g}"
    return bar.figure, ", ".join(ends), value, "yes" if bar.met else "no"


def _band_row(band: Band) -> tuple[str, ...]:
    share = _within(band.reliability) if band.reliability else "–"
    return f"{band.low:.1f}", str(band.right), str(band.wrong), str(band.none), share


def _within(one: Interval) -> str:
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _faults(judged: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    for one in judged:
        if one.mark is not Mark.RIGHT:
            says = [f"says {pattern}" for pattern in one.violated] + [f"lacks {pattern}" for pattern in one.missing]
            mark = f"{one.mark}{f': {one.reason}' if one.reason else ''}"
            yield one.id, mark, one.question[:_SHOWN], "; ".join(says)
