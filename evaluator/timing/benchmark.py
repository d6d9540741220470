"""The benchmark of one workload: candidate and baselines take samples on the same fresh inputs, in new processes."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess
from evaluator.correctness.cases import Case, Cases
from evaluator.receipt import statistics as intervals
from evaluator.receipt.plan import BaselineChoice, SeedSchedule, TimingPlan
from evaluator.receipt.timing import CitedPeak, WorkloadTiming
from evaluator.sandbox.devices import crowded
from evaluator.timing import back_to_back
from evaluator.timing.ceilings import RateWorker
from evaluator.timing.clock_checks import CrossCheck, cross_check_calls
from evaluator.timing.cross_check import cross_check
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.timing.processes import Starter
from evaluator.timing.results import Results, kept, quotients, workload_timing
from evaluator.timing.speed_of_light import check, traffic
from evaluator.timing.timed_process import FAILURES, TimedProcess
from kbs.common.errors import KoptError

FIRST_CASE = 1000
"""Number of the first draw of inputs for timed samples; those before are for correctness."""
LEAST_BLOCKS = 4
"""Blocks of two pairs each in every restart, before anything is concluded."""
ALONE = 6
"""Samples of the first baseline in each restart while no candidate runs; as many before as after."""
SIGNAL_SAMPLES = 12
_CONTEXT_BYTES = 700 << 20
"""What a process takes of the device before it has any tensors: its context, PyTorch's kernels, the flush."""
_MEMORY_PART = 0.8


@dataclass(eq=False)
class Benchmark:
    """One workload's times."""

    starter: Starter
    plan: TimingPlan
    cases: Cases
    dims: dict[str, int]
    seeds: SeedSchedule
    clock: DeviceClock
    index: int
    """Number of the workload's first call."""
    stand_in: str = ""
    """The baseline that runs in the candidate's place, to see how far the noise goes; empty: the candidate itself."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seeds.seed("race", self.index))
        self.numbers = itertools.count(FIRST_CASE + 100_000 * self.index)
        self.results = Results(self.dims, self.plan, self.clock, self.seeds.seed("bootstrap", 1 + self.index))
        self.rows = back_to_back.Rows(self.cases, self.starter.device, self._fresh(), self.draw)
        self.notes: list[str] = []
        self.places = 2
        """Sets of memory that a candidate's arguments are drawn from."""
        self.first: Case | None = None
        self.began = 0.0
        self.sample_seconds = 0.0
        """Seconds that the samples that count took, their inputs included."""

    # --- the two plans ----------------------------------------------------------------------------------------------

    def verdict(self, peak: CitedPeak | None, *, floor: bool = True) -> WorkloadTiming:
        """Restarts, baselines, cross-checks, and the measured floor if `floor`.

        Raises `CandidateError`, `WorkerLostError` and `WrongResultError` for what the candidate did.
        """
        self._begin()
        restarts = list(range(self.plan.restarts))
        size = self._at_once(self._given())
        checked_restart = self.draw.choice(restarts)
        if not size:
            self._in_turns(restarts, checked_restart)
        for start in range(0, len(restarts) if size else 0, max(1, size)):
            self._batch(restarts[start : start + size], checked_restart)
        return self._timing(peak, ceiling=floor)

    def signal(self, peak: CitedPeak | None) -> WorkloadTiming:
        """A few samples in one fresh process, on a pool of inputs and some fresh ones. Raises as `verdict` does.

        Not in the process that was examined: torch.compile falls back to eager where operators were watched.
        """
        self._begin()
        (process,) = self._start_candidates([0])
        try:
            self.results.restarts = [[process]]
            pool = [self._given(), self._case()]
            for n in range(SIGNAL_SAMPLES):
                process.sample(self._case() if n == SIGNAL_SAMPLES // 2 else self.draw.choice(pool), n)
            self._cross_check(process)
        finally:
            process.kernel.close()
        return self._timing(peak, ceiling=False)

    def _begin(self) -> None:
        """Make room in the device's memory.

        From here on none is freed: the driver clears freed memory, which would slow the samples meanwhile.
        """
        self.began = time.monotonic()
        torch.cuda.empty_cache()
        if crowded(self.starter.device, self.cases.bytes):
            self.cases.exact = False
            self.places = 1
            self.notes.append("timed turns were held against the reference's own precision, to save memory")
        self.cases.reference.keeps = True
        self.first = self._case()

    # --- a wave of restarts -----------------------------------------------------------------------------------------

    def _at_once(self, case: Case) -> int:
        """How many restarts fit into the device's memory side by side; 0 where candidate and baselines have to take
        turns, with room for a row of calls. Raises `KoptError` if not even one of them fits."""
        torch.cuda.empty_cache()
        read, written = traffic(self.cases, case)
        both = (self.places * (read + written) + 2 * written) + (read + 3 * written) * len(self.plan.baselines)
        each = both + _CONTEXT_BYTES * (1 + len(self.plan.baselines))
        free = int(torch.cuda.mem_get_info(self.starter.device)[0] * _MEMORY_PART)
        alone = read + 3 * written + _CONTEXT_BYTES
        if alone > free:
            raise KoptError(
                f"timing needs about {alone / 1e9:.1f} GB of the GPU's memory, and {free / 1e9:.1f} GB are free",
                code="out_of_memory",
                hint="Give smaller --dims.",
            )
        return 0 if self.places == 1 else int(min(self.plan.restarts, free // each))

    def _batch(self, restarts: Sequence[int], checked_restart: int) -> None:
        """Run some restarts side by side, from start to end."""
        started: list[TimedProcess] = []
        try:
            by_restart: dict[int, list[TimedProcess]] = {restart: [] for restart in restarts}
            if self.stand_in:
                candidates = self._start_same(by_restart)
                started += [*candidates, *(process for processes in by_restart.values() for process in processes)]
            else:
                for choice in self.plan.baselines:
                    for process in self._start_baseline(choice, restarts):
                        started.append(process)
                        by_restart[process.restart].append(process)
                self._alone(by_restart)
                candidates = self._start_candidates(restarts)
                started += candidates
            self.results.restarts += [
                [one, *(process for process in by_restart[one.restart] if process.name not in self.results.failed)]
                for one in candidates
            ]
            mine = self.results.restarts[-len(candidates) :]
            self._blocks(mine, self.plan.seconds * len(restarts) / self.plan.restarts)
            for processes in mine:
                if processes[0].restart == checked_restart and not self.stand_in:
                    self.rows.call(processes[0], self.places)
                    self._cross_check(processes[0])  # last: what is captured may leave memory of a graph's behind
            if not self.stand_in:
                self._end(candidates)
                self._alone(by_restart)
                running = [one for one in by_restart.get(checked_restart, []) if one.name not in self.results.failed]
                self.rows.call_baseline(running, self.places)
                self._cross_check_baseline(running)
        finally:
            self._end(started)

    def _in_turns(self, restarts: Sequence[int], checked_restart: int) -> None:
        """One process on the device at a time: in each restart candidate and baselines, in an order drawn at random,
        take all their samples in a row. So no baseline ever runs beside a candidate."""
        self.places = 1
        self.notes.append("candidate and baselines took turns: the device's memory has no room for them side by side")
        names = ["candidate", *(choice.name for choice in self.plan.baselines)]
        for restart in restarts:
            numbers = [next(self.numbers) for _ in range(2 * LEAST_BLOCKS)]
            checked = restart == checked_restart
            made: dict[str, TimedProcess] = {}
            for name in names if checked else self.draw.sample(names, len(names)):
                for process in self._started(name, restart):
                    try:
                        for pair, number in enumerate(numbers):
                            self._sample(process, self.cases.another(number), pair)
                        if checked and process.is_candidate:
                            self._cross_check(process)
                        elif checked and name == names[1]:
                            self._cross_check_baseline([process])
                    finally:
                        self._end([process])
                    made[name] = process
            self.results.restarts.append([made[name] for name in names if name in made.keys() - self.results.failed])

    def _started(self, name: str, restart: int) -> list[TimedProcess]:
        """One process, warmed up; none for a baseline that fails."""
        how = next((choice.how for choice in self.plan.baselines if choice.name == name), "")
        if self.stand_in and name == "candidate":
            how = next(choice.how for choice in self.plan.baselines if choice.name == self.stand_in)
            process = self._process(name, restart, self._baseline_job(how, 2, restart)())
            self._warm([process])
            return [process]
        if not how:
            return self._start_candidates([restart])
        return self._start_baseline(BaselineChoice(name=name, how=how), [restart])

    def _end(self, processes: Sequence[TimedProcess]) -> None:
        """End processes and wait until they have released the device: what comes next is timed."""
        for process in processes:
            process.kernel.close()
        for process in processes if not self.stand_in else ():
            process.kernel.worker.gone()

    def _start_baseline(self, choice: BaselineChoice, restarts: Sequence[int]) -> list[TimedProcess]:
        """Its processes, warmed up; none if it fails, and then it drops out."""
        if choice.name in self.results.failed:
            return []
        found: list[TimedProcess] = []
        try:
            kernels = self._together([self._baseline_job(choice.how, 1, restart) for restart in restarts])
            found = [self._process(choice.name, *pair) for pair in zip(restarts, kernels, strict=True)]
            self._warm(found, together=True)
        except FAILURES as error:
            for process in found:
                process.kernel.close()
            self._drop(choice.name, error)
            return []
        return found

    def _drop(self, name: str, error: Exception) -> None:
        """Drop a baseline that failed; that is not held against the candidate."""
        self.results.failed[name] = " ".join(str(error).split())[:500]
        for group in self.results.restarts:
            group[:] = [process for process in group if process.name != name]

    def _start_candidates(self, restarts: Sequence[int]) -> list[TimedProcess]:
        """Spawn in turn, load all at once, and warm up in turn, because autotuners need the device for themselves."""
        kernels = [self.starter.spawn_candidate(self._number(2, restart), self.places) for restart in restarts]
        try:
            self._together([partial(self.starter.load_candidate, one, self.cases, self.dims) for one in kernels])
            processes = [self._process("candidate", *pair) for pair in zip(restarts, kernels, strict=True)]
            self._warm(processes)
        except BaseException:
            for kernel in kernels:
                kernel.close()
            raise
        return processes

    def _start_same(self, by_restart: dict[int, list[TimedProcess]]) -> list[TimedProcess]:
        """A baseline on both sides, all processes at once: those that stand in the candidate's place."""
        how = next(choice.how for choice in self.plan.baselines if choice.name == self.stand_in)
        places = [(side, restart) for side in (1, 2) for restart in by_restart]
        jobs = [self._baseline_job(how, side, restart) for side, restart in places]
        candidates: list[TimedProcess] = []
        for (side, restart), kernel in zip(places, self._together(jobs), strict=True):
            process = self._process(self.stand_in if side == 1 else "candidate", restart, kernel)
            (by_restart[restart] if side == 1 else candidates).append(process)
        self._warm([*candidates, *(process for processes in by_restart.values() for process in processes)])
        return candidates

    def _warm(self, processes: Sequence[TimedProcess], *, together: bool = False) -> None:
        """First calls, then the rest of the warm-up in turn. `together`: all first calls but the first, which fills the
        compiler's cache, at once; autotuners need the device for themselves."""
        case = self._given()
        if together:
            processes[0].first_call(case)
            self._together([partial(process.first_call, case) for process in processes[1:]])
        for process in processes:
            if not together:
                process.first_call(case)
            process.warm(case)

    def _process(self, name: str, restart: int, kernel: KernelProcess) -> TimedProcess:
        return TimedProcess(name, restart, kernel, self.cases, self.clock, self.dims)

    def _baseline_job(self, how: str, kind: int, restart: int) -> Callable[[], KernelProcess]:
        return partial(self.starter.start_baseline, how, self.cases, self.dims, self._number(kind, restart))

    def _number(self, kind: int, restart: int) -> int:
        """The number of a process in the evaluation, which seeds the choice of its memory sets."""
        return kind * 1_000_000 + 1000 * self.index + restart

    @staticmethod
    def _together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run jobs concurrently; raises the first error when all have ended."""
        with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as pool:
            pending = [pool.submit(job) for job in jobs]
        return [one.result() for one in pending]

    def _alone(self, by_restart: dict[int, list[TimedProcess]]) -> None:
        """Take samples of the first baseline while no candidate runs."""
        for processes in by_restart.values():
            for process in [one for one in processes if one.name not in self.results.failed][:1]:
                try:
                    for _ in range(ALONE // 2):
                        process.sample_alone(self._given())
                except FAILURES as error:
                    self._drop(process.name, error)

    def _blocks(self, restarts: list[list[TimedProcess]], seconds: float) -> None:
        """Take blocks of two pairs, one restart after the other, until the interval is narrow or the time is up."""
        began = time.monotonic()
        until, look = began + seconds, LEAST_BLOCKS
        for block in itertools.count():
            for processes in restarts:
                order = list(processes)
                self.draw.shuffle(order)
                for pair, one in enumerate((order, order[::-1])):  # A B, then B A
                    case = self._case()
                    for process in one:
                        self._sample(process, case, 2 * block + pair)
            made = block + 1
            if made < LEAST_BLOCKS:
                continue
            over = time.monotonic() > until
            if not over and made == look:
                look, over = intervals.next_look(made), self._settled(restarts)
            if over:
                self.sample_seconds += time.monotonic() - began
                return

    def _sample(self, process: TimedProcess, case: Case, pair: int) -> None:
        """Take a sample that counts; a baseline that fails in it drops out."""
        if process.name in self.results.failed:
            return
        try:
            process.sample(case, pair)
        except FAILURES as error:
            if process.is_candidate:
                raise
            self._drop(process.name, error)

    def _settled(self, restarts: list[list[TimedProcess]]) -> bool:
        """Whether the interval of the ratio to the first baseline, or of the candidate's own time, is narrow."""
        if len(restarts[0]) > 1:
            groups = [quotients(processes[1], processes[0], self.clock) for processes in restarts]
        else:
            groups = [kept(processes[0], self.clock) for processes in restarts]
        if any(len(group) < LEAST_BLOCKS for group in groups):
            return False
        found = intervals.interval(groups, self.seeds.seed("bootstrap", 0), resamples=400)
        times = [t for processes in restarts for t in processes[0].samples.us]
        return intervals.is_narrow(*found, median_us=statistics.median(times))

    # --- inputs -----------------------------------------------------------------------------------------------------

    def _case(self) -> Case:
        """Fresh inputs that no process has seen."""
        return self.cases.another(next(self.numbers))

    def _given(self) -> Case:
        """The first inputs again, for samples that do not count."""
        if self.first is None:
            self.first = self._case()
        return self.first

    # --- cross-checks and results -----------------------------------------------------------------------------------

    def _cross_check(self, process: TimedProcess) -> None:
        claim = statistics.median(process.samples.us)
        read, written = traffic(self.cases, self._given())
        if self.places == 1:  # what its samples worked on makes room for the row
            process.kernel.release()
            torch.cuda.empty_cache()
        free = int(torch.cuda.mem_get_info(self.starter.device)[0])
        calls = cross_check_calls(claim, read + 2 * written, free)
        found = CrossCheck(0, (), (), why="the device's memory has no room for the arguments of one more call")
        if calls:
            try:
                found = self._row(process, calls, capture=self.places > 1)
            except CandidateError as error:
                if error.error["type"] != "OutOfMemoryError":
                    raise
        self.results.cross_check = found
        self.rows.add(process, found)

    def _cross_check_baseline(self, baselines: Sequence[TimedProcess]) -> None:
        """The first baseline by the same clock in the same way, when the candidate's processes have gone."""
        found = self.results.cross_check
        if baselines and found.walls_us:
            if self.places == 1:
                baselines[0].kernel.release()
            try:
                self.rows.add_baseline(baselines[0], self._row(baselines[0], found.calls, capture=found.captured))
            except (*FAILURES, KoptError, torch.OutOfMemoryError) as error:
                said = " ".join(str(error).split())[:500]
                self.notes.append(f"{baselines[0].name} was not timed by kopt's own clock: {said}")

    def _row(self, process: TimedProcess, calls: int, *, capture: bool) -> CrossCheck:
        blamed = process.is_candidate
        return cross_check(
            process.kernel, self.cases, self.dims, self._fresh(), calls, self.draw, blamed=blamed, capture=capture
        )

    def _fresh(self) -> Iterator[Case]:
        while True:
            yield self._case()

    def _timing(self, peak: CitedPeak | None, *, ceiling: bool) -> WorkloadTiming:
        case, results = self._given(), self.results
        read, written = traffic(self.cases, case)
        if ceiling:
            try:
                with closing(RateWorker(self.starter.baselines, self.starter.device)) as worker:
                    results.ceiling = worker.floor(read, written)
            except KoptError as error:
                self.notes.append(f"the floor was not measured: {error.message}")
        results.read_bytes, results.written_bytes = read, written
        results.fixed = self.cases.fixed and not self.cases.jitters
        results.notes = (*self.notes, *self.rows.notes)
        results.seconds = time.monotonic() - self.began
        results.back_to_back = self.rows.found
        physics = partial(check, self.cases, case, peak, draw=self.draw)
        found = workload_timing(results, self.starter.request, physics)
        for id, severity, evidence in found.hazards:
            self.cases.found.hazard(id, severity, evidence)
        return found.timing
