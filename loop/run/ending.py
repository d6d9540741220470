"""The end of a run: the best version is restored, measured again, and reported."""

from __future__ import annotations

from pathlib import Path

from evaluator.receipt.verdict import Verdict
from kbs.common.errors import KoptError
from kbs.common.files import keep_only, read_if_there
from loop.journal import events, seeds
from loop.journal.version_state import VersionState
from loop.pages.final import PICTURES
from loop.planning import decisions
from loop.run.evaluation import measured
from loop.run.messages import commit_message
from loop.run.open_run import Run, missing


def restore(run: Run) -> None:
    """Restore the best version that was not measured again yet to best/, and measure it against version 0."""
    state = run.state
    number = _next_best(run)
    version, ending = state.versions[number], state.reports + 1
    _tidy(run, run.folder.final(number, ending))
    if version.committed is None:
        raise missing(run.folder.version(number))
    run.repository.restore(version.committed.commit, run.folder.relative(run.folder.best))
    kernel = run.version_kernel(number)
    keep_only(run.folder.best, [kernel.name])
    stands, recorded = read_if_there(run.folder.best / kernel.name), state.files.get(f"v{number}/{kernel.name}")
    if stands != kernel.data or recorded != kernel.hash:
        raise KoptError(
            f"best/{kernel.name} of commit {version.committed.commit[:12]} is not the accepted v{number}",
            code="restore_mismatch",
            hint=f"Somebody changed v{number}/ or the repository. Look at `git log --stat` in the run's folder.",
        )
    folder = run.folder.relative(run.folder.final(number, ending))
    first = None if number == 0 else run.version_kernel(0).text
    schedule = seeds.schedule(run.master, number, ending, "final")
    request = run.tools.request(kernel.text, kernel.name, first)
    receipt, files = measured(run, folder, kernel, request, schedule)
    agrees, why = decisions.agrees(receipt, run.record)
    if number == 0:
        agrees = receipt.verdict is Verdict.ACCEPTED
        why = "version 0 itself: no version is better" if agrees else why
    run.happened(
        events.FinalMeasured(
            version=number,
            receipt=receipt.id,
            agrees=agrees,
            ratio=None if number == 0 else decisions.ratio_of(receipt),
            why=why,
            files=files | {f"{run.folder.relative(run.folder.best)}/{kernel.name}": kernel.hash},
        )
    )


def _tidy(run: Run, awaited: Path) -> None:
    """Remove what steps left that were killed before their event and, because the run was stopped, are not repeated.

    `awaited`: the folder of the final measurement that comes next.
    """
    folder, versions = run.folder, run.state.versions
    left = [folder.version(len(versions))]
    for version in versions:
        left.append(folder.attempt(version.number, len(version.attempts) + 1))
        left.append(folder.branches(version.number, len(version.attempts) + 1))
        left.append(folder.submission(version.number, len(version.refused) + 1))
    left += [place for place in awaited.parent.glob("v*") if place != awaited]
    for place in left:
        recorded = any(path.startswith(f"{folder.relative(place)}/") for path in run.state.files)
        if place.is_dir() and not place.is_symlink() and not recorded:
            keep_only(place, [])
            place.rmdir()
    run.put({folder.relative(folder.current): f"{len(versions) - 1}\n".encode()})


def _next_best(run: Run) -> int:
    """The best of the kept versions that have no final measurement yet."""
    measured = {found.version for found in run.state.finals}
    kept = [version for version in run.state.versions if version.kept and version.number not in measured]
    if run.state.best is not None and run.state.best not in measured:
        return run.state.best
    return decisions.ranked([_standing(run, version) for version in kept])[0]


def _standing(run: Run, version: VersionState) -> decisions.Standing:
    receipt = run.receipt(version.number)
    times = None if receipt is None else decisions.summary_of(receipt)
    ratio = decisions.to_baseline(run.state, version.number) if times is not None else None
    size = len(run.version_kernel(version.number).data)
    return decisions.Standing(
        version.number, ratio, times.p80_us if times else None, times.std_us if times else None, size
    )  # fmt: skip


def report(run: Run) -> None:
    """Render the reports, and let the gate check the end of the run."""
    final = run.state.final
    assert final is not None
    files = run.put({**run.parts.of_run(run.state), **run.parts.of_end(run.state)})
    drawn = run.folder.root / PICTURES
    keep_only(drawn, [path.removeprefix(f"{PICTURES}/") for path in files if path.startswith(f"{PICTURES}/")])
    found = run.parts.gate(run.state, final.version, "final")
    if not found.passed:
        run.rejected = found
        return
    run.happened(events.Reported(files=files))


def settle(run: Run) -> None:
    """Commit the end of the run, and what was written to the journal after it."""
    final, stopped = run.state.final, run.state.stopped
    assert final is not None
    assert stopped is not None
    what = "final" if run.state.reports == 1 else f"final {run.state.reports}"
    shown = "" if final.ratio is None else f" ({final.ratio[0]:.3g}x)"
    subject = f"[final] restore v{final.version}{shown}: {stopped.reason}"
    run.repository.commit(what, commit_message(subject, stopped.evidence), again=True)
    commit_rest(run)


def commit_rest(run: Run) -> None:
    """Commit what was written since the last commit, so that a waiting run has nothing uncommitted."""
    if run.repository.changed():
        last = run.state.entries[-1]
        run.repository.commit(f"line {last.n}", f"[journal] up to {last.event.kind}", again=False)
