"""What the next version is written from, for a person or an agent, and the command that hands it in."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.services.runs.telling.state import labelled, ratio

if TYPE_CHECKING:
    from kopt.services.results import runs
    from loop.proposals.request import MethodOffer, NextRequest, PastAttempt, PastVersion
    from loop.tools import Search

_LAST = 99
"""The rank of methods whose page gives no priority."""


def next_lines(
    found: runs.RunNextData, to_skip: Mapping[str, Sequence[str]], after: Callable[[NextRequest], Iterable[str]]
) -> Iterator[str]:
    """What is wanted, section by section. `to_skip`: method → methods that a proposal of it must list as skipped.
    `after`: how it is handed in."""
    request = found.request
    if request is None:
        yield found.why
        return
    yield (
        f"wanted: v{request.version} of {request.run}, attempt {request.attempt}, a change of v{request.parent.version}"
    )
    yield from _task(request)
    yield from _section("research first: the run has stalled", request.research_wanted)
    yield from _section(f"measured of v{request.parent.version}", _measured(request))
    yield from _section("what hardware and problem allow", request.targets.lines if request.targets else ())
    yield from _section("found for this version: cite by the reference", _found(request.searches))
    yield from _section("methods that apply, by axis; a number is the priority", _methods(request.methods))
    skips = (f"{name}: {', '.join(before)}" for name, before in to_skip.items())
    yield from _section("to be listed as skipped, METHOD=REASON, for a proposal of", skips)
    yield from _section("methods that do not apply", _against(request.methods))
    yield from _section("directives", _directives(request))
    yield from _section("what was tried", (line for past in request.history for line in _past(past)))
    yield from _section(f"attempts at v{request.version} that failed", map(_attempt, request.attempts))
    yield from _section(f"proposals for v{request.version} that were refused", _refused(request))
    yield from _section("what the gate asks of a proposal", request.rules)
    yield from ("", f"left: {_left(request)}")
    yield from _section("next", after(request))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading with its lines below it; nothing where there are none."""
    listed = list(lines)
    if listed:
        yield ""
        yield title
        yield from (f"  {line}" for text in listed for line in text.splitlines() or [""])


def _task(request: NextRequest) -> Iterator[str]:
    problem = request.problem
    yield labelled("kernel", f"{request.folder}/{request.parent.path}")
    yield labelled("reference", f"{request.folder}/{problem.reference}: what the kernel must compute")
    if problem.inputs:
        yield labelled("inputs", f"{request.folder}/{problem.inputs}")
    if problem.dims:
        yield labelled("sizes", ", ".join(f"{name}={size}" for name, size in problem.dims.items()))
    for workload in problem.workloads:
        yield labelled("and", ", ".join(f"{name}={size}" for name, size in workload.items()))
    if problem.vary:
        yield labelled("any size", ", ".join(problem.vary))
    yield labelled("device", f"{problem.device}{f', for {problem.gpu}' if problem.gpu else ''}")
    yield labelled("libraries", "allowed" if problem.allow_library else "the kernel may call none")
    if request.budget is not None:
        for line in request.budget.lines():
            yield labelled("budget", line)
    if request.target:
        yield labelled("goal", request.target)
    yield labelled("best so far", f"v{request.best}")


def _measured(request: NextRequest) -> Iterator[str]:
    measured = request.measured
    if measured is not None:
        time = "no time was taken" if measured.median_us is None else f"median {measured.median_us:.4g} µs"
        against = "its parent" if request.parent.version else "its baseline"
        compared = "" if measured.to_parent is None else f", {ratio(measured.to_parent)} of {against}"
        yield f"{measured.verdict}, {time}{compared}  (cite receipt/{measured.receipt[:16]}#FIELD)"
    if request.diagnosis is not None:
        yield from request.diagnosis.text.rstrip("\n").splitlines()
        for symptom in request.diagnosis.symptoms:
            yield from (f"  {symptom.name}: try {technique}" for technique in symptom.techniques)
    for fact in request.facts:
        yield f"{fact.metric} {fact.value}  <- {fact.reference}"
    for fact in request.external:
        yield f"external: {fact.metric} {fact.value}  <- {fact.reference}"


def _found(searches: Sequence[Search]) -> Iterator[str]:
    """Each question with its passages; a passage that two questions found is shown once."""
    shown = set[str]()
    for search in searches:
        yield f"asked ({search.about}): {search.text}"
        if search.why:
            yield f"  none similar: {search.why}"
        for hit in search.hits:
            again = hit.reference in shown
            shown.add(hit.reference)
            yield f"  {hit.reference}{'  (above)' if again else ''}"
            if not again:
                yield f"    {hit.title}"
                yield from (f"    | {line}" for line in hit.text.strip().splitlines())


def _methods(methods: Sequence[MethodOffer]) -> Iterator[str]:
    """Methods of which something is known, each with that; then all that apply, in a line for each axis."""
    from loop.proposals.request import NOTHING_KNOWN

    axes: dict[str, list[MethodOffer]] = {}
    for method in methods:
        if not method.applies:
            continue
        axes.setdefault(method.axis or "any", []).append(method)
        tried = f"tried in {', '.join(f'v{v}' for v in method.tried)}" if method.tried else ""
        known = "; ".join(filter(None, ("" if method.why == NOTHING_KNOWN else method.why, tried)))
        if known:
            yield f"{method.id}: {known}"
    for axis, found in axes.items():
        found.sort(key=lambda one: (one.priority or _LAST, one.id))
        yield f"{axis}: {', '.join(f'{one.priority} {one.id}' if one.priority else one.id for one in found)}"
    for page in (one.page for one in methods if one.applies and one.page):
        yield f"`kopt wiki show {page}` prints the page of a method; the others stand beside it"
        break


def _against(methods: Sequence[MethodOffer]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for method in methods:
        if not method.applies:
            reasons.setdefault(method.why, []).append(method.id)
    yield from (f"{', '.join(ids)}: {why}" for why, ids in reasons.items())


def _directives(request: NextRequest) -> Iterator[str]:
    said = request.directives
    yield from (f"enforced: {line}" for line in said.enforced)
    yield from (f"preferred: {line}" for line in said.preferred)
    yield from (f"the user's words, for you to follow: {line}" for line in said.passed_on)


def _past(past: PastVersion) -> Iterator[str]:
    if past.parent is None:
        return
    kept = "passed and kept" if past.kept else f"{past.outcome}, not kept"
    speed = "" if past.ratio is None else f", {ratio(past.ratio)} of v{past.parent}"
    yield f"v{past.version} from v{past.parent}, {', '.join(past.methods)}: {kept}{speed}"
    for label, text in (("change", past.single_change), ("expected", "; ".join(past.expected)), ("why", past.why)):
        if text:
            yield f"  {label}: {text}"
    if len(past.attempts) > 1 or past.outcome == "failed":
        yield from (f"  {_attempt(attempt)}" for attempt in past.attempts)


def _attempt(attempt: PastAttempt) -> str:
    return f"attempt {attempt.attempt}, {attempt.single_change}: {attempt.verdict} {attempt.reason}".rstrip()


def _refused(request: NextRequest) -> Iterator[str]:
    for refused in request.refused:
        for broken in refused.broken:
            place = f"{broken.file}:{broken.line}" if broken.line else broken.file
            yield f"{refused.submission}. {broken.rule}: {place}: {broken.message}"
            if broken.fix:
                yield f"   {broken.fix}"


def _left(request: NextRequest) -> str:
    left = request.left
    time = "" if left.seconds is None else f", {left.seconds:.0f} s"
    return f"{left.iterations} iterations, {left.attempts} attempts at this version{time}"


def commands(request: NextRequest) -> Iterator[str]:
    """From the parent's file to the submission, as it is typed."""
    parent, folder = f"{request.folder}/{request.parent.path}", request.folder
    new = f"{folder}-v{request.version}{Path(parent).suffix}"
    cited = [hit.reference for search in request.searches for hit in search.hits if search.about != "experience"]
    evidence = f" --evidence {shlex.quote(cited[0])}" if cited else ""
    yield f"cp {shlex.quote(parent)} {shlex.quote(new)}    then change the new file; the run's folder stays as it is"
    yield (
        f'kopt run submit --kernel {shlex.quote(new)} --method METHOD --why "WHY IT SHOULD HELP"{evidence}'
        f' --expect "time down: HOW FAR" --run {shlex.quote(folder)}'
    )
    yield "with --show the same command only shows the proposal and what the gate says of it"
    yield f"a whole proposal as JSON: kopt run submit PROPOSAL.json (kopt schema {request.schema_name})"
