"""The seals of a journal's lines: an HMAC of each with the key in KOPT_HOME that also seals receipts.

A seal covers the run's id and the line up to the seal: its number, its time, the hash of the line before it, and its
event. So no line fits another run, another place or another past. A seal finds every edit by a program without the
key; whoever can read the key, as a program of the user's can, can write any line.

The chain is the only mark of how many lines there were: lines cut off at the end leave the journal of an earlier
moment, which was one. The run's git repository holds the later ones.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluator.store.seal import key_id, load_key
from kbs.common.canonical_json import Sha256
from kbs.common.json_model import FrozenModel
from loop.journal import seeds

SealState = Literal["own key", "foreign key", "none", "broken"]
"""`own key`: every line is sealed with the key in this KOPT_HOME. `foreign key`: every line with one other key, which
cannot be checked here. `none`: no line is sealed. `broken`: a seal does not belong to its line, or some lines or all
have lost theirs."""
_SEAL = re.compile(rb',"seal":\{"key_id":"(?P<key>[0-9a-f]{16})","mac":"(?P<mac>[0-9a-f]{64})"\}\}')


class LineSeal(FrozenModel):
    """The seal of a line."""

    key_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    """First 16 hex digits of the SHA-256 of the key."""
    mac: Sha256
    """Of the line without its seal, and of the run's id."""


class Sealing(FrozenModel):
    """What the seals of a journal are worth."""

    state: SealState
    line: int = Field(ge=0)
    """The first line that breaks it; 0 if none does."""
    detail: str
    """What was found, in a sentence."""


@dataclass(frozen=True)
class Sealer:
    """Seals and checks the lines of one run's journal."""

    run: str
    key: bytes | None
    """This KOPT_HOME's; None if it has none."""
    began: bool
    """Whether this KOPT_HOME began the run with sealed lines."""

    @classmethod
    def of(cls, home: Path, run: str) -> Sealer:
        """With what a KOPT_HOME knows. Raises `ConfigurationError` for a key that cannot be used."""
        return cls(run, load_key(home), seeds.sealed(home, run))

    def seal(self, line: bytes) -> bytes:
        """A line of JSON with its seal as the last field. There must be a key."""
        assert self.key is not None
        mark = f',"seal":{{"key_id":"{key_id(self.key)}","mac":"{self._mac(line)}"}}}}'
        return line[:-1] + mark.encode("ascii")

    def check(self, lines: Sequence[bytes]) -> Sealing:
        """Check the lines of a journal whose chain is right, without their newlines."""
        marks = [_mark(line) for line in lines]
        found = [mark for mark in marks if mark is not None]
        if not found:
            return self._bare() if marks or not self.began else Sealing(state="own key", line=0, detail="It is empty.")
        if len(found) < len(marks):
            number = marks.index(None) + 1
            return _broken(number, f"Line {number} has no seal, and others have one.")
        key = found[0]["key"]
        other = next((number for number, mark in enumerate(found, 1) if mark["key"] != key), 0)
        if other:
            return _broken(other, f"Line {other} is sealed with another key than line 1.")
        if self.key is None or key != key_id(self.key).encode("ascii"):
            said = "Its lines are sealed with a key that is not this KOPT_HOME's, so the seals cannot be checked here."
            return Sealing(state="foreign key", line=0, detail=said)
        for number, (line, mark) in enumerate(zip(lines, found, strict=True), 1):
            if not hmac.compare_digest(mark["mac"], self._mac(line[: mark.start()] + b"}").encode("ascii")):
                return _broken(number, f"The seal of line {number} does not belong to that line of the run {self.run}.")
        return Sealing(state="own key", line=0, detail="Every line is sealed with this KOPT_HOME's key.")

    def _bare(self) -> Sealing:
        """Of a journal without any seal."""
        if self.began:
            return _broken(1, "No line has a seal, although this KOPT_HOME began the run with sealed lines.")
        said = "The lines are chained and not sealed: whoever can write the file can write another history."
        return Sealing(state="none", line=0, detail=said)

    def _mac(self, line: bytes) -> str:
        assert self.key is not None
        return hmac.new(self.key, b"kopt journal seal 1\n" + self.run.encode() + b"\n" + line, "sha256").hexdigest()


def _broken(line: int, detail: str) -> Sealing:
    return Sealing(state="broken", line=line, detail=detail)


def _mark(line: bytes) -> re.Match[bytes] | None:
    """The seal at the end of a line."""
    start = line.rfind(b',"seal":{')
    return None if start < 0 else _SEAL.fullmatch(line, start)
