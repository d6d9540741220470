"""What a record is about: its kernel, operation and GPU, by its own fields, or by what stands around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import MAX_WORDS, gpu_name, op_name
from kbs.experience.transfer.documents import Piece
from kbs.experience.transfer.fields import Field, plain_name, words_of
from kbs.experience.transfer.values import UnreadError, words

TARGET = re.compile(r"sm_?([0-9]{1,2})([0-9])a?", re.IGNORECASE)
_NO_GPU = re.compile(r"(?:cuda|gpu|hip|device)(?::?\d+)?", re.IGNORECASE)
_CODE = re.compile(
    r"__global__\s{1,9}void\s{1,9}(?:__launch_bounds__\([^()]{0,80}\)\s{0,9})?(\w{1,100})\s{0,9}\("
    r"|@triton\.jit\s{1,9}def (\w{1,100})"
)
_BASELINE = re.compile(
    r"(?:none\W{1,3}|keep\W{1,3})?(?:(?:naive |plain )?baseline\b|[\w.+-]+ baseline$)", re.IGNORECASE
)
_LONGEST_NAME = 12
"""Words; a longer text is no name of a kernel."""
T = TypeVar("T")


class Said:
    """What a record says of each field, its own before what is said around it."""

    def __init__(self, fields: list[Field], notes: list[str]) -> None:
        self._notes = notes
        self._values: dict[str, list[Field]] = {}
        for one in fields:
            self._values.setdefault(one.role, []).append(one)

    def all(self, name: str) -> list[Any]:
        return [one.value for one in self._values.get(name, ())]

    def one(self, name: str) -> Any:
        """A mapping without its empty values; any other value as it is."""
        value = next(iter(self.all(name)), None)
        return (
            {key: one for key, one in value.items() if one not in (None, "")} if isinstance(value, Mapping) else value
        )

    def read(self, name: str, how: Callable[[Any], T], empty: T) -> T:
        values = self.all(name)
        try:
            return how(values[0]) if values else empty
        except UnreadError as error:
            self._notes.append(f"{name}: {error}")
            return empty


def where(said: Said, piece: Piece) -> tuple[str, str, str]:
    """(kernel, operation, GPU). What is called a target or a problem may be a GPU or sizes; a name that is a number, or
    the key of a record that names no kernel, is a problem's."""
    chips = [
        str(one) for one in said.all("chip") if isinstance(one, str | int) and not _NO_GPU.fullmatch(str(one).strip())
    ]
    kernel = ""
    for value in said.all("kernel"):
        text = words(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        if "=" in text or not text or len(text.split()) > _LONGEST_NAME:
            continue
        if not op_name(text) and product(text) and len(text.split()) > 1:
            chips.append(text)
        elif not kernel:
            kernel = text
    if not kernel and "id" not in piece.found:
        kernel = str(piece.around.get("key", ""))
    if re.fullmatch(r"\d{1,6}", kernel):
        kernel = f"problem {kernel}"
    kernel = _name_of(kernel)
    named = [kernel] if kernel in said.all("op") else [kernel, *said.all("op")]
    others = names_another(kernel) and kernel not in said.all("op")
    op = "" if others else next(filter(None, (op_of(one) for one in named if isinstance(one, str))), "")
    return kernel[:200], op, _gpu(chips)


def _names(said: Said, piece: Piece) -> bool:
    return bool(said.all("kernel") or piece.around.get("key"))


def in_code(own: list[Field]) -> str:
    """The first kernel of a source text."""
    texts = (one.value[:50_000] for one in own if isinstance(one.value, str) and "\n" in one.value)
    return next((next(filter(None, match.groups())) for text in texts if (match := _CODE.search(text))), "")


def _strings(own: list[Field]) -> Iterator[str]:
    """Short texts in lists of no known field, such as arguments."""
    for one in own:
        if isinstance(one.value, list) and not one.role and "tag" not in one.key:
            yield from (text for text in one.value[:20] if isinstance(text, str) and len(text) <= 60)


def in_lists(own: list[Field]) -> str:
    names = [text.partition(".")[0] for text in _strings(own)]
    return next(filter(op_name, names), "") or next(filter(re.compile(r"[A-Za-z]\w*_\w+").fullmatch, names), "")


def gpu_in_lists(own: list[Field]) -> str:
    return next(filter(None, map(product, _strings(own))), "")


def op_of_label(own: list[Field]) -> str:
    return op_of(PurePath(label(own)).stem[:200]) if label(own) else ""


def op_of(name: str) -> str:
    """The operation that a name names, where it has no word for another one."""
    return "" if names_another(name) else op_name(name)


def names_another(name: str) -> bool:
    """Whether it has the word of an operation that the vocabulary lacks."""
    return bool({*plain_name(name).split("_")}.intersection(words_of("rows")["operations"]))


def is_baseline(own: list[Field], listed: list[str], piece: Piece) -> bool:
    """Whether it tried nothing: it is called a baseline, or a column compares with it by its name."""
    said = (*texts(own, "label", "optimization", "outcome", "iteration"), *listed)
    if any(text.strip().lower() in words_of("rows")["baseline"] for text in said):
        return True
    if any(_BASELINE.match(text) for text in said):
        return True
    called = label(own).lower()
    return bool(called) and any(
        re.search(
            rf"\b(?:to|vs\.?|over|against|than) {re.escape(called)}$", str(name).strip().lower().replace("_", " ")
        )
        for name in piece.found
    )


def product(text: str) -> str:
    found = list(dict.fromkeys(one.id for one in vocabulary().find(text, "product")))
    return found[0] if len(found) == 1 else ""


def _gpu(written: list[str]) -> str:
    """The GPU that words name: as a whole, up to a bracket or a comma, or the only one in them; else the words."""
    for text in written:
        for part in (text, re.split(r"[,(;]", text)[0].strip()):
            name = gpu_name(part)
            if name in vocabulary().products or TARGET.fullmatch(part) or name == product(part):
                return name if not TARGET.fullmatch(part) else part
        if found := product(text):
            return found
    return written[0][:200] if written else ""


def texts(fields: list[Field], *roles: str) -> list[str]:
    found = [one.value if isinstance(one.value, list) else [one.value] for one in fields if one.role in roles]
    return [text for texts in found for text in texts if isinstance(text, str)]


def label(own: list[Field]) -> str:
    """What a row is called, where it is words, and no number."""
    text = next((text for text in texts(own, "label") if re.search(r"[^\W\d_]{2}", text)), "")[:MAX_WORDS]
    return _name_of(text.strip())


def _name_of(text: str) -> str:
    """A file's name without its folders; any other text as it is."""
    return PurePath(text).name if re.fullmatch(r"[\w./-]+/[\w-]+\.\w{1,4}", text) else text
