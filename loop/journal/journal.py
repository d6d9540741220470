"""The journal of a run: one line per event, chained by hashes, and synced to the disk before anything relies on it.

A line is `{"n": 3, "time": "2026-11-21T07:14:00Z", "prev": "…", "event": {…}, "seal": {…}}`: `prev` is the SHA-256 of
the bytes of the line before it, zeros in the first. An edited line breaks the chain at the next one, and its own seal
(`loop/journal/seals.py`); runs of before seals have none. A last line that a kill or a full disk left incomplete is
moved to another file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pydantic import Field, ValidationError

from evaluator.receipt.document import first_of
from evaluator.receipt.plan import utc_now
from kbs.common.canonical_json import Sha256, UtcTime
from kbs.common.errors import KoptError
from kbs.common.files import append_whole, write_error, write_whole
from kbs.common.json_model import FrozenModel
from loop.journal.events import Event
from loop.journal.seals import LineSeal, Sealer

FIRST = "0" * 64
"""What the first line has as the hash of the line before it."""


class Entry(FrozenModel):
    """A line of the journal."""

    n: int = Field(ge=1)
    """Number of the line, from 1."""
    time: UtcTime
    """When the event was written."""
    prev: Sha256
    """SHA-256 of the bytes of the line before, its newline left out; zeros in the first."""
    event: Event
    """What happened."""
    seal: LineSeal | None = None
    """None in runs of before seals."""


@dataclass(frozen=True)
class Read:
    """A journal that was read. Its chain is right; `Sealer.check` says what its seals are worth."""

    entries: tuple[Entry, ...]
    lines: tuple[bytes, ...]
    """The bytes of each complete line, its newline left out."""
    head: str
    """SHA-256 of the last complete line; `FIRST` if there is none."""
    length: int
    """Size of the complete lines in bytes."""
    torn: bytes
    """The incomplete line after them."""


def read(data: bytes, name: str = "journal.jsonl") -> Read:
    """Read a journal. Raises `KoptError` (`journal_edited`) if a complete line is not as it was written.

    Bytes after the last newline, and a last line that is not JSON, are `torn`: no event depends on them.
    """
    whole, torn = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
    lines = whole.split(b"\n")[:-1]
    if lines and not torn and not _is_json(lines[-1]):
        torn = lines.pop() + b"\n"
    entries: list[Entry] = []
    head = FIRST
    for number, line in enumerate(lines, 1):
        try:
            entry = Entry.model_validate_json(line)
        except ValidationError as error:
            where, what = first_of(error)
            raise _edited(name, number, f"it is not an event ({f'{where}: ' if where else ''}{what})") from error
        if entry.n != number:
            raise _edited(name, number, f"it says that it is line {entry.n}")
        if entry.prev != head:
            raise _edited(name, number, "it does not follow the line before it: one of the two was changed")
        if (entry.seal is None) != (entries[0].seal is None if entries else entry.seal is None):
            raise _edited(name, number, f"it is {'not ' if entry.seal is None else ''}sealed, unlike the lines before")
        head = hashlib.sha256(line).hexdigest()
        entries.append(entry)
    return Read(tuple(entries), tuple(lines), head, len(data) - len(torn), torn)


@dataclass
class Journal:
    """The journal of a run that this process holds the lock of."""

    path: Path
    entries: list[Entry]
    head: str
    length: int
    sealer: Sealer | None
    """None where the lines have no seals."""
    set_aside: Path | None = None
    """The file that got an incomplete last line when the journal was opened."""
    clock: Callable[[], str] = field(default=utc_now, repr=False)

    @classmethod
    def open(cls, path: Path, sealer: Sealer) -> Journal:
        """Open a journal for writing; an incomplete last line is moved to `journal.torn-N` beside it.

        Raises `KoptError`: `journal_edited`, `journal_foreign`, `journal_missing`, `disk_full`, `not_writable`.
        """
        data = load(path)
        found = read(data, path.name)
        seals = sealer.check(found.lines)
        if seals.state == "broken":
            raise _edited(path.name, seals.line, seals.detail[:1].lower() + seals.detail[1:].rstrip("."))
        if seals.state == "foreign key":
            raise KoptError(
                f"{path} was sealed with another key than the one in this KOPT_HOME",
                code="journal_foreign",
                hint="Set KOPT_HOME to the folder that the run was started with. Elsewhere it can only be read; a new"
                " run can begin from the kernel in best/.",
            )
        aside = None
        if found.torn:
            aside = _free_name(path, found.torn)
            write_whole(aside, found.torn)
            _cut(path, found.length)
        own = sealer if seals.state == "own key" else None
        return cls(path, list(found.entries), found.head, found.length, own, aside)

    def append(self, event: Event) -> Entry:
        """Append an event; when this returns, it is on the disk. After a `KoptError` nothing was written."""
        entry = Entry(n=len(self.entries) + 1, time=self.clock(), prev=self.head, event=event)
        line = render(entry, self.sealer)
        entry = Entry.model_validate_json(line)
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                self._put(descriptor, line + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_error(error, self.path) from error
        self.entries.append(entry)
        self.head = hashlib.sha256(line).hexdigest()
        self.length += len(line) + 1
        return entry

    def _put(self, descriptor: int, line: bytes) -> None:
        if os.fstat(descriptor).st_size != self.length:
            raise KoptError(
                f"{self.path} was changed by another program while this one writes it",
                code="journal_changed",
                hint="End the other program, look at the file's last lines, and run `kopt run resume`.",
            )
        append_whole(descriptor, line, self.length)


def first_line(event: Event, sealer: Sealer) -> bytes:
    """The bytes of a journal with one event."""
    return render(Entry(n=1, time=utc_now(), prev=FIRST, event=event), sealer) + b"\n"


def render(entry: Entry, sealer: Sealer | None) -> bytes:
    """The bytes of a line without its newline; `sealer` makes its seal, None leaves it out."""
    fields = entry.model_dump(mode="json", exclude={"seal"})
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    line = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    return line if sealer is None else sealer.seal(line)


def load(path: Path) -> bytes:
    """The bytes of a journal's file. Raises `KoptError` (`journal_missing`, `journal_unreadable`)."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise KoptError(
            f"{path.parent} is not a run: it has no {path.name}",
            code="journal_missing",
            hint="Give the folder of a run; `kopt run list` shows them.",
        ) from error
    except OSError as error:
        raise KoptError(
            f"{path} cannot be read: {error.strerror or error}",
            code="journal_unreadable",
            hint="Check the permissions of the file.",
        ) from error


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _edited(name: str, number: int, why: str) -> KoptError:
    return KoptError(
        f"line {number} of {name} is not as kopt wrote it: {why}",
        code="journal_edited",
        hint="Restore the file from the run's git repository. Never edit a journal: `kopt run mask` hides a version.",
    )


def _free_name(path: Path, torn: bytes) -> Path:
    """The first free `journal.torn-N`, or one that already has these bytes because a start was killed."""
    names = (path.with_name(f"{path.stem}.torn-{number}") for number in count(1))
    return next(name for name in names if not name.exists() or name.read_bytes() == torn)


def _cut(path: Path, length: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise write_error(error, path) from error
