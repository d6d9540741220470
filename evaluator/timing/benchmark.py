"""The race for time: candidate and baselines in turns on the same fresh inputs, in processes that are started anew."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from evaluator.correctness.candidate import CandidateError
from evaluator.correctness.cases import Case, Cases
from evaluator.receipt import statistics as intervals
from evaluator.receipt.plan import BaselineChoice, SeedSchedule, TimingPlan
from evaluator.receipt.timing import Ceiling, CitedPeak, Physics, WorkloadTiming
from evaluator.sandbox.devices import crowded
from evaluator.timing import back_to_back
from evaluator.timing import clock_checks as witnesses
from evaluator.timing.audit import audit_turns, most_calls
from evaluator.timing.ceilings import RateWorker
from evaluator.timing.clock_checks import Audit
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.timing.processes import Starter
from evaluator.timing.results import Results, kept, quotients, workload_timing
from evaluator.timing.speed_of_light import check, traffic
from evaluator.timing.timed_process import FAILURES, Racer
from kbs.common.errors import KoptError

FIRST_CASE = 1000
"""Number of the first draw of inputs for timed turns; those before are for correctness."""
LEAST_BLOCKS = 4
"""Blocks of two pairs each in every restart, before anything is concluded."""
ALONE = 6
"""Turns of the first baseline in each restart while no candidate runs; as many before as after."""
SIGNAL_TURNS = 12
WATCHED = 5
"""Turns under the profiler."""
_CONTEXT_BYTES = 700 << 20
"""What a process takes of the device before it has any tensors: its context, PyTorch's kernels, the flush."""
_MEMORY_PART = 0.8


class Race:
    """One workload's times."""

    def __init__(
        self,
        starter: Starter,
        plan: TimingPlan,
        cases: Cases,
        dims: dict[str, int],
        seeds: SeedSchedule,
        clock: DeviceClock,
        index: int,
        *,
        candidate: str = "",
    ) -> None:
        """`index` is the number of the workload's first call. `candidate` names a baseline that runs in the
        candidate's place, to see how far the noise goes; empty: the candidate itself."""
        self.starter = starter
        self.plan = plan
        self.cases = cases
        self.dims = dims
        self.seeds = seeds
        self.clock = clock
        self.index = index
        self.pretender = candidate
        self.draw = random.Random(seeds.seed("race", index))
        self.numbers = itertools.count(FIRST_CASE + 100_000 * index)
        self.racers: list[list[Racer]] = []
        """By restart: the candidate's, then the baselines' that are still in the race."""
        self.failed: dict[str, str] = {}
        """Baselines that have no times, and why."""
        self.audit = Audit(0, (), (), why="no turn was made")
        self.rows = back_to_back.Rows(cases, starter.device, self._fresh(), self.draw)
        self.ceiling: Ceiling | None = None
        self.notes: list[str] = []
        self.places = 2
        """Sets of memory that a candidate's arguments are drawn from."""
        self.span_turns: list[dict[str, Any]] = []
        self.spans_why = ""
        """Why no turn was watched by the profiler."""
        self.first: Case | None = None
        self.began = 0.0
        self.turn_seconds = 0.0
        """Time of the turns that count, with the making of their inputs."""

    # --- the two plans ----------------------------------------------------------------------------------------------

    def verdict(self, peak: CitedPeak | None, *, floor: bool = True) -> WorkloadTiming:
        """Restarts, baselines, witnesses, and the floor where it is asked for.

        Raises `CandidateError`, `WorkerLostError` and `WrongResultError` for what the candidate did.
        """
        self._begin()
        assert self.first is not None  # `_begin` drew it
        restarts = list(range(self.plan.restarts))
        size = self._at_once(self.first)
        audited = self.draw.choice(restarts)
        for start in range(0, len(restarts), size):
            self._wave(restarts[start : start + size], audited)
        return self._timing(peak, ceiling=floor)

    def signal(self, peak: CitedPeak | None) -> WorkloadTiming:
        """A few turns in one fresh process, on a pool of inputs and some fresh ones. Raises as `verdict` does.

        Not in the process that was examined: torch.compile falls back to eager where operators were watched.
        """
        self._begin()
        (racer,) = self._start_candidates([0])
        try:
            self.racers = [[racer]]
            pool = [self._given(), self._case()]
            for n in range(SIGNAL_TURNS):
                racer.turn(self._case() if n == SIGNAL_TURNS // 2 else self.draw.choice(pool), n)
            self._audit(racer)
        finally:
            racer.contender.close()
        self.spans_why = "a signal takes no time for the profiler"
        return self._timing(peak, ceiling=False)

    def _begin(self) -> None:
        """Room in the device's memory, and from here on none that is freed: it is cleared then, at the cost of what is
        timed meanwhile."""
        self.began = time.monotonic()
        torch.cuda.empty_cache()
        if crowded(self.starter.device, self.cases.bytes):
            self.cases.save_memory()
            self.places = 1
            self.notes.append("timed turns were held against the reference's own precision, to save memory")
        self.cases.oracle.keeps = True
        self.first = self._case()

    # --- a wave of restarts -----------------------------------------------------------------------------------------

    def _at_once(self, case: Case) -> int:
        """How many restarts fit into the device's memory side by side. Raises `KoptError` where not one does."""
        torch.cuda.empty_cache()
        read, written = traffic(self.cases, case)
        both = (self.places * (read + written) + 2 * written) + (read + 3 * written) * len(self.plan.baselines)
        each = both + _CONTEXT_BYTES * (1 + len(self.plan.baselines))
        free = int(torch.cuda.mem_get_info(self.starter.device)[0] * _MEMORY_PART)
        if each > free:
            raise KoptError(
                f"timing needs about {each / 1e9:.1f} GB of the GPU's memory, and {free / 1e9:.1f} GB are free",
                code="out_of_memory",
                hint="Give smaller --dims, or fewer --baselines.",
            )
        return max(1, min(self.plan.restarts, free // each))

    def _wave(self, restarts: Sequence[int], audited: int) -> None:
        """Some restarts side by side, from their start to their end."""
        started: list[Racer] = []
        try:
            by_restart: dict[int, list[Racer]] = {restart: [] for restart in restarts}
            if self.pretender:
                candidates = self._start_same(by_restart)
                started += [*candidates, *(racer for racers in by_restart.values() for racer in racers)]
            else:
                for choice in self.plan.baselines:
                    for racer in self._start_baseline(choice, restarts):
                        started.append(racer)
                        by_restart[racer.restart].append(racer)
                self._alone(by_restart)
                candidates = self._start_candidates(restarts)
                started += candidates
            self.racers += [
                [one, *(racer for racer in by_restart[one.restart] if racer.name not in self.failed)]
                for one in candidates
            ]
            mine = self.racers[-len(candidates) :]
            self._blocks(mine, self.plan.seconds * len(restarts) / self.plan.restarts)
            for racers in mine:
                if racers[0].restart == audited and not self.pretender:
                    self._audit(racers[0])
                    self._watch(racers[0])
                    self.rows.call(racers[0], self.places)
            if not self.pretender:
                self._end(candidates)
                self._alone(by_restart)
                running = [one for one in by_restart.get(audited, []) if one.name not in self.failed]
                self.rows.call_baseline(running, self.places)
        finally:
            self._end(started)

    def _end(self, racers: Sequence[Racer]) -> None:
        """End processes and wait until they have let go of the device: what comes next is timed."""
        for racer in racers:
            racer.contender.close()
        for racer in racers if not self.pretender else ():
            racer.contender.worker.gone()

    def _start_baseline(self, choice: BaselineChoice, restarts: Sequence[int]) -> list[Racer]:
        """Its processes, warm; none where it does not run, and then it is out of the race."""
        if choice.name in self.failed:
            return []
        found: list[Racer] = []
        try:
            contenders = self._together(
                [
                    partial(self.starter.start_baseline, choice.how, self.cases, self.dims, self._number(1, restart))
                    for restart in restarts
                ]
            )
            for restart, contender in zip(restarts, contenders, strict=True):
                found.append(Racer(choice.name, restart, contender, self.cases, self.clock, self.dims))
            for racer in found:
                racer.warm(self._given())
        except FAILURES as error:
            for racer in found:
                racer.contender.close()
            self._drop(choice.name, error)
            return []
        return found

    def _drop(self, name: str, error: Exception) -> None:
        """A baseline that failed is out of the race, and no fault of the candidate's."""
        self.failed[name] = " ".join(str(error).split())[:500]
        for group in self.racers:
            group[:] = [racer for racer in group if racer.name != name]

    def _start_candidates(self, restarts: Sequence[int]) -> list[Racer]:
        """Spawned one after the other, loaded at once, warmed one after the other: autotuners need the device alone."""
        contenders = [self.starter.spawn_candidate(self._number(2, restart), self.places) for restart in restarts]
        try:
            self._together([partial(self.starter.load_candidate, one, self.cases, self.dims) for one in contenders])
        except BaseException:
            for contender in contenders:
                contender.close()
            raise
        racers = [
            Racer("candidate", restart, contender, self.cases, self.clock, self.dims)
            for restart, contender in zip(restarts, contenders, strict=True)
        ]
        try:
            for racer in racers:
                racer.warm(self._given())
        except BaseException:
            for racer in racers:
                racer.contender.close()
            raise
        return racers

    def _start_same(self, by_restart: dict[int, list[Racer]]) -> list[Racer]:
        """A baseline on both sides, all processes at once: those that stand in the candidate's place."""
        how = next(choice.how for choice in self.plan.baselines if choice.name == self.pretender)
        places = [(side, restart) for side in (1, 2) for restart in by_restart]
        jobs = [
            partial(self.starter.start_baseline, how, self.cases, self.dims, self._number(side, restart))
            for side, restart in places
        ]
        candidates: list[Racer] = []
        for (side, restart), contender in zip(places, self._together(jobs), strict=True):
            name = self.pretender if side == 1 else "candidate"
            racer = Racer(name, restart, contender, self.cases, self.clock, self.dims)
            racer.warm(self._given())
            (by_restart[restart] if side == 1 else candidates).append(racer)
        return candidates

    def _number(self, kind: int, restart: int) -> int:
        """Of a process among all of the evaluation's, from which the places of its arguments are drawn."""
        return kind * 1_000_000 + 1000 * self.index + restart

    @staticmethod
    def _together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do them at the same time; the first error is raised when all have ended."""
        with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as pool:
            pending = [pool.submit(job) for job in jobs]
        return [one.result() for one in pending]

    def _alone(self, by_restart: dict[int, list[Racer]]) -> None:
        """The first baseline's turns with no candidate about."""
        for racers in by_restart.values():
            for racer in [one for one in racers if one.name not in self.failed][:1]:
                try:
                    for _ in range(ALONE // 2):
                        racer.turn_alone(self._given())
                except FAILURES as error:
                    self._drop(racer.name, error)

    def _blocks(self, restarts: list[list[Racer]], seconds: float) -> None:
        """Blocks of two pairs, one restart after the other, until the interval is narrow or the time is over."""
        began = time.monotonic()
        until, look = began + seconds, LEAST_BLOCKS
        for block in itertools.count():
            for racers in restarts:
                order = list(racers)
                self.draw.shuffle(order)
                for pair, one in enumerate((order, order[::-1])):  # A B, then B A
                    case = self._case()
                    for racer in one:
                        self._turn(racer, case, 2 * block + pair)
            made = block + 1
            if made < LEAST_BLOCKS:
                continue
            over = time.monotonic() > until
            if not over and made == look:
                look, over = intervals.next_look(made), self._settled(restarts)
            if over:
                self.turn_seconds += time.monotonic() - began
                return

    def _turn(self, racer: Racer, case: Case, pair: int) -> None:
        """A turn that counts; a baseline that fails in it drops out."""
        if racer.name in self.failed:
            return
        try:
            racer.turn(case, pair)
        except FAILURES as error:
            if racer.is_candidate:
                raise
            self._drop(racer.name, error)

    def _settled(self, restarts: list[list[Racer]]) -> bool:
        """Whether the interval of the ratio to the first baseline, or of the candidate's own time, is narrow."""
        if len(restarts[0]) > 1:
            groups = [quotients(racers[1], racers[0], self.clock) for racers in restarts]
        else:
            groups = [kept(racers[0], self.clock) for racers in restarts]
        if any(len(group) < LEAST_BLOCKS for group in groups):
            return False
        found = intervals.interval(groups, self.seeds.seed("bootstrap", 0), resamples=400)
        times = [t for racers in restarts for t in racers[0].turns.us]
        return intervals.is_narrow(*found, median_us=statistics.median(times))

    # --- inputs -----------------------------------------------------------------------------------------------------

    def _case(self) -> Case:
        """Fresh inputs that no process has seen."""
        return self.cases.another(next(self.numbers))

    def _given(self) -> Case:
        """The first ones again, for turns that do not count."""
        if self.first is None:
            self.first = self._case()
        return self.first

    # --- witnesses and figures --------------------------------------------------------------------------------------

    def _audit(self, racer: Racer) -> None:
        if self.places == 1:
            self.audit = Audit(0, (), (), why="the device's memory has no room for several calls' arguments at once")
            return
        claim = statistics.median(racer.turns.us)
        read, written = traffic(self.cases, self._given())
        free = int(torch.cuda.mem_get_info(self.starter.device)[0])
        calls = witnesses.audit_calls(claim, read + 2 * written, free)
        self.audit = audit_turns(
            racer.contender, self.cases, self.dims, self._fresh(), min(calls, most_calls(self._given())), self.draw
        )

    def _watch(self, racer: Racer) -> None:
        """Turns under the profiler; their times count for nothing."""
        try:
            self.span_turns = [racer.spans(self._case()) for _ in range(WATCHED)]
        except CandidateError as error:  # the candidate's own errors came up before
            self.spans_why = f"the profiler did not run: {error}"[:500]

    def _fresh(self) -> Iterator[Case]:
        while True:
            yield self._case()

    def _timing(self, peak: CitedPeak | None, *, ceiling: bool) -> WorkloadTiming:
        case = self._given()
        read, written = traffic(self.cases, case)
        if ceiling:
            try:
                with RateWorker(self.starter.baselines, self.starter.device) as worker:
                    self.ceiling = worker.floor(read, written)
            except KoptError as error:
                self.notes.append(f"the floor was not measured: {error.message}")
        results = Results(
            dims=self.dims,
            plan=self.plan,
            restarts=self.racers,
            failed=self.failed,
            clock=self.clock,
            audit=self.audit,
            span_turns=self.span_turns,
            spans_why=self.spans_why,
            read_bytes=read,
            written_bytes=written,
            ceiling=self.ceiling,
            fixed=self.cases.fixed and not self.cases.jitters,
            notes=(*self.notes, *self.rows.notes),
            seed=self.seeds.seed("bootstrap", 1 + self.index),
            seconds=time.monotonic() - self.began,
            back_to_back=self.rows.found,
        )

        def physics(l2_bytes: int, fastest_us: float) -> Physics:
            return check(self.cases, case, peak, l2_bytes, fastest_us, self.draw)

        request = self.starter.request
        found = workload_timing(results, request, physics)
        for id, severity, evidence in found.hazards:
            self.cases.found.hazard(id, severity, evidence)
        return found.timing
