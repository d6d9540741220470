"""Read what users write for sizes, names, tolerances, baselines, durations and versions."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.errors import UsageError

if TYPE_CHECKING:
    from evaluator.receipt.plan import BaselineChoice

BUILT_IN_BASELINES = ("eager", "compile")
_SECONDS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def read_dims(text: str | None) -> dict[str, int]:
    """`{"M": 4096, "N": 8192}` or `M=4096,N=8192` as sizes. UsageError `dims_invalid`."""
    if not text:
        return {}
    hint = 'Examples of --dims: M=4096,N=8192 and \'{"M": 4096, "N": 8192}\'.'

    def wrong(why: str) -> UsageError:
        return UsageError(f"cannot read the sizes {text[:200]!r}: {why}", code="dims_invalid", hint=hint)

    raw: dict[str, int] = {}
    if text.lstrip().startswith("{"):
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise wrong(str(error)) from error
    else:
        for part in text.split(","):
            name, equals, written = (piece.strip() for piece in part.partition("="))
            if not (name and equals and re.fullmatch(r"-?[0-9]{1,20}", written, re.ASCII)):
                raise wrong(f"{part.strip()[:60]!r} is not NAME=NUMBER")
            raw[name] = int(written)
    for name, size in raw.items():
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**40:
            raise UsageError(f"the size {name}={size!r} is not a positive integer", code="dims_invalid", hint=hint)
    return {str(name): size for name, size in raw.items()}


def read_names(text: str) -> tuple[str, ...]:
    """`a, b` as names, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def read_ptr_sizes(texts: Iterable[str]) -> dict[str, str]:
    """The values of --ptr-size: name → expression. UsageError `ptr_size_invalid`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(
                f"cannot read --ptr-size {text!r}", code="ptr_size_invalid", hint="Example: --ptr-size A=M*N"
            )
        found[name.strip()] = value.strip()
    return found


def read_variables(names: Iterable[str]) -> tuple[str, ...]:
    """Names of environment variables that are set, each once. UsageError `variable_invalid`."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name not in os.environ:
            wrong = "is not set" if re.fullmatch(r"[A-Za-z_]\w*", name) else "is not the name of a variable"
            raise UsageError(
                f"--env {name} {wrong}",
                code="variable_invalid",
                hint="Give the name alone, and set the variable for this command: NAME=VALUE kopt run start --env NAME",
            )
    return tuple(dict.fromkeys(names))


def find_interpreter(path: Path | None) -> str:
    """The full path of a Python interpreter; empty for None. UsageError `python_not_found`."""
    if path is None:
        return ""
    found = shutil.which(path)
    if found is None:
        raise UsageError(
            f"--python {path} is no program", code="python_not_found", hint="Give the path of a Python interpreter."
        )
    return str(Path(found).absolute())


def read_tolerance(text: str | None) -> tuple[float, float] | None:
    """`1e-3,1e-3` as (atol, rtol). UsageError `tolerance_invalid`."""
    if text is None:
        return None
    try:
        atol, rtol = (float(part) for part in text.split(","))
    except ValueError:
        atol = rtol = -1.0
    if not (0 <= atol < 1e300 and 0 <= rtol < 1e300):
        raise UsageError(
            f"cannot read --tolerance {text!r}",
            code="tolerance_invalid",
            hint="Give atol and rtol, two numbers >= 0: --tolerance 1e-3,1e-3",
        )
    return atol, rtol


def read_baselines(text: str) -> tuple[BaselineChoice, ...]:
    """`eager,compile,NAME=module:callable` as choices. UsageError `baseline_unknown`, `baseline_invalid`."""
    from pydantic import ValidationError

    from evaluator.receipt.plan import BaselineChoice

    found: list[BaselineChoice] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, how = word.partition("=")
        hint = "Example: --baselines eager,compile,mine=package.module:function"
        if not equals and name not in BUILT_IN_BASELINES:
            raise UsageError(
                f"unknown baseline {name!r}; name a library's function as NAME=module:callable",
                code="baseline_unknown",
                hint=hint,
            )
        if equals and (name in (*BUILT_IN_BASELINES, "candidate", "incumbent") or ":" not in how):
            raise UsageError(f"cannot read the baseline {word!r}", code="baseline_invalid", hint=hint)
        try:
            found.append(BaselineChoice(name=name, how=how if equals else name))
        except ValidationError as error:
            raise UsageError(f"cannot read the baseline {word!r}", code="baseline_invalid", hint=hint) from error
    names = [one.name for one in found]
    twice = [name for n, name in enumerate(names) if name in names[:n]]
    if twice:
        raise UsageError(
            f"the baseline {twice[0]} is named twice", code="baseline_invalid", hint="Give each its own name."
        )
    return tuple(found)


def read_seconds(text: str | None) -> float | None:
    """`90`, `90s`, `30 min`, `2h` in seconds; None for None. UsageError `time_invalid`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]*)", text.strip().lower())
    seconds = float(match[1]) * _SECONDS.get(match[2], 0) if match else 0.0
    if not seconds:
        raise UsageError(f"{text!r} is not a duration", code="time_invalid", hint="Examples: 90, 30min, 2h")
    return seconds


def read_bytes(text: str) -> int | None:
    """`49152` or `48KB` in bytes; None for an empty text. UsageError `value_invalid`."""
    if not text:
        return None
    found = re.fullmatch(r"\s*(\d{1,12})\s*(B|KB|KiB|K)?\s*", text, re.IGNORECASE)
    if found is None:
        hint = "Give bytes, such as 49152, or KB, such as 48KB."
        raise UsageError(f"cannot read --smem {text!r}", code="value_invalid", hint=hint)
    return int(found[1]) * (1 if (found[2] or "B").upper() == "B" else 1024)


def read_version(text: str) -> int:
    """`v3` or `3` as a number. UsageError `version_invalid`."""
    match = re.fullmatch(r"v?(\d{1,4})", text.strip(), re.ASCII)
    if not match:
        raise UsageError(
            f"{text!r} is not a version",
            code="version_invalid",
            hint="Versions are v0, v1, v2, ...; a run's folder is given with --run.",
        )
    return int(match[1])
