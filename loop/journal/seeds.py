"""Seeds of a run's evaluations, all derived from 32 bytes in KOPT_HOME that run.json commits to.

Each evaluation has its own schedule, derived by HMAC from version, attempt and purpose. Its receipt reveals only that
schedule, and an interrupted evaluation is repeated on the same inputs.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from evaluator.receipt.plan import SeedSchedule
from kbs.common.errors import ConfigurationError
from kbs.common.files import make_folder, write_whole

FOLDER = "runs"
"""Folder in KOPT_HOME with the seeds, locks and paths of runs."""
_BYTES = 32
_SEALED = "sealed"
"""After the seed: the lines of the run's journal are sealed (`loop/journal/seals.py`). Runs of before have none."""


def seed_file(home: Path, run: str) -> Path:
    """Path of a run's master seed."""
    return home / FOLDER / f"{run}.seed"


def create(home: Path, run: str) -> str:
    """Draw a run's master seed if it has none yet, and return its commitment. Raises `KoptError`."""
    path = seed_file(home, run)
    make_folder(path.parent)
    if not path.exists():
        write_whole(path, f"{secrets.token_bytes(_BYTES).hex()} {_SEALED}\n".encode("ascii"), private=True)
    return commitment(_load(path, run))


def sealed(home: Path, run: str) -> bool:
    """Whether this KOPT_HOME began the run, and sealed the lines of its journal."""
    try:
        return _SEALED in seed_file(home, run).read_text("ascii", "replace").split()
    except OSError:
        return False


def commit_file(home: Path, run: str) -> Path:
    """Path of what names the last commit of a run: the journal, which that commit holds, cannot name it."""
    return home / FOLDER / f"{run}.commit"


def last_commit(home: Path, run: str) -> str:
    """The last commit that this KOPT_HOME made in a run's repository; empty if it knows of none."""
    try:
        return commit_file(home, run).read_text("ascii", "replace").strip()
    except OSError:
        return ""


def load(home: Path, run: str, committed: str) -> bytes:
    """The master seed of a run. Raises `ConfigurationError` (`seed_missing`, `seed_changed`)."""
    path = seed_file(home, run)
    master = _load(path, run)
    if not hmac.compare_digest(commitment(master), committed):
        raise ConfigurationError(
            f"{path} is not the seed that run.json committed to",
            code="seed_changed",
            hint="Restore the file. Without it this run cannot continue; start a new one from its best version.",
        )
    return master


def commitment(master: bytes) -> str:
    """SHA-256 of the master seed, which run.json publishes before anything runs."""
    return hashlib.sha256(master).hexdigest()


def schedule(master: bytes, version: int, attempt: int, what: str) -> SeedSchedule:
    """The seeds of one evaluation, secret until its receipt; `what` is `verdict` or `final`."""
    message = f"kopt run seed\0{version}\0{attempt}\0{what}".encode()
    return SeedSchedule(hmac.digest(master, message, "sha256"), "secret")


def _load(path: Path, run: str) -> bytes:
    try:
        text = path.read_text("ascii")
        master = bytes.fromhex(text.strip().removesuffix(f" {_SEALED}"))
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it does not hold 32 bytes in hex"
        raise _missing(path, run, why) from error
    if len(master) != _BYTES:
        raise _missing(path, run, "it does not hold 32 bytes in hex")
    return master


def _missing(path: Path, run: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the seed of run {run} cannot be read from {path}: {why}",
        code="seed_missing",
        hint="Set KOPT_HOME to the folder that the run was started with.",
    )
