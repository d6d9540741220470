"""Finds methods of the registry in words: `shared-memory-tiling{tile-size=16}`, "Tile in shared memory, tile-size=16".

The names that people write stand in `kbs/data/methods.toml`; methods of other wikis are found by their ids.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kbs.experience.experiment import MAX_NAME, MAX_PARAMETERS, method_name

_GAP = 2
"""Words that may stand between two words of a name."""
_LONGEST = 4000
"""Characters of a text that are looked through."""
_SETTING = re.compile(r"([A-Za-z_][\w.-]{0,60})\s*=\s*(-?\w(?:[\w.^*-]|\+(?!\w{1,60}\s*=)){0,60})")
_SPOKEN = re.compile(
    r"((?:[({,]|\b(?:with|using|at)\b)\s*(?:an?\s+|the\s+)?)"
    r"((?:tile|block|grid|chunk)[ _-]sizes?|num[ _-](?:warps|stages)|unroll[ _-]factor|threads[ _-]per[ _-]block)"
    r"(?:\s*:\s*|\s+(?:of\s+)?)(\d[\dx×*^]{0,40})(?![\w%.]|\s*(?:→|->|=>))",
    re.IGNORECASE,
)
"""`tiling (tile size 32)` and `tiling with a tile size of 32` say how it was set, as `tile-size=32` does."""
_BEFORE = re.compile(r"\s*=\s*[\w.]{1,60}\s*(?:→|->|=>)\s*(?=\w)")
"""In `num_stages=3→4` the new value counts."""
_WORD = re.compile(r"[^\W_]+")
_INSTEAD = re.compile(r"\b(?:instead of|rather than)\b[^.;,]*", re.IGNORECASE)
_AIM = re.compile(r"\s(?:to|for|so that|which|because|since|by|against|->|—|→)\s", re.IGNORECASE)
"""Before it stands what was done; after it what for, or how it went."""
_SENTENCE = re.compile(r"[.:;](?:\s|$)|\n")
_FILLING = frozenset(("a", "an", "the", "in", "into", "of", "on", "our", "its", "all", "each", "every"))
"""Words that tell no names apart."""
_NOT = frozenset(("no", "not", "without", "zero", "disable", "disabled", "never"))


@dataclass(frozen=True)
class Named:
    """What words say of the methods that were applied."""

    methods: tuple[str, ...] = ()
    """Empty if none is named that is known."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Their settings, by names such as `tile_size`."""


@dataclass(frozen=True)
class _Found:
    method: str
    start: int
    stop: int
    words: int


class MethodNames:
    """The names of methods. `further`: ids of methods beside those of `methods.toml`."""

    def __init__(self, further: Iterable[str] = ()) -> None:
        data = tomllib.loads((resources.files("kbs") / "data" / "methods.toml").read_text("utf-8"))
        self.known = frozenset((*data, *further))
        self._strong, self._weak = _Names(), _Names()
        for id in sorted(self.known):
            known = data.get(id, {})
            for name in (*known.get("names", ()), *(() if id in known.get("weak", ()) else (id,))):
                self._strong.add(id, name)
            for name in known.get("weak", ()):
                self._weak.add(id, name)

    def name(self, text: str) -> str:
        """The method that a name is, whole; else the name as the registry would write it."""
        spelled = method_name(text)
        if spelled in self.known:
            return spelled
        found = self.read(text).methods
        return found[0] if len(found) == 1 else spelled

    def read(self, text: str) -> Named:
        """The methods that a description of a change names, in its order.

        What was done counts before what it was done for: "Unroll the loop to improve ILP" names `loop_unroll` alone.
        Settings count where no words do: `num_warps=8`.
        """
        methods = _in(self._strong, text) or _in(self._weak, text) or self._set_in(text)
        return Named(methods, tuple(_settings(text).items())[:MAX_PARAMETERS])

    def of_record(self, change: str, hypothesis: str, notes: str) -> Named:
        """The methods that the words of a record name: its change, or else why it was made, or how its notes begin.

        Of a hypothesis and of notes the first method counts: they speak of more than what was done.
        """
        settings = tuple(_settings(change).items())[:MAX_PARAMETERS]
        begins = next((part for part in _SENTENCE.split(notes[:_LONGEST]) if len(_WORD.findall(part)) > 1), "")
        for names in (self._strong, self._weak):
            methods = _in(names, change) or (self._set_in(change) if names is self._strong else ())
            methods = methods or _in(names, hypothesis)[:1] or _in(names, begins)[:1]
            if methods:
                return Named(methods, settings)
        return Named((), settings)

    def _set_in(self, text: str) -> tuple[str, ...]:
        return _in(self._strong, " ; ".join(_settings(text)))


def _spelled(text: str) -> str:
    """A text in which settings that are said in words stand as they are set: `with tile_size=32`."""
    return _SPOKEN.sub(lambda said: f"{said[1]}{method_name(said[2])}={said[3]}", text[:_LONGEST])


def _settings(text: str) -> dict[str, str]:
    plain = _BEFORE.sub("=", _spelled(text))
    return {method_name(name): value.rstrip(".") for name, value in _SETTING.findall(plain)}


def _in(names: _Names, text: str) -> tuple[str, ...]:
    plain = _INSTEAD.sub(" ", _SETTING.sub(" ", _spelled(text)))
    first = _SENTENCE.split(plain)[0]
    for part in (_AIM.split(first)[0], first, plain):
        found = names.find(part)
        if found:
            return tuple(dict.fromkeys(one.method for one in found))
    return ()


class _Names:
    """Names as lists of stems, by their first one."""

    def __init__(self) -> None:
        self.by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}

    def add(self, method: str, name: str) -> None:
        stems = tuple(_stems(name))
        self.by_first.setdefault(stems[0], []).append((stems, method))

    def find(self, text: str) -> list[_Found]:
        """The names in a text, in its order; where they overlap, the one of more words, or else the first."""
        tokens = _stems(text)
        found = []
        for start, token in enumerate(tokens):
            if start and tokens[start - 1] in _NOT:
                continue
            for stems, method in self.by_first.get(token, ()):
                stop = _stop(tokens, start, stems)
                if stop:
                    found.append(_Found(method, start, stop, len(stems)))
        taken: set[int] = set()
        kept = []
        for one in sorted(found, key=lambda one: (-one.words, one.start, one.stop, one.method)):
            if taken.isdisjoint(range(one.start, one.stop)):
                kept.append(one)
                taken.update(range(one.start, one.stop))
        return sorted(kept, key=lambda one: one.start)


def _stop(tokens: Sequence[str], start: int, stems: Sequence[str]) -> int:
    """Where a name ends that begins at `start`; 0 if it does not stand there."""
    place = start
    for stem in stems[1:]:
        near = tokens[place + 1 : place + 2 + _GAP]
        if stem not in near:
            return 0
        place += 1 + near.index(stem)
    return place + 1


@cache
def _stem(word: str) -> str:
    """A word without its ending: `tile`, `tiled` and `tiling` are one."""
    if len(word) < 4 or any(c.isdigit() for c in word):
        return word
    plain = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    for ending in ("ation", "ing", "ion", "ed", "er", "e"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            plain = plain[: -len(ending)]
            double = len(plain) > 3 and plain[-1] == plain[-2] and plain[-1] not in "lsz"
            return plain[:-1] if double else plain
    return plain


def _stems(text: str) -> list[str]:
    return [_stem(word[:MAX_NAME]) for word in _WORD.findall(text.lower()) if word not in _FILLING]
