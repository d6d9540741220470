"""HINTS.md: the user's wishes for a run. The gate enforces the lines that kopt understands; proposers get the others.
`prefer` is no order: it sorts the methods that are offered, these first.

Each line is one directive, with or without a list mark. Headings, code blocks and HTML comments are ignored:

    forbid: split_k, cuda_graphs      prefer: vectorized_access      no ncu
    iterations: 5     attempts: 2     time: 30 min     registers: 128     shared memory: 48 KiB     precision: fp32

The same as sentences: `do not use split_k`, `at most 5 iterations`, `no more than 128 registers`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, cast

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible

Kind = Literal[
    "forbid", "prefer", "iterations", "attempts", "registers", "shared memory", "time", "precision", "no ncu"
]
NAME = "HINTS.md"
MAX_CHARACTERS = 100_000
"""Limit of a hints file."""
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8")
"""Element types that `precision` may name, the most precise first."""
_MOST = {"iterations": 1000, "attempts": 10, "registers": 255, "shared memory": 1 << 20, "time": 30 * 86400}
_NUMBER = r"(?P<number>\d{1,9}(?:\.\d{1,3})?)"
_UNITS = {"": 1, "b": 1, "kb": 1000, "kib": 1024, "mb": 1000**2, "mib": 1024**2}
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_MARK = re.compile(r"^\s*(?:>\s*)*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_NCU = re.compile(
    r"(?:no|without|never (?:run|use)|(?:do not|don't) (?:run|use)|skip|forbid:?)\s+(?:the\s+)?(?:ncu|nsight compute)"
    r"|(?:ncu|nsight compute)\s*:\s*(?:no|off|never)"
)
_METHODS = (
    ("forbid", re.compile(r"(?:forbid(?:den)?|avoid|never use|(?:do not|don't) use|no)\s*:?\s+(?P<names>\S.*)")),
    ("prefer", re.compile(r"(?:prefer(?:red)?|please use|try first|use)\s*:?\s+(?P<names>\S.*)")),
)  # fmt: skip
_AT_MOST = re.compile(rf"(?:at most|no more than|max(?:imum)?(?: of)?|up to)\s+{_NUMBER}\s*(?P<rest>[a-z ]+)")
_AMOUNTS = (
    ("iterations", re.compile(r"iterations?(?: in all)?()")),
    ("attempts", re.compile(r"attempts?(?: (?:a|per|for each) (?:version|iteration))?()")),
    ("registers", re.compile(r"registers?(?: (?:a|per) thread)?()")),
    ("shared memory", re.compile(r"([a-z]+) (?:of )?shared(?: memory)?(?: (?:a|per) block)?")),
    ("time", re.compile(r"([a-z]+)(?: in all| of time)?")),
)
"""How `at most 5 …` may continue; the group is the unit."""
_SAID = re.compile(
    r"(?:max(?:imum)?\s+)?(?P<what>iterations?|attempts?|registers?|shared[ _]memory|time(?:[ _]limit)?)\s*[:=]\s*"
    rf"(?:at most\s+)?{_NUMBER}\s*(?P<unit>[a-z]*)"
)
_PRECISION = re.compile(
    r"(?:(?:keep|least|minimum)\s+)?(?:the\s+)?precision\s*[:=]?\s*(?:at least\s+|of\s+)?(?P<name>[a-z]+\d+)"
)


@dataclass(frozen=True)
class Directive:
    """A line that kopt understands: the gate enforces it, and `prefer` sorts the methods that are offered."""

    kind: Kind
    value: str
    """A method's id, a number (seconds, bytes, registers per thread), an element type, or empty."""
    source: str
    """`HINTS.md:L3`, or an option."""
    written: str
    """As the user wrote it."""

    @property
    def canonical(self) -> str:
        """In kopt's notation, which `parse_hints` reads."""
        if self.kind == "no ncu":
            return self.kind
        unit = {"time": " s", "shared memory": " B"}.get(self.kind, "")
        return f"{self.kind}: {self.value}{unit}"

    @property
    def acknowledged(self) -> str:
        """`forbid: split_k (HINTS.md:L3: “do not use split_k”)`"""
        said = f"{self.canonical} ({self.source}: “{visible(self.written)}”)"
        return f"{said}: offered first, not enforced" if self.kind == "prefer" else said


@dataclass(frozen=True)
class Passed:
    """A line that kopt does not understand: the proposer gets it unchanged."""

    line: int
    written: str
    why: str
    """What is wrong with it; empty if it has no known form."""

    @property
    def acknowledged(self) -> str:
        """The line, and that it is not enforced."""
        said = f" ({self.why})" if self.why else ""
        return f"{NAME}:L{self.line}: “{visible(self.written)}”{said}: passed on to the proposer, not enforced"


@dataclass(frozen=True)
class Hints:
    """The content of a hints file, and the directives of options."""

    directives: tuple[Directive, ...] = ()
    passed_on: tuple[Passed, ...] = ()

    def values(self, kind: Kind) -> tuple[str, ...]:
        """All values of a kind, in order."""
        return tuple(dict.fromkeys(one.value for one in self.directives if one.kind == kind))

    def cap(self, kind: Kind) -> Decimal | None:
        """The limit of a kind, in its unit; None if there is none."""
        found = self.values(kind)
        return Decimal(found[0]) if found else None

    @property
    def no_ncu(self) -> bool:
        """Whether ncu must not run."""
        return any(one.kind == "no ncu" for one in self.directives)

    @property
    def acknowledged(self) -> tuple[str, ...]:
        """Every line and option, and what becomes of it."""
        return (*(one.acknowledged for one in self.directives), *(one.acknowledged for one in self.passed_on))


def parse_hints(text: str, methods: Collection[str], flags: Sequence[Directive] = ()) -> Hints:
    """Read a hints file. `methods` are the ids of the registry, `flags` the directives of the command line.

    A line with an unknown method is passed on with that reason. Raises `UsageError`: `hints_contradict`, which names
    both places; `hints_too_long`; `hints_value` for a limit that no run can have.
    """
    if len(text) > MAX_CHARACTERS:
        raise UsageError(
            f"{NAME} has {len(text):,} characters, and {MAX_CHARACTERS:,} at most are read",
            code="hints_too_long",
            hint="Write one wish per line, and put background into the kernel's own documentation.",
        )
    known = {_plain(name): name for name in methods}
    directives, passed = list[Directive](), list[Passed]()
    for number, line in _lines(text):
        found = _read(line, f"{NAME}:L{number}", known)
        if isinstance(found, str):
            passed.append(Passed(number, line, found))
        else:
            directives += found
    return Hints(merge(directives, flags), tuple(passed))


def is_preference(canonical: str) -> bool:
    """Whether a directive in kopt's notation sorts the methods that are offered, and forbids nothing."""
    return canonical.startswith("prefer:")


def merge(*groups: Iterable[Directive]) -> tuple[Directive, ...]:
    """All directives, without duplicates. Raises `UsageError` (`hints_contradict`)."""
    kept: list[Directive] = []
    for one in (directive for group in groups for directive in group):
        if any(other.kind == one.kind and other.value == one.value for other in kept):
            continue
        against = next((other for other in kept if _contradict(other, one)), None)
        if against is not None:
            raise UsageError(
                f"two directives contradict each other: {against.acknowledged} and {one.acknowledged}",
                code="hints_contradict",
                hint="Remove one of them, and start again; nothing has been created or run.",
            )
        kept.append(one)
    return tuple(kept)


def of_flag(kind: Kind, value: str, flag: str, methods: Collection[str]) -> Directive:
    """A directive of the command line. Raises `UsageError`: `method_unknown`, `hints_value`."""
    written = f"{flag} {value}".strip()
    line = kind if kind == "no ncu" else f"{kind}: {value}"
    found = _read(line, flag, {_plain(name): name for name in methods})
    if isinstance(found, str) or len(found) != 1:
        why = found if isinstance(found, str) and found else "it cannot be read"
        code = "method_unknown" if kind in ("forbid", "prefer") else "hints_value"
        near = difflib.get_close_matches(_plain(value), methods, n=3, cutoff=0.5) if code == "method_unknown" else []
        hint = (
            f"The nearest methods are {', '.join(near)}." if near else "See `kopt run plan --help` for what it may say."
        )
        raise UsageError(f"{written}: {why}", code=code, hint=hint)
    return Directive(found[0].kind, found[0].value, flag, written)


def appended(text: str, flags: Sequence[Directive], methods: Collection[str]) -> str:
    """The file with the directives of options added at its end, unless it has them already.

    Its own text is never changed. Raises the errors of `parse_hints`.
    """
    there = parse_hints(text, methods, flags=())
    fresh = [one for one in flags if all((o.kind, o.value) != (one.kind, one.value) for o in there.directives)]
    merge(there.directives, flags)
    if not fresh:
        return text
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    lines = [f"- {one.canonical}\n  <!-- {one.source} -->" for one in fresh]
    return text + gap + "## From the command line\n\n" + "\n".join(lines) + "\n"


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, text) without list marks; blank lines, headings, comments and code are left out."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text.removeprefix("\ufeff"))
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        said = _MARK.sub("", line, count=1).strip()
        if fenced or not said or said.startswith("#") or re.fullmatch(r"[-=*_\s]+", said):
            continue
        yield number, said


def _read(line: str, source: str, methods: dict[str, str]) -> list[Directive] | str:
    """The directives of a line, or why it has none; the reason is empty if its form is unknown."""
    said = re.sub(r"[`*“”\"]", "", line).strip().rstrip(".!;").casefold()
    if len(said) > 300:
        return ""
    if _NCU.fullmatch(said):
        return [Directive("no ncu", "", source, line)]
    for kind, pattern in _METHODS:
        match = pattern.fullmatch(said)
        about: Literal["forbid", "prefer"] = "forbid" if kind == "forbid" else "prefer"
        found = _of_methods(about, match["names"], source, line, methods) if match else ""
        if found:  # `no more than …` begins like `no METHOD`
            return found
    precision = _PRECISION.fullmatch(said)
    if precision:
        name = precision["name"]
        if name not in PRECISIONS:
            return f"{name} is no precision that is known: {', '.join(PRECISIONS)}"
        return [Directive("precision", name, source, line)]
    stated = _SAID.fullmatch(said)
    if stated:
        kind = stated["what"].replace("_", " ")
        kind = "time" if kind.startswith("time") else kind if kind == "shared memory" else f"{kind.rstrip('s')}s"
        return _of_cap(kind, stated["number"], stated["unit"], source, line)
    most = _AT_MOST.fullmatch(said)
    for kind, pattern in _AMOUNTS if most else ():
        rest = pattern.fullmatch(most["rest"].strip()) if most else None
        if most and rest and (kind != "time" or rest[1].rstrip("s") in _SECONDS):
            return _of_cap(kind, most["number"], rest[1], source, line)
    return ""


def _of_methods(
    kind: Literal["forbid", "prefer"], names: str, source: str, line: str, methods: dict[str, str]
) -> list[Directive] | str:
    """Directives if every name is a method; otherwise the line is prose, or has an unknown name."""
    words = [_plain(word) for word in re.split(r"\s*(?:,|;|\bor\b|\band\b)\s*", names) if word.strip()]
    unknown = [word for word in words if word not in methods]
    if not unknown and words:
        return [Directive(kind, methods[word], source, line) for word in words]
    looks = all(re.fullmatch(r"[a-z0-9]+(?:_[a-z0-9]+)*", word) for word in words) and ":" in line
    return f"{unknown[0]} is no method that a page is about" if unknown and looks else ""


def _of_cap(kind: str, written: str, unit: str, source: str, line: str) -> list[Directive] | str:
    number, singular = Decimal(written), unit.rstrip("s") if len(unit) > 1 else unit
    factors = {"time": {"": 1, **_SECONDS}, "shared memory": {"byte": 1, **_UNITS}}.get(kind, {"": 1})
    factor = factors.get(singular)
    if factor is None:
        return f"{unit} is no unit of {kind}"
    value = number * factor
    if not 0 < value <= _MOST[kind] or value != value.to_integral_value():
        return f"{kind} goes from 1 to {_MOST[kind]:,}, in whole numbers"
    return [Directive(cast(Kind, kind), str(int(value)), source, line)]


def _contradict(one: Directive, other: Directive) -> bool:
    if {one.kind, other.kind} == {"forbid", "prefer"}:
        return one.value == other.value
    return one.kind == other.kind and one.kind not in ("forbid", "prefer")


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())
