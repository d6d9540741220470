"""Workers of a cluster, through dask.distributed: the one module that imports it.

The scheduler gives a task of a worker that ended to another one. Scheduler and workers run code for whoever reaches
them, and are trusted like this account.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from kbs.common.errors import ConfigurationError, KoptError, UsageError
from kbs.common.visible_text import visible
from kopt.services.runs.devices.task import Found, Setting, Task, carry_out

EXTRA = "cluster"
CONNECT_SECONDS = 15.0
"""A scheduler that does not answer in this time is not there."""
_LOOK_SECONDS = 1.0
"""How often a waiting task looks whether scheduler and workers are still there."""
_TRIES = 3
"""Sets of workers that a task may end."""
_MOST = 64
"""Tasks at a time."""


class Cluster:
    """The workers of a scheduler. Those whose machine is not like `own` are left out once that is seen."""

    kept = False

    def __init__(self, address: str, own: Setting, work: Callable[[str], str] = carry_out) -> None:
        """Connect. `work` is what a worker does with the text of a task.

        Raises `UsageError` (`scheduler_invalid`), `ConfigurationError` (`extra_missing`, `scheduler_unreachable`,
        `no_workers`).
        """
        self.address, self.own, self.work = address, own, work
        self.notes: list[str] = []
        self.patience = 30.0
        """Seconds without a scheduler or a worker until the measurement is given up."""
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()
        self._client = _connect(address)
        self._threads = ThreadPoolExecutor(_MOST, thread_name_prefix="cluster")
        if not self._workers():
            self.close()
            raise ConfigurationError(
                f"the scheduler {address} has no worker",
                code="no_workers",
                hint=f"Start one for each GPU: CUDA_VISIBLE_DEVICES=0 dask worker {address} --nthreads 1.",
            )

    @property
    def width(self) -> int:
        """Tasks at a time: one for each worker that is there now and like this machine."""
        return min(_MOST, len(self._like_own()))

    def _workers(self) -> list[str]:
        try:
            return list(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, ValueError):  # the scheduler does not answer
            return []

    def submit(self, task: Task) -> Future[Found]:
        """Give a task to the scheduler."""
        return self._threads.submit(self._found, task)

    def _found(self, task: Task) -> Found:
        text = task.model_dump_json()
        while True:
            worker, found = self._measured(text)
            why = ""
            if found.failure is not None and found.failure.kind == "other":
                why = found.failure.message
            elif found.setting is not None:
                why = self.own.differences(found.setting)
            if not why:
                return found
            self._refuse(worker, visible(why))

    def _refuse(self, worker: str, why: str) -> None:
        """Send nothing to a worker any more. Raises `KoptError` where none is left."""
        with self._lock:
            if worker not in self._refused:
                self._refused[worker] = why
                self.notes.append(f"the worker {worker} is not used: {why}")
        if not self._like_own():
            raise KoptError(
                f"no worker of {self.address} can be used: {'; '.join(dict.fromkeys(self._refused.values()))}",
                code="mixed_hardware",
                hint="Times are held against those of this machine: GPU, driver, torch, triton and kopt must be the"
                " same.",
            )

    def _measured(self, text: str) -> tuple[str, Found]:
        """(the worker's address, what it found)"""
        from distributed import KilledWorker

        began = time.monotonic()
        for _ in range(_TRIES):
            allowed = self._like_own() if self._refused else None
            future = self._client.submit(_carried_out, self.work, text, pure=False, workers=allowed, retries=0)
            try:
                answer = self._waited(future, allowed)
            except KilledWorker:
                break
            if answer is not None:
                return answer[0], Found.model_validate_json(answer[1])
        why = "crashed: it ended each worker that it was given to"
        return "", Found(why=why, seconds=time.monotonic() - began)

    def _like_own(self) -> list[str]:
        return [one for one in self._workers() if one not in self._refused]

    def _waited(self, future: Any, allowed: list[str] | None) -> tuple[str, str] | None:
        """The result of a task; None where all that were allowed to do it have ended.

        Raises `KoptError` (`scheduler_lost`, `workers_lost`), `KilledWorker`.
        """
        seen = time.monotonic()
        while True:
            try:
                worker, answer = future.result(timeout=_LOOK_SECONDS)
                return str(worker), str(answer)
            except TimeoutError:
                there = self._workers() if self._client.status == "running" else []
                if there:
                    seen = time.monotonic()
                if there and allowed is not None and not set(allowed) & set(there):
                    future.cancel()
                    return None
                if time.monotonic() - seen > self.patience:
                    raise self._lost() from None
            except (CancelledError, OSError) as error:
                raise self._lost() from error

    def _lost(self) -> KoptError:
        there = self._client.status == "running"
        return KoptError(
            f"the scheduler {self.address} has no worker any more"
            if there
            else f"the scheduler {self.address} is gone",
            code="workers_lost" if there else "scheduler_lost",
            hint="What was measured is kept. Start it again, and go on with `kopt run resume --scheduler ADDRESS`.",
        )

    def close(self) -> None:
        """Leave the cluster; its workers and its scheduler stay."""
        _quietly(lambda: self._client.close(timeout=2))
        self._threads.shutdown(wait=False, cancel_futures=True)


def _carried_out(work: Callable[[str], str], text: str) -> tuple[str, str]:
    """On a worker: (its address, what was found)."""
    from distributed import get_worker

    return get_worker().address, work(text)


def _connect(address: str) -> Any:
    if not address.startswith(("tcp://", "tls://")):
        raise UsageError(
            f"{address[:80]!r} is no address of a scheduler",
            code="scheduler_invalid",
            hint="Such as --scheduler tcp://gpu-box:8786, where `dask scheduler` runs.",
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigurationError(
            "--scheduler needs dask.distributed, which is not installed",
            code="extra_missing",
            hint=f"pip install 'kopt[{EXTRA}]', here and where the workers run.",
        ) from error
    for name in ("distributed.core", "distributed.comm", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost is said as an error of kopt
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]  # dask has no types
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigurationError(
            f"the scheduler {address} cannot be reached: {visible(str(error))[:200]}",
            code="scheduler_unreachable",
            hint="Start `dask scheduler`, then `dask worker ADDRESS --nthreads 1` for each GPU.",
        ) from error


def _quietly(close: Callable[[], object]) -> None:
    try:
        close()
    except (OSError, TimeoutError, RuntimeError):  # the other side is gone
        return
