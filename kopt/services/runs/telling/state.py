"""How a run, a version and a proposal stand, in lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopt.services.results import runs
    from loop.proposals.proposal import Proposal
    from loop.run.verification import Verification

_LABEL = 12


def ratio(found: runs.Interval | None) -> str:
    """`1.83x (95% interval 1.80 to 1.86)`; empty for None."""
    return "" if found is None else f"{found[0]:.3g}x (95% interval {found[1]:.3g} to {found[2]:.3g})"


def run_lines(run: runs.RunData, here: Path | None = None) -> Iterator[str]:
    """How a run stands. `here`: the folder that paths are told from, where they lie below it."""
    folder = near(run.folder, here)
    yield f"{run.run}: {_state(run)}"
    yield labelled("folder", folder)
    yield labelled("iterations", f"{run.iterations} of {run.cap}")
    if not run.measured:
        yield labelled("times", "none are taken on this device: nothing here says that a version is faster")
    if run.profile != "full":
        yield labelled("profile", run.profile)
    for version in run.versions:
        yield labelled(f"v{version.version}", _version(version, run.best))
        yield from (labelled("", line) for line in _candidates(version))
    for final in run.finals:
        said = "agrees" if final.agrees else "does not agree"
        yield labelled("at the end", f"v{final.version} measured again, {said}: {final.why or ratio(final.ratio)}")
    if run.spent:
        yield labelled("model", run.spent.words)
    if run.stopped:
        yield labelled("stopped", f"{run.stopped}: {run.stop_evidence}")
    for line in run.enforced:
        yield labelled("enforced", line)
    if run.preferred:
        yield labelled("offered first", ", ".join(run.preferred))
    for line in run.passed_on:
        yield labelled("passed on", line)
    if run.reports:
        yield labelled("reports", ", ".join(run.reports))
    if run.waiting_for:
        yield f"next: {run.waiting_for.replace(run.folder, folder)}"


def near(path: str, here: Path | None) -> str:
    """A path as it is told in a folder: relative where it lies below it."""
    return str(Path(path).relative_to(here)) if here and Path(path).is_relative_to(here) else path


def verify_lines(found: Verification) -> Iterator[str]:
    """What a run's records are worth."""
    yield f"{found.run or found.folder}: {'as it was recorded' if found.ok else 'not ok'}, seal: {found.seal}"
    for part in found.parts:
        yield f"  {'ok' if part.ok else 'not ok':<8} {part.what}: {part.detail}"
    yield f"  {'':<8} {found.worth}"


def _state(run: runs.RunData) -> str:
    words = {
        "propose": "a proposal is wanted",
        "finished": "finished",
        "baseline_failed": "the kernel itself was not accepted, so there is nothing to improve on",
    }
    return words.get(run.phase.value, f"under way, next: {run.phase.value}")


def _version(version: runs.VersionData, best: int | None) -> str:
    marks = [
        "the best" if version.version == best else "",
        "kept" if version.kept and version.version != best else "",
        "masked" if version.masked else "",
        f"{version.refused} refused" if version.refused else "",
    ]
    said = [version.outcome, *filter(None, marks), ", ".join(version.methods)]
    last = version.attempts[-1] if version.attempts else None
    if last is not None:
        said.append(attempt_words(last))
    if version.why:
        said.append(version.why)
    return "; ".join(filter(None, said))


def _candidates(version: runs.VersionData) -> Iterator[str]:
    """The candidates of the version's last attempt, if it had several."""
    last = version.attempts[-1] if version.attempts else None
    if last is None or len(last.candidates) < 2:
        return
    for one in last.candidates:
        signal = "" if one.signal_us is None else f", signal {one.signal_us:.4g} µs"
        yield f"{one.name}: {one.outcome}{signal}; {one.why}"


def attempt_words(attempt: runs.AttemptData) -> str:
    """`attempt 2: accepted, 136 µs`"""
    time = "" if attempt.median_us is None else f", {attempt.median_us:.4g} µs"
    return f"attempt {attempt.attempt}: {attempt.verdict or 'not evaluated'}{time}"


def version_lines(version: runs.VersionData) -> Iterator[str]:
    """One version, whole."""
    marks = [version.outcome, "kept" if version.kept else "", "masked" if version.masked else ""]
    yield f"v{version.version}: {', '.join(filter(None, marks))}"
    if version.parent is not None:
        yield labelled("parent", f"v{version.parent}")
    if version.methods:
        yield labelled("methods", ", ".join(version.methods))
    if version.bottleneck:
        yield labelled("bottleneck", version.bottleneck)
    for attempt in version.attempts:
        yield labelled(f"attempt {attempt.attempt}", f"{attempt.verdict or 'not evaluated'}: {attempt.reason}")
        if attempt.ratio is not None:
            yield labelled(
                "", f"{ratio(attempt.ratio)} of its {'parent' if version.parent is not None else 'baseline'}"
            )
    if version.refused:
        yield labelled("refused", f"{version.refused} proposals, kept below v{version.version}/refused/")
    if version.why:
        yield labelled("why", version.why)
    if version.commit:
        yield labelled("commit", version.commit)


def submit_lines(
    found: runs.RunSubmitData,
    place_of: Callable[[str], str] = str,
    here: Path | None = None,
    fix_of: Callable[[str], str] = str,
) -> Iterator[str]:
    """What came of a proposal. `place_of`: where what stands at a broken place was typed, and `fix_of`: how a fix is
    typed; `here` as for a run."""
    words = {
        "shown": "would be evaluated",
        "refused": "refused",
        "attempt_failed": "an attempt that failed",
        "passed": "passed, and is the best version now" if found.kept else "passed, and was not kept",
        "failed": "closed as failed",
    }
    if found.outcome in ("shown", "refused") and found.proposal is not None:
        yield from _proposal_lines(found.proposal)
    yield f"v{found.version}: {words[found.outcome]}"
    if found.why:
        yield f"  {found.why}"
    for broken in found.broken:
        place = place_of(broken.file)
        yield labelled(broken.rule, f"{place}{f':{broken.line}' if broken.line else ''}: {broken.message}".rstrip(": "))
        if broken.mend:
            yield labelled("", fix_of(broken.mend))
    if found.run.waiting_for:
        yield f"next: {found.run.waiting_for.replace(found.run.folder, near(found.run.folder, here))}"


def _proposal_lines(made: Proposal) -> Iterator[str]:
    """A proposal, field by field, without the text of its kernel."""
    said = made.hypothesis
    yield f"proposal for v{made.version}, a change of v{made.parent}"
    for label, text in (
        ("method", ", ".join(made.methods)),
        ("change", said.single_change),
        ("why", said.rationale),
        ("now", said.current_evidence),
        ("link", "" if said.decision_link == said.rationale else said.decision_link),
        ("risk", said.risk),
        ("keep if", said.decision_rule),
        ("different", made.circumstances),
    ):
        if text:
            yield labelled(label, text)
    for expected in said.expected:
        yield labelled("expected", f"{expected.metric} {expected.direction}: {expected.size}")
    for selected in made.evidence.selected:
        yield labelled("cites", f"“{selected.quote}” <- {selected.reference}")
    for query in made.evidence.queries:
        yield labelled("asks", query.text)
    for skipped in made.skipped:
        yield labelled("skips", f"{skipped.method}: {skipped.reason}")


def gate_lines(found: runs.RunGateData) -> Iterator[str]:
    """What the gate found, and, where it was asked, what every rule is for."""
    yield from found.report.lines(explain=bool(found.rules))
    for rule in found.rules:
        yield f"{rule.rule} ({rule.stage}): {rule.title}"
        yield f"    {rule.explain}"


def list_lines(found: runs.RunListData) -> Iterator[str]:
    """A line a run."""
    for run in found.runs:
        if run.problem:
            yield f"{run.run:<44} {run.phase:<16} {run.problem}"
        else:
            best = "no best yet" if run.best is None else f"best v{run.best}"
            yield f"{run.run:<44} {run.phase:<16} {run.iterations} iterations, {best}  {run.folder}"
    if not found.runs:
        yield "No run was found. `kopt run start` begins one; `kopt run list --all` lists those of other folders."


def show_lines(found: runs.RunShowData) -> Iterator[str]:
    """A run's record and journal, or a version."""
    if found.version is not None:
        yield from version_lines(found.version)
    else:
        yield f"{found.run}: {found.folder}"
        for name, value in found.record.model_dump(mode="json", exclude={"wikis", "problem"}).items():
            if value not in ("", None, [], ()):
                yield labelled(
                    name, ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
                )
        for name, wiki in found.record.wikis.items():
            yield labelled("wiki", f"{name} at {wiki.revision[:12]}")
    yield "files"
    yield from (f"  {hash[:12]}  {path}" for path, hash in found.files.items())
    yield "journal"
    yield from (f"  {line}" for line in found.journal)


def labelled(label: str, text: str) -> str:
    """A line with its label in a column."""
    return f"  {label:<{_LABEL}} {text}"
