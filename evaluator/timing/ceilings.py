"""What a device does at best, measured by the protocol of every other time, and kept per device and driver."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError

from evaluator.receipt.environment import driver_version
from evaluator.receipt.plan import utc_now
from evaluator.receipt.timing import Ceiling, Clocks, Figure
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.replies import checked_reply
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.worker.process.isolation import Limits
from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import Line, UtcTime
from kbs.common.errors import KoptError
from kbs.common.files import make_folder, write_whole
from kbs.common.json_model import Record

FOLDER = "ceilings"
"""In KOPT_HOME."""
SIZES_MIB = (8, 32, 128, 512, 1024)
MATMULS = {"fp32": 4096, "tf32": 8192, "fp16": 8192, "bf16": 8192}
"""Rows of the square matrix products, by element type."""
SAMPLES = 20
_SECONDS = 120.0
_MEMORY = 8 << 30


class Ceilings(Record):
    """All ceilings of one device under one driver."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    kind: Literal["kopt-ceilings"] = "kopt-ceilings"
    """What this document is."""
    created: UtcTime
    """When they were measured."""
    device: Line
    """Name of the GPU."""
    driver: Line
    """Version of the NVIDIA driver."""
    torch: Line
    """Version of PyTorch, whose kernels were measured."""
    cuda: Line
    """CUDA version that it was built for."""
    l2_bytes: int
    """Size of the L2 cache as the driver reports it."""
    empty_us: float
    """Median time of a pair of events with nothing between."""
    figures: tuple[Figure, ...]
    """Bandwidths, matrix products, launch latency."""
    clocks: Clocks
    """Of the device meanwhile."""


class RateWorker:
    """A process that runs nothing but kernels of PyTorch."""

    def __init__(self, server: ForkServer, device: torch.device) -> None:
        self._worker: Worker = server.spawn("ceilings", Limits(_MEMORY, 64, 8 << 30, False), {})
        try:
            self._ask("device", device=str(device))
            reply = self._ask("clock", flush_bytes=0)
        except BaseException:
            self.close()
            raise
        self.l2_bytes = int(reply["l2_bytes"])
        self.empty_us = statistics.median(reply["times"])

    def close(self) -> None:
        """End the process, and wait until its memory is free."""
        self._worker.close()
        self._worker.gone()

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        try:
            reply = checked_reply(self._worker, self._worker.request(op, _SECONDS, **fields))
        except WorkerLostError as error:
            raise _failed(error.detail) from error
        if not reply["ok"]:
            raise _failed(f"{reply['error']['type']}: {reply['error']['message']}")
        return reply

    def times(self, kind: str, *, samples: int = SAMPLES, **size: Any) -> list[float]:
        """Microseconds of samples of one kind, see `evaluator.worker.measurement.rates.rate`. Raises `KoptError`."""
        return list(self._ask("rate", kind=kind, samples=samples, **size)["times"])

    def floor(self, read_bytes: int, written_bytes: int, samples: int = SAMPLES) -> Ceiling:
        """The fastest kernels that read and write so many bytes."""
        copying = {"copy+read": "copy, then read"} if read_bytes > written_bytes else {"copy+fill": "copy, then fill"}
        if read_bytes == written_bytes:
            copying = {"copy": "copy"}
        size = {"read_bytes": read_bytes, "written_bytes": written_bytes}
        measured = {
            said: statistics.median(self.times(kind, samples=samples, **size))
            for kind, said in {**copying, "read+fill": "read, then fill"}.items()
        }
        best = min(measured, key=measured.__getitem__)
        return Ceiling(floor_us=measured[best], made_of=best, n=samples, **size)


def _failed(said: str) -> KoptError:
    return KoptError(
        f"the device's ceilings cannot be measured: {said}",
        code="ceilings_failed",
        hint="Free the GPU's memory, and see `kopt doctor`.",
    )


def measure(server: ForkServer, device: str, progress: Callable[[str, int, int], None]) -> Ceilings:
    """Measure all of them; takes some seconds. Raises `KoptError`."""
    place = torch.device(device)
    clock = device_clock(place)
    figures: list[Figure] = []
    jobs = [(kind, size) for kind in ("copy", "read", "fill") for size in SIZES_MIB]
    total = len(jobs) + len(MATMULS) + 1
    with closing(RateWorker(server, place)) as worker:
        for kind, size in jobs:
            progress("measuring", len(figures), total)
            read, written = (size << 20) * (kind != "fill"), (size << 20) * (kind != "read")
            times = worker.times(kind, read_bytes=read, written_bytes=written)
            figures.append(_figure(f"{kind} {size} MiB", times, (read + written) / 1e3, "GB/s"))
            clock.sample()
        for dtype, n in MATMULS.items():
            progress("measuring", len(figures), total)
            times = worker.times("matmul", dtype=dtype, n=n)
            figures.append(_figure(f"{dtype} matmul {n}", times, 2 * n**3 / 1e6, "TFLOP/s"))
            clock.sample()
        times = worker.times("launch")
        middle = statistics.median(times)
        figures.append(Figure(name="launch", value=middle, unit="us", us=middle, n=len(times)))
        l2_bytes, empty = worker.l2_bytes, worker.empty_us
    return Ceilings(
        created=utc_now(),
        device=torch.cuda.get_device_name(place),
        driver=driver_version() or "unknown",
        torch=torch.__version__,
        cuda=torch.version.cuda or "unknown",
        l2_bytes=l2_bytes,
        empty_us=empty,
        figures=tuple(figures),
        clocks=clock.record(),
    )


def _figure(name: str, times: list[float], work: float, unit: Literal["GB/s", "TFLOP/s"]) -> Figure:
    """`work` over a time in microseconds is the figure."""
    middle = statistics.median(times)
    return Figure(name=name, value=work / middle, unit=unit, us=middle, n=len(times))


def device_clock(device: torch.device) -> DeviceClock:
    """NVML's samples of a CUDA device."""
    index = device.index or 0
    found = str(getattr(torch.cuda.get_device_properties(index), "uuid", ""))
    uuid = f"GPU-{found}" if found and not found.startswith("GPU-") else found
    return DeviceClock(index, uuid)


def path_of(home: Path, device: str, driver: str) -> Path:
    """Where the ceilings of a device under a driver are kept."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{device} {driver}").strip("-")
    return home / FOLDER / f"{name}.json"


def save(home: Path, found: Ceilings) -> Path:
    """Keep them; those measured before are replaced."""
    path = path_of(home, found.device, found.driver)
    make_folder(path.parent)
    write_whole(path, canonical.dumps(found.model_dump(mode="json")))
    return path


def load(path: Path) -> Ceilings | None:
    """What was kept; None where there is nothing. Raises `KoptError` for a damaged file."""
    try:
        return Ceilings.model_validate(canonical.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise KoptError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            code="ceilings_damaged",
            hint="Remove it, and measure again with `kopt bench ceilings`.",
        ) from error
