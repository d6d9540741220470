"""The state of a run, derived by replaying its journal. It is never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from kbs.common.errors import KoptError
from loop.journal import events
from loop.journal.events import Event, Files
from loop.journal.journal import Entry
from loop.journal.language_model import Spent
from loop.journal.record import RunRecord
from loop.journal.version_state import REFUSALS, Attempt, VersionState

_Step = (
    events.Asked
    | events.Refused
    | events.Submitted
    | events.Measured
    | events.Evaluated
    | events.Profiled
    | events.Gated
    | events.Closed
    | events.Recorded
    | events.Committed
)
"""Events of the open version."""


class Phase(StrEnum):
    """What a run does next."""

    PREPARE = "prepare"
    """Step 0: environment, specs, targets."""
    OPEN = "open"
    """Apply the stall and stop rules, then open the next version."""
    PROPOSE = "propose"
    """Wait for a proposal: the only phase that kopt does not leave by itself."""
    SIGNAL = "signal"
    """Measure each candidate quickly, to rank them."""
    EVALUATE = "evaluate"
    """Compare the best candidates with the parent, and choose the champion."""
    ABLATE = "ablate"
    """Measure the accepted kernel without each of its methods."""
    PROFILE = "profile"
    GATE = "gate"
    CLOSE = "close"
    """Decide whether the version is kept, and end it."""
    RECORD = "record"
    """Record the version in the experience log."""
    COMMIT = "commit"
    RESTORE = "restore"
    """Restore the best version and measure it again."""
    REPORT = "report"
    FINISHED = "finished"
    BASELINE_FAILED = "baseline_failed"
    """The user's kernel was not accepted: there is nothing to improve on."""


@dataclass
class RunState:
    """Everything that the journal says. Only `apply` changes it."""

    entries: list[Entry] = field(default_factory=list)
    """Every line."""
    created: events.Created | None = None
    prepared: events.Prepared | None = None
    hints: events.HintsRead | None = None
    """As they were read last."""
    versions: list[VersionState] = field(default_factory=list)
    """By number."""
    best: int | None = None
    """The version that was kept last; None until version 0 has passed."""
    stalls: list[events.Stalled] = field(default_factory=list)
    stopped: events.Stopped | None = None
    """None again after `extended`."""
    extra: int = 0
    """Iterations that `extended` added."""
    clock_from: str = ""
    """Time from which the run's limit in seconds counts: when it was created, or extended last."""
    finals: list[events.FinalMeasured] = field(default_factory=list)
    """Final measurements since the run was stopped last."""
    reported: events.Reported | None = None
    """Since the run was stopped last."""
    reports: int = 0
    """How often the run ended: again after each extension."""
    applied: list[events.Applied] = field(default_factory=list)
    asked: list[events.Asked] = field(default_factory=list)
    """Calls of a language model."""
    files: Files = field(default_factory=dict)
    """Path → hash in the last event that names the file."""

    @property
    def current(self) -> VersionState | None:
        """The version that was opened last."""
        return self.versions[-1] if self.versions else None

    @property
    def directives(self) -> tuple[str, ...]:
        """The enforced directives of HINTS.md, as they were read last."""
        return self.hints.directives if self.hints else ()

    @property
    def spent(self) -> Spent:
        """What the calls of a language model add up to."""
        return Spent.of([one.call for one in self.asked])

    @property
    def iterations(self) -> int:
        """Versions after version 0 that are closed."""
        return sum(v.closed is not None for v in self.versions[1:])

    @property
    def final(self) -> events.FinalMeasured | None:
        """The final measurement that counts: the first that agrees with the version's own, or that of version 0."""
        return next((f for f in self.finals if f.agrees or f.version == 0), None)

    def when_reported(self) -> RunState:
        """As it was when the reports were written, which tell nothing of what came later; as it is, if it was not."""
        if self.reported is None:
            return self
        numbers = [entry.n for entry in self.entries if isinstance(entry.event, events.Reported)]
        return replay(self.entries[: numbers[-1] - 1])

    def cap(self, record: RunRecord) -> int:
        """Iterations that are allowed."""
        return record.iterations + self.extra

    def phase(self, record: RunRecord) -> Phase:
        """What comes next."""
        if self.prepared is None:
            return Phase.PREPARE
        version = self.current
        if version is not None:
            open_phase = self._version_phase(version, record)
            if open_phase is not None:
                return open_phase
            if version.number == 0 and not version.passed:
                return Phase.BASELINE_FAILED
        if self.stopped is None or version is None:
            return Phase.OPEN
        if self.reported is not None:
            return Phase.FINISHED
        return Phase.RESTORE if self.final is None else Phase.REPORT

    def _version_phase(self, version: VersionState, record: RunRecord) -> Phase | None:
        """The phase that the version needs next; None if it is done."""
        if version.closed is not None:
            if version.committed is not None:
                return None
            return Phase.COMMIT if version.number == 0 or version.recorded else Phase.RECORD
        if version.gated is not None:
            return Phase.CLOSE
        if version.profiled is not None:
            return Phase.GATE
        if version.accepted is not None:
            return Phase.ABLATE if version.accepted.pending("ablation") else Phase.PROFILE
        if version.attempts and version.attempts[-1].evaluated is None:
            return Phase.SIGNAL if version.attempts[-1].pending("signal") else Phase.EVALUATE
        if version.number == 0:
            return Phase.CLOSE if version.attempts else Phase.SIGNAL
        tired = record.proposer != "agent" and version.refused_in_row >= REFUSALS
        if len(version.attempts) >= record.attempts or tired or self.stopped is not None:
            return Phase.CLOSE
        return Phase.PROPOSE

    def apply(self, entry: Entry) -> None:
        """Apply the next event. Raises `KoptError` (`journal_inconsistent`) if it cannot come next."""
        why = self._against(entry.event)
        if why:
            raise KoptError(
                f"line {entry.n} of journal.jsonl cannot follow the lines before it: {entry.event.kind}, but {why}",
                code="journal_inconsistent",
                hint="Restore the journal from the run's git repository.",
            )
        self.entries.append(entry)
        self._take(entry.event, entry.time)

    def _against(self, event: Event) -> str:
        """Why an event cannot come now; empty if it can."""
        if isinstance(event, events.Created):
            return "the run was created already" if self.created else ""
        if self.created is None:
            return "no run was created"
        match event:
            case events.HintsRead() | events.Extended():
                return ""
            case events.Stopped():
                return "the run was stopped already" if self.stopped else ""
            case events.Prepared():
                return "step 0 was done already" if self.prepared else ""
            case events.Opened():
                return self._against_opening(event)
            case events.Masked() | events.Stalled():
                named = (event.version, *(event.masked if isinstance(event, events.Stalled) else ()))
                return "" if all(0 <= number < len(self.versions) for number in named) else "there is no such version"
            case events.FinalMeasured() | events.Reported() | events.Applied():
                return self._against_ending(event)
            case _:
                return self._against_step(event)

    def _against_opening(self, event: events.Opened) -> str:
        if self.prepared is None:
            return "step 0 was not done"
        if event.version != len(self.versions):
            return f"the next version is {len(self.versions)}"
        last = self.current
        if last is None:
            return "" if event.parent is None else "version 0 has no parent"
        if last.committed is None:
            return f"version {last.number} is not closed and committed"
        if event.parent is None or not 0 <= event.parent < event.version or not self.versions[event.parent].passed:
            return "its parent is no version that passed"
        return "the run was stopped" if self.stopped else ""

    def _against_ending(self, event: events.FinalMeasured | events.Reported | events.Applied) -> str:
        if isinstance(event, events.Reported):
            return "" if self.final and not self.reported else "no report was awaited"
        if not 0 <= event.version < len(self.versions) or not self.versions[event.version].passed:
            return "there is no such version that passed"
        if isinstance(event, events.FinalMeasured) and self.stopped is None:
            return "the run was not stopped"
        return ""

    def _against_step(self, event: _Step) -> str:
        version = self.current
        if version is None:
            return "no version was opened"
        if isinstance(event, events.Committed):
            if version.closed is None or version.committed is not None:
                return "there is nothing to commit"
            return "" if event.what == version.commit_name else f"version {version.number} was closed last"
        if event.version != version.number:
            return f"version {version.number} was opened last"
        if isinstance(event, events.Recorded):
            awaited = version.closed and version.number and not version.recorded and not version.committed
            return "" if awaited else "there is nothing to record"
        if version.closed is not None:
            return "the version is closed"
        waiting = not version.attempts or version.attempts[-1].evaluated is not None
        match event:
            case events.Asked():
                return "" if version.number and waiting and not version.accepted else "no proposal was awaited"
            case events.Refused():
                wrong = version.number == 0 or event.submission != len(version.refused) + 1
                return "no such submission was awaited" if wrong or version.accepted else ""
            case events.Submitted():
                wrong = version.number == 0 or not waiting or event.attempt != len(version.attempts) + 1
                if wrong or version.accepted:
                    return "no such attempt was awaited"
                known = 0 <= event.parent < version.number and self.versions[event.parent].passed
                return "" if known else "its parent is no version that passed"
            case events.Measured():
                return self._against_measuring(event, version)
            case events.Evaluated():
                first = version.number == 0 and not version.attempts
                wrong = event.attempt != max(1, len(version.attempts)) or (waiting and not first)
                return "no such attempt was awaited" if wrong else ""
            case events.Profiled():
                if version.accepted is None or version.profiled is not None:
                    return "no accepted attempt awaits it"
                return "an ablation was not measured" if version.accepted.pending("ablation") else ""
            case events.Gated():
                return "" if version.profiled and version.gated is None else "the version was not profiled"
            case events.Closed():
                return self._against_closing(event, version)

    @staticmethod
    def _against_measuring(event: events.Measured, version: VersionState) -> str:
        attempt = version.attempts[-1] if version.attempts else Attempt(1, None)
        if event.what == "ablation":
            awaited = attempt.accepted and event.attempt == attempt.number and event.name in attempt.pending("ablation")
            return "" if awaited else f"no ablation of {event.name} was awaited"
        if event.attempt != attempt.number or attempt.evaluated is not None:
            return "no such attempt is measured"
        early = event.what == "verdict" and attempt.pending("signal")
        awaited = not early and event.name in attempt.pending(event.what)
        return "" if awaited else f"no {event.what} of {event.name} was awaited"

    @staticmethod
    def _against_closing(event: events.Closed, version: VersionState) -> str:
        if event.outcome == "passed" and (version.gated is None or not version.gated.passed):
            return "the gate did not pass it"
        if event.kept and event.outcome != "passed":
            return "a version that failed is not kept"
        return "an attempt was not evaluated" if version.attempts and version.attempts[-1].evaluated is None else ""

    def _forget_report(self) -> None:
        """Restore the hashes from before the report: a run that continues after its end renders its pages again."""
        for path in self.reported.files if self.reported is not None else ():
            del self.files[path]
            for entry in self.entries:
                if not isinstance(entry.event, events.Reported) and path in (found := _files_of(entry.event)):
                    self.files[path] = found[path]

    def _take_back(self, version: VersionState) -> None:
        """Forget an attempt that the evaluator could not take, with what was measured of it: the next one is written in
        its place."""
        gone = version.attempts.pop()
        version.taken_back += 1
        before = f"v{version.number}/branches/a{gone.number}/"
        self.files = {path: hash for path, hash in self.files.items() if not path.startswith(before)}

    def _take(self, event: Event, time: str) -> None:
        if isinstance(event, events.Submitted):  # in place of one that the evaluator could not take
            before = f"v{event.version}/attempts/a{event.attempt}/"
            self.files = {path: hash for path, hash in self.files.items() if not path.startswith(before)}
        self.files.update(_files_of(event))
        match event:
            case events.Created():
                self.created, self.clock_from = event, time
            case events.Prepared():
                self.prepared = event
            case events.HintsRead():
                self.hints = event
            case events.Opened():
                self.versions.append(VersionState(event))
            case events.Masked():
                self.versions[event.version].masked = event.masked
            case events.Stalled():
                self.stalls.append(event)
                for number in event.masked:
                    self.versions[number].masked = True
            case events.Extended():
                self.extra += event.iterations
                self.clock_from = time
                self._forget_report()
                self.stopped, self.reported, self.finals = None, None, []
            case events.Stopped():
                self.stopped = event
            case events.FinalMeasured():
                self.finals.append(event)
            case events.Reported():
                self.reported = event
                self.reports += 1
            case events.Applied():
                self.applied.append(event)
                self.files[events.replaced(len(self.applied), event.target)] = event.before
            case _:
                self._take_step(event)

    def _take_step(self, event: _Step) -> None:
        version = self.versions[-1]
        match event:
            case events.Asked():
                self.asked.append(event)
            case events.Refused():
                if version.attempts and version.attempts[-1].evaluated is None:
                    self._take_back(version)
                version.refused.append(event)
                version.refused_in_row += 1
            case events.Submitted():
                version.attempts.append(Attempt(event.attempt, event))
            case events.Measured():
                if not version.attempts:
                    version.attempts.append(Attempt(1, None))
                version.attempts[-1].measured.append(event)
            case events.Evaluated():
                if not version.attempts:
                    version.attempts.append(Attempt(1, None))
                version.attempts[-1].evaluated = event
                version.refused_in_row = 0
            case events.Profiled():
                version.profiled = event
            case events.Gated():
                version.gated = event
            case events.Closed():
                version.closed = event
                if event.kept:
                    self.best = version.number
            case events.Recorded():
                version.recorded = event
            case events.Committed():
                version.committed = event


def _files_of(event: Event) -> Files:
    """The files that were written with an event; for the gate, those of the version that it checked."""
    if isinstance(event, events.Opened):
        return event.searches
    if isinstance(event, events.Gated):
        return {path: hash for path, hash in event.checked.items() if path.startswith(f"v{event.version}/")}
    found: Files = getattr(event, "files", {})
    return found


def replay(entries: Iterable[Entry]) -> RunState:
    """The state after these events. Raises `KoptError` (`journal_inconsistent`)."""
    state = RunState()
    for entry in entries:
        state.apply(entry)
    return state
