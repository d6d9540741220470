"""Renders a JSON document in one way only, so that a hash of the content is a hash of the bytes.

Keys are sorted, the indent is one space, the encoding is UTF-8, and the last byte is a newline. JSON has no NaN and no
infinity: a field that may hold them is a `Real`, which writes them as strings.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

MAX_BYTES = 64 * 1024 * 1024
"""No larger document is read or written."""
MAX_DEPTH = 32
"""Nor one that is nested deeper."""
MAX_LINE = 4000
"""Longest text that describes something, in characters; what is longer is cut. Sources are never cut."""

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_real(value: object) -> object:
    if isinstance(value, str):
        if value not in _NOT_FINITE:
            raise ValueError("a number, or one of the strings NaN, Infinity and -Infinity")
        return _NOT_FINITE[value]
    return value


def _write_real(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_LINE:
        return value[: MAX_LINE - 2] + " …"
    return value


def _of_a_file(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("the name of a file, without a folder")
    return name


Real = Annotated[
    float,
    BeforeValidator(_read_real),
    PlainSerializer(_write_real, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_NOT_FINITE)}]}),
]
"""A float that may be NaN or infinite; these are strings in JSON."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A time in seconds."""
Line = Annotated[str, BeforeValidator(_cut), Field(max_length=MAX_LINE)]
"""Text that describes something; cut where it is longer than `MAX_LINE`."""
FileName = Annotated[Line, AfterValidator(_of_a_file)]
"""Name of a file, without its folder: a stranger's receipt names none elsewhere."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hex."""
UtcTime = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""A time in UTC, such as 2026-11-21T07:14:00Z."""


def dumps(value: object) -> bytes:
    """The canonical bytes. Raises `ValueError` for NaN and infinities that are no `Real`.

    Half of a surrogate pair, which a file name or a candidate's message may hold and UTF-8 cannot, becomes U+FFFD.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=1)
    return (_SURROGATE.sub("\ufffd", text) + "\n").encode("utf-8")


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(dumps(value)).hexdigest()


def loads(data: bytes) -> Any:
    """Read strict JSON. Raises `ValueError` with a sentence for anything else.

    Refused besides what is not JSON: more than `MAX_BYTES`, deeper than `MAX_DEPTH`, a key twice in one object, NaN,
    infinities and numbers that do not fit.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels") from error
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it has the key {name[:80]!r} twice in one object")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it has {name}, which JSON does not know")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"it has the number {text[:40]}, which does not fit")
    return value
