"""Find a run by its folder, by its id or the beginning of it, or as the only one there is."""

from __future__ import annotations

from pathlib import Path

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from loop.journal.folder import RunFolder
from loop.journal.registry import known_runs
from loop.planning.plan import RUNS

_LISTED = 20


def runs_below(workspace: Path) -> list[RunFolder]:
    """The runs below a workspace, by name."""
    try:
        folders = sorted(path for path in (workspace / RUNS).iterdir() if RunFolder(path).record.is_file())
    except OSError:  # no such folder, or none that may be read: no run is known there
        return []
    return [RunFolder(path) for path in folders]


def runs_of_home(home: Path) -> list[RunFolder]:
    """The runs that were begun with this KOPT_HOME and are still where they were."""
    return [RunFolder(run.root) for run in known_runs(home) if run.there]


def find_run(given: str | None, here: Path, home: Path) -> RunFolder:
    """The run that is meant.

    `given` is a folder; the name of one below `here`/runs, or the id of a run that was begun with this KOPT_HOME; or
    the beginning of such a name or id that only one run has. Without it: the run whose folder `here` is, or lies in;
    else the only one below `here`/runs. UsageError (`run_unknown`, `run_ambiguous`, `run_not_named`).
    """
    return _named(given, here, home) if given else _only(here)


def _named(given: str, here: Path, home: Path) -> RunFolder:
    if "\0" not in given:
        folder = RunFolder((here / given).resolve())
        if folder.record.is_file():
            return folder
    names = {run.root.name: run for run in runs_below(here)}
    known = names | {run.id: RunFolder(run.root) for run in known_runs(home) if run.there}
    matching = [given] if given in known else [name for name in known if name.startswith(given)]
    roots = {known[name].root.resolve() for name in matching}
    if len(roots) == 1:
        return RunFolder(roots.pop())
    if matching:
        raise UsageError(
            f"{len(roots)} runs begin with {visible(given)}: {_listed(matching)}",
            code="run_ambiguous",
            hint="Give more of the name, or the run's folder.",
        )
    raise UsageError(
        f"no run {visible(given)}: not a folder of one, not below {here / RUNS}, and not a known id",
        code="run_unknown",
        hint=f"Known runs: {_listed(sorted(known))}." if known else "`kopt run start` begins one.",
    )


def _only(here: Path) -> RunFolder:
    for folder in (here, *here.parents):
        if RunFolder(folder).record.is_file():
            return RunFolder(folder)
    found = runs_below(here)
    if len(found) == 1:
        return found[0]
    if found:
        names = _listed([run.root.name for run in found])
        raise UsageError(
            f"several runs below {here / RUNS}: {names}",
            code="run_not_named",
            hint="Choose one with --run NAME, or go to its folder.",
        )
    raise UsageError(
        f"{here} is not a run's folder, and there is no run below {here / RUNS}",
        code="run_not_named",
        hint="Name the folder with --run FOLDER, or begin a run with `kopt run start`.",
    )


def _listed(names: list[str]) -> str:
    shown = [visible(name) for name in names[:_LISTED]]
    return ", ".join(shown) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
