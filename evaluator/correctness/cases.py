"""Cases of a problem: inputs of every distribution, and what the reference makes of them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.correctness import weights
from evaluator.correctness.candidate import fill, same_bits
from evaluator.correctness.distributions import DISTRIBUTIONS, Distribution, draw, jitter, must_be_exact
from evaluator.correctness.reference import LARGE, ReferenceProcess, Results, Shape, Values
from evaluator.correctness.tolerance import Comparison, compare
from evaluator.receipt.findings import Findings
from evaluator.receipt.plan import SeedSchedule
from evaluator.scan.hazards import Severity
from evaluator.worker.memory.values import constants
from kbs.common.errors import KoptError, UsageError

GIVEN = DISTRIBUTIONS[0]
_FULL = 1.05
"""The sum above is one of peaks that do not all fall together: this part of the memory was seen to be enough."""
_GROWN = 16.0
"""Results of weights with other signs are smaller or larger by less: powers of a negative decay would grow for ever."""
_PIECE = 1 << 26
"""Elements of a result that are looked at together."""
SLOW_DRAW = 0.2
"""Seconds. Random numbers from the CPU take four for 10⁹."""


@dataclass
class Case:
    """One draw of inputs and what the reference makes of it."""

    distribution: Distribution
    values: Values
    reference: list[torch.Tensor]
    """Float64 results; the reference's own where it cannot run in float64."""
    native: list[torch.Tensor]
    """PyTorch's own results at the problem's precision, TF32 off."""
    exact: list[bool]
    """For each output, whether no rounding is allowed."""
    others: Sequence[list[dict[str, Any]]] = ()
    """What the reference returned besides tensors, at its own precision and at float64."""


@dataclass(eq=False)
class Cases:
    """The reference's side of one workload: it makes the cases, and says how results compare with its own."""

    seeds: SeedSchedule
    reference: ReferenceProcess
    found: Findings
    tolerance: tuple[float, float] | None
    own_reference: bool
    first_index: int
    texts: Sequence[str] = ()
    """Texts of the reference's source, which an argument that is one may be."""
    called: frozenset[str] = frozenset()
    """Names that the reference's source reads from others."""

    def __post_init__(self) -> None:
        seed = self.seeds.seed("draw", self.first_index)
        self.generator = torch.Generator(self.reference.device).manual_seed(seed)
        self.draw = random.Random(self.seeds.seed("fill", self.first_index))
        self.fixed = False
        self.jitters = True
        self.init = Values({"list": []}, [])
        self.weights = Values({}, [])
        self.shape = Shape()
        self.bytes = 0
        """Of the inputs and the results."""
        self.exact = True
        """Whether the oracle runs in float64."""
        self.state: list[int] = []
        """Numbers of the weights that a call of the reference changes, such as running statistics."""
        self.same_evaluating = False
        """Whether the reference is a model that gives the same in the mode that `eval()` leaves."""
        self.reuses = False
        """Whether the reference itself returns the same memory again."""
        self.moves: list[bool] = []
        """For each output, whether the reference computes nothing of it: it moves elements of its inputs."""
        self.varies: list[bool] = []
        """For each input, whether two draws of it differ."""
        self._slow: bool | None = None
        """Whether drawing inputs takes too long for each sample; None before the first."""
        self._drawn: Values | None = None
        self._steady: list[int] | None = None
        """Numbers of the float inputs that are the same in every draw and may be moved; None before they are known."""

    def prepare(self, *, kernelbench: bool, outputs: Any) -> Case:
        """Learn the problem's shape from the reference; the first case. `outputs` turns what the reference wrote, and
        what it names itself, into the names that count."""
        if kernelbench:
            seed = self.seeds.seed("weights", 0)
            generator = torch.Generator().manual_seed(seed)
            self.init, constructed = self.reference.build(seed)
            self.weights = weights.randomized(constructed, generator)
            if self.weights.tensors:
                self.reference.set_weights(self.weights)
        first, named = self.reference.inputs(self.seeds.seed("inputs", 0))
        second, _ = self.reference.inputs(self.seeds.seed("inputs", 1))
        self.varies = [
            a.shape != b.shape or not torch.equal(a, b) for a, b in zip(first.tensors, second.tensors, strict=True)
        ]
        self.fixed = bool(first.tensors) and not any(self.varies)
        if self.fixed:
            self._try_jitter(first)
        values = self._fresh(first)
        if kernelbench and sum(t.nbytes for t in self.weights.tensors) <= LARGE:
            self._sign(weights.signed(constructed, self.weights, generator), values)
        result = self.reference.run(values, "native", mutations=True)
        self._learn_state()
        self.shape = self._shape(values, result, outputs(named, [first.specs[n]["name"] for n in result.mutated]))
        self.bytes = sum(t.nbytes for t in (*values.tensors, *result.tensors))
        self._leave_out_float64(sum(t.nbytes for t in values.tensors), sum(t.nbytes for t in result.tensors))
        del result, first, second
        case = self._case(GIVEN, values)
        self.moves = [_is_moved(native, case.values.tensors) for native in case.native]
        self._deterministic(case)
        if kernelbench and not self.state and not self.own_reference:
            self._learn_mode(case)
        return case

    def _sign(self, changes: Iterable[dict[int, torch.Tensor]], values: Values) -> None:
        """Weights with other signs, where the reference's results stay numbers of the same size with them."""
        usual = None
        for change in changes:
            before = self.weights
            usual = usual or self._sizes(values)
            self.weights = before.with_tensors([change.get(n, t) for n, t in enumerate(before.tensors)])
            self.reference.set_weights(self.weights)
            pairs = zip(self._sizes(values), usual, strict=False)  # the first of one that raises is NaN
            if not all(b / _GROWN <= a <= b * _GROWN for a, b in pairs):
                self.weights = before
            self.reference.set_weights(self.weights)

    def _sizes(self, values: Values) -> list[float]:
        """The norm of each result of floats, also in the mode that `eval()` leaves, which alone may read a running
        variance; NaN where the reference raises."""
        try:
            modes = (False, True)
            results = [t for mode in modes for t in self.reference.run(values, "native", evaluates=mode).tensors]
        except UsageError:
            return [math.nan]
        return [float(torch.linalg.vector_norm(t.double())) for t in results if t.is_floating_point()] or [0.0]

    def _learn_state(self) -> None:
        """Which weights the first call changed; from now on every call begins with the weights that were chosen."""
        if sum(t.nbytes for t in self.weights.tensors) > LARGE:
            self.found.skipped("state after a call", "the weights are too large to be compared after a call")
        elif self.weights.tensors:
            after = self.reference.state(self.weights)
            pairs = enumerate(zip(self.weights.tensors, after, strict=True))
            self.state = [n for n, (old, new) in pairs if not same_bits(old.to(new.device), new)]

    def _learn_mode(self, case: Case) -> None:
        """Whether `eval()` changes nothing: then it must change nothing for a candidate either."""
        try:
            other = self.reference.run(case.values, "native", self.shape.written, evaluates=True).tensors
        except KoptError:
            return
        self.same_evaluating = all(map(same_bits, other, case.native))

    def state_after(self, values: Values, weights: Values) -> Values:
        """The weights after one call of the reference at the problem's precision, from `weights`."""
        with self.weighing(weights):
            self._run(values, "native")
            return weights.with_tensors(self.reference.state(weights))

    def continued(self, label: str, weights: Values, like: Case, seed: int) -> Case | None:
        """A case of inputs drawn again that begins with what another call left in the weights; None as `varied`."""
        values = self._fresh(self.reference.inputs(seed)[0])
        with self.weighing(weights):
            return self.varied(label, values, like)

    @contextmanager
    def weighing(self, other: Values) -> Iterator[None]:
        """The reference with other weights."""
        kept, self.weights = self.weights, other
        try:
            self.reference.set_weights(other)
            yield
        finally:
            self.weights = kept
            self.reference.set_weights(kept)

    def _run(self, values: Values, precision: str, *, evaluates: bool = False) -> Results:
        """Run the reference, always from the same weights."""
        if self.state:
            self.reference.set_weights(self.weights)
        found = self.reference.run(values, precision, self.shape.written, evaluates=evaluates)
        self.reuses |= found.reused
        return found

    def _fresh(self, values: Values) -> Values:
        """Inputs that cannot be drawn anew are moved a little, which no remembered result survives."""
        return self._moved(values) if self.fixed and self.jitters else values

    def _try_jitter(self, values: Values) -> None:
        """Whether the reference takes inputs that were moved a little; they stay as they are where it does not."""
        said = "every draw of the inputs is the same; floats are moved by up to 1/64 of themselves"
        if not any(t.is_floating_point() for t in values.tensors):
            self.jitters = False
            said = "every draw of the inputs is the same, and they hold no float that could be moved"
        elif not self._takes_moved(values):
            self.jitters, said = False, "every draw of the inputs is the same, and the reference takes no others"
        self.found.hazard("fixed_inputs", Severity.NOTE, said)

    def _moved(self, values: Values, only: Container[int] | None = None) -> Values:
        """All inputs, or some by their number, moved a little."""
        moved = [only is None or n in only for n in range(len(values.tensors))]
        return values.with_tensors(
            [jitter(t, self.generator) if m else t for m, t in zip(moved, values.tensors, strict=True)]
        )

    def _unsteady(self, values: Values) -> Values:
        """Floats that are the same in every draw, moved a little: what a candidate keeps of them is no longer right.
        Not where one of the inputs may not change."""
        if self._steady is None:
            fixed = self.fixed or self.found.only_with or self._slow
            numbers = [n for n, t in enumerate(values.tensors) if not self.varies[n] and t.is_floating_point()]
            self._steady = numbers if numbers and not fixed and self._takes_moved(values, numbers) else []
        return self._moved(values, self._steady) if self._steady else values

    def _takes_moved(self, values: Values, only: Container[int] | None = None) -> bool:
        """Whether the reference takes inputs that were moved a little."""
        try:
            result = self.reference.run(self._moved(values, only), "native")
        except UsageError:
            return False
        return not any(t.is_floating_point() and bool(t.isnan().any()) for t in result.tensors)

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
        return Shape(result.specs, result.tree, written, filled, [*returned_names, *(names[n] for n in written)])

    def _filled(self, values: Values, written: list[int], result: Results) -> list[int]:
        """The written arguments that the reference does not read: filled beforehand, its results stay the same."""
        plain = self.reference.run(values, "native", written).tensors[len(result.specs) :]
        blank = [t.clone() for t in values.tensors]
        for n in written:
            fill(blank[n], self.draw)
        again = self.reference.run(values.with_tensors(blank), "native", written).tensors[len(result.specs) :]
        return [n for n, a, b in zip(written, plain, again, strict=True) if same_bits(a, b)]

    def _case(self, distribution: Distribution, values: Values) -> Case:
        own = self._run(values, "native")
        native = exactly = own.tensors
        others = [constants(own.tree)]
        if not self.own_reference and self.exact:
            exactly, tree = self._exactly(values, own)
            others.append(constants(tree))
            if [t.shape for t in exactly] != [t.shape for t in native]:
                exactly = native
        exactly = _wider(exactly)
        exact = [
            distribution.name == "binary" and must_be_exact(o, n, n.dtype) for o, n in zip(exactly, native, strict=True)
        ]
        return Case(distribution, values, exactly, native, exact, others)

    def _leave_out_float64(self, read: int, written: int) -> None:
        """Where it cannot fit: two cases here, with their float64 results and what drawing and comparing needs; the
        reference's own float64 arguments, results and one more of these; and the candidate's."""
        if self.reference.device.type != "cuda" or self.own_reference:
            return
        need = 5 * read + 8 * written + (2 * read + 4 * written) + (read + 2 * written)
        total = torch.cuda.mem_get_info(self.reference.device)[1]
        if need > total * _FULL:
            self.exact = False
            why = f"it needs about {need / 1e9:.0f} GB, the device has {total / 1e9:.0f}"
            self.found.skipped("float64 oracle", f"{why}; the reference's own result is the oracle")

    def _exactly(self, values: Values, native: Results) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Float64 results; the native ones where there are none, and then there are none for later cases either."""
        try:
            wide = self._run(values, "double")
            return wide.tensors, wide.tree
        except UsageError:  # code that names float32 itself
            why = "the reference does not run in float64; its own result is the oracle"
        except (KoptError, torch.OutOfMemoryError) as error:
            if isinstance(error, KoptError) and error.code != "out_of_memory":
                raise
            why = "it does not fit into the device's memory; the reference's own result is the oracle"
        self.found.skipped("float64 oracle", why)
        self.exact = False
        torch.cuda.empty_cache()
        return native.tensors, native.tree

    def _deterministic(self, case: Case) -> None:
        """A reference that disagrees with itself says nothing about anybody.

        Two runs at one precision are compared, without PyTorch's own error, which random numbers make large: at
        float64 where it runs there, because sums in another order differ least at it.
        """
        wide = self.exact and not self.own_reference
        precision = "double" if wide else "native"
        before = case.reference if wide else case.native
        if not agree(before, self._run(case.values, precision).tensors):
            raise UsageError(
                "the reference gives different results for the same inputs",
                code="reference_random",
                hint="Take random numbers out of it, such as dropout, or pass them in as inputs.",
            )

    def case(self, distribution: Distribution, index: int) -> Case | None:
        """Inputs of another distribution, or None with the reason on record."""
        values, _ = self.reference.inputs(self.seeds.seed("inputs", index))
        values = self._fresh(values)
        if distribution.name != "given":
            outputs = set(self.shape.filled)
            values = values.with_tensors(
                [t if n in outputs else draw(distribution, t, self.generator) for n, t in enumerate(values.tensors)]
            )
            if not any(t.is_floating_point() for n, t in enumerate(values.tensors) if n not in outputs):
                self.found.skipped(distribution.name, "no input is a float tensor")
                return None
        try:
            case = self._case(distribution, values)
        except KoptError as error:
            if distribution.name == "given":
                raise
            self.found.skipped(distribution.name, f"the reference does not take it: {error.message}")
            return None
        why = _unfit(case) if distribution.name != "given" else ""
        if distribution.name == "huge" and not why and not self.precise(case):
            why = "PyTorch's own result is not as precise on it as is asked"
        if why:
            self.found.skipped(distribution.name, why)
            return None
        return case

    def precise(self, case: Case) -> bool:
        """Whether PyTorch's own result keeps the rule without allowance for its own error."""
        return case.reference is case.native or all(
            compare(n, o, None, stretched=True, exact=False, declared=self.tolerance).passed
            for o, n in zip(case.reference, case.native, strict=True)
        )

    def varied(
        self,
        label: str,
        values: Values,
        like: Case,
        *,
        stretched: bool = True,
        finite: bool = True,
        again: bool = False,
        evaluates: bool = False,
    ) -> Case | None:
        """The case of values that were made from those of `like`, in the mode that `eval()` leaves where `evaluates`
        asks for it; None where they are none of the problem's.

        That is so where the reference raises or gives results of other shapes or types; where `finite` asks for it,
        gives NaN; and where `again` does, disagrees with itself.
        """
        try:
            own = self._run(values, "native", evaluates=evaluates)
            native, others = own.tensors, [constants(own.tree)]
            if [(t.shape, t.dtype) for t in native] != [(t.shape, t.dtype) for t in like.native]:
                return None
            if again and not agree(native, self._run(values, "native").tensors):
                return None  # a probability of dropout that was 0
            exactly = native
            if like.reference is not like.native:
                wide = self._run(values, "double", evaluates=evaluates)
                exactly = wide.tensors
                others.append(constants(wide.tree))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return None
        except KoptError:
            return None
        if [t.shape for t in exactly] != [t.shape for t in native]:
            return None
        told = Distribution(label, stretched, "the given inputs with one thing changed")
        case = Case(told, values, _wider(exactly), native, [False] * len(native), others)
        return None if finite and _unfit(case) else case

    def tried(self, values: Values) -> list[torch.Tensor] | None:
        """The reference's own results on values that it may not take; None where it raises."""
        try:
            return self._run(values, "native").tensors
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        except KoptError:
            pass
        return None

    def takes(self, case: Case, strides: list[list[int] | None]) -> bool:
        """Whether the reference gives the same for inputs that are laid out with other strides."""
        try:
            found = self.reference.run(case.values, "native", strides=strides)
        except KoptError:
            return False
        return [t.shape for t in found.tensors] == [t.shape for t in case.native] and agree(case.native, found.tensors)

    def another(self, index: int) -> Case:
        """Fresh inputs of the problem's own for a timed sample.

        Where drawing takes long, the first draw is perturbed a little instead, so that a remembered result is wrong.
        """
        if self._slow is None or not self._slow:
            began = time.monotonic()
            values, _ = self.reference.inputs(self.seeds.seed("inputs", index))
            took = time.monotonic() - began
            values = self._fresh(values)
            if self._slow is None:
                self._slow = took > SLOW_DRAW and self._can_move(values)
                self._drawn = values if self._slow else self._drawn
            values = self._unsteady(values)
        else:
            assert self._drawn is not None
            values = self._moved(self._drawn)
        return self._case(GIVEN, values)

    def near(self, case: Case) -> Case:
        """The case with its inputs moved a little; itself where the reference does not take them."""
        try:
            return self._case(GIVEN, self._moved(case.values))
        except UsageError:
            return case

    def _can_move(self, values: Values) -> bool:
        """Whether moving the inputs a little makes others of them, which the reference takes."""
        if not self.jitters or not any(t.is_floating_point() or t.is_complex() for t in values.tensors):
            return False
        return self.fixed or self._takes_moved(values)

    def compare(self, case: Case, n: int, got: torch.Tensor) -> Comparison:
        """Compare one output with the reference's."""
        native = None if self.own_reference or case.reference is case.native else case.native[n]
        how = {"stretched": case.distribution.stretched, "exact": case.exact[n]}
        return compare(got, case.reference[n], native, **how, declared=self.tolerance)


def agree(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether two runs at one precision gave the same but for the order of sums."""
    return all(
        same_bits(a, b) or compare(b, a, None, stretched=True, exact=False, declared=None).passed
        for a, b in zip(one, other, strict=True)
    )


def _is_moved(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether an output of floats has many different elements, each of them an input's."""
    same = [t.flatten() for t in inputs if t.dtype == output.dtype]
    sizes = [output.numel(), *(t.numel() for t in same)]
    if not same or not output.dtype.is_floating_point or output.element_size() == 1 or not 1 < max(sizes) <= _PIECE:
        return False
    return len(torch.unique(output)) > output.numel() // 2 and bool(torch.isin(output, torch.cat(same)).all())


def _wider(exactly: list[torch.Tensor]) -> list[torch.Tensor]:
    """Floats of 8 bits, which PyTorch does not compare, as float32."""
    if all(tensor.element_size() > 1 or not tensor.is_floating_point() for tensor in exactly):
        return exactly
    return [
        tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor for tensor in exactly
    ]


def _unfit(case: Case) -> str:
    """Why nobody is judged by a case: NaN, or a result that is not finite where the exact one is. Empty where none."""
    for o, n in zip(case.reference, case.native, strict=True):
        if not n.is_floating_point():
            continue
        for exactly, own in zip(torch.split(o.flatten(), _PIECE), torch.split(n.flatten(), _PIECE), strict=True):
            (cast,), (own,) = _wider([exactly.to(n.dtype)]), _wider([own])
            if bool(cast.isnan().any()):
                return "the reference gives NaN"
            if not torch.equal(cast.isinf(), own.isinf()) or bool(own.isnan().any()):
                return "PyTorch's own result is not finite where the exact one is"
    return ""
