#!/usr/bin/env python3
"""Lists the rooms of the product: files, lines, what each is for. Exits with 1 where one is too full or says nothing.

    python scripts/rooms.py [--quiet]

A room is a folder with Python files below one of the six packages. It holds at most twelve of them, and the docstring
of its `__init__.py` says in one sentence what it is for.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PACKAGES = ("kopt", "loop", "evaluator", "ingest", "wiki", "kbs")
MOST_FILES = 12
FREE = {"loop/gate/rules", "wiki/lint/rules", "loop/pages"}
"""Rooms of rules and page templates: each file is one real thing, so they may be more."""


def main() -> int:
    """Print a line a room, the total, and every fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quiet", action="store_true", help="Print faults and the total only.")
    quiet = parser.parse_args().quiet
    root = Path(__file__).resolve().parent.parent
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *(f"{name}/*.py" for name in PACKAGES)]
    found = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in map(Path, found):
        if (root / path).exists():
            rooms[str(path.parent)].append(root / path)
    faults, total = [], 0
    for name in sorted(rooms):
        files = rooms[name]
        lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
        total += lines
        init = root / name / "__init__.py"
        said = ast.get_docstring(ast.parse(init.read_text("utf-8"))) if init.exists() else None
        if not said:
            faults.append(f"{name}/__init__.py does not say what the room is for")
        if len(files) > MOST_FILES and name not in FREE:
            faults.append(f"{name} has {len(files)} files; {MOST_FILES} is the most")
        if not quiet:
            print(f"{name:<32} {len(files):>3} files {lines:>6} lines  {(said or '').splitlines()[0] if said else ''}")
    print(f"{len(rooms)} rooms, {sum(map(len, rooms.values()))} files, {total} lines")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
