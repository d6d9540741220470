"""How the values of a record in somebody's log are read: dates, words, numbers, sizes and settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from kbs.common.visible_text import visible
from kbs.experience.experiment import MAX_WORDS, bottleneck_name, is_unicode, method_name
from kbs.experience.transfer.fields import Field, is_nothing

_NUMBER = re.compile(r"(?:v|iter|iteration|step|round|version|#)?[\s._-]*([0-9]{1,7})", re.IGNORECASE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAYS = ("%b %d, %Y", "%B %d, %Y", "%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y")
_LAST = 1e11
"""A greater number counts milliseconds since 1970."""
_SETTING = re.compile(r"['\"]?\b([A-Za-z_]\w{0,59})['\"]?\s{0,3}[:=]\s{0,3}['\"]?([\w.+-]{1,60})")


class UnreadError(ValueError):
    """Why a field or an object is left out, in one sentence."""


def moment(value: Any) -> datetime:
    text = value.strip().replace("/", "-") if isinstance(value, str) else ""
    try:
        if re.fullmatch(r"\d{9,16}(?:\.\d{1,9})?", text):
            value = float(text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value / 1000 if value > _LAST else value, UTC)
        elif _DAY.fullmatch(text):
            moment = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        else:
            moment = next(filter(None, (_parsed(text, form) for form in _DAYS)), None) or datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise UnreadError(
            f"{visible(str(value)[:40])} is not a date such as 2026-11-21 or 2026-11-21T14:25:35Z"
        ) from None
    if not 1970 <= moment.year <= 9998:
        raise UnreadError(f"{visible(str(value)[:40])} is not of this age")
    return moment


def is_moment(text: str) -> bool:
    """Whether a text is a date that is read."""
    try:
        return bool(moment(text))
    except UnreadError:
        return False


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def words(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return words("; ".join(value))
        raise UnreadError("it is not text")
    if isinstance(value, float) and not isfinite(value):
        raise UnreadError("it is not text")
    text = str(value).encode("utf-8", "replace").decode().strip()
    if len(text) > MAX_WORDS:
        raise UnreadError(f"it has {len(text)} characters; at most {MAX_WORDS} are kept")
    return text


def listed(value: Any) -> list[str]:
    return [words(one) for one in (value if isinstance(value, list) else [value])]


def whole(value: Any) -> int:
    if isinstance(value, str) and (match := _NUMBER.fullmatch(value.strip())):
        value = int(match[1])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise UnreadError("it is not a whole number from 0 to 1000000")
    return value


def dims(value: Any) -> dict[str, int]:
    """Sizes by name; without names they are d0, d1 and so on."""
    if isinstance(value, str):
        parts = [part for part in re.split(r"[\s,;x×*()\[\]]+", value) if part]
        named = [part.replace(":", "=").partition("=") for part in parts]
        pairs: list[tuple[str, Any]] = [
            (name if mark else f"d{place}", size if mark else name) for place, (name, mark, size) in enumerate(named)
        ]
    elif isinstance(value, list):
        pairs = [(f"d{place}", size) for place, size in enumerate(value)]
    elif isinstance(value, Mapping):
        pairs = [(str(name), size) for name, size in value.items()]
    else:
        raise UnreadError("sizes are an object, a list, or words such as M=4096,N=8192")
    sizes: dict[str, int] = {}
    for name, size in pairs:
        if isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < 14:
            size = int(size)
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**40 or not name.strip():
            written = f"{visible(name[:40])}={visible(str(size)[:40])}"
            raise UnreadError(f"the size {written} is not a whole number from 1 to 2^40")
        if not is_unicode(name):
            raise UnreadError(f"{visible(name[:40])} is not a name of a size")
        sizes[name.strip()[:200]] = size
    if len(sizes) > 32:
        raise UnreadError("more than 32 sizes")
    return sizes


def bottleneck(value: Any) -> str:
    try:
        return bottleneck_name(words(value))
    except ValueError as error:
        raise UnreadError(visible(str(error))) from None


def settings(own: list[Field], notes: list[str]) -> dict[str, str]:
    """Settings that a record states in fields of their own."""
    found: dict[str, str] = {}
    for one in own:
        if one.role != "parameters":
            continue
        for name, value in _parts(one):
            if not isinstance(value, str | int | float) or len(str(value)) > 60 or not is_unicode(f"{name}{value}"):
                notes.append(f"parameters: {visible(str(name)[:40])} is no setting such as num_warps=8")
            elif method_name(str(name)) and not is_nothing(value):
                found[method_name(str(name))[:60]] = str(value)
    return found


def _parts(one: Field) -> Iterable[tuple[Any, Any]]:
    """Names and values of settings: of an object, of one as words, of a list of names with their values, or of one."""
    value = one.value
    if isinstance(value, Mapping):
        lists = [kept for kept in value.values() if isinstance(kept, list) and all(map(_is_pair, kept))]
        return [(pair[0], _short(pair[-1])) for kept in lists for pair in kept] or value.items()
    if isinstance(value, list) and all(map(_is_pair, value)):
        return [(pair[0], _short(pair[-1])) for pair in value]
    if isinstance(value, str) and (found := _SETTING.findall(value[:2000])):
        return found
    return [(one.key, value)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and 2 <= len(value) <= 3 and isinstance(value[0], str)


def _short(value: Any) -> Any:
    return json.dumps(value)[:60] if isinstance(value, list) else value
