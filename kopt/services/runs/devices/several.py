"""The further devices of a run: what is begun on them, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt, parse
from evaluator.receipt.timing import CitedPeak
from evaluator.request import Request
from kopt.services.engine import Engine
from kopt.services.runs.devices.choice import Choice
from kopt.services.runs.devices.spread import Devices, spread
from kopt.services.runs.devices.task import Found, Task
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord

Asked = tuple[Request, SeedSchedule]


@dataclass
class Several:
    """Opened when it is needed first, which is after version 0 was measured."""

    choice: Choice
    folder: RunFolder
    record: RunRecord
    engine: Engine
    peak: Callable[[], CitedPeak | None]
    _begun: dict[str, Future[Found]] = field(default_factory=dict, repr=False)
    """Commitment of the seeds → an evaluation under way."""

    @cached_property
    def devices(self) -> Devices | None:
        """None where the run's own device does it all. Raises `KoptError`."""
        return self.choice.open(self.folder, self.record)

    def ahead(self, asked: Sequence[Asked]) -> None:
        """Begin evaluations, where there are devices of this machine: their receipts are kept here."""
        devices = self.devices
        if devices is None or not devices.kept:
            return
        for request, schedule in asked:
            if schedule.commitment not in self._begun:
                self._begun[schedule.commitment] = devices.submit(self._task(devices, request, schedule))

    def begun(self, schedule: SeedSchedule) -> Receipt | None:
        """The receipt of an evaluation that was begun with these seeds; None for any other. Raises what it raised."""
        found = self._begun.pop(schedule.commitment, None)
        if found is None:
            return None
        made = found.result()
        if made.failure is not None:
            raise made.failure.error()
        return parse(Path(made.receipt).read_bytes())

    def quickly(self, asked: Iterable[Asked]) -> Iterator[tuple[int, Found]]:
        """(place, what was found) of each evaluation, as they are done. There must be devices. Raises `KoptError`."""
        devices = self.devices
        assert devices is not None  # asked for by whoever looked
        tasks = (self._task(devices, request, schedule) for request, schedule in asked)
        try:
            yield from spread(lambda: devices.width, devices.submit, tasks)
        finally:
            self.engine.warn(devices.notes)

    def _task(self, devices: Devices, request: Request, schedule: SeedSchedule) -> Task:
        build = self.record.build
        placed = request.model_copy(update={"peak": self.peak()})
        return Task.of(
            placed, schedule, build.variables, build.python, self.engine.settings.home if devices.kept else None
        )

    def close(self) -> None:
        """End what is under way."""
        devices: Devices | None = self.__dict__.pop("devices", None)
        if devices is not None:
            devices.close()
