"""The clocks of the naive evaluator: what public benchmarks do, all in the process of what they measure.

Each returns a time per call in milliseconds. On a CPU, which has no events, the host's clock stands in for them.
"""

import contextlib
import statistics
import time

import torch

with contextlib.suppress(ImportError):
    import triton.testing

WARM_UPS = 10
CALLS = 20
QUEUE = 8
SPIN_CYCLES = 400_000
FLUSH_BYTES = 256 * 2**20
"""More than the cache of any device holds."""


class HostEvent:
    """An event of a device that has none."""

    def record(self):
        """Take the time."""
        self.seconds = time.perf_counter()

    def elapsed_time(self, end):
        """Milliseconds until another event."""
        return 1e3 * (end.seconds - self.seconds)


def event(device):
    """An event that takes the time."""
    return torch.cuda.Event(enable_timing=True) if device.startswith("cuda") else HostEvent()


def wait(device):
    """Let the device finish."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def flush_buffer(device):
    """Memory that is written before each call."""
    return torch.empty(FLUSH_BYTES if device.startswith("cuda") else 2**20, dtype=torch.int8, device=device)


def sized_buffer(device):
    """Twice as much as the cache is said to hold."""
    cuda = device.startswith("cuda")
    size = 2 * torch.cuda.get_device_properties(device).L2_cache_size if cuda else 2**20
    return torch.empty(size, dtype=torch.int8, device=device)


def by_events(call, device):
    """Warm-up calls, then events around each call behind a flush; the host waits once, at the end. The median."""
    for _ in range(WARM_UPS):
        call()
    wait(device)
    buffer = flush_buffer(device)
    pairs = [(event(device), event(device)) for _ in range(CALLS)]
    for start, end in pairs:
        buffer.zero_()
        start.record()
        call()
        end.record()
    wait(device)
    return statistics.median(start.elapsed_time(end) for start, end in pairs)


def by_clock(call, device):
    """Warm-up calls, then the host's clock around each call and a wait for the device. The median."""
    for _ in range(WARM_UPS):
        call()
    wait(device)
    buffer = flush_buffer(device)
    taken = []
    for _ in range(CALLS):
        buffer.zero_()
        wait(device)
        start = time.perf_counter()
        call()
        wait(device)
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def by_do_bench(call, device):
    """Triton's own benchmark, which chooses by a first estimate how often it calls. The median."""
    return triton.testing.do_bench(call, return_mode="median")


def by_sized_events(call, device):
    """Events behind a flush of a buffer that is chosen by the size of the cache, and behind a kernel that does nothing
    for so long that the call has been launched when it ends. The median."""
    for _ in range(WARM_UPS):
        call()
    wait(device)
    buffer = sized_buffer(device)
    taken = []
    for _ in range(CALLS):
        buffer.zero_()
        if device.startswith("cuda"):
            torch.cuda._sleep(SPIN_CYCLES)
        start, end = event(device), event(device)
        start.record()
        call()
        end.record()
        wait(device)
        taken.append(start.elapsed_time(end))
    return statistics.median(taken)


CLOCKS = {"events": by_events, "sized": by_sized_events, "clock": by_clock, "do_bench": by_do_bench}


def blocks(draw, device):
    """`QUEUE` draws of inputs, which lie one behind the other in one block of memory for each argument."""
    drawn = [draw() for _ in range(QUEUE)]
    stacked = [torch.stack(values).to(device) for values in zip(*drawn, strict=True)]
    return [[block[n] for block in stacked] for n in range(QUEUE)]


def whole_queue(model, inputs, device):
    """Warm-up calls on the first inputs, then events around one call for each: a time per call, and the results."""
    for _ in range(WARM_UPS):
        model(*inputs[0])
    wait(device)
    buffer = flush_buffer(device)
    start, end = event(device), event(device)
    buffer.zero_()
    start.record()
    results = [model(*values) for values in inputs]
    end.record()
    wait(device)
    return start.elapsed_time(end) / len(inputs), results
