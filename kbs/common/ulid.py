"""ULIDs: ids that sort by creation time.

26 characters of Crockford's base 32 (no I, L, O, U): 48 bits of milliseconds since 1970, then 80 random bits.
Layout: https://github.com/ulid/spec. Within one process every id is greater than the one before it.
"""

from __future__ import annotations

import secrets
import threading
import time

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_LIMIT = 1 << 128
PATTERN = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
"""What a ULID looks like."""

_guard = threading.Lock()
_last = 0


def new_ulid(after: str = "") -> str:
    """An id of now. Where the clock stands still or goes back, the next number after the last one that was given.

    It is greater than `after`, an id of any clock; raises ValueError if none is.
    """
    global _last
    with _guard:
        fresh = time.time_ns() // 1_000_000 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        _last = fresh if fresh > _last else _last + 1
        return _written(max(_last, _number(after) + 1) if after else _last)


def ulid_at(milliseconds: int, number: int) -> str:
    """The ULID of a time since 1970 and of a number of its own, as for records that came from elsewhere.

    Raises ValueError if either does not fit: 48 and 80 bits.
    """
    if not 0 <= milliseconds < 1 << 48 or not 0 <= number < 1 << _RANDOM_BITS:
        raise ValueError("a ULID holds 48 bits of milliseconds and 80 bits beside them")
    return _written(milliseconds << _RANDOM_BITS | number)


def milliseconds(ulid: str) -> int:
    """Milliseconds since 1970 that a ULID states."""
    return _number(ulid) >> _RANDOM_BITS


def _number(ulid: str) -> int:
    value = 0
    for digit in ulid:
        value = value << 5 | _DIGITS.index(digit)
    return value


def _written(value: int) -> str:
    if not 0 <= value < _LIMIT:
        raise ValueError("the number does not fit in a ULID")
    return "".join(_DIGITS[value >> shift & 31] for shift in range(125, -1, -5))
