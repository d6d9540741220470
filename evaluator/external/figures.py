"""Read the figures that a command printed, each with its line.

If the user gave patterns, only these are used. Otherwise JSON on stdout: all of it, or its last line that is an object.
Otherwise the usual words and units in both streams (`docs/evaluator.md` lists them).
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from evaluator.external import figure_json, figure_search
from evaluator.external.command import Printed
from evaluator.external.figure_text import Seen, number_at, usual, value, without_codes
from kbs.common.errors import UsageError
from kbs.common.json_model import Record

MAX_FIGURES = 1000
"""No more are kept of one run."""
MAX_NAME = 200
SEARCH_SECONDS = 10.0
"""Time for all patterns of the user's."""
_BEFORE, _AFTER = 120, 180
"""Characters of a line that are kept before, and from, its number."""

Source = Literal["json", "pattern", "default"]
Stream = Literal["stdout", "stderr"]


class Figure(Record):
    """One number that the command printed."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    """The pattern's name, the keys of the JSON joined by dots, or the word that stands there. The command wrote it."""
    value: float = Field(allow_inf_nan=False)
    """The number, in the unit in which it was printed."""
    unit: str = Field(max_length=16)
    """`ns`, `us`, `ms`, `s`, `GB/s`, `TFLOP/s` and their like, `x`, `%`; empty where none stands there."""
    source: Source
    """Whether it was read from JSON, by a pattern of the user's, or beside one of the usual words."""
    stream: Stream
    """Where it was printed."""
    line: int = Field(ge=1)
    """Number of its line in what was kept of that stream."""
    text: str = Field(max_length=_BEFORE + _AFTER)
    """The line, or what stands around the number where it is long, without codes of colour. The command wrote it."""


def read_figures(
    stdout: Printed, stderr: Printed, patterns: Mapping[str, str], *, whole: bool = True
) -> tuple[list[Figure], list[str]]:
    """(figures in the order of their lines, what a reader should know of the reading).

    `patterns`: name → regular expression, from `read_patterns`. `whole` is False where the command was ended before
    its end: a last line without a line end is then not read.
    """
    notes: list[str] = []
    lines: dict[Stream, list[str]] = {"stdout": readable(stdout, whole), "stderr": readable(stderr, whole)}
    if patterns:
        found = list(_named(lines, patterns, notes))
    else:
        in_json = _json(lines["stdout"], not stdout.cut, notes)
        found = _usual(lines) if in_json is None else in_json
    found.sort(key=lambda one: (one.stream == "stderr", one.seen.line, one.seen.at))
    finite = [one for one in found if math.isfinite(value(one.seen.number))]
    if len(finite) < len(found):
        notes.append(f"left out because they are not finite: {len(found) - len(finite)} numbers")
    if len(finite) > MAX_FIGURES:
        notes.append(f"more than {MAX_FIGURES} figures were printed: the first {MAX_FIGURES} are kept")
    for stream, printed in (("stdout", stdout), ("stderr", stderr)):
        if printed.cut:
            notes.append(f"{stream} was longer than 64 KiB: only its end was read")
    if not finite:
        how = "" if patterns else ": name one with --figure NAME=REGEX"
        notes.append(f"no figure was found in what the command printed{how}")
    return [one.figure() for one in finite[:MAX_FIGURES]], notes


def readable(printed: Printed, whole: bool = True) -> list[str]:
    """Lines as figures are read from them: without codes of colour, and empty where part of the line is missing."""
    lines = [without_codes(line.removesuffix("\r")) for line in printed.lines]
    if printed.partial:
        lines[0] = ""
    if not whole:
        lines[-1] = ""
    return lines


@dataclass(frozen=True)
class _Found:
    """A number where it stands."""

    seen: Seen
    source: Source
    stream: Stream
    text: str
    """Its line."""

    def figure(self) -> Figure:
        """As a receipt keeps it."""
        name, number, unit, at, line = self.seen
        name = name.encode("utf-8", "replace").decode("utf-8")
        return Figure(
            name=name if len(name) <= MAX_NAME else name[: MAX_NAME - 2] + " …",
            value=value(number),
            unit=unit,
            source=self.source,
            stream=self.stream,
            line=line + 1,
            text=self.text[max(0, at - _BEFORE) : at + _AFTER],
        )


def _usual(lines: Mapping[Stream, list[str]]) -> list[_Found]:
    return [
        _Found(seen._replace(line=number), "default", stream, line)
        for stream, printed in lines.items()
        for number, line in enumerate(printed)
        for seen in usual(line)
    ]


def _json(lines: list[str], whole: bool, notes: list[str]) -> list[_Found] | None:
    try:
        found = figure_json.numbers(lines, whole=whole)
    except figure_json.TooDeepError as error:
        notes.append(f"the JSON on stdout was not read: {error}")
        return []
    return None if found is None else [_Found(seen, "json", "stdout", lines[seen.line]) for seen in found]


# --- patterns of the user's -------------------------------------------------------------------------------------------


def read_patterns(texts: Iterable[str]) -> dict[str, str]:
    """Name → regular expression, from `NAME=REGEX`. UsageError `figure_invalid`."""
    hint = "Such as --figure 'median=median latency: ([0-9.]+)': one group, around the number. (?:…) does not count."
    found: dict[str, str] = {}
    for text in texts:
        name, _, regex = text.partition("=")
        name = name.strip()
        if not (name and regex and len(name) <= MAX_NAME and name.isprintable()):
            raise UsageError(f"--figure {text!r} is not NAME=REGEX", code="figure_invalid", hint=hint)
        if name in found:
            raise UsageError(f"--figure names {name!r} twice", code="figure_invalid", hint="Names must differ.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # re warns of what may mean something else one day
                groups = re.compile(regex).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"--figure {text!r}: {error}", code="figure_invalid", hint=hint) from error
        if groups != 1:
            raise UsageError(f"--figure {text!r} has {groups} groups", code="figure_invalid", hint=hint)
        found[name] = regex
    return found


def _named(lines: Mapping[Stream, list[str]], patterns: Mapping[str, str], notes: list[str]) -> Iterator[_Found]:
    streams = list(lines)
    for name, places in _search(lines, patterns, notes):
        wrong = 0
        for stream, line, start, end in places:
            text = lines[streams[stream]][line]
            read = number_at(text, start, end)
            if read is None:
                wrong += 1
            else:
                yield _Found(Seen(name, *read, start, line), "pattern", streams[stream], text)
        if wrong:
            notes.append(f"the group of the pattern {name} held no whole number where it matched: {wrong} times")
        elif not places:
            notes.append(f"the pattern {name} matched nothing")


def _search(
    lines: Mapping[Stream, list[str]], patterns: Mapping[str, str], notes: list[str]
) -> Iterator[tuple[str, list[list[int]]]]:
    """The places of each pattern's group, found by a process that is ended where it does not come to an end."""
    asked = {"patterns": list(patterns.values()), "streams": list(lines.values()), "most": MAX_FIGURES + 1}
    words = [sys.executable, "-I", "-S", str(Path(figure_search.__file__))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as searcher:
        try:
            answer, _ = searcher.communicate(json.dumps(asked).encode("ascii"), timeout=SEARCH_SECONDS)
        except subprocess.TimeoutExpired:
            searcher.kill()
            answer, _ = searcher.communicate()
        except BaseException:
            searcher.kill()
            raise
    done = [json.loads(line) for line in answer.splitlines(keepends=True) if line.endswith(b"\n")]
    for number, name in enumerate(patterns):
        if number < len(done):
            yield name, done[number]
        elif number == len(done):
            notes.append(f"the pattern {name} did not come to an end within {SEARCH_SECONDS:g} s, and was given up")
        else:
            notes.append(f"the pattern {name} was not looked for: one before it did not come to an end")
