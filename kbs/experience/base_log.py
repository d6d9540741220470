"""The base log: records of runs that kopt's developers made, whose receipts stand in kopt's repository.

It is read, never written, and told apart from the user's own records everywhere. `scripts/base_log.py` writes it.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from kbs.experience.entry import Entry
from kbs.experience.files import LogFiles


def base_log() -> Path:
    """Its file."""
    return Path(str(resources.files("kbs") / "data" / "base_log.jsonl"))


def base_entries() -> list[Entry]:
    """Its records, in their order."""
    path = base_log()
    found = LogFiles(path.parent).read(path.name)
    return [Entry(one, shipped=True) for _, one in found.records]
