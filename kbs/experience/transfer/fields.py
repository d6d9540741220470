"""The fields of a record in somebody's log: a flat bag of keys, recognized by the words in kbs/data/log_words.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

WHOLE = ("dims", "metrics_before", "metrics_after", "parameters")
"""Fields whose value may be an object."""
SHARED = ("kernel", "op", "backend", "chip", "dims", "dtype", "date")
"""Fields that an object or a heading may state for all records in it."""
TRIED = ("optimization", "methods")
MEASURES = ("before", "after", "elapsed", "best")
CAME = ("outcome", "correct", "failing", "error", "decision", "speedup", "gain", *MEASURES)
_NOTHING = ("", "-", "–", "—", "n/a", "na", "none", "null", "nan", "?", "unknown")
_UNIT = re.compile(r"us|ms|ns|s|sec|usec|msec|seconds|microseconds|milliseconds|nanoseconds")
_SCALES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0}
RATE = -1.0
"""The unit of what is better when it is more, such as TFLOPS: its inverse stands for the time."""
_RATE = re.compile(
    r"(?<![a-z0-9])(?:[kmgtp](?:flop|op)s?(?:_s)?|[kmgt]i?b_?(?:p|per_)?s(?:ec)?|(?:iter|it|token|tok|hashe|h|req|img|sample)s?_(?:per_)?s(?:ec)?"
    r"|throughput|bandwidth)(?![a-z0-9])"
)
_DEEPEST = 6
_LOOSE = 50
"""Rank of a name that only has a word of the field."""
_MOMENT = 1e8
"""A greater number is a date in seconds since 1970, and no time that something took."""


@dataclass(frozen=True)
class Field:
    """One value of a record."""

    path: str
    """Its keys as they are written, with dots between them."""
    role: str
    """The field that it is; empty if it is none."""
    rank: int
    """Its name's place among those of the field."""
    value: Any
    unit: float = 0.0
    """Seconds of one, if it is a time: as its key says, or else milliseconds. RATE for a rate."""
    key: str = ""


@cache
def words_of(table: str) -> dict[str, list[str]]:
    """A table of the words of logs."""
    found: dict[str, list[str]] = tomllib.loads(
        (resources.files("kbs") / "data" / "log_words.toml").read_text("utf-8")
    )[table]
    return found


def plain_name(name: str) -> str:
    """A key as the names are written: `GPU name` is `gpu_name`; what stands in brackets does not count."""
    outside = re.sub(r"[(\[][^)\]]*[)\]]", " ", name)
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", outside if re.search(r"\w", outside) else name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _stem(name: str) -> str:
    return re.sub(r"(?<=\w\w[^\Ws])s(?=_|$)", "", name)


_WHOLE_NAMES = ("error", "failing", "label", "date")
"""Fields whose names count in no other number: `errors` may be a count, and `times` many."""


@cache
def _ranks() -> dict[str, list[tuple[str, int]]]:
    ranks: dict[str, list[tuple[str, int]]] = {}
    for role, names in words_of("fields").items():
        for place, name in enumerate(names):
            ranks.setdefault(name, []).append((role, place))
    return ranks


def _named(name: str) -> list[tuple[str, int]]:
    """(field, rank) of a name, or else of its stem."""
    return _ranks().get(name) or [one for one in _stems().get(_stem(name), ()) if one[0] not in _WHOLE_NAMES]


@cache
def _stems() -> dict[str, list[tuple[str, int]]]:
    return {_stem(name): known for name, known in reversed(_ranks().items())}


@lru_cache(maxsize=4096)
def roles_of(path: tuple[str, ...]) -> tuple[tuple[tuple[str, int], ...], float]:
    """((field, rank) that keys name, the longest end of the path first; the unit, if it is measured)."""
    plain = [plain_name(key) for key in path[-3:]]
    role, rank, unit = _measure(plain, path[-1])
    measured = ((role, rank),) if role else ()
    for start in range(len(plain)):
        name = "_".join(filter(None, plain[start:]))
        if known := _named(name):
            return (*known, *measured), unit
        if re.match(r"speed_?up_(?:vs|over|against|to|compared)_", name) or name.endswith("_speedup"):
            return (("speedup", 90 + len(name)),), 0.0
    last = {*plain[-1].split("_"), *_stem(plain[-1]).split("_")}
    loose = tuple((role, _LOOSE) for role, having in words_of("having").items() if last.intersection(having))
    return (measured or loose), unit


def _measure(plain: list[str], key: str) -> tuple[str, int, float]:
    """(field, rank, unit) of a key that is that of a time or a rate, by its words; the field is empty if it is none.

    With the rank -1 only the value can say that it is one.
    """
    words = words_of("measures")
    bracket = re.search(r"[(\[]\s*([a-zµμ/]+)\s*[)\]]", key.lower())
    name = plain[-1] + (f"_{plain_name(re.sub('[µμ]', 'u', bracket[1]))}" if bracket else "")
    tokens = name.split("_")
    bare = _RATE.sub("", name)
    clock = bool(set(tokens).intersection(words["clock"]))
    timed = _UNIT.fullmatch(tokens[-1]) and (tokens[-1] != "s" or len(tokens) > 2 or clock or bracket)
    unit = RATE if bare != name else _SCALES[tokens[-1][0]] if timed else 0.0
    rest = {*bare.split("_")} - {"", *words["clock"]}
    rest -= {tokens[-1]} if unit > 0 else set()
    above = set(plain[:-1])
    if ((unit or clock) and rest.intersection(words["other"])) or not plain[-1] or "%" in key:
        return "", 0, 0.0
    for role in ("before", "after"):
        if rest.intersection(words[role]) and not (role == "before" and rest.intersection(words["after"]) - {"kernel"}):
            whole = unit or clock
            return (role, 0 if whole else -1, unit or 1e-3) if whole or rest <= {*words[role]} else ("", 0, 0.0)
    if not (unit or clock):
        return "", 0, 0.0
    for role in ("before", "after"):
        if above.intersection(words[role]):
            return role, 0, unit or 1e-3
    if "best" in rest:
        return "best", 0, unit or 1e-3
    return ("elapsed", len(rest), unit or 1e-3) if rest <= {*words["neutral"]} else ("", 0, 0.0)


def is_nothing(value: Any) -> bool:
    """Whether it stands for no value."""
    return value in (None, [], {}) or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def flat(found: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Field]:
    """All values of a record that say something, those of objects in it too."""
    for name, value in found.items():
        keys = (*path, str(name))
        roles, unit = roles_of(keys)
        names = [role for role, _ in roles]
        if is_nothing(value):
            continue
        if isinstance(value, Mapping) and len(keys) < _DEEPEST and (path or not set(names).intersection(WHOLE)):
            inner = list(flat(value, keys))
            if inner and (any(one.role for one in inner) or not names or set(names) <= {*CAME}):
                yield from inner
                continue
        fitting = [(role, rank) for role, rank in roles if _fits(role, rank, value, names)]
        if isinstance(value, str) and not set(names).intersection(("outcome", *TRIED)) and _judges(value, names):
            fitting = [*fitting, ("outcome", _LOOSE)]
        yield from (Field(".".join(keys), role, rank, value, unit, keys[-1]) for role, rank in fitting or [("", 0)])


def _judges(text: str, roles: list[str]) -> bool:
    """Whether a word in another column is a verdict: one such as `kept`, and any mishap in that of a figure."""
    if set(roles).intersection((*MEASURES, "speedup")):
        return bool(says(text) & {"failed", "incorrect", "fail", "unkept", "rejected"})
    return (not roles or "label" in roles) and len(text.split()) == 1 and bool(says(text) & {"judged"})


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    denied = "".join(rf"(?<!\b{word} )" for word in ("no", "not", "without", "zero", "fixes", "fixed"))
    return {
        name: re.compile(rf"{denied}(?<![\w]){'(?:' + '|'.join(forms) + ')'}(?![\w])")
        for name, forms in words_of("says").items()
    }


def says(text: str) -> set[str]:
    """The kinds of words in a text, such as `slower` and `failed`."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text[:4000])
    split = re.sub(r"[*`]", "", split.replace("\u2212", "-"))
    plain = " ".join(re.sub(r"_|(?<=[a-zA-Z])-(?=[a-zA-Z])", " ", split).lower().split())
    return {name for name, pattern in _patterns().items() if pattern.search(plain)}


def _fits(role: str, rank: int, value: Any, others: list[str]) -> bool:
    """Whether a value can be of a field: `time` is a date or how long it took, `error` words or a number."""
    number = (isinstance(value, int | float) and not isinstance(value, bool)) or _number_like(value)
    if role == "error":
        return value is True or (isinstance(value, str | list) and not number)
    if rank == _LOOSE and role in ("correct", "failing"):
        return isinstance(value, bool) or (isinstance(value, str | int) and (role == "failing" or not number))
    if rank == _LOOSE and role in ("outcome", "optimization", "observed"):
        return isinstance(value, str) and not number
    if role == "parameters" and rank == _LOOSE:
        return number
    if role in ("before", "after", "best"):
        form = r"\s*[*~]*\d" if rank >= 0 else r"\s*[*~]*\d[\d.]*\s*[munµμ]?s\b"
        return not isinstance(value, bool) and bool(re.match(form, str(value)))
    moment = number and float(str(value).strip().replace(",", "")) > _MOMENT
    if role == "elapsed":
        return not moment and (number or ("date" not in others and bool(re.match(r"\s*[*~]*\d", str(value)))))
    if role == "date":
        return isinstance(value, str | int | float) and not ("elapsed" in others and number and not moment)
    return True


def _number_like(value: Any) -> bool:
    return isinstance(value, str) and bool(
        re.fullmatch(r"\s*[+-]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?\s*", value, re.IGNORECASE)
    )


def roles_in(found: Mapping[str, Any]) -> set[str]:
    """The fields that an object states, those of objects in it too."""
    return {one.role for one in flat(found) if one.role}


def shared_by(found: Mapping[str, Any]) -> dict[str, Any]:
    """Those fields of an object that hold for all records in it."""
    kept = {}
    for name, value in found.items():
        named = {role for role, _ in roles_of((str(name),))[0]}
        plain = not isinstance(value, list) or all(isinstance(one, int) for one in value)
        if named.intersection(SHARED) and plain and not is_nothing(value):
            kept[str(name)] = value
    return kept
