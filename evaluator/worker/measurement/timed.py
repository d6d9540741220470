"""The timed requests of a worker: samples, rows of calls for the cross-check, rates of the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from evaluator.worker.measurement.clock import Clock
from evaluator.worker.measurement.rates import rate
from evaluator.worker.memory import tensors as memory
from evaluator.worker.memory.state import WorkerState
from evaluator.worker.memory.values import Tree, deliver, rebuild, results


@dataclass
class Lent:
    """What a cross-check sample works on."""

    sets: list[Any]
    """Arguments, by call."""
    places: list[tuple[torch.Tensor, ...]]
    """Where each call's results go."""
    result: Tree
    """How a result is built."""
    blank: tuple[torch.Tensor, ...] | None
    """Zeros that go to each call's places where nothing is called; None: the calls' results do."""
    graph: torch.cuda.CUDAGraph | None = None
    """All of it captured, to be replayed without the host."""


class TimedWorker(WorkerState):
    """What a worker does with a clock; `evaluator.worker.process.child.Worker` is one."""

    clock: Clock | None = None
    lent: Lent = Lent([], [], {}, None)

    def do_clock(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make the clock, before the first sample: its flush, its L2 cache, and what an empty pair of events reads."""
        clock = self.clock = Clock(self.device, int(message["flush_bytes"]))
        return {"l2_bytes": clock.l2_bytes, "flush_bytes": clock.flush_bytes, "times": clock.empty_pairs()}

    def do_sample(self, message: dict[str, Any]) -> dict[str, Any]:
        """One timed call of the candidate; its results are copied out in the order of the stream, behind it."""
        arguments = self.arguments(message["tensors"])
        values = rebuild(message["tree"], arguments)
        self.subject.before_call()
        clock = self._clock()
        measured, result = clock.sample(lambda: self.subject.call(values), message["spin_us"])
        answer = self.copy_out(result, message["result"], message["returns"], arguments)
        measured = clock.finish(measured)
        del result
        self.wait()
        return {**answer, "sample": measured, **self.findings()}

    def do_lend(self, message: dict[str, Any]) -> dict[str, Any]:
        """Map the buffers of the next cross-check, so that mapping is no part of its time; the parent fills them later.

        With `empty` nothing will be called and zeros are copied out: the cost of the copies alone. With `capture` the
        device's work of all calls is captured; `captured` tells whether that could be done, else `why` not.
        """
        count = message["count"]
        sets = self._by_call(message["sets"], count)
        places = self._by_call(message["returns"], count)
        blank = tuple(torch.zeros_like(place) for place in places[0]) if message["empty"] else None
        values = [] if message["empty"] else [rebuild(message["tree"], list(arguments)) for arguments in sets]
        self.lent = Lent(values, places, message["result"], blank)
        self.wait()
        if not message["capture"]:
            return {}
        graph = torch.cuda.CUDAGraph()
        try:
            # Relaxed: a candidate may load a module or allocate memory of the driver's while it is captured.
            with torch.cuda.graph(graph, capture_error_mode="relaxed"):
                self._row(self.lent, count, captured=True)
                if not places[0]:  # a graph of nothing is warned of
                    torch.zeros(1, device=self.device)
        except Exception as error:  # whatever a call does that no graph can hold
            return {"captured": False, "why": f"{type(error).__name__}: {error}"[:300]}
        self.lent.graph = graph
        return {"captured": True}

    def _by_call(self, rows: list[dict[str, Any]], count: int) -> list[tuple[torch.Tensor, ...]]:
        """The tensors of each call, from a row for each argument or result."""
        every = [[memory.apart(self.buffers[row["buffer"]], at, row) for at in row["offsets"]] for row in rows]
        return list(zip(*every, strict=True)) if every else [()] * count

    def do_cross_check(self, message: dict[str, Any]) -> dict[str, Any]:
        """The next `calls` on what was lent, or the replay of all, one behind the other, each result copied out.

        The copies are in the order of the stream: what is not there by then is not there.
        """
        lent, count = self.lent, message["calls"]
        if lent.graph is not None:
            lent.graph.replay()
        else:
            self.lent = Lent(lent.sets[count:], lent.places[count:], lent.result, lent.blank)
            self._row(lent, count)
        self.wait()
        return {}

    def _row(self, lent: Lent, count: int, *, captured: bool = False) -> None:
        """Each call, and the copies of its results before the next: what a later call computes comes too late."""
        if lent.blank is None:
            for values, places in zip(lent.sets[:count], lent.places, strict=False):
                result = self.subject.call(values)
                for value, place in zip(results(result, lent.result) if places else (), places, strict=True):
                    deliver(value, place)
        elif captured:
            for places in lent.places:
                for value, place in zip(lent.blank, places, strict=True):
                    deliver(value, place)
        elif lent.blank:  # by one launch: what the device needs for it, and next to nothing of the host
            every = [place for places in lent.places for place in places]
            torch._foreach_copy_(every, list(lent.blank) * len(lent.places))

    def do_rate(self, message: dict[str, Any]) -> dict[str, Any]:
        """What the device does at best, see `evaluator.worker.measurement.rates`."""
        return {"times": rate(self._clock(), self.device, message)}

    def do_device(self, message: dict[str, Any]) -> dict[str, Any]:
        """Choose the device of a worker that loads nothing."""
        self.device = torch.device(message["device"])
        torch.cuda.set_device(self.device)
        return {}

    def _clock(self) -> Clock:
        if self.clock is None:
            raise RuntimeError("the clock was not made")
        return self.clock
