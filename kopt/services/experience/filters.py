"""Read which experiments of the log a user means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import (
    Outcome,
    Provenance,
    backend_name,
    bottleneck_name,
    dtype_name,
    gpu_name,
    op_name,
)
from kbs.experience.filters import Filter
from kbs.experience.method_names import MethodNames

_TIME = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}(?::[0-9]{2}(?::[0-9]{2}Z?)?)?)?)?)?")
_TIMES = "2026, 2026-11, 2026-11-21, 2026-11-21T14:25"
Names = TypeVar("Names", bound=StrEnum)


def read_filter(given: Mapping[str, Any], masked: bool | None = False) -> Filter:
    """The filter, in names of the vocabulary.

    `given` has the texts of `--op`, `--kernel`, `--chip`, `--since` and the like by name. `masked`: only masked records
    or only others; None for both. Raises `UsageError` (`op_unknown` and the like) for a name that is not known.
    """
    if given["op"] and not op_name(given["op"]):
        raise _unknown("op", given["op"], vocabulary().operations)
    for name in ("since", "until"):
        if given[name] and not _is_time(given[name]):
            raise UsageError(
                f"cannot read --{name} {given[name][:60]!r}", code=f"{name}_unknown", hint=f"Examples: {_TIMES}"
            )
    return Filter(
        op=op_name(given["op"]) if given["op"] else "",
        kernel=given["kernel"],
        backend=backend_name(given["backend"]),
        gpu=gpu_name(given["chip"]),
        bottleneck=read_bottleneck(given["bottleneck"]),
        dtype=dtype_name(given["dtype"]),
        method=MethodNames().name(given["method"]) if given["method"] else "",
        outcomes=tuple(_one_of("outcome", one, Outcome) for one in given["outcome"] or ()),
        provenance=_one_of("provenance", given["provenance"], Provenance) if given["provenance"] else None,
        run=given["run"],
        since=given["since"],
        until=given["until"],
        shipped=given.get("shipped"),
        masked=masked,
    )


def read_bottleneck(text: str) -> str:
    """Id of a bottleneck class. Raises `UsageError` (`bottleneck_unknown`)."""
    try:
        return bottleneck_name(text)
    except ValueError:
        raise _unknown("bottleneck", text, vocabulary().bottlenecks) from None


def _is_time(text: str) -> bool:
    """Whether it is a time or the beginning of one. A day that is in no calendar would let nothing through."""
    if not _TIME.fullmatch(text):
        return False
    begun = text.removesuffix("Z")
    try:
        datetime.fromisoformat(begun + "0001-01-01T00:00:00"[len(begun) :])
    except ValueError:
        return False
    return True


def _one_of(option: str, text: str, kind: type[Names]) -> Names:
    try:
        return kind(text.strip().lower())
    except ValueError:
        raise _unknown(option, text, [one.value for one in kind]) from None


def _unknown(option: str, text: str, known: Iterable[str]) -> UsageError:
    return UsageError(
        f"unknown --{option} {text[:60]!r}", code=f"{option}_unknown", hint=f"Choose from {', '.join(known)}."
    )
