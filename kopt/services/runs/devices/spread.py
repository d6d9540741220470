"""Keeps several devices at work: a task is taken when one is free for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol

from kopt.services.runs.devices.task import Found, Task


class Devices(Protocol):
    """Where tasks are carried out. `close` ends what is under way."""

    @property
    def width(self) -> int:
        """Tasks at a time."""

    @property
    def kept(self) -> bool:
        """Whether they are this machine's own, which keep receipts."""

    @property
    def notes(self) -> list[str]:
        """What the user should know of, such as a device that is not used."""

    def submit(self, task: Task) -> Future[Found]:
        """Begin a task, or have it wait for a device. The result may be a `KoptError`."""

    def close(self) -> None:
        """End all processes that were started."""


def spread(width: Callable[[], int], submit: Callable[[Task], Future[Found]], tasks: Iterable[Task]) -> Iterator[
    tuple[int, Found]
]:  # fmt: skip
    """(place, what was found) of each task, in the order in which they are done. Raises `KoptError`.

    No more tasks are taken than `width` says at that moment.
    """
    running = dict[Future[Found], int]()
    source = enumerate(tasks)
    ended = False
    try:
        while True:
            while not ended and len(running) < max(1, width()):
                following = next(source, None)
                if following is None:
                    ended = True
                else:
                    running[submit(following[1])] = following[0]
            if not running:
                return
            for future in sorted(wait(running, return_when=FIRST_COMPLETED).done, key=running.__getitem__):
                yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()
