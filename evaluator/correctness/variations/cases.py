"""The variations of a problem, one after the other, each with what the reference makes of it."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.correctness.cases import Case, Cases, agree
from evaluator.correctness.distributions import DISTRIBUTIONS, draw, jitter
from evaluator.correctness.reference import LARGE, Values
from evaluator.correctness.variations import values as change
from kbs.common.errors import KoptError

MOST = 32
"""Variations of one workload."""
_MOST_LARGE = 3
"""Of one whose inputs and results are larger than `LARGE`: each takes as long as a case."""
MOST_INPUTS = 6
"""Inputs that are changed alone; the seed chooses them where there are more."""
_MOST_SCALARS = 4
_LEAST = tuple(2.0**-n for n in (12, 9, 6, 3))
"""Parts of an input's largest magnitude by which an element moves a little: the first that the rule can tell."""
_ENDS = 3
"""Inputs whose first and last elements move, one after the other."""
_MAGNITUDES = (1e-30, 1e-9, 1e30)
_PRECISE = frozenset({"expm1", "log1p", "hypot", "logaddexp", "logaddexp2"})
"""Functions that exist for what the plain formula gets wrong at numbers that are very small or large."""
_LEFT_OUT = 3
_MORE, _LONGER, _LONGER_S = 64, 8.0, 0.02
"""Numbers so many times as large must not take the reference so many times as long, and seconds more: a loop over them
would never end with larger ones."""
_MUCH = (2.0, -2.0)
"""Parts by which it moves far, where the rule cannot tell the first."""
_NORMAL = next(d for d in DISTRIBUTIONS if d.name == "normal")


@dataclass
class Variation:
    """The given inputs with one thing changed."""

    case: Case
    judged: bool = True
    """Whether a wrong result is held against the candidate; otherwise the hazard `note` is a note."""
    note: str = ""
    """The hazard that is noted where the candidate raises, or is wrong and not judged; where it is empty, raising is
    the candidate's fault."""
    only: str = ""
    """Name of an argument that never varies otherwise: where the candidate raises, it is right with its value alone."""
    weights: Values | None = None
    """The weights that the case was made with, where they are others."""


@dataclass(eq=False)
class Variations:
    """Makes the variations of `first`, the given inputs on which the candidate was right.

    The elements that move come first, right after a call on `first`; the others in an order drawn at random.
    """

    cases: Cases
    first: Case
    dims: dict[str, int]
    rng: random.Random
    generator: torch.Generator
    made: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Variation]:
        """Lazily: a case is made when it is asked for, and nothing holds it afterwards."""
        kinds: list[Callable[[], Iterator[Variation]]] = [
            *self._alone(),
            *self._scalars(),
            self._zero_rows,
            self._zeros,
            self._magnitudes,
            self._specials,
            self._blocks,
            self._weights,
        ]
        self.rng.shuffle(kinds)
        most = _MOST_LARGE if self.cases.bytes > LARGE else MOST
        for kind in (self._elements, *kinds):
            try:
                for variation in kind():
                    yield variation
                    self.made += 1
                    if self.made == most:
                        return
            except (KoptError, torch.OutOfMemoryError) as error:
                if isinstance(error, KoptError) and error.code != "out_of_memory":
                    raise
                self.cases.found.skipped("variations", "there was no memory for one more case")
                torch.cuda.empty_cache()
                return

    # --- one thing changed ------------------------------------------------------------------------------------------

    def _elements(self) -> Iterator[Variation]:
        """One element after the other, in different inputs.

        By much, so that a memo by samples of the inputs gives the old result: one at a time, since samples are likelier
        to miss one than to miss all of several. And by the least that the rule can tell, so that a memo by rounded
        values does.
        """
        inputs = self._floats()
        before = self.first
        steps = (
            [(inputs[step % len(inputs)], None, step % 2) for step in range(min(3, max(2, len(inputs))))]
            if inputs
            else []
        )
        ends = [(n, at, 0) for n in inputs[:_ENDS] for at in (0, -1)]
        for n, where, little in [*steps, *ends]:
            count = before.values.tensors[n].numel()
            at = self.rng.randrange(count) if where is None else where % count
            which = {None: "one", 0: "the first", -1: "the last"}[where]
            parts = _LEAST if little else _MUCH
            for part in parts:
                tensors = list(before.values.tensors)
                tensors[n] = change.moved_element(tensors[n], at, part)
                label = f"given, {which} element of {self._name(n)} changed{' a little' * little}"
                case = self.cases.varied(label, self._with(tensors), before, stretched=False)
                if case is not None and (part == parts[-1] or self._told_apart(case, before)):
                    before = case
                    yield Variation(case)
                    break
        if inputs and before is not self.first:
            yield from self._orders(self.rng.choice(inputs))

    def _orders(self, n: int) -> Iterator[Variation]:
        """The same elements of an input at other places, which a checksum that forgets places does not tell apart."""
        name, tensor = self._name(n), self.first.values.tensors[n]
        yield from self._judged(f"{name} backwards", self._replaced(n, change.backwards(tensor)))
        for what in ("rows", "columns"):
            other = change.in_other_order(tensor, self.generator, rows=what == "rows")
            if other is not None:
                yield from self._judged(f"{what} of {name} in another order", self._replaced(n, other))

    def _told_apart(self, case: Case, other: Case) -> bool:
        """Whether the results of another case would be wrong on this one."""
        return any(not self.cases.compare(case, n, result).passed for n, result in enumerate(other.native))

    def _alone(self) -> list[Callable[[], Iterator[Variation]]]:
        """Each input alone: a result remembered by the others is wrong, and so is one that ignores it."""
        inputs = self._inputs()
        numbers = [n for n in inputs if self.first.values.tensors[n].numel()]
        if len(inputs) == 1 and self.cases.varies[inputs[0]] and self._floats():
            return []  # the given inputs drawn again are that
        chosen = self.rng.sample(numbers, min(MOST_INPUTS, len(numbers)))
        seed = self.rng.randrange(1 << 62)
        return [lambda n=n: self._other_input(n, seed) for n in chosen]  # type: ignore[misc]  # mypy takes no defaults

    def _other_input(self, n: int, seed: int) -> Iterator[Variation]:
        label, tensor = f"{self._name(n)} alone drawn again", self.first.values.tensors[n]
        drawn = [t for t in [change.redrawn(tensor, self.generator)] if t is not None and self._in_any_order(n, t)]
        if self.cases.varies[n]:
            fresh = self.cases.reference.inputs(seed)[0].tensors[n]
            others = [fresh] if fresh.shape == tensor.shape else []
        else:
            others = list(self._invented(n))
        only = self._name(n) if drawn or not self.cases.varies[n] else ""
        yield from self._judged(label, *(self._replaced(n, t) for t in [*drawn, *others]), only=only)
        if tensor.dtype == torch.bool:
            if self.cases.varies[n]:
                masks = change.masks(tensor, self.generator)
                yield from self._judged(f"{self._name(n)} alone at random", *(self._replaced(n, t) for t in masks))
            yield from self._empty_rows(n)
        elif tensor.dtype in change.DRAWABLE and self.cases.reference.device.type == "cpu":
            yield from self._unsorted(n)
            yield from self._markers(n)
            yield from self._large_numbers(n)
            yield from self._last_rows(n)

    def _invented(self, n: int) -> Iterator[torch.Tensor]:
        """Contents for an input that is the same in every draw."""
        tensor = self.first.values.tensors[n]
        if tensor.is_floating_point() or tensor.is_complex():
            yield jitter(tensor, self.generator)
            yield draw(_NORMAL, tensor, self.generator)
        elif tensor.dtype == torch.bool:
            yield from change.masks(tensor, self.generator)
        else:
            other = [change.permuted(tensor, self.generator), change.between(tensor, self.generator)]
            yield from (found for found in other if found is not None)

    def _in_any_order(self, n: int, tensor: torch.Tensor) -> bool:
        """Whether the reference's results are the same, or as much reordered, whatever the order of what goes with each
        number: repeated numbers that name rows to be overwritten are none of the problem's.

        Along each dimension, all inputs of that size there are reordered alike; without one of them, as a table of as
        many rows may be; or the numbers alone.
        """
        if self.cases.bytes > LARGE:
            return False
        values = self._replaced(n, tensor)
        results = self.cases.tried(values)
        if results is None:
            return False
        return all(
            self._reorders(n, dimension, values, results) for dimension, size in enumerate(tensor.shape) if size > 1
        )

    def _reorders(self, n: int, dimension: int, values: Values, results: list[torch.Tensor]) -> bool:
        size = values.tensors[n].shape[dimension]
        order = change.other_order(size, self.generator)
        assert order is not None, "the dimension has two elements at least"
        alike = [
            m for m, t in enumerate(values.tensors) if m != n and t.dim() > dimension and t.shape[dimension] == size
        ]
        for others in [alike, *([m for m in alike if m != left] for left in alike[:_LEFT_OUT] if len(alike) > 1), []]:
            tensors = list(values.tensors)
            for m in (n, *others):
                tensors[m] = change.reordered(tensors[m], dimension, order)
            found = self.cases.tried(self._with(tensors))
            if found is not None and all(_reordered(a, b, order) for a, b in zip(results, found, strict=True)):
                return True
        return False

    def _unsorted(self, n: int) -> Iterator[Variation]:
        """Sorted integers in another order, where that is none of the problem's: what goes with each counts alone."""
        tensor = self.first.values.tensors[n]
        order = change.other_order(tensor.numel(), self.generator)
        if order is not None and tensor.dim() and change.is_sorted(tensor) and self._in_any_order(n, tensor):
            other = change.reordered(tensor.flatten(), 0, order).reshape(tensor.shape)
            yield from self._judged(f"{self._name(n)} in another order", self._replaced(n, other))

    def _markers(self, n: int) -> Iterator[Variation]:
        """Numbers that stand for no label, where the reference takes them and refuses those beside them: an index that
        counts from the end, or a plain number, it would take as well. What is made of them is noted: few kernels of a
        loss are asked for them."""
        tensor = self.first.values.tensors[n]
        if not tensor.numel() or tensor.dtype == torch.uint8 or int(tensor.min()) < 0 or int(tensor.max()) < 1:
            return
        for marker in change.MARKERS:
            near = [m for m in (marker - 1, marker + 1) if m < 0]
            marked, *others = (self._replaced(n, change.with_marker(tensor, m, self.rng)) for m in (marker, *near))
            case = self.cases.varied(f"given, {marker} in places of {self._name(n)}", marked, self.first)
            if case is not None and _all_finite(case) and all(self.cases.tried(other) is None for other in others):
                yield Variation(case, judged=False, note="special_values")

    def _large_numbers(self, n: int) -> Iterator[Variation]:
        """Integers that are plain numbers: the reference takes large ones in place of the given ones, without taking
        longer, and they count: other large ones give other results, as lengths and labels out of range do not."""
        tensor = self.first.values.tensors[n]
        more = change.large_numbers(tensor, self.generator, _MORE)
        if more is None:
            return
        usual, longer = self._seconds(n, tensor), self._seconds(n, more)
        if longer is None or usual is None or longer > _LONGER * usual + _LONGER_S:
            return
        drawn, other = (change.large_numbers(tensor, self.generator, None) for _ in range(2))
        if drawn is None or other is None:
            return
        case = self.cases.varied(f"given, large numbers in {self._name(n)}", self._replaced(n, drawn), self.first)
        results = self.cases.tried(self._replaced(n, other)) if case is not None else None
        if case is None or results is None or agree(case.native, results):
            return
        yield Variation(case, note="at_this_value_only", only=self._name(n))
        if tensor.numel() and int(tensor.min()) >= 0:
            both = change.large_numbers(tensor, self.generator, None, signed=True)
            signed = None if both is None else self._replaced(n, both)
            case = self.cases.varied(
                f"given, numbers of both signs in {self._name(n)}", signed or self.first.values, self.first
            )
            if case is not None and signed is not None:
                yield Variation(case, note="at_this_value_only", only=self._name(n))

    def _last_rows(self, n: int) -> Iterator[Variation]:
        """Indices up to the last row of the longest table: a size that the reference takes no larger number for."""
        tensor = self.first.values.tensors[n]
        if not tensor.numel() or tensor.dtype == torch.bool or int(tensor.min()) < 0:
            return
        high = int(tensor.max())
        others = [t for m, t in enumerate(self.first.values.tensors) if m != n]
        sizes = {size for t in (*others, *self.cases.weights.tensors) for size in t.shape if t.is_floating_point()}
        top = min(torch.iinfo(tensor.dtype).max, max(sizes, default=0))
        for size in sorted((size for size in sizes if high + 1 < size <= top), reverse=True):
            reached = change.reaching(tensor, size, self.generator)
            beyond = reached.clone()
            beyond.view(-1)[0] = size
            if size < torch.iinfo(tensor.dtype).max and self.cases.tried(self._replaced(n, beyond)) is not None:
                continue
            case = self.cases.varied(
                f"given, {self._name(n)} up to the last row", self._replaced(n, reached), self.first
            )
            if case is not None and (tensor.dim() == 0 or self._in_any_order(n, reached)):
                yield Variation(case, note="at_this_value_only", only=self._name(n))
                return

    def _seconds(self, n: int, tensor: torch.Tensor) -> float | None:
        """How long the reference takes; None where it raises."""
        began = time.monotonic()
        taken = self.cases.tried(self._replaced(n, tensor)) is not None
        return time.monotonic() - began if taken else None

    def _empty_rows(self, n: int) -> Iterator[Variation]:
        """Rows of a mask without a true element, where the reference has something finite to say of them."""
        mask = change.with_empty_rows(self.first.values.tensors[n], self.rng)
        values = self.first.values if mask is None else self._replaced(n, mask)
        for variation in self._judged(f"rows of {self._name(n)} without a true element", values):
            if _all_finite(variation.case):
                yield variation

    def _scalars(self) -> list[Callable[[], Iterator[Variation]]]:
        found = list(change.scalars(self.first.values.tree).items())
        chosen = self.rng.sample(found, min(_MOST_SCALARS, len(found)))
        return [lambda name=name, value=value: self._other_scalar(name, value) for name, value in chosen]  # type: ignore[misc]  # likewise

    def _other_scalar(self, name: str, value: Any) -> Iterator[Variation]:
        tensors = [*self.first.values.tensors, *self.first.native, *self.cases.weights.tensors]
        sizes = [*self.dims.values(), *(size for t in tensors for size in (t.numel(), *t.shape))]
        near = self.cases.reference.device.type == "cpu"  # a wrong index ends the reference's process on a GPU
        choices = (
            [text for text in self.cases.texts if text != value]
            if isinstance(value, str)
            else change.other_numbers(value, self._some_integers(), sizes, near=near)
        )
        for other in choices:
            values = Values(
                change.with_scalar(self.first.values.tree, name, other),
                self.first.values.specs,
                self.first.values.tensors,
            )
            label = f"{_argument(name)} = {other:.40}" if isinstance(other, str) else f"{_argument(name)} = {other:.6g}"
            found = list(self._judged(label, values, only=_argument(name), again=True, differs=True))
            if found:
                yield from found
                return

    def _zero_rows(self) -> Iterator[Variation]:
        inputs = self._floats()
        tensors = list(self.first.values.tensors)
        changed = change.zero_rows([tensors[n] for n in inputs], self.rng)
        for n, tensor in zip(inputs, changed, strict=True):
            tensors[n] = tensor
        yield from self._judged("some rows of zeros", self._with(tensors))

    def _zeros(self) -> Iterator[Variation]:
        """Zeros of both signs in one input after the other, of which a sign may be all that the reference reads."""
        for n in self._floats()[:MOST_INPUTS]:
            other = change.with_zeros(self.first.values.tensors[n], self.rng)
            yield from self._judged(f"zeros of both signs in {self._name(n)}", self._replaced(n, other))

    def _magnitudes(self) -> Iterator[Variation]:
        """Very small and very large numbers, where the reference calls what is made for them and is precise there."""
        if not _PRECISE & self.cases.called:
            return
        for size in _MAGNITUDES:
            tensors = list(self.first.values.tensors)
            for n in self._floats():
                if tensors[n].element_size() > 2 or tensors[n].dtype == torch.bfloat16:
                    tensors[n] = draw(_NORMAL, tensors[n], self.generator) * size
            case = self.cases.varied(f"given, numbers of {size:g}", self._with(tensors), self.first)
            if case is not None and _all_finite(case) and self.cases.precise(case):
                yield Variation(case)

    def _specials(self) -> Iterator[Variation]:
        """NaN in one input after the other, then infinities. Where the reference's results are finite all the same, it
        takes them out, and so must the candidate. Where not, what becomes of them is looked at once, and noted."""
        passed_on = self._floats()[:MOST_INPUTS]
        for n in passed_on.copy():
            for what, specials in (("NaN", [math.nan]), ("infinities", [math.inf, -math.inf])):
                case = self._with_specials(n, what, specials)
                if case is None or not _all_finite(case):
                    break
                if n in passed_on:
                    passed_on.remove(n)
                yield Variation(case)
        for n in passed_on[:1]:
            case = self._with_specials(n, "NaN and infinities", [float("nan"), float("inf"), float("-inf")])
            if case is not None:
                yield Variation(case, judged=False, note="special_values")

    def _blocks(self) -> Iterator[Variation]:
        """Blocks of rows at minus infinity, as masked scores are, where the reference's results stay finite. Noted: an
        online softmax that is never masked has no need of the guard."""
        for n in self._floats()[:MOST_INPUTS]:
            tensor = self.first.values.tensors[n]
            other = change.with_blocks(tensor, -math.inf, self.rng) if tensor.element_size() > 1 else None
            if other is None:  # 8-bit floats have no infinities
                continue
            case = self.cases.varied(f"given, blocks of {self._name(n)} at -inf", self._replaced(n, other), self.first)
            if case is not None and _all_finite(case):
                yield Variation(case, judged=False, note="special_values")

    def _weights(self) -> Iterator[Variation]:
        weights = self.cases.weights
        floats = any(t.is_floating_point() for t in weights.tensors)
        if not floats or sum(t.nbytes for t in weights.tensors) > LARGE:
            return
        generator = torch.Generator(weights.tensors[0].device).manual_seed(self.rng.randrange(1 << 62))
        other = weights.with_tensors([change.scaled(t, generator) for t in weights.tensors])
        with self.cases.weighing(other):
            case = self.cases.varied("given, other weights", self.first.values, self.first)
        if case is not None:
            yield Variation(case, judged=False, note="weights_cached", weights=other)

    # --- what they are made of --------------------------------------------------------------------------------------

    def _judged(
        self, what: str, *choices: Values, only: str = "", again: bool = False, differs: bool = False
    ) -> Iterator[Variation]:
        """The first of some values that the reference takes; with `differs`, only if its results are others."""
        for values in choices:
            if _same(values, self.first.values):
                continue
            case = self.cases.varied(f"given, {what}", values, self.first, again=again)
            if case is not None and not (differs and _equal(case.native, self.first.native)):
                yield Variation(case, note="at_this_value_only" if only else "", only=only)
                return

    def _with_specials(self, n: int, what: str, specials: list[float]) -> Case | None:
        tensor = self.first.values.tensors[n]
        if tensor.element_size() == 1:  # 8-bit floats have no infinities
            return None
        values = self._replaced(n, change.with_specials(tensor, specials, self.rng))
        return self.cases.varied(f"given, {what} in {self._name(n)}", values, self.first, finite=False)

    def _some_integers(self) -> list[int]:
        """A few numbers that integer inputs hold."""
        found = []
        for n in self._inputs():
            tensor = self.first.values.tensors[n]
            if tensor.numel() and not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool):
                found += [int(tensor.flatten()[self.rng.randrange(tensor.numel())]) for _ in range(2)]
        return found

    def _inputs(self) -> list[int]:
        return [n for n in range(len(self.first.values.tensors)) if n not in self.cases.shape.filled]

    def _floats(self) -> list[int]:
        """Inputs of real floats, in an order drawn at random."""
        tensors = self.first.values.tensors
        found = [n for n in self._inputs() if tensors[n].is_floating_point() and tensors[n].numel()]
        return self.rng.sample(found, len(found))

    def _name(self, n: int) -> str:
        return _argument(self.first.values.specs[n]["name"])

    def _replaced(self, n: int, tensor: torch.Tensor) -> Values:
        tensors = list(self.first.values.tensors)
        tensors[n] = tensor
        return self._with(tensors)

    def _with(self, tensors: Iterable[torch.Tensor]) -> Values:
        return self.first.values.with_tensors(list(tensors))


def _all_finite(case: Case) -> bool:
    """Whether the reference has floats for results, and no NaN or infinity among them."""
    floats = [t for t in (*case.reference, *case.native) if t.is_floating_point()]
    return bool(floats) and all(bool(t.isfinite().all()) for t in floats)


def _reordered(before: torch.Tensor, after: torch.Tensor, order: torch.Tensor) -> bool:
    """Whether a result is the same, or reordered along one of its dimensions."""
    if before.shape != after.shape:
        return False
    along = [d for d, size in enumerate(before.shape) if size == len(order)]
    return any(agree([t], [after]) for t in [before, *(change.reordered(before, d, order) for d in along)])


def _argument(name: str) -> str:
    """A name for readers: arguments without one have a number."""
    return f"input {name}" if name[:1].isdigit() else name


def _same(one: Values, other: Values) -> bool:
    return one.tree == other.tree and _equal(one.tensors, other.tensors)


def _equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(a is b or (a.shape == b.shape and torch.equal(a, b)) for a, b in zip(one, other, strict=True))
