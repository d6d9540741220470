"""What the proposer `search` needs of a run: its study, quick measurements, passages, and what was proposed before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.verdict import Verdict
from evaluator.request import Request
from kbs.common.errors import NoGpuError, UsageError
from kbs.common.files import read_if_there
from kopt.services.runs.devices.several import Several
from loop.journal import seeds
from loop.planning.decisions import median_of
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest
from loop.proposers import search
from loop.proposers.reading import Unread
from loop.run.driver import Driver
from loop.run.submission import PROPOSAL
from loop.search.families import Families, Measure, one_by_one
from loop.search.rewrites import rewrites
from loop.search.study import Outcome, Study, digest

_UNTIMED = 1e9
"""Microseconds of a parent that was not timed: whole kernels then come before changes of it."""


def study_file(home: Path, run: str) -> Path:
    """Where a run's study lies: beside its seed, so that the run's folder holds nothing but the run."""
    return home / seeds.FOLDER / f"{run}.search"


def propose(
    driver: Driver, request: NextRequest, seconds: float, told: Callable[[str], None], several: Several | None = None
) -> Proposal | Unread:
    """The next proposal of `search`. Raises `KoptError` where something cannot be measured at all.

    `seconds`: what the measurements of the whole run may take, those on all devices together. `told` gets a line for
    each of them. `several`: further devices, if there may be any.
    """
    record, run = driver.record, driver.run
    measured, before = request.measured, list(_proposals(driver))
    generated, unread = run.tools.families()
    families = Families(
        Study(study_file(run.home, record.id)),
        generated=generated,
        rewritten=rewrites(request.parent.text, (measured.median_us if measured else None) or _UNTIMED),
        parent=request.parent.text,
        past=_past(request),
        told=told,
        tried={search.family_of(one.hypothesis.single_change) for one in before},
    )
    _leave_out(families, request)
    without = {digest(text) for one in before for text in one.candidates.values()}
    timed = record.device != "cpu"
    if timed and request.attempt == 1 and not request.refused:
        left = seconds - families.study.seconds()
        share = left / 2 if request.left.iterations > 1 else left
        devices = several.devices if several is not None else None
        families.width = 1 if devices is None else devices.width
        if several is None or devices is None:
            measure = one_by_one(_alone(driver, request))
        else:
            measure = _on_several(driver, request, several)
        families.measured(measure, share, without, measured.median_us if measured else None)
    chosen = families.chosen(request.branches, without, timed=timed)
    return search.answer(
        request,
        chosen,
        lambda text: run.tools.search("other", text).hits,
        "single",  # it hands in no ablations
        len(families.order),
        unread,
    )


def _leave_out(families: Families, request: NextRequest) -> None:
    """Leave out families whose method does not apply here: HINTS.md forbids it, or the GPU does not have it."""
    applies = {one.id for one in request.methods if one.applies}
    families.generated = [one for one in families.generated if set(one.methods) <= applies]
    families.rewritten = [one for one in families.rewritten if set(one.methods) <= applies]


def _past(request: NextRequest) -> dict[str, list[str]]:
    """Family → what the experience log says of it where it helped."""
    found: dict[str, list[str]] = {}
    for one in (hit for asked in request.searches for hit in asked.hits):
        name = search.family_of(one.text)
        if one.past is not None and one.past.advice == "recommended" and name:
            found.setdefault(name, []).append(one.text)
    return found


def _proposals(driver: Driver) -> Iterator[Proposal]:
    """Everything that was handed in in this run, refused or not."""
    folder = driver.folder
    for version in driver.state.versions:
        places = [folder.attempt(version.number, one.number) for one in version.attempts if one.submitted]
        places += [folder.submission(version.number, number + 1) for number in range(len(version.refused))]
        for place in places:
            data = read_if_there(place / PROPOSAL)
            try:
                if data is not None:
                    yield Proposal.model_validate_json(data)
            except ValidationError:  # an answer of another proposer that was none
                continue


def _asked(driver: Driver, request: NextRequest, text: str) -> tuple[Request, SeedSchedule]:
    """How a kernel is measured: as a branch is."""
    run = driver.run
    name = "kernel.cu" if "__global__" in text else "kernel.py"
    schedule = seeds.schedule(run.master, request.version, request.attempt, f"search {digest(text)}")
    return run.tools.request(text, name, None).model_copy(update={"plan": "signal"}), schedule


def _alone(driver: Driver, request: NextRequest) -> Callable[[str], Outcome]:
    """A signal of a kernel on the run's own device. It runs in the sandbox, within the evaluator's limits of time."""

    def measure(text: str) -> Outcome:
        started = time.monotonic()
        try:
            receipt = driver.run.tools.evaluate(*_asked(driver, request, text))
        except (UsageError, NoGpuError) as error:
            return Outcome(None, error.message, time.monotonic() - started)
        why = "" if receipt.verdict is Verdict.ACCEPTED else f"{receipt.verdict.value}: {receipt.reason}"
        return _outcome(median_of(receipt), why, time.monotonic() - started)

    return measure


def _on_several(driver: Driver, request: NextRequest, several: Several) -> Measure:
    """Signals of kernels on several devices."""

    def measure(texts: Iterable[str]) -> Iterator[tuple[int, Outcome]]:
        for place, found in several.quickly(_asked(driver, request, text) for text in texts):
            if found.failure is not None and found.failure.kind != "usage":
                raise found.failure.error()
            why = found.why if found.failure is None else found.failure.message
            yield place, _outcome(found.us, why, found.seconds)

    return measure


def _outcome(us: float | None, why: str, seconds: float) -> Outcome:
    return Outcome(us, why or ("" if us is not None else "no time was taken"), seconds)
