"""The log's folder: one file per writer, `<writer>.jsonl`, to which only that writer appends.

Two clones of a folder have two writers, so that git merges them without a conflict. What a clone keeps for itself, the
name of its writer and the lock, is in `.kopt/`, which git is reported to ignore.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from kbs.common.errors import KoptError
from kbs.common.files import append_whole, sync_folder, write_whole
from kbs.common.locks import file_lock
from kbs.common.visible_text import visible
from kbs.experience.experiment import Experiment, Record, is_unicode
from kbs.index.sqlite_file import storage_error

MAX_LINE = 1_000_000
"""Bytes of a record. A longer line is reported and left out."""
SUFFIX = ".jsonl"
SHIPPED = "kopt/base_log.jsonl"
"""Under this name the base log stands among the writers' files. No file of a folder has a name with a slash."""
_OWN = ".kopt"
_LOCK_SECONDS = 60.0
_RECORD: TypeAdapter[Any] = TypeAdapter(Record)


@dataclass(frozen=True)
class Problem:
    """Something in the log's folder that is not a record. It is left as it is."""

    file: str
    line: int
    """1-based; 0 for the file as a whole."""
    why: str

    def __str__(self) -> str:
        return visible(f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}")


@dataclass(frozen=True)
class Chunk:
    """What a file holds from an offset on, up to its last complete line."""

    records: tuple[tuple[int, Any], ...]
    """(1-based line, record)"""
    problems: tuple[Problem, ...]
    offset: int
    """Where the next chunk begins, in bytes."""
    lines: int
    """Lines up to there."""


def base_log() -> Path:
    """The base log: records of runs that kopt's developers made, whose receipts stand in kopt's repository.

    It is read, never written, and told apart from the user's own records everywhere. `scripts/base_log.py` writes it.
    """
    return Path(str(resources.files("kbs") / "data" / "base_log.jsonl"))


def base_records() -> list[Experiment]:
    """The experiments of the base log, in their order."""
    path = base_log()
    return [one for _, one in LogFiles(path.parent).read(path.name).records]


def parse_record(line: bytes | str) -> Any:
    """The record on a line. Raises ValueError with the reason in one sentence."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, in one sentence, with the field."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("experiment", "mask", "join"))
    said = first["msg"].removeprefix("Value error, ")
    return visible(f"{where}: {said}" if where else said)[:300]


@dataclass
class LogFiles:
    """The files of a log in `root`."""

    root: Path
    shipped: Path | None = None
    """The base log, records that ship with kopt: read, and never written; None: it is left out."""
    notes: list[str] = field(default_factory=list)
    """What was set aside while writing."""

    # --- reading ----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Names of the writers' files, sorted. A folder that is not there has none."""
        return [name for name in self._listed() if is_unicode(name)]

    def every(self) -> list[str]:
        """Those of the writers, and the base log where there is one."""
        return [*self.names(), *([SHIPPED] if self.shipped is not None and self.state(SHIPPED) else [])]

    def _path(self, name: str) -> Path:
        return self.shipped if name == SHIPPED and self.shipped is not None else self.root / name

    def unnamed(self) -> list[Problem]:
        """Files whose names are no Unicode, and which are not read."""
        why = "its name is not Unicode, so it is not read; rename it"
        return [Problem(name, 0, why) for name in self._listed() if not is_unicode(name)]

    def _listed(self) -> list[str]:
        try:
            return sorted(
                path.name for path in self.root.iterdir() if path.name.endswith(SUFFIX) and path.name[0] != "."
            )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._error(error) from error

    def state(self, name: str) -> tuple[int, int, int] | None:
        """(bytes, time of the last change in ns, inode) of a file; None if it is not a regular file."""
        try:
            found = self._path(name).lstat()
        except OSError:
            return None
        return (found.st_size, found.st_mtime_ns, found.st_ino) if stat.S_ISREG(found.st_mode) else None

    def prefix_hash(self, name: str, length: int) -> str:
        """SHA-256 of the first `length` bytes; empty if there are fewer, or the file cannot be read."""
        found, left = hashlib.sha256(), length
        try:
            with self._open(name) as stream:
                while left and (data := stream.read(min(left, 1 << 20))):
                    found.update(data)
                    left -= len(data)
        except OSError:
            return ""
        return "" if left else found.hexdigest()

    def read(self, name: str, offset: int = 0, lines: int = 0) -> Chunk:
        """Read a file's complete lines from `offset`, before which there are `lines` lines. Never raises for its text.

        What cannot be opened, and anything but a regular file, is one problem.
        """
        records: list[tuple[int, Any]] = []
        problems: list[Problem] = []
        try:
            with self._open(name) as stream:
                stream.seek(offset)
                for line, size in _lines(stream):
                    lines += 1
                    offset += size
                    if line is None:
                        problems.append(Problem(name, lines, f"the line has more than {MAX_LINE} bytes"))
                    elif line.strip():
                        try:
                            records.append((lines, parse_record(line)))
                        except ValueError as error:
                            problems.append(Problem(name, lines, str(error)))
        except OSError as error:
            problems.append(Problem(name, 0, f"it cannot be read: {error.strerror or error}"))
        return Chunk(tuple(records), tuple(problems), offset, lines)

    def tails(self) -> list[Problem]:
        """Files that end in the middle of a line: a writer was ended there, or is at it now."""
        found = []
        for name in self.names():
            state = self.state(name)
            with contextlib.suppress(OSError):
                if state and state[0]:
                    with self._open(name) as stream:
                        cut = state[0] - _after_last_line(stream, state[0])
                    if cut:
                        found.append(Problem(name, 0, f"its last line is not complete, and is left out ({cut} bytes)"))
        return found

    def torn(self) -> list[str]:
        """Names of the files that torn lines were set aside in."""
        try:
            return sorted(path.name for path in self.root.iterdir() if f"{SUFFIX}.torn-" in path.name)
        except OSError:
            return []

    def _open(self, name: str) -> IO[bytes]:
        descriptor = os.open(self._path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError("it is not a regular file")
        return open(descriptor, "rb")

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Any]) -> str:
        """Append records, all of them or none, on the disk when this returns: the name of the file.

        Raises `KoptError`: `disk_full`, `log_busy`, `record_too_long`, or as the disk says.
        """
        with self.appending() as put:
            return put(records)

    @contextlib.contextmanager
    def appending(self) -> Iterator[Callable[[Sequence[Any]], str]]:
        """What appends, as `append` does, while no other process appends to this clone's file. Raises the same."""
        try:
            with self.writing() as name:
                yield lambda records: self._put(name, records)
        except OSError as error:
            raise self._error(error) from error

    def _put(self, name: str, records: Sequence[Any]) -> str:
        lines = [one.model_dump_json().encode() + b"\n" for one in records]
        for line in lines:
            if len(line) > MAX_LINE:
                raise KoptError(
                    f"the record has {len(line)} bytes; a line of the log has at most {MAX_LINE}",
                    code="record_too_long",
                    hint="Shorten its words, or leave out metrics.",
                )
        if lines:
            self._append(name, b"".join(lines))
        return name

    def settle(self) -> None:
        """Set aside what a writer of this folder that was ended left in the middle of a line."""
        if self.names():
            try:
                with self.writing():
                    pass
            except OSError as error:
                raise self._error(error) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[str]:
        """Hold this clone's file for writing: its name. It ends with a complete line."""
        own = self.root / _OWN
        own.mkdir(parents=True, exist_ok=True)
        ignore = own / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "ascii")
        with file_lock(own / "append.lock", _LOCK_SECONDS, self._busy):
            name = self._writer() + SUFFIX
            self._mend(name)
            yield name

    def _busy(self, holder: str) -> KoptError:
        return KoptError(
            f"the log in {self.root} has been held for {_LOCK_SECONDS:.0f} s by {holder}",
            code="log_busy",
            hint="Wait for it to end, or end it; then try again.",
        )

    def _writer(self) -> str:
        """The name of this clone's writer: another one for every folder and machine, also where one was copied."""
        place = hashlib.sha256(f"{socket.gethostname()}\0{self.root.resolve()}".encode(errors="surrogateescape"))
        note = self.root / _OWN / f"writer-{place.hexdigest()[:16]}"
        with contextlib.suppress(FileNotFoundError):
            name = note.read_text("ascii", "replace").strip()
            if name.isalnum() and name.isascii() and len(name) == 16:
                return name
        name = secrets.token_hex(8)
        write_whole(note, f"{name}\n".encode("ascii"))
        return name

    def _mend(self, name: str) -> None:
        """End the file with a complete line. A torn one is set aside; one that lacks nothing but its end gets it."""
        with contextlib.suppress(FileNotFoundError), _descriptor(self.root / name, os.O_RDWR) as file:
            size = os.fstat(file).st_size
            with open(os.dup(file), "rb") as stream:
                start = _after_last_line(stream, size)
                stream.seek(start)
                tail = stream.read(size - start)
            if not tail:
                return
            if _is_record(tail):
                os.lseek(file, 0, os.SEEK_END)
                append_whole(file, b"\n", size)
                return
            aside = self._set_aside(name, tail)
            os.ftruncate(file, start)
            os.fsync(file)
            self.notes.append(f"{name} ended in the middle of a line: its {len(tail)} bytes were set aside in {aside}")

    def _set_aside(self, name: str, tail: bytes) -> str:
        number = 1
        while True:
            path = self.root / f"{name}.torn-{number}"
            try:
                with _descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
                    try:
                        append_whole(file, tail, 0)
                    except OSError:
                        path.unlink()
                        raise
                sync_folder(self.root)
                return path.name
            except FileExistsError:
                number += 1

    def _append(self, name: str, data: bytes) -> None:
        path = self.root / name
        fresh = not path.exists()
        with _descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            append_whole(file, data, os.fstat(file).st_size)
        if fresh:
            sync_folder(self.root)

    def _error(self, error: OSError) -> KoptError:
        return storage_error(error, self.root) or KoptError(
            f"the log in {self.root} cannot be used: {error.strerror or error}",
            code="log_unusable",
            hint="Check the folder's permissions, or choose another with KOPT_EXPERIENCE.",
        )


def _is_record(data: bytes) -> bool:
    try:
        parse_record(data)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _descriptor(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lines(stream: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    """(complete line, its bytes); None in place of one that is too long. What is not a complete line is not given."""
    while line := stream.readline(MAX_LINE + 1):
        size, long = len(line), len(line) > MAX_LINE
        while long and not line.endswith(b"\n") and (line := stream.readline(1 << 20)):
            size += len(line)
        if not line.endswith(b"\n"):
            return
        yield None if long else line, size


def _after_last_line(stream: IO[bytes], size: int) -> int:
    """Offset after the last line feed of the first `size` bytes; 0 where there is none."""
    end = size
    while end:
        start = max(0, end - 65536)
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
