"""The pages of a run: everything in its folder that is rendered from structured files and the journal.

Rendering reads and never writes, and gives the same bytes whenever it is done again: the gate does, and compares.
"""

from __future__ import annotations

from collections.abc import Mapping

from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.pages import attribution, citations, final, measured, reasons, run, standalone
from loop.pages.artifacts import VersionFiles, environment, targets
from loop.pages.benchmark import benchmark
from loop.pages.drawing import Drawing, Painter, drawing
from loop.pages.measured import correctness
from loop.pages.run import step0_files

__all__ = ["Drawing", "Painter", "correctness", "drawing", "final_files", "run_files", "step0_files", "version_files"]


def version_files(folder: RunFolder, record: RunRecord, version: int) -> dict[str, bytes]:
    """Every rendered file of an accepted version, by its name in vK/; none for a version that was not accepted.

    They follow from the version's files alone, so that later events change none of them. The pages of the profile are
    among them once diagnosis.json exists. Raises `KoptError` (`artifact_damaged`).
    """
    files = VersionFiles(folder, record, version)
    if files.receipt is None or files.kernel is None:
        return {}
    made = {
        "correctness.md": correctness(files.receipt),
        "kbs_evidence.md": reasons.evidence(files),
        "methods.json": reasons.methods(files),
    }
    if files.proposal is not None and files.proposal.ablations:
        made[attribution.NAME] = attribution.attribution(files)
    if files.proposal is not None:
        made["hypothesis.txt"] = reasons.hypothesis(files.proposal)
    if files.proposal is not None or files.diagnosis is not None:
        made["plan.md"] = reasons.plan(files)
    if files.diagnosis is not None:
        found = targets(folder)
        made |= measured.profile_pages(files, found)
        made["roofline.json"] = measured.roofline(files, found)
        made["sass_check.json"] = measured.machine(files, found)
    return made


def run_files(folder: RunFolder, record: RunRecord, state: RunState) -> dict[str, bytes]:
    """Every rendered file at the top of a run's folder but the reports. Raises `KoptError` (`artifact_damaged`)."""
    machine, found = environment(folder), targets(folder)
    pages = {
        "plan.md": run.plan(record),
        "env_check.md": None if machine is None else run.environment_page(machine),
        "README.md": None if found is None else run.readme(record, found),
        "ITERATIONS.md": run.log(record, state),
        "searches.jsonl": run.searches(folder, record, state),
        "citations.json": citations.citations(folder, record, state),
    }
    return {name: data for name, data in pages.items() if data is not None}


def final_files(
    folder: RunFolder, record: RunRecord, state: RunState, pictures: Painter | None = None
) -> dict[str, bytes]:
    """The reports, by their paths; with `pictures`, what it draws too. Without it, pictures that stand are named."""
    files: Mapping[int, VersionFiles] = {one.number: VersionFiles(folder, record, one.number) for one in state.versions}
    drawn = {} if pictures is None else pictures(drawing(folder, record, state, files))
    made = {f"{final.PICTURES}/{name}": data for name, data in drawn.items()}
    names = tuple(sorted(drawn)) if pictures is not None else _standing(folder)
    ended = state.final or (state.finals[-1] if state.finals else None)
    made["final_report.md"] = final.report(folder, record, state, files, names)
    made["summary.json"] = final.summary(folder, record, state, files)
    made["benchmark.md"] = benchmark(record, files, final.final_receipt(folder, ended))
    best = ended.version if ended else state.best
    script = None if best is None else standalone.standalone(files[best])
    if script is not None:
        made[standalone.NAME] = script
    return made


def _standing(folder: RunFolder) -> tuple[str, ...]:
    """Pictures that were drawn before."""
    place = folder.root / final.PICTURES
    return tuple(sorted(path.name for path in place.iterdir() if path.is_file())) if place.is_dir() else ()
