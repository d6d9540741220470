"""The correctness protocol: call the candidate on every case and compare every output with the reference."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.correctness import library_use as library
from evaluator.correctness.candidate import Called, CandidateError, KernelProcess, failed_at, same_bits
from evaluator.correctness.cases import GIVEN, Case, Cases
from evaluator.correctness.degenerate_task import TaskExaminer
from evaluator.correctness.distributions import DISTRIBUTIONS
from evaluator.correctness.reference import LARGE, Values
from evaluator.correctness.tolerance import Comparison, compare, looser
from evaluator.correctness.variations.cases import Variation, Variations
from evaluator.correctness.variations.other_ways import OtherWays
from evaluator.receipt.findings import Findings, Trial
from evaluator.receipt.plan import Plan, SeedSchedule
from evaluator.scan.hazards import Severity
from evaluator.worker.memory import tensors as memory
from kbs.common.errors import UsageError

STATE_CALLS = 3
"""Calls in a row where calls change the weights: what the first leaves, the second reads."""
ROW_CALLS = (1500, 4000)
"""Between how many calls the seed chooses, of a row whose results nobody reads."""
_ROW_LEAST = 300
"""Fewer of them are no row."""
ROW_SECONDS = 1.5
_REALS = ("kappa", "rms_ratio", "max_ratio", "expected", "got")
"""What a trial keeps of a comparison, NaN where nothing could be compared."""


@dataclass(eq=False)
class Protocol:
    """One workload: the candidate called on every case of it."""

    plan: Plan
    dims: dict[str, int]
    seeds: SeedSchedule
    cases: Cases
    task: TaskExaminer
    allow_library: bool
    index: int
    """Number of the next call."""

    def __post_init__(self) -> None:
        self.found: Findings = self.cases.found
        self.firsts: dict[str, torch.Tensor] = {}
        self.own = True
        """Whether in each call on the given inputs that gave results a kernel of the candidate's own may have run."""
        self.plain = False
        """Whether some of the next calls are made as a user makes them: not the first, and none where one raised."""
        self.draw = random.Random(self.seeds.seed("order", self.index))
        self.profiled_at = self.index + self.draw.randrange(1, len(self.plan.distributions) + self.plan.repeats)
        """After which call the profiler looks on: one that nobody knows before."""

    def run(self, first: Case, kernel: KernelProcess | None) -> None:
        """All distributions, in an order drawn at random; the first case three times, at the start, between, and last.

        Without a kernel, because it did not load, the task alone is examined.
        """
        self._examine(first)
        others = [d for d in DISTRIBUTIONS if d.name in self.plan.distributions and d.name != "given"]
        self.draw.shuffle(others)
        repeats = iter(range(self.plan.repeats))
        self._try(kernel, first, next(repeats))
        self.plain = True
        for n, distribution in enumerate(others):
            case = self.cases.case(distribution, 10 + n)
            if case is not None:
                self._examine(case)
                self._try(kernel, case, 0)
            case = None  # a large problem has no memory for the next beside it
            if n == len(others) // 2 and (repeat := next(repeats, None)) is not None:
                self._try(kernel, first, repeat)
        fresh = self.cases.case(GIVEN, 2)
        if fresh is not None:
            self._try(kernel, fresh, 0, label="given, drawn again")
        for repeat in repeats:
            self._try(kernel, first, repeat)
        fresh = None
        if kernel is not None and self.plan.name == "verdict" and self.sound():
            self._vary(kernel, first)
            if self.sound():
                self._row(kernel, first)
        self._try(kernel, first, self.plan.repeats, watch=True)
        if kernel is not None and self.found.failure is None:
            OtherWays(self, kernel, first).run()
            if not self.cases.own_reference:
                own = self.own or not self.sound() or self.task.result().refused  # what is wrong, no library computed
                self.found.hazards += library.judge(
                    self.found.operations, self.found.kernels, own=own, allowed=self.allow_library
                )

    def once(self, first: Case, kernel: KernelProcess) -> None:
        """One call on the given inputs, and nothing else."""
        self._try(kernel, first, 0)

    def sound(self) -> bool:
        """Whether every call so far was right."""
        return self.found.failure is None and all(trial.passed for trial in self.found.trials)

    def _vary(self, kernel: KernelProcess, first: Case) -> None:
        """Variations of the given inputs, right after a call on these, until one is wrong; then what a call leaves in
        the weights, and what a model that changes them gives in the other mode."""
        generator = torch.Generator(self.cases.reference.device).manual_seed(self.seeds.seed("vary", self.index))
        made = Variations(self.cases, first, self.dims, self.draw, generator)
        for variation in made:
            self._try_variation(kernel, variation)
            if not self.sound():
                return
        if self.cases.state:
            self._state(kernel, first)
            if self.sound():
                self._evaluating(kernel, first)

    def _row(self, kernel: KernelProcess, first: Case) -> None:
        """Many calls that nobody looks at, then one on fresh inputs: what counts its calls is wrong there."""
        state = bool(self.cases.state)
        if self.cases.bytes > LARGE or (state and self.cases.reference.device.type == "cuda"):
            return
        calls = self.draw.randrange(*ROW_CALLS)
        try:
            made, stopped, reused = kernel.row(first.values, self.cases.shape, calls, ROW_SECONDS, state=state)
        except CandidateError as error:
            self._raised(kernel, error, first)
            return
        if made < _ROW_LEAST:
            why = stopped or f"there was no time for more in {ROW_SECONDS:g} s"
            self.found.skipped("a long row of calls", f"{made} calls of {calls}: {why}")
        if reused and not self.cases.reuses:
            said = "the memory of the first result was returned again, though that was still held"
            self.found.hazard("result_reused", Severity.NOTE, said)
            wrong_trial(self.cases, self.dims, "given, a row of calls", 0, None, said, moved=False)
            self.index += 1
            return
        fresh = self.cases.case(GIVEN, 3)
        if fresh is not None:
            self._try(kernel, fresh, 0, label="given, after a row of calls")

    def _try_variation(self, kernel: KernelProcess, variation: Variation) -> None:
        case, label = variation.case, variation.case.distribution.name
        try:
            if variation.weights is not None:
                kernel.set_weights(variation.weights, kernel.weight_names)
            try:
                called = self.call(kernel, case, weights=variation.weights)
            finally:  # the calls that follow are held against the first weights, also where this one raised
                if variation.weights is not None:
                    kernel.set_weights(self.cases.weights, kernel.weight_names)
        except CandidateError as error:
            if variation.note:
                self.found.hazard(variation.note, Severity.NOTE, f"{label}: it raised: {error}")
                if variation.only and variation.only not in self.found.only_with:
                    self.found.only_with.append(variation.only)
            else:
                self._raised(kernel, error, case)
            return
        note_behaviour(called, self.found)
        problems = problems_of(called, case, self.cases, self.found)
        compared = [None if n in problems else self.cases.compare(case, n, o) for n, o in enumerate(called.outputs)]
        wrong = [n for n, found in enumerate(compared) if found is None or not found.passed]
        if wrong and not variation.judged:
            detail = problems.get(wrong[0]) or getattr(compared[wrong[0]], "detail", "")
            self.found.hazard(variation.note, Severity.NOTE, f"{label}: {self.cases.shape.names[wrong[0]]}: {detail}")
            return
        for n, found in enumerate(compared):
            self._record(label, 0, n, called, found, problems.get(n, ""))

    def _state(self, kernel: KernelProcess, first: Case) -> None:
        """The weights that a call of the reference changes, after one call of each from the same weights, and after
        further calls on other inputs, each from what the call before left; the results of these too."""
        case: Case | None = first
        weights = self.cases.weights
        kernel.set_weights(weights, kernel.weight_names)
        for call in range(STATE_CALLS):
            label = f"given, call {call + 1} in a row" if call else "given"
            if call:
                case = self.cases.continued(label, weights, first, self.seeds.seed("state", 8 * self.index + call))
            if case is None:
                return
            weights = self.cases.state_after(case.values, weights)
            try:
                called = kernel.call(case.values, self.cases.shape)
                got = kernel.state(self.cases.weights)
            except CandidateError as error:
                self._raised(kernel, error, case)
                return
            if call:
                problems = problems_of(called, case, self.cases, self.found)
                for n, output in enumerate(called.outputs):
                    compared = None if n in problems else self.cases.compare(case, n, output)
                    name = self.cases.shape.names[n]
                    self._append(label, 0, name, called, compared, problems.get(n, ""), None)
            for n in self.cases.state:
                right = weights.tensors[n]
                compared = compare(got[n], right, None, stretched=True, exact=False, declared=self.cases.tolerance)
                name = self.cases.weights.specs[n]["name"]
                after = f"{label}, state after it" if call else "given, state after the call"
                self._append(after, 0, name, called, compared, "", None)
            self.index += 1
            if not self.sound():
                return

    def _evaluating(self, kernel: KernelProcess, first: Case) -> None:
        """One call of a model in the mode that `eval()` leaves, which reads the weights that others change."""
        label = "given, in eval mode"
        case = self.cases.varied(label, first.values, first, evaluates=True)
        if case is None:
            return
        kernel.set_weights(self.cases.weights, kernel.weight_names)
        try:
            called = kernel.call(case.values, self.cases.shape, evaluates=True)
        except CandidateError as error:
            self.found.skipped("eval mode", f"the candidate raises: {error}")
            return
        self.judge(label, called, case)

    def judge(self, label: str, called: Called, case: Case, repeat: int = 0) -> None:
        """Compare what a call gave, and write it down."""
        problems = problems_of(called, case, self.cases, self.found)
        for n, output in enumerate(called.outputs):
            compared = None if n in problems else self.cases.compare(case, n, output)
            self._record(label, repeat, n, called, compared, problems.get(n, ""))

    def is_right(self, called: Called, case: Case) -> bool:
        """Whether all that a call gave is right; nothing is written down."""
        return not problems_of(called, case, self.cases, Findings()) and all(
            self.cases.compare(case, n, output).passed for n, output in enumerate(called.outputs)
        )

    def call(self, kernel: KernelProcess, case: Case, *, weights: Values | None = None, **how: Any) -> Called:
        """One call; where calls change the weights, from the weights that were chosen.

        About half of the calls, drawn at random, are made as a user makes them, see `KernelProcess.call`. One that
        raises is made again as the others are: who computes no gradients may ask for them to be off.
        """
        chosen = weights if weights is not None else self.cases.weights
        how["keep"] = self.cases.bytes <= LARGE
        plain = self.plain and self.cases.bytes <= LARGE and self.draw.random() < 0.5
        if self.cases.state:
            kernel.set_weights(chosen, kernel.weight_names)
        try:
            evaluates = plain and self.cases.same_evaluating
            return kernel.call(case.values, self.cases.shape, plain=plain, evaluates=evaluates, **how)
        except CandidateError as error:
            if not plain:
                raise
            if self.cases.state:
                kernel.set_weights(chosen, kernel.weight_names)
            called = kernel.call(case.values, self.cases.shape, **how)
            self.plain = False
            self.found.skipped("calls with gradients enabled", f"the candidate raises: {error}")
            return called

    def _examine(self, case: Case) -> None:
        inputs = [t for n, t in enumerate(case.values.tensors) if n not in self.cases.shape.filled]
        stretched = case.distribution.stretched
        self.task.add(inputs, case.reference, case.native, stretched=stretched, exact=case.exact)

    def _try(
        self, kernel: KernelProcess | None, case: Case, repeat: int, *, watch: bool = False, label: str = ""
    ) -> None:
        if kernel is None or self.found.failure is not None:
            return
        if self.cases.bytes > LARGE and self.cases.reference.device.type == "cuda":
            torch.cuda.empty_cache()  # the candidate's process needs memory too
        try:
            late = self.cases.reference.device.type == "cuda" and repeat == self.plan.repeats - 1
            watched = not late and (watch or self.draw.random() < 0.5)  # no call is known to be unwatched
            called = self.call(kernel, case, watch=watched, late=late)
        except CandidateError as error:
            self._raised(kernel, error, case)
            return
        note_behaviour(called, self.found)
        self.judge(label or case.distribution.name, called, case, repeat)
        if watched:
            total = sum(t.nbytes for t in (*case.values.tensors, *called.outputs))
            seen = library.operations(called.reply.get("operators", []), total)
            self.found.operations = max(self.found.operations, seen, key=lambda found: sum(o.share for o in found))
        if case.distribution is GIVEN and self.computed(called):
            self.own = self.own and bool(called.reply.get("own", True))
        if self.profiled_at == self.index:
            self._kernels(kernel, case)
        if self.cases.tolerance is not None:
            for exactly, own in zip(case.reference, case.native, strict=True):
                if own.is_floating_point():
                    before = bool(self.found.tolerance_looser)
                    self.found.tolerance_looser = looser(self.cases.tolerance, exactly, own) or before

    def computed(self, called: Called) -> bool:
        """Whether a call had anything to write: not where all is empty, or lies in the memory of an input."""
        own = [spec["alias"] is None for spec in self.cases.shape.returned] + [True] * len(self.cases.shape.written)
        return any(output.numel() > 0 for output, new in zip(called.outputs, own, strict=True) if new)

    def _raised(self, kernel: KernelProcess, error: CandidateError, case: Case) -> None:
        kind = error.error["type"]
        if kind == "MissingError" and error.error["usage"]:
            raise UsageError(error.error["message"], code="dims_do_not_fit", hint="Check --dims and setup.") from error
        if kind in ("SystemExit", "KeyboardInterrupt"):
            self.found.hazard("exits_early", Severity.REJECT, f"{kind} raised in place of a result")
        compiled = "torch/_dynamo/eval_frame.py" in error.error["traceback"]
        if compiled and not self.allow_library and not self.cases.own_reference:
            self.found.hazard("library_call", Severity.REJECT, "torch.compile, which raised while it compiled or ran")
        own = f"{kernel.module}."
        lines = [line.strip() for line in error.error["traceback"].splitlines() if own in line]
        where = [line.replace(own, "candidate.") for line in lines[-1:]]
        stage, said = failed_at(error)
        words = f"{said} ({', '.join(where)})" if where else said
        self.found.failure = (stage, f"on {case.distribution.name} inputs: {words}"[:2000])

    def _record(
        self, name: str, repeat: int, n: int, called: Called, compared: Comparison | None, problem: str
    ) -> None:
        key = f"{name} {n}"
        bitwise = None
        if not problem:
            bitwise = same_bits(called.outputs[n], self.firsts[key]) if key in self.firsts else None
            if bitwise is False:
                said = f"{self.cases.shape.names[n]}: repeated calls on the same inputs differ in their bits"
                self.found.hazard("nondeterministic", Severity.NOTE, said)
            if name == GIVEN.name:  # nothing else is called twice
                self.firsts.setdefault(key, called.outputs[n])
        self._append(name, repeat, self.cases.shape.names[n], called, compared, problem, bitwise)
        if n == len(called.outputs) - 1:
            self.index += 1

    def _append(
        self,
        name: str,
        repeat: int,
        output: str,
        called: Called,
        compared: Comparison | None,
        problem: str,
        bitwise: bool | None,
    ) -> None:
        self.found.trials.append(
            Trial(
                index=self.index,
                dims=self.dims,
                distribution=name,
                repeat=repeat,
                memory="new" if called.moved else "same",
                output=output,
                passed=not problem and compared is not None and compared.passed,
                **_figures(compared),
                bitwise=bitwise,
                detail=(problem or (compared.detail if compared else "")).replace("\n", " ")[:500],
                seconds=called.seconds,
            )
        )

    def _kernels(self, kernel: KernelProcess, case: Case) -> None:
        """Which device kernels run, on a GPU."""
        if self.cases.reference.device.type == "cuda" and self.plan.name == "verdict":
            try:
                self.found.kernels = library.device_kernels(kernel.kernels(case.values))
            except CandidateError as error:
                self.found.skipped("device kernels", f"the profiler did not run: {error}")


def wrong_trial(
    cases: Cases, dims: dict[str, int], what: str, n: int, compared: Comparison | None, problem: str, *, moved: bool
) -> Trial:
    """Write down that output `n` of a call beside the protocol's own was wrong; `what` says which call."""
    detail = problem or (compared.detail if compared else "") or "it is outside its bound"
    found = Trial(
        index=1 + max((trial.index for trial in cases.found.trials), default=-1),
        dims=dims,
        distribution=what,
        repeat=0,
        memory="new" if moved else "same",
        output=cases.shape.names[n],
        passed=False,
        **_figures(compared),
        bitwise=None,
        detail=detail.replace("\n", " ")[:500],
        seconds=0.0,
    )
    cases.found.trials.append(found)
    return found


def _figures(compared: Comparison | None) -> dict[str, Any]:
    """What a trial keeps of a comparison; None: there was nothing to compare."""
    if compared is None:
        rule = "the result has the reference's type, shape and place"
        return {"rule": rule, "worst": -1, **dict.fromkeys(_REALS, math.nan)}
    return {name: getattr(compared, name) for name in ("rule", "worst", *_REALS)}


def note_behaviour(called: Called, found: Findings) -> None:
    """Hazards in what a call left behind, whatever it computed."""
    reply = called.reply
    if reply.get("blinded"):
        found.hazard("hides_operations", Severity.REJECT, "the observer of operators was taken away during a call")
    found.behaviour(reply)
    if reply.get("threads"):
        found.hazard("threads_left", Severity.NOTE, "a thread was still running when the call had returned")
    if reply.get("processes"):
        found.hazard("processes_left", Severity.NOTE, "a process was still running when the call had returned")
    if called.guards:
        found.hazard("guard_overwritten", Severity.NOTE, f"memory beside {called.guards[0]} was written")
    if called.changed:
        found.hazard("input_changed", Severity.NOTE, f"the input {called.changed[0]} was written")


def problems_of(called: Called, case: Case, cases: Cases, found: Findings) -> dict[int, str]:
    """Output number → what is wrong with it before any value is looked at: type, shape, place, what was not written,
    what was written that nobody may, and what stands beside the tensors. Hazards go to `found`."""
    problems = _returned(called, case, cases, found)
    for n, name in enumerate(cases.shape.names):
        if n in problems:
            continue
        if called.unwritten[n]:
            problems[n] = f"{called.unwritten[n]} elements were never written"
            found.hazard("output_unwritten", Severity.NOTE, f"{name}: {problems[n]}")
        elif called.guards:
            problems[n] = f"memory beside {called.guards[0]} was written"
        elif called.changed:
            problems[n] = f"the input {called.changed[0]} was changed"
    return problems


def _returned(called: Called, case: Case, cases: Cases, found: Findings) -> dict[int, str]:
    """Output number → what is wrong with what the candidate returned for it."""
    problems: dict[int, str] = {}
    wanted = cases.shape.returned
    if called.reply["misbuilt"] or len(called.returned) != len(wanted):
        return dict.fromkeys(range(len(wanted)), called.reply["misbuilt"] or "not all results were returned")
    if called.reply["reused"] and not cases.reuses:
        said = "the result of the call before changed during this call"
        found.hazard("result_reused", Severity.NOTE, said)
        return dict.fromkeys(range(len(wanted)), said)
    others = called.reply["others"]
    if wanted and case.others and others not in case.others:
        pairs = zip(others, case.others[0], strict=False)
        got, right = next((pair for pair in pairs if pair[0] != pair[1]), ({}, {}))
        return dict.fromkeys(range(len(wanted)), f"{_told(got)} was returned beside the tensors, not {_told(right)}")
    for n, (spec, entry) in enumerate(zip(wanted, called.returned, strict=True)):
        if not entry["exact"]:
            problems[n] = f"a {entry['type']} was returned, not a torch.Tensor"
            if "ensor" in entry["type"]:
                found.hazard("output_type", Severity.REJECT, problems[n])
        elif (entry["shape"], entry["dtype"]) != (spec["shape"], spec["dtype"]):
            problems[n] = f"shape {entry['shape']} {entry['dtype']}, wanted {spec['shape']} {spec['dtype']}"
        elif entry["device"] != cases.reference.device.type:
            problems[n] = f"the result lies on {entry['device']}"
        elif entry["alias"] is not None and spec["alias"] is None:
            problems[n] = "the result lies in the memory of an input"
            found.hazard("output_aliases_input", Severity.REJECT, problems[n])
        elif memory.overlaps(entry) and not memory.overlaps(spec):
            problems[n] = f"elements of the result share memory: strides {entry['stride']}"
        elif entry["within"] is not None and spec.get("within") is None:
            problems[n] = f"it lies in the memory of {cases.shape.names[entry['within']]}, the reference's has its own"
        elif cases.moves[n : n + 1] == [True] and spec["alias"] is None and not _lies_as(entry, spec):
            problems[n] = f"its strides are {entry['stride']}, not {spec['stride']}: to lay elements out is the task"
    return problems


def _lies_as(entry: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Whether two tensors of one shape have the same strides wherever they matter."""
    steps = zip(entry["shape"], entry["stride"] or (), spec["stride"] or (), strict=False)
    return all(one == other or size == 1 for size, one, other in steps)


def _told(leaf: dict[str, Any]) -> str:
    """What stands in a result besides tensors, in words."""
    return repr(leaf["scalar"])[:100] if "scalar" in leaf else str(leaf.get("torch", f"a {leaf.get('type', 'value')}"))
