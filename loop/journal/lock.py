"""One process drives a run at a time; a second one is told which process that is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from kbs.common.errors import KoptError
from kbs.common.locks import file_lock
from loop.journal.seeds import FOLDER


def run_lock(home: Path, run: str, timeout: float = 0.0) -> AbstractContextManager[None]:
    """Hold a run for writing. Raises `KoptError` (`run_busy`) that names the holder, after `timeout` seconds.

    The lock is in KOPT_HOME, as is the seed, so that a run's folder holds nothing but the run.
    """

    def busy(holder: str) -> KoptError:
        return KoptError(
            f"the run {run} is being driven by {holder}",
            code="run_busy",
            hint="Wait for it, or end it and run `kopt run resume`: nothing is lost. `kopt run status` only reads.",
        )

    return file_lock(home / FOLDER / f"{run}.lock", timeout, busy)
