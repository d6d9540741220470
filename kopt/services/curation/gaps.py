"""What the wiki could not answer: the log of refused questions, put together for whoever keeps the wiki."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.visible_text import visible

_MOST_BYTES = 1_000_000
"""Of one line; a longer one is none that kopt wrote."""
_MOST_MISSING = 20
"""What was missing is kept up to this many for each question."""
_SHOWN = 2_000
"""Characters of a text that are kept: a question may be anybody's."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_END = " \t?？!！.。"


@dataclass
class Gap:
    """A question that was refused, however often it was asked."""

    asked: str
    """As it was put last."""
    count: int = 0
    first: str = ""
    last: str = ""
    reasons: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    """What was looked for and not found, newest first."""


@dataclass(frozen=True)
class Gaps:
    """All questions that were refused, the newest first."""

    questions: list[Gap]
    unreadable: int
    """Lines of the log that are not in its form."""

    @property
    def refusals(self) -> int:
        """How often anything was refused."""
        return sum(gap.count for gap in self.questions)

    def of_reason(self, reason: str) -> Gaps:
        """The questions that were refused for a reason, at least once. Raises `UsageError` (`reason_unknown`)."""
        known = sorted({name for gap in self.questions for name in gap.reasons})
        if reason not in known:
            raise UsageError(
                f"no question was refused as {visible(reason)!r}",
                code="reason_unknown",
                hint=f"Reasons in the log: {', '.join(known) or 'none'}.",
            )
        return Gaps([gap for gap in self.questions if reason in gap.reasons], self.unreadable)


def read_gaps(file: Path) -> Gaps:
    """The log, grouped by question: case, blanks and the mark at the end do not count.

    No file is no gap. Raises `ConfigurationError` (`gaps_unreadable`).
    """
    groups: dict[str, Gap] = {}
    unreadable = 0
    try:
        for line in _lines(file):
            record = _record(line)
            if record is None:
                unreadable += 1
            else:
                _add(groups, *record)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {file}: {error.strerror}", code="gaps_unreadable", hint="Check its permissions."
        ) from error
    # Times have seconds only: of two in one second, that which stands later in the file is the newer one.
    newest = sorted(groups.values(), key=lambda gap: gap.last)[::-1]
    return Gaps(newest, unreadable)


def _lines(file: Path) -> Iterator[bytes]:
    """The lines that are not blank; of one that is too long its beginning, which is no record."""
    with file.open("rb") as stream:
        while line := stream.readline(_MOST_BYTES):
            part = line
            while part and not part.endswith(b"\n"):
                part = stream.readline(_MOST_BYTES)
            if line.strip():
                yield line


def _record(line: bytes) -> tuple[str, str, str, list[str]] | None:
    """(time, question, reason, what was missing), fit to be shown; None if the line is no record."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    time, asked, reason, missing = (value.get(key) for key in ("time", "asked", "reason", "gaps"))
    if not isinstance(time, str) or not _TIME.fullmatch(time) or not isinstance(missing, list):
        return None
    if not all(isinstance(text, str) for text in (asked, reason, *missing)):
        return None
    return time, visible(str(asked)[:_SHOWN]), visible(str(reason)[:_SHOWN]), [visible(one[:_SHOWN]) for one in missing]


def _add(groups: dict[str, Gap], time: str, asked: str, reason: str, missing: list[str]) -> None:
    key = " ".join(asked.casefold().split()).rstrip(_END)
    gap = groups.pop(key, None) or Gap(asked, first=time)
    groups[key] = gap  # last in the order of the file
    gap.count += 1
    gap.reasons[reason] += 1
    gap.first = min(gap.first, time)
    if time >= gap.last:
        gap.asked, gap.last = asked, time
        gap.missing = list(dict.fromkeys([*missing, *gap.missing]))[:_MOST_MISSING]
    else:
        gap.missing = list(dict.fromkeys([*gap.missing, *missing]))[:_MOST_MISSING]
