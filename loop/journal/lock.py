"""One process drives a run at a time, and whoever comes second is told who it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kbs.common.errors import KoptError
from kbs.common.files import make_folder, write_error
from kbs.index.lock import HeldError, named_lock
from loop.journal.seeds import FOLDER


@contextlib.contextmanager
def run_lock(home: Path, run: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold a run for writing. Raises `KoptError` (`run_busy`) naming the holder, after `timeout` seconds.

    The lock lies in KOPT_HOME, as does the seed, so that a run's folder holds nothing but the run.
    """
    path = home / FOLDER / f"{run}.lock"
    make_folder(path.parent)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(named_lock(path, timeout))
        except HeldError as holder:
            raise KoptError(
                f"the run {run} is being driven by {holder}",
                code="run_busy",
                hint="Wait for it, or end it and say `kopt run resume`: nothing is lost. `kopt run status` only reads.",
            ) from None
        except OSError as error:
            raise write_error(error, path) from error
        yield
