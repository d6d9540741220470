"""One process of a kernel in the benchmark: warmed up, then asked for one sample after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from evaluator.correctness.candidate import Called, CandidateError, KernelProcess, SampleOptions
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.protocol import note_behaviour, problems_of, wrong_trial
from evaluator.receipt.findings import Findings
from evaluator.sandbox.devices import l2_bytes
from evaluator.sandbox.worker_process import WorkerLostError
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.worker.measurement.clock import flush_of

WARM_SAMPLES = 4
_FIRST_SPIN_US = 1000.0
_LEAST_SPIN_US = 60.0
_MOST_SPIN_US = 50_000.0
_GIVES_UP = 4
"""After so many late samples in a row, whatever the spin, the call is taken for one that waits for the device."""


class WrongResultError(Exception):
    """A timed sample gave a wrong result; the text says what."""


FAILURES = (CandidateError, WorkerLostError, WrongResultError)
"""How taking a sample can fail."""


@dataclass
class Samples:
    """Every sample of one process, one entry per sample in each list."""

    pair: list[int] = field(default_factory=list)
    us: list[float] = field(default_factory=list)
    enqueue_us: list[float] = field(default_factory=list)
    clock_mhz: list[int] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)

    def dropped(self, clock: DeviceClock) -> list[str]:
        """Why each sample does not count: `late`, `clock`, or empty where it does."""
        told = zip(self.late, self.clock_mhz, strict=True)
        return ["late" if late else "clock" if clock.too_slow(mhz) else "" for late, mhz in told]

    def counted(self, clock: DeviceClock) -> dict[int, float]:
        """The times that count, by the number of the pair."""
        told = zip(self.pair, self.us, self.dropped(clock), strict=True)
        return {pair: us for pair, us, why in told if not why}


@dataclass(eq=False)
class TimedProcess:
    """The process of a kernel, and its samples."""

    name: str
    restart: int
    kernel: KernelProcess
    cases: Cases
    clock: DeviceClock
    dims: dict[str, int]

    def __post_init__(self) -> None:
        self.samples = Samples()
        self.alone: list[float] = []
        """Times of a baseline taken while no candidate ran."""
        self.spin_us = _FIRST_SPIN_US
        self.waits = False
        """Whether the call itself waits for the device, so that the host is late in every sample."""
        self.empty_us: list[float] = []
        self.first_call_seconds = 0.0
        """Of the first call, which compiles what is compiled when it is called."""
        self.flush_bytes = 0
        """Bytes that are written before each sample."""
        self.l2_bytes = 0
        """As the driver tells this process: a candidate would gain by another size, at the flush and at the physics."""
        self._late = 0

    @property
    def is_candidate(self) -> bool:
        """Whether it runs the candidate, so that its results and behaviour count."""
        return self.name == "candidate"

    def first_call(self, case: Case) -> None:
        """Create the clock, and compile with the first call. Others may have the device meanwhile.

        Raises `WrongResultError`, and what `KernelProcess.call` raises.
        """
        self.l2_bytes = l2_bytes(self.kernel.device)
        self.flush_bytes = flush_of(self.l2_bytes)
        reply = self.kernel.ask("clock", self.kernel.call_seconds, flush_bytes=self.flush_bytes)
        self.empty_us = list(reply["times"])
        began = time.monotonic()
        self._sample(case, seconds=self.kernel.load_seconds)
        self.first_call_seconds = time.monotonic() - began

    def warm(self, case: Case) -> None:
        """Measure how long the host needs for a call. Raises as `first_call` does."""
        for _ in range(WARM_SAMPLES):
            measured = self._sample(case)
            self._adapt(measured.enqueue_us, late=measured.late)

    def sample(self, case: Case, pair: int) -> None:
        """Take a sample and keep it. Raises as `warm` does."""
        self._keep(pair, self._sample(case))

    def sample_alone(self, case: Case) -> None:
        """Take a sample of a baseline while no candidate runs."""
        self.alone.append(self._sample(case).us)

    def _sample(self, case: Case, seconds: float | None = None) -> _Measured:
        called = self._called(case, SampleOptions(self.spin_us), seconds)
        claim = called.reply["sample"]
        return _Measured(claim["us"], claim["enqueue_us"], claim["late"], self.clock.sample())

    def _called(self, case: Case, sample: SampleOptions, seconds: float | None) -> Called:
        called = self.kernel.call(case.values, self.cases.shape, sample=sample, seconds=seconds)
        if called.reply["sample"] is None:
            raise WrongResultError("the turn has no time")
        self._judge(case, called)
        return called

    def _judge(self, case: Case, called: Called) -> None:
        """Compare every output with the reference; the receipt lists a wrong one of the candidate as a trial."""
        found = self.cases.found if self.is_candidate else Findings()  # no fault of the candidate's
        note_behaviour(called, found)
        problems = problems_of(called, case, self.cases, found)
        for n, output in enumerate(called.outputs):
            compared = None if n in problems else self.cases.compare(case, n, output)
            if compared is not None and compared.passed:
                continue
            what = "given, timed turn"
            if self.is_candidate:
                wrong_trial(self.cases, self.dims, what, n, compared, problems.get(n, ""), moved=called.moved)
            said = problems.get(n) or (compared.detail if compared else "") or "it is outside its bound"
            raise WrongResultError(f"{self.cases.shape.names[n]} of a timed turn: {said}")

    def _keep(self, pair: int, measured: _Measured) -> None:
        self.samples.pair.append(pair)
        self.samples.us.append(measured.us)
        self.samples.enqueue_us.append(measured.enqueue_us)
        self.samples.clock_mhz.append(measured.megahertz)
        self.samples.late.append(measured.late and not self.waits)
        if measured.late:
            self._adapt(measured.enqueue_us, late=True)
        else:
            self._late = 0

    def _adapt(self, enqueue_us: float, *, late: bool) -> None:
        """A spin that is longer than the host needs. A call that waits for the device needs longer than any."""
        if self.waits:
            return
        self._late = self._late + 1 if late else 0
        if self._late >= _GIVES_UP:
            self.waits = True
            self.spin_us = _LEAST_SPIN_US
            return
        wanted = 2.5 * enqueue_us + _LEAST_SPIN_US
        if late:
            wanted = max(wanted, 2 * self.spin_us)
        self.spin_us = min(_MOST_SPIN_US, max(_LEAST_SPIN_US, wanted))


@dataclass(frozen=True)
class _Measured:
    us: float
    enqueue_us: float
    late: bool
    megahertz: int
