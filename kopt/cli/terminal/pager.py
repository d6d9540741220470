"""A pager for what is longer than the screen."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

_SEQUENCE = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\")
"""What rich writes to colour a text and to link it."""


def pager_command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """PAGER, or `less` where there is one. Empty: none, as PAGER= and PAGER=cat ask for."""
    if environment.get("TERM", "dumb") == "dumb":
        return []
    try:
        words = shlex.split(environment.get("PAGER", "less"))
    except ValueError:  # a quotation mark that is not closed
        return []
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return []
    return words


def show_paged(text: str, width: int, height: int) -> None:
    """Write to the terminal a text that was laid out for it, through the pager if it has more rows than the screen.

    A pager that is quit early is no error.
    """
    command = pager_command() if rows(text, width) >= height else []
    if command:
        # As git has it: quit if all fits, pass colours and links on, leave the text on the screen.
        environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
        try:
            _run(command, environment, text)
        except OSError:  # it cannot be run: the text is shown without it
            pass
        else:
            return
    sys.stdout.write(text)


def rows(text: str, width: int) -> int:
    """Rows that a text takes on a terminal, which breaks lines of more than `width` columns."""
    lines = _SEQUENCE.sub("", text).split("\n")
    return sum(max(1, math.ceil(len(line) / width)) for line in lines)


def _run(command: Sequence[str], environment: Mapping[str, str], text: str) -> None:
    """Hand the text to the pager and wait for its end; Ctrl-C is the pager's meanwhile. Raises `OSError`."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8") as pager:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            pager.communicate(text)
        finally:
            signal.signal(signal.SIGINT, before)
