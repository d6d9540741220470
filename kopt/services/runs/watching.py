"""A run as it goes on, read from its journal by another process than the one that drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from kopt.services.results.runs import RunData, RunWatchData
from loop.journal import events
from loop.journal.folder import RunFolder
from loop.journal.journal import Entry
from loop.journal.state import Phase
from loop.journal.version_state import VersionState
from loop.pages.artifacts import VersionFiles, targets
from loop.run.driver import View, read_run

ENDED = (Phase.FINISHED, Phase.BASELINE_FAILED)


def views(root: Path, wait: Callable[[], None]) -> Iterator[View]:
    """The run again and again, read anew where its journal changed; the last one is where it ended.

    `wait` is called between two of them. Raises `KoptError`.
    """
    journal = RunFolder(root).journal
    seen, view = (-1, -1), read_run(root)
    while True:
        found = journal.stat()
        if (found.st_size, found.st_mtime_ns) != seen:
            seen, view = (found.st_size, found.st_mtime_ns), read_run(root)
        yield view
        if view.state.phase(view.record) in ENDED:
            return
        wait()


def watched(view: View, now: str) -> RunWatchData:
    """How a run stands at a time (UTC, as in events)."""
    record, state = view.record, view.state
    found = targets(view.folder)
    seconds = None
    if record.seconds is not None and state.clock_from:
        seconds = max(0.0, record.seconds - _seconds(state.clock_from, now))
    return RunWatchData(
        run=RunData.of(view.folder, record, state),
        ended=state.phase(record) in ENDED,
        trying=_trying(view),
        best_us=_median(state.versions[state.best]) if state.best is not None else None,
        first_us=_median(state.versions[0]) if state.versions else None,
        floor_us=found.floor_us if found is not None else None,
        target_us=found.target_us if found is not None else None,
        seconds_passed=_seconds(state.entries[0].time, now) if state.entries else 0.0,
        seconds_left=seconds,
    )


def _seconds(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()


def _median(version: VersionState) -> float | None:
    return version.result.median_us if version.result else None


def _trying(view: View) -> str:
    """What is being tried now, in the words of its proposal; empty between versions."""
    version = view.state.current
    if version is None or version.closed is not None or not version.attempts:
        return ""
    last = version.attempts[-1]
    if last.submitted is None or (last.evaluated is not None and not last.accepted):
        return ""
    said = VersionFiles(view.folder, view.record, version.number).attempted(last.number)
    change = f": {said.hypothesis.single_change}" if said is not None else ""
    return f"v{version.number}, attempt {last.number}, {', '.join(last.submitted.methods)}{change}"


def event_line(entry: Entry) -> str:
    """An event in a line: `2026-11-21T07:14:00Z v1 evaluated: attempt 1 accepted, 82.5 µs: why`."""
    event = entry.event
    number = getattr(event, "version", None)
    about = "" if number is None else f" v{number}"
    said = " ".join(_said(event).split())
    return f"{entry.time}{about} {event.kind.replace('_', ' ')}{f': {said}' if said else ''}"


def _said(event: events.Event) -> str:
    match event:
        case events.Opened():
            return "" if event.parent is None else f"a change of v{event.parent} is wanted"
        case events.Asked():
            return f"{event.call.model}, {event.call.seconds:.0f} s"
        case events.Refused():
            return f"proposal {event.submission}: {', '.join(event.rules)}: {'; '.join(event.reasons)[:300]}"
        case events.Submitted():
            return f"attempt {event.attempt}: {', '.join(event.methods)}"
        case events.Evaluated():
            time = "" if event.median_us is None else f", {event.median_us:.4g} µs"
            than = (
                ""
                if event.ratio is None
                else f", {event.ratio[0]:.3g}x of its {'parent' if event.version else 'baseline'}"
            )
            return f"attempt {event.attempt} {event.verdict.value}{time}{than}: {event.reason}"
        case events.Profiled():
            return f"{event.bottleneck}, profile {event.grade}"
        case events.Gated():
            return "passes the gate" if event.passed else f"breaks {', '.join(event.rules)}"
        case events.Closed():
            return f"{event.outcome}, {'kept' if event.kept else 'not kept'}: {event.why}"
        case events.Recorded():
            return event.outcome or event.why
        case events.Committed():
            return event.what
        case events.Stalled():
            return f"tried {', '.join(event.tried) or 'nothing'}"
        case events.Masked():
            return f"{'hidden' if event.masked else 'shown again'} {event.why}"
        case events.Extended():
            return f"{event.iterations} more iterations"
        case events.Stopped():
            return f"{event.reason}: {event.evidence}"
        case events.FinalMeasured():
            ratio = "" if event.ratio is None else f", {event.ratio[0]:.3g}x of v0"
            return f"{'agrees' if event.agrees else 'does not agree'}{ratio} {event.why}"
        case events.Applied():
            return event.target
        case _:
            return ""
