"""The correctness protocol: the same problem on many inputs, the candidate's every output held against the oracle."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator import library, weights
from evaluator.contender import Called, CandidateError, Contender, fill
from evaluator.distributions import DISTRIBUTIONS, Distribution, draw, jitter, must_be_exact
from evaluator.findings import DeviceKernel, LibraryOperation, NotTried, Trial
from evaluator.hazards import Hazard, Severity
from evaluator.oracle import Oracle, Results, Values
from evaluator.plan import Plan, SeedSchedule
from evaluator.taskcheck import TaskExaminer
from evaluator.tolerance import Comparison, compare, looser
from kbs.errors import KoptError, UsageError

GIVEN = DISTRIBUTIONS[0]


@dataclass
class Case:
    """One draw of inputs and what the reference makes of it."""

    distribution: Distribution
    values: Values
    oracle: list[torch.Tensor]
    """Float64 results; the reference's own where it cannot run in float64."""
    native: list[torch.Tensor]
    """PyTorch's own results at the problem's precision, TF32 off."""
    exact: list[bool]
    """For each output, whether no rounding is allowed."""

    @property
    def stretched(self) -> bool:
        """Whether the wider constant holds."""
        return self.distribution.stretched


@dataclass
class Shape:
    """What the reference's first run told of the problem."""

    returned: list[dict[str, Any]]
    """Shapes of what is returned, with the argument that each shares memory with."""
    written: list[int]
    """Numbers of the arguments that are results."""
    filled: list[int]
    """Those of them whose former content does not count."""
    names: list[str]
    """Names of the outputs: returned ones, then written ones."""
    operators: list[dict[str, Any]]


@dataclass
class Findings:
    """All that the protocol found on one workload."""

    trials: list[Trial] = field(default_factory=list)
    not_tried: list[NotTried] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    operations: list[LibraryOperation] = field(default_factory=list)
    kernels: list[DeviceKernel] = field(default_factory=list)
    failure: tuple[str, str] | None = None
    """(stage, words) where the candidate did not load or raised."""
    tolerance_looser: bool | None = None

    def hazard(self, id: str, severity: Severity, evidence: str) -> None:
        """Add a hazard, once."""
        if all(h.id != id or h.evidence != evidence for h in self.hazards):
            self.hazards.append(Hazard(id=id, severity=severity, evidence=evidence[:1000]))


class Protocol:
    """One workload: the oracle asked, the candidate called, every result compared."""

    def __init__(
        self,
        plan: Plan,
        dims: dict[str, int],
        seeds: SeedSchedule,
        oracle: Oracle,
        task: TaskExaminer,
        findings: Findings,
        *,
        tolerance: tuple[float, float] | None,
        own_oracle: bool,
        allow_library: bool,
        first_index: int,
    ) -> None:
        self.plan = plan
        self.dims = dims
        self.seeds = seeds
        self.oracle = oracle
        self.task = task
        self.found = findings
        self.tolerance = tolerance
        self.own_oracle = own_oracle
        self.allow_library = allow_library
        self.index = first_index
        self.generator = torch.Generator().manual_seed(seeds.seed("draw", first_index))
        self.draw = random.Random(seeds.seed("order", first_index))
        self.fixed = False
        self.jitters = True
        self.init = Values({"list": []}, [])
        self.weights = Values({}, [])
        self.shape = Shape([], [], [], [], [])
        self.firsts: dict[str, torch.Tensor] = {}
        self.profiled_at = first_index + self.draw.randrange(1, len(plan.distributions) + plan.repeats)
        """After which call the profiler looks on: one that nobody knows before."""

    # --- the problem ------------------------------------------------------------------------------------------------

    def prepare(self, *, kernelbench: bool, outputs: Any) -> Case:
        """Learn the problem's shape from the reference; the first case. `outputs` turns what the reference wrote, and
        what it names itself, into the names that count."""
        if kernelbench:
            seed = self.seeds.seed("weights", 0)
            self.init, constructed = self.oracle.build(seed)
            self.weights = weights.randomized(constructed, self.generator)
            if self.weights.tensors:
                self.oracle.set_weights(self.weights)
        first, named = self.oracle.inputs(self.seeds.seed("inputs", 0))
        second, _ = self.oracle.inputs(self.seeds.seed("inputs", 1))
        self.fixed = bool(first.tensors) and all(
            a.shape == b.shape and torch.equal(a, b) for a, b in zip(first.tensors, second.tensors, strict=True)
        )
        if self.fixed:
            self._try_jitter(first)
        values = self._fresh(first)
        result = self.oracle.run(values, "native", mutations=True, watch="operators")
        self.shape = self._shape(values, result, outputs(named, [first.specs[n]["name"] for n in result.mutated]))
        case = self._case(GIVEN, values)
        self._deterministic(case)
        return case

    def _fresh(self, values: Values) -> Values:
        """Inputs that cannot be drawn anew are moved a little, which no remembered result survives."""
        if not self.fixed or not self.jitters:
            return values
        return values.with_tensors([jitter(t, self.generator) for t in values.tensors])

    def _try_jitter(self, values: Values) -> None:
        """Whether the reference takes inputs that were moved a little; they stay as they are where it does not."""
        said = "every draw of the inputs is the same; floats are moved by up to 1/64 of themselves"
        if not any(t.is_floating_point() for t in values.tensors):
            self.jitters, said = (
                False,
                "every draw of the inputs is the same, and they hold no float that could be moved",
            )
        else:
            try:
                result = self.oracle.run(self._fresh(values), "native")
                broken = any(t.is_floating_point() and bool(t.isnan().any()) for t in result.tensors)
            except UsageError:
                broken = True
            if broken:
                self.jitters, said = False, "every draw of the inputs is the same, and the reference takes no others"
        self.found.hazard("fixed_inputs", Severity.NOTE, said)

    def _shape(self, values: Values, result: Results, named: Sequence[str]) -> Shape:
        names = [spec["name"] for spec in values.specs]
        missing = [name for name in named if name not in names]
        if missing:
            raise UsageError(
                f"the output {missing[0]} is no tensor among the inputs {', '.join(names)}",
                code="outputs_unknown",
                hint="Outputs are arguments that setup makes and the kernel writes.",
            )
        written = sorted({names.index(name) for name in named} | set(result.mutated))
        if not written and not result.specs:
            raise UsageError(
                "the reference returns nothing and writes nothing",
                code="reference_form",
                hint="Return a tensor, or name the outputs in setup or with --outputs.",
            )
        filled = self._filled(values, written, result) if named else []
        returned_names = [f"result {n}" if len(result.specs) > 1 else "result" for n in range(len(result.specs))]
        return Shape(result.specs, written, filled, [*returned_names, *(names[n] for n in written)], result.operators)

    def _filled(self, values: Values, written: list[int], result: Results) -> list[int]:
        """The written arguments that the reference does not read: filled beforehand, its results stay the same."""
        plain = self.oracle.run(values, "native", written).tensors[len(result.specs) :]
        blank = [t.clone() for t in values.tensors]
        for n in written:
            fill(blank[n], self.draw)
        again = self.oracle.run(values.with_tensors(blank), "native", written).tensors[len(result.specs) :]
        return [n for n, a, b in zip(written, plain, again, strict=True) if _same(a, b)]

    def _case(self, distribution: Distribution, values: Values) -> Case:
        native = self.oracle.run(values, "native", self.shape.written).tensors
        exactly = native
        if not self.own_oracle:
            try:
                exactly = self.oracle.run(values, "double", self.shape.written).tensors
            except UsageError:  # code that names float32 itself
                self._not_tried("float64 oracle", "the reference does not run in float64; its own result is the oracle")
                exactly = native
            if [t.shape for t in exactly] != [t.shape for t in native]:
                exactly = native
        exact = [
            distribution.name == "binary" and must_be_exact(o, n, n.dtype) for o, n in zip(exactly, native, strict=True)
        ]
        return Case(distribution, values, exactly, native, exact)

    def _deterministic(self, case: Case) -> None:
        """A reference that disagrees with itself says nothing about anybody."""
        again = self.oracle.run(case.values, "native", self.shape.written).tensors
        for n, tensor in enumerate(again):
            if not _same(tensor, case.native[n]) and not self._compare(case, n, tensor).passed:
                raise UsageError(
                    "the reference gives different results for the same inputs",
                    code="reference_random",
                    hint="Take random numbers out of it, such as dropout, or pass them in as inputs.",
                )

    def case(self, distribution: Distribution, index: int) -> Case | None:
        """Inputs of another distribution, or None with the reason on record."""
        values, _ = self.oracle.inputs(self.seeds.seed("inputs", index))
        values = self._fresh(values)
        if distribution.name != "given":
            outputs = set(self.shape.filled)
            values = values.with_tensors(
                [t if n in outputs else draw(distribution, t, self.generator) for n, t in enumerate(values.tensors)]
            )
            if not any(t.is_floating_point() for n, t in enumerate(values.tensors) if n not in outputs):
                self._not_tried(distribution.name, "no input is a float tensor")
                return None
        try:
            case = self._case(distribution, values)
        except KoptError as error:
            if distribution.name == "given":
                raise
            self._not_tried(distribution.name, f"the reference does not take it: {error.message}")
            return None
        for o, n in zip(case.oracle, case.native, strict=True):
            if n.is_floating_point() and distribution.name != "given":
                cast = o.to(n.dtype)
                if bool(cast.isnan().any()):
                    self._not_tried(distribution.name, "the reference gives NaN")
                    return None
                if not _same_classes(cast, n):
                    self._not_tried(distribution.name, "PyTorch's own result is not finite where the exact one is")
                    return None
        return case

    def _not_tried(self, what: str, why: str) -> None:
        if all(entry.what != what for entry in self.found.not_tried):
            self.found.not_tried.append(NotTried(what=what, why=why[:500].replace("\n", " ")))

    # --- the candidate ----------------------------------------------------------------------------------------------

    def run(self, first: Case, contender: Contender | None) -> None:
        """All distributions, in an order drawn at random; the first case three times, at the start, between, and last.

        Without a contender, because it did not load, the task alone is examined.
        """
        self._examine(first)
        others = [d for d in DISTRIBUTIONS if d.name in self.plan.distributions and d.name != "given"]
        self.draw.shuffle(others)
        repeats = iter(range(self.plan.repeats))
        self._try(contender, first, next(repeats))
        for n, distribution in enumerate(others):
            case = self.case(distribution, 10 + n)
            if case is not None:
                self._examine(case)
                self._try(contender, case, 0)
            if n == len(others) // 2:
                self._again(contender, first, repeats)
        fresh = self.case(GIVEN, 2)
        if fresh is not None:
            self._try(contender, fresh, 0, label="given, drawn again")
        for repeat in repeats:
            self._try(contender, first, repeat)
        self._try(contender, first, self.plan.repeats, watch=True)
        if contender is not None and self.found.failure is None:
            if not self.own_oracle:
                judged = library.judge(self.found.operations, self.found.kernels, allowed=self.allow_library)
                self.found.hazards += judged
            if self.plan.strided:
                self._strided(contender, first)

    def _watch(self, always: bool) -> str:
        """How operators are counted in this call: in half of the calls, drawn at random, so that none is known to be
        unwatched; in all threads, where the text can start some or hides what it does."""
        hidden = {"uses_threads", "dynamic_code", "loads_libraries", "hides_operations"}
        if not always and self.draw.random() < 0.5:
            return ""
        return "threads" if hidden & {hazard.id for hazard in self.found.hazards} else "operators"

    def _again(self, contender: Contender | None, case: Case, repeats: Any) -> None:
        repeat = next(repeats, None)
        if repeat is not None:
            self._try(contender, case, repeat)

    def _examine(self, case: Case) -> None:
        inputs = [t for n, t in enumerate(case.values.tensors) if n not in self.shape.filled]
        self.task.add(inputs, case.oracle, case.native, stretched=case.stretched, exact=case.exact)

    def _compare(self, case: Case, n: int, got: torch.Tensor) -> Comparison:
        native = None if self.own_oracle else case.native[n]
        return compare(
            got,
            case.oracle[n],
            native,
            stretched=case.stretched,
            exact=case.exact[n],
            declared=self.tolerance,
        )

    def _try(
        self, contender: Contender | None, case: Case, repeat: int, *, watch: bool = False, label: str = ""
    ) -> None:
        if contender is None or self.found.failure is not None:
            return
        shape = self.shape
        try:
            late = self.oracle.device.type == "cuda" and repeat == self.plan.repeats - 1
            how = "" if late else self._watch(watch)
            called = contender.call(case.values, shape.returned, shape.written, shape.filled, watch=how, late=late)
        except CandidateError as error:
            self._raised(error, case)
            return
        self._behaviour(called)
        problems = self._returned(called)
        name = label or case.distribution.name
        for n, output in enumerate(called.outputs):
            problem = problems.get(n, "")
            compared = None if problem else self._compare(case, n, output)
            self._record(name, repeat, n, called, compared, problem)
        if how:
            total = sum(t.nbytes for t in (*case.values.tensors, *called.outputs))
            seen = library.operations(called.reply.get("operators", []), total)
            self.found.operations = max(self.found.operations, seen, key=lambda found: sum(o.share for o in found))
        if self.profiled_at == self.index:
            self._kernels(contender, case)
        if self.tolerance is not None:
            for exactly, own in zip(case.oracle, case.native, strict=True):
                if own.is_floating_point():
                    self.found.tolerance_looser = looser(self.tolerance, exactly, own) or bool(
                        self.found.tolerance_looser
                    )

    def _raised(self, error: CandidateError, case: Case) -> None:
        kind = error.error["type"]
        if kind == "MissingError" and error.error["usage"]:
            raise UsageError(error.error["message"], code="dims_do_not_fit", hint="Check --dims and setup.") from error
        if kind in ("SystemExit", "KeyboardInterrupt"):
            self.found.hazard("exits_early", Severity.REJECT, f"{kind} raised in place of a result")
        where = [line.strip() for line in error.error["traceback"].splitlines() if "candidate" in line][-1:]
        words = f"{error} ({', '.join(where)})" if where else str(error)
        self.found.failure = (error.stage, f"on {case.distribution.name} inputs: {words}"[:2000])

    def _behaviour(self, called: Called) -> None:
        reply = called.reply
        for name in reply.get("patched", ())[:5]:
            self.found.hazard("patched", Severity.REJECT, f"{name} was replaced")
        if reply.get("threads"):
            self.found.hazard("threads_left", Severity.NOTE, "a thread was still running when the call had returned")
        if reply.get("processes"):
            self.found.hazard("processes_left", Severity.NOTE, "a process was still running when the call had returned")
        if called.guards:
            self.found.hazard("guard_overwritten", Severity.NOTE, f"memory beside {called.guards[0]} was written")
        if called.changed:
            self.found.hazard("input_changed", Severity.NOTE, f"the input {called.changed[0]} was written")

    def _returned(self, called: Called) -> dict[int, str]:
        """Output number → what is wrong with what the candidate returned for it, before any value is looked at."""
        problems: dict[int, str] = {}
        wanted = self.shape.returned
        everything = "" if len(called.returned) == len(wanted) else (
            f"{len(called.returned)} values were returned, the reference returns {len(wanted)}"
        )  # fmt: skip
        for n, spec in enumerate(wanted):
            entry = called.returned[n] if n < len(called.returned) else None
            if everything or entry is None:
                problems[n] = everything or "nothing was returned"
            elif not entry["exact"]:
                problems[n] = f"a {entry['type']} was returned, not a torch.Tensor"
                if "ensor" in entry["type"]:
                    self.found.hazard("output_type", Severity.REJECT, problems[n])
            elif (entry["shape"], entry["dtype"]) != (spec["shape"], spec["dtype"]):
                problems[n] = f"shape {entry['shape']} {entry['dtype']}, wanted {spec['shape']} {spec['dtype']}"
            elif entry["device"] != self.oracle.device.type:
                problems[n] = f"the result lies on {entry['device']}"
            elif entry["alias"] is not None and spec["alias"] is None:
                problems[n] = "the result lies in the memory of an input"
                self.found.hazard("output_aliases_input", Severity.REJECT, problems[n])
        return problems

    def _record(
        self, name: str, repeat: int, n: int, called: Called, compared: Comparison | None, problem: str
    ) -> None:
        if not problem and called.unwritten[n]:
            problem = f"{called.unwritten[n]} elements were never written"
            self.found.hazard("output_unwritten", Severity.NOTE, f"{self.shape.names[n]}: {problem}")
        if not problem and called.guards:
            problem = f"memory beside {called.guards[0]} was written"
        if not problem and called.changed:
            problem = f"the input {called.changed[0]} was changed"
        key = f"{name} {n}"
        bitwise = None
        if not problem:
            bitwise = _same(called.outputs[n], self.firsts[key]) if key in self.firsts else None
            if bitwise is False:
                said = f"{self.shape.names[n]}: repeated calls on the same inputs differ in their bits"
                self.found.hazard("nondeterministic", Severity.NOTE, said)
            self.firsts.setdefault(key, called.outputs[n])
        nan = math.nan
        self.found.trials.append(
            Trial(
                index=self.index,
                dims=self.dims,
                distribution=name,
                repeat=repeat,
                memory="new" if called.moved else "same",
                output=self.shape.names[n],
                passed=not problem and compared is not None and compared.passed,
                rule=compared.rule if compared else "the result has the reference's type, shape and place",
                kappa=compared.kappa if compared else nan,
                rms_ratio=compared.rms_ratio if compared else nan,
                max_ratio=compared.max_ratio if compared else nan,
                worst=compared.worst if compared else -1,
                expected=compared.expected if compared else nan,
                got=compared.got if compared else nan,
                bitwise=bitwise,
                detail=(problem or (compared.detail if compared else "")).replace("\n", " ")[:500],
                seconds=called.seconds,
            )
        )
        if n == len(called.outputs) - 1:
            self.index += 1

    def _kernels(self, contender: Contender, case: Case) -> None:
        """Which device kernels run, on a GPU."""
        if self.oracle.device.type == "cuda" and self.plan.name == "verdict":
            try:
                self.found.kernels = library.device_kernels(contender.kernels(case.values))
            except CandidateError as error:
                self._not_tried("device kernels", f"the profiler did not run: {error}")

    def _strided(self, contender: Contender, case: Case) -> None:
        """The same numbers in another layout. Many honest kernels ask for contiguous inputs: a failure is a note."""
        strides = [_transposed(t) for t in case.values.tensors]
        if self.shape.written or not any(strides):
            self._not_tried("strided inputs", "no input of two or more dimensions is only read")
            return
        shape = self.shape
        try:
            called = contender.call(case.values, shape.returned, [], [], strides=strides)
        except CandidateError as error:
            self.found.hazard("noncontiguous_inputs", Severity.NOTE, f"it raised: {error}")
            return
        wrong = self._returned(called) or any(
            not self._compare(case, n, output).passed for n, output in enumerate(called.outputs)
        )
        if wrong:
            self.found.hazard("noncontiguous_inputs", Severity.NOTE, "its result is wrong on them")


def _transposed(tensor: torch.Tensor) -> list[int] | None:
    """Strides of the same shape with its last two dimensions swapped in memory."""
    if tensor.dim() < 2 or tensor.shape[-1] < 2 or tensor.shape[-2] < 2:
        return None
    return list(tensor.transpose(-1, -2).contiguous().transpose(-1, -2).stride())


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a.contiguous().flatten().view(torch.uint8), b.contiguous().flatten().view(torch.uint8))


def _same_classes(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.isinf(), b.isinf())
