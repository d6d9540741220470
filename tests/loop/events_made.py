"""Events that tests put into a journal, and whole histories of runs."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.receipt.verdict import Improvement, Verdict
from loop.journal.events import (
    Closed,
    Committed,
    Created,
    Evaluated,
    Event,
    FinalMeasured,
    Gated,
    HintsRead,
    Measured,
    Opened,
    Prepared,
    Profiled,
    Recorded,
    Refused,
    Reported,
    Stopped,
    Submitted,
)
from loop.journal.journal import FIRST, Entry

HASH = "a" * 64
COMMIT = "b" * 40
TIME = "2026-11-21T14:05:00Z"


def entry(number: int, event: Event, time: str = TIME) -> Entry:
    """A line; its chain is not looked at by the state."""
    return Entry(n=number, time=time, prev=FIRST, event=event)


def created() -> Created:
    return Created(record=HASH, files={"run.json": HASH})


def hints() -> HintsRead:
    return HintsRead(file=None, directives=(), passed_on=())


def opened(version: int, parent: int | None) -> Opened:
    return Opened(version=version, parent=parent, searches={f"v{version}/searches.jsonl": HASH} if version else {})


def submitted(version: int, attempt: int, parent: int, methods: tuple[str, ...] = ("tiling_smem",)) -> Submitted:
    place = f"v{version}/attempts/a{attempt}"
    files = {f"{place}/kernel.py": HASH, f"{place}/proposal.json": HASH}
    return Submitted(version=version, attempt=attempt, parent=parent, methods=methods, files=files)


def refused(version: int, submission: int) -> Refused:
    place = f"v{version}/refused/s{submission}"
    return Refused(
        version=version,
        submission=submission,
        rules=("schema",),
        reasons=("the document: there is nothing in it",),
        files={f"{place}/answer.txt": HASH},
    )


def measured(version: int, attempt: int, what: str = "signal", name: str = "main", **found: object) -> Measured:
    files = {f"v{version}/branches/a{attempt}/{name}/{what}/receipt.json": HASH}
    fields = {
        "version": version,
        "attempt": attempt,
        "what": what,
        "name": name,
        "receipt": HASH,
        "verdict": Verdict.ACCEPTED,
        "improvement": Improvement.NOT_TIMED,
        "reason": "as it is",
        "ratio": None,
        "median_us": None,
        "seconds": 1.5,
        "files": files,
    }
    return Measured.model_validate({**fields, **found})


def evaluated(
    version: int,
    attempt: int,
    verdict: Verdict = Verdict.ACCEPTED,
    ratio: tuple[float, float, float] | None = None,
    improvement: Improvement = Improvement.NOT_TIMED,
    median_us: float | None = None,
) -> Evaluated:
    place = f"v{version}/attempts/a{attempt}"
    return Evaluated(
        version=version,
        attempt=attempt,
        receipt=HASH,
        verdict=verdict,
        improvement=improvement,
        reason="as it is",
        ratio=ratio,
        median_us=median_us,
        files={f"{place}/receipt.json": HASH, f"trajectory/v{version}-a{attempt}.py": HASH},
    )


def profiled(version: int, bottleneck: str = "unknown") -> Profiled:
    return Profiled(version=version, grade="none", bottleneck=bottleneck, why="no GPU", files={})


def gated(version: int, passed: bool = True) -> Gated:
    rules = () if passed else ("unsourced_spec",)
    files = {f"v{version}/kernel.py": HASH, f"v{version}/plan.md": HASH, "run.json": HASH}
    return Gated(version=version, passed=passed, rules=rules, lapsed=(), checked=files)


def closed(version: int, kept: bool = True, outcome: str = "passed") -> Closed:
    files = {f"v{version}/memory.json": HASH}
    fields = {"version": version, "outcome": outcome, "kept": kept, "why": "it is so", "files": files}
    return Closed.model_validate(fields)


def recorded(version: int) -> Recorded:
    return Recorded(version=version, record="01KAJ0000000000000000000AA", outcome="neutral", why="")


def committed(version: int) -> Committed:
    return Committed(what="baseline" if version == 0 else f"iter {version}", commit=COMMIT)


def baseline() -> Iterator[Event]:
    """A run up to its first commit."""
    yield from (created(), hints(), Prepared(files={"README.md": HASH}), opened(0, None))
    yield from (measured(0, 1), measured(0, 1, "verdict"), evaluated(0, 1))
    yield from (profiled(0), gated(0), closed(0), committed(0))


def iteration(version: int, parent: int, *, kept: bool = True, **found: object) -> Iterator[Event]:
    """A version that passes at its first attempt."""
    yield opened(version, parent)
    yield submitted(version, 1, parent)
    yield from (measured(version, 1), measured(version, 1, "verdict"))
    yield evaluated(version, 1, **found)  # type: ignore[arg-type]  # the fields of the function above
    yield from (profiled(version), gated(version), closed(version, kept), recorded(version), committed(version))


def history(iterations: int) -> Iterator[Event]:
    """A whole run: of every ten versions one is refused once, one fails twice, and one is not kept."""
    yield from baseline()
    best = 0
    for version in range(1, iterations + 1):
        yield opened(version, best)
        if version % 10 == 1:
            yield refused(version, 1)
        attempt = 1
        if version % 10 == 2:
            for attempt in (1, 2):
                yield submitted(version, attempt, best)
                yield measured(version, attempt, verdict=Verdict.INCORRECT)
                yield evaluated(version, attempt, Verdict.INCORRECT)
            attempt = 3
        kept = version % 10 != 3
        yield submitted(version, attempt, best)
        yield from (measured(version, attempt), measured(version, attempt, "verdict"))
        yield evaluated(version, attempt)
        yield from (profiled(version), gated(version), closed(version, kept), recorded(version), committed(version))
        best = version if kept else best
    yield Stopped(reason="cap", evidence=f"{iterations} iterations")
    yield FinalMeasured(version=best, receipt=HASH, agrees=True, ratio=None, why="right again", files={})
    yield Reported(files={"final_report.md": HASH})
