"""The wording of an answer by a model: lines come in, sentences that passed the check come out, and at the end stands
whether they may be the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kbs.answers.model import ClaimKind
from kbs.common.errors import KoptError
from kbs.evidence.vocabulary import Vocabulary
from kbs.wording.check import Kept, Reason, Refused, SentenceCheck
from kbs.wording.pack import Numbered

MOST_LINES = 60
"""Lines that are read of an answer."""
_LONGEST = 16_000
"""Characters without the end of a line."""


Status = Literal["worded", "withdrawn", "failed", "not_asked"]


@dataclass
class Worded:
    """What a model made of an answer."""

    model: str
    """provider:name"""
    status: Status = "not_asked"
    """`withdrawn`: too little passed the check, and the answer is the one without a model. `failed`: the service gave
    none. `not_asked`: there was no answer to put into words."""
    why: str = ""
    """Why the answer is the one without a model, or why the model's ended early."""
    sentences: list[Kept] = field(default_factory=list)
    left_out: Counter[Reason] = field(default_factory=Counter)
    seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    """None where the service does not say."""
    error: KoptError | None = None
    """Of a service that refuses, or cannot be reached."""
    text: str = ""
    """All that was told."""


_VALUES = (ClaimKind.SPEC, ClaimKind.DERIVED)


@dataclass
class Wording:
    """What became of a model's sentences so far."""

    claims: Sequence[Numbered]
    terms: Vocabulary
    kept: list[Kept] = field(default_factory=list)
    left_out: Counter[Reason] = field(default_factory=Counter)
    ended: str = ""
    """Why nothing more is read, while the model would go on; empty while that is not so."""

    def __post_init__(self) -> None:
        self._check = SentenceCheck(self.claims, self.terms)
        self._line = ""
        self._lines = 0

    def feed(self, text: str) -> Iterator[Kept]:
        """Take what the model wrote; the sentences that it completes, if they passed."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if self.ended:
                return
            yield from self._take(line)
        if len(self._line) > _LONGEST and not self.ended:
            self.ended = "it wrote a line without an end"

    def finish(self) -> Iterator[Kept]:
        """The model has ended; its last line needs no end of its own."""
        line, self._line = self._line, ""
        if not self.ended:
            yield from self._take(line)

    def rest_of_direct(self) -> Iterator[Kept]:
        """The values of the direct answer that were not said: of one product alone they would be half an answer."""
        for one in self.claims:
            if not one.section and one.claim.kind in _VALUES and not self._check.said(one):
                yield self._check.add(one)

    @property
    def refused(self) -> int:
        """Sentences that were left out and say what is wrong; what was said before is not."""
        return self.left_out.total() - self.left_out[Reason.REPEATED]

    def why_withdrawn(self) -> str:
        """Why the sentences cannot be the answer; empty where they can."""
        if self.ended:
            return self.ended
        if not self.kept:
            return "none of its sentences passed the check" if self.refused else "it wrote no sentence"
        if len(self.kept) < self.refused:
            return f"{self.refused} of its {self.refused + len(self.kept)} sentences did not pass the check"
        return ""

    def _take(self, line: str) -> Iterator[Kept]:
        if not line.strip():
            return
        self._lines += 1
        if self._lines > MOST_LINES:
            self.ended = f"it wrote more than {MOST_LINES} lines"
            return
        found = self._check.check(line)
        if isinstance(found, Refused):
            self.left_out[found.reason] += 1
            if found.headline and not self.kept:
                self.ended = f"the sentence with the direct answer did not pass the check: {found.reason}"
            return
        if not self.kept and not found.headline:
            yield self._check.add(self.claims[0])
        if found.claims[0].section:
            yield from self.rest_of_direct()
        self.kept.append(found)
        yield found
