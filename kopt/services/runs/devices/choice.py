"""Which devices a run measures candidates on: read from `--devices` and `--scheduler`, and opened."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.receipt.receipt import parse
from kbs.common.errors import NoGpuError, UsageError
from kopt.services.runs.devices.spread import Devices
from kopt.services.runs.devices.task import Setting
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord

_MOST = 64
"""GPUs of one machine."""


@dataclass(frozen=True)
class Choice:
    """Where candidates are measured quickly, besides the device of the run. A verdict is measured on that one alone."""

    devices: str = ""
    """`all`, or numbers such as `0,1`; empty: the device of the run."""
    scheduler: str = ""
    """`tcp://HOST:PORT` of a dask scheduler; empty: none."""

    def check(self, device: str, proposer: str) -> None:
        """Raise `UsageError` or `NoGpuError` where a run on `device` cannot have it."""
        if not self.devices and not self.scheduler:
            return
        option = "--devices" if self.devices else "--scheduler"
        if self.devices and self.scheduler:
            raise UsageError(
                "--devices and --scheduler exclude each other",
                code="options_do_not_fit",
                hint="Workers for GPUs of this machine are started with `dask worker`, too.",
            )
        if device == "cpu":
            raise UsageError(
                f"{option} is for runs on a GPU: on the CPU nothing is timed, so that nothing is ranked",
                code="options_do_not_fit",
                hint=f"Leave out {option}, or run on a GPU.",
            )
        if self.scheduler and proposer != "search":
            raise UsageError(
                f"--scheduler is for the proposer `search`: what `{proposer}` proposes is measured on this machine",
                code="options_do_not_fit",
                hint="--devices all measures branches on every GPU of this machine.",
            )
        if self.devices:
            self.local(device)

    def local(self, device: str) -> tuple[str, ...]:
        """The GPUs of this machine that are meant, the run's own first. Raises `UsageError`, `NoGpuError`."""
        from evaluator.sandbox.devices import device_name  # imports torch

        names = {f"cuda:{number}": name for number in range(_MOST) if (name := device_name(f"cuda:{number}"))}
        own = device if ":" in device else "cuda:0"
        chosen = list(names) if self.devices == "all" else [f"cuda:{number}" for number in _numbers(self.devices)]
        missing = [one for one in (own, *chosen) if one not in names]
        if missing:
            raise NoGpuError(
                f"{missing[0]} is not there: this machine has {', '.join(names) or 'no GPU'}",
                code="no_gpu",
                hint="--devices all takes those that are there.",
            )
        other = next((one for one in chosen if names[one] != names[own]), None)
        if other is not None:
            same = ",".join(one.partition(":")[2] for one in names if names[one] == names[own])
            raise UsageError(
                f"{other} is {names[other]}, and the run measures on {names[own]}: their times cannot be compared",
                code="mixed_hardware",
                hint=f"--devices {same} takes those that are alike.",
            )
        return tuple(sorted(dict.fromkeys(chosen), key=lambda one: (one != own, int(one.partition(":")[2]))))

    def open(self, folder: RunFolder, record: RunRecord) -> Devices | None:
        """The devices; None where the run's own is enough. Version 0 was measured. Raises `KoptError`."""
        if self.devices:
            from kopt.services.runs.devices.local import LocalDevices

            chosen = self.local(record.device)
            return LocalDevices(chosen) if len(chosen) > 1 else None
        if not self.scheduler:
            return None
        if record.build.include:
            raise UsageError(
                "--scheduler cannot be used in a run with --include: a worker does not have these folders",
                code="options_do_not_fit",
                hint="--devices all measures on every GPU of this machine.",
            )
        data = (folder.version(0) / "receipt.json").read_bytes()
        from kopt.services.runs.devices.cluster import Cluster

        return Cluster(self.scheduler, Setting.of(parse(data).environment))


ALONE = Choice()
"""The device of the run, and no other."""


def _numbers(text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,3}(?:,\d{1,3})*", text):
        raise UsageError(
            f"--devices {text[:60]!r} names no GPUs", code="devices_invalid", hint="Such as --devices all or 0,1."
        )
    return [int(one) for one in text.split(",")]
