"""Bytecode that Python left beside a file: whether it is what Python makes of that file, or would run in its place."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

_NAME = re.compile(r"(?P<stem>[^/.]+)\.[\w-]+?(?:\.opt-(?P<level>[12]))?\.pyc")
_HEADER = 16
_SECONDS = 20
_COMPARE = """
import marshal, sys
made = compile(open(sys.argv[2], "rb").read(), "", "exec", dont_inherit=True, optimize=int(sys.argv[3]))
sys.exit(0 if marshal.loads(open(sys.argv[1], "rb").read()[16:]) == made else 1)
"""
"""It runs nothing of either file. A file that breaks the reader of bytecode ends this process alone."""


def is_of_its_source(file: Path) -> bool:
    """Whether `__pycache__/NAME.TAG.pyc` is what this Python makes of NAME.py; False also where that is not known."""
    found, data = _NAME.fullmatch(file.name), b""
    if found is None or file.parent.name != "__pycache__" or file.is_symlink():
        return False
    source = file.parent.parent / f"{found['stem']}.py"
    try:
        data = file.read_bytes()[:_HEADER]
        if data[:4] != MAGIC_NUMBER or source.is_symlink() or not source.is_file():
            return False
        asked = [sys.executable, "-I", "-c", _COMPARE, str(file), str(source), found["level"] or "0"]
        return subprocess.run(asked, capture_output=True, timeout=_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
