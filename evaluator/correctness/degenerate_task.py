"""Whether a problem can be passed without solving it: zeros, a constant, or a copied input.

Tensors are looked at one draw of inputs at a time and not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from evaluator.correctness.tolerance import compare
from evaluator.receipt.findings import TaskCheck

FAR = 0.1
"""RMS of y* − c, as a part of RMS(y*), from which on results are others than the constant c."""
TAIL = 0.01
"""Part of the rows that is left out to see whether the rule notices."""
LOWER_PRECISION = "lower precision"
TAIL_LEFT_OUT = "last 1 % of rows left out"

Answer = float | int
"""A constant, or the number of the input that is copied."""


class TaskExaminer:
    """Tries degenerate answers on one draw of inputs after the other, and drops those that fail.

    The constants are 0, 1, and the mean and the middle of the first draw's results: a constant that passes on all draws
    passes on the first, and is near one of them there. An input is copied where it has the output's shape.
    """

    def __init__(self, declared: tuple[float, float] | None = None) -> None:
        self.declared = declared
        """The problem's own (atol, rtol), if it has one."""
        self.cases = 0
        """Draws that were tried."""
        self.told_apart: dict[str, bool] = {}
        self._constants: list[dict[str, Answer]] = []
        self._copies: list[set[int]] = []
        self._single: list[bool] = []
        self._far: list[set[str]] = []
        """For each output, the constants that its right results are far from."""

    def add(
        self,
        inputs: Sequence[Tensor],
        reference: Sequence[Tensor],
        native: Sequence[Tensor],
        *,
        stretched: bool,
        exact: Sequence[bool],
    ) -> None:
        """Another draw: its inputs, and for each output the oracle, PyTorch's own result and whether it is exact."""
        if not self.cases:
            self._constants = [_constants(o, n.dtype) for o, n in zip(reference, native, strict=True)]
            self._copies = [set(range(len(inputs))) for _ in reference]
            self._single = [o.numel() == 1 for o in reference]
            self._far = [set() for _ in reference]
        self.cases += 1
        for n, (exactly, own) in enumerate(zip(reference, native, strict=True)):

            def passes(answer: Tensor, n: int = n, exactly: Tensor = exactly, own: Tensor = own) -> bool:
                got = answer.to(own.dtype)
                kept = compare(got, exactly, own, stretched=stretched, exact=exact[n], declared=self.declared)
                return kept.passed

            self._constants[n] = {
                name: value for name, value in self._constants[n].items() if passes(_filled(own, value))
            }
            self._far[n] |= {name for name, value in self._constants[n].items() if _far(exactly, value)}
            self._copies[n] = {
                i for i in self._copies[n] if i < len(inputs) and _copyable(inputs[i], own) and passes(inputs[i])
            }

    def tell_apart(self, reference: Sequence[Tensor], native: Sequence[Tensor], lower: Sequence[Tensor]) -> None:
        """See whether the rule rejects the reference's `lower` precision results, and right ones without their tail.

        Told apart on one draw is told apart. Without `lower` results nothing is said about them.
        """
        wrong = {TAIL_LEFT_OUT: [without_tail(o.to(n.dtype)) for o, n in zip(reference, native, strict=True)]}
        if [t.shape for t in lower] == [t.shape for t in native]:
            wrong[LOWER_PRECISION] = [t.to(n.dtype) for t, n in zip(lower, native, strict=True)]
        for name, results in wrong.items():
            rejected = any(
                not compare(got, o, n, stretched=False, exact=False, declared=self.declared).passed
                for got, o, n in zip(results, reference, native, strict=True)
            )
            self.told_apart[name] = self.told_apart.get(name, False) or rejected

    def result(self) -> TaskCheck:
        """What passed on every draw. A task is refused where each of its outputs has such an answer, and where one has
        a constant that its right results are far from: PyTorch's own error hides everything there."""
        outputs = range(len(self._constants))
        reasons = [self._reason(n) for n in outputs]
        hides = "PyTorch's own error" if self.declared is None else "what is allowed"
        if not (reasons and all(reasons)):
            reasons = [
                f"{self._reason(n)}, though its values are others: {hides} is as large as they are"
                for n in outputs
                if self._far[n] & self._constants[n].keys()
            ]
        return TaskCheck(refused=bool(reasons), reasons=tuple(reasons), told_apart=dict(self.told_apart))

    def _reason(self, output: int) -> str:
        constants = dict(self._constants[output])
        if self.cases == 1 and self._single[output]:
            # One number is its own mean: that says nothing until a second draw.
            constants = {name: value for name, value in constants.items() if name in ("zeros", "ones")}
        answers = [name if name in ("zeros", "ones") else f"the constant {constants[name]:.4g}" for name in constants]
        answers += [f"a copy of input {i}" for i in sorted(self._copies[output])]
        draws = "the one draw" if self.cases == 1 else f"all {self.cases} draws"
        return f"output {output}: {' or '.join(answers)} passes on {draws} of inputs" if answers else ""


def without_tail(values: Tensor) -> Tensor:
    """A copy whose last 1 % of rows (of elements, with one dimension) are 0; one at least."""
    changed = values.clone(memory_format=torch.contiguous_format)
    rows = changed.view(-1, changed.shape[-1]) if changed.dim() > 1 and changed.numel() else changed.view(-1)
    rows[len(rows) - max(1, math.ceil(TAIL * len(rows))) :] = 0
    return changed


def _constants(reference: Tensor, dtype: torch.dtype) -> dict[str, Answer]:
    """Constants to try, by name."""
    found: dict[str, Answer] = {"zeros": 0, "ones": 1}
    if dtype == torch.bool or reference.numel() == 0 or reference.is_complex():
        return found
    values = reference.double()
    finite = values if bool(values.isfinite().all()) else values[values.isfinite()]
    if finite.numel():
        low, high = (float(v) for v in finite.aminmax())
        for name, value in (("mean", float(finite.mean())), ("middle", low / 2 + high / 2)):
            constant = value if dtype.is_floating_point else round(value)
            if constant not in found.values():
                found[name] = constant
    return found


def _filled(like: Tensor, value: Answer) -> Tensor:
    one = torch.tensor(value, dtype=torch.float64, device=like.device).to(like.dtype)
    return one.expand(like.shape).clone()


def _far(reference: Tensor, value: Answer) -> bool:
    """Whether right results are far from a constant; equality judges what is no float."""
    if not (reference.is_floating_point() or reference.is_complex()) or not reference.numel():
        return False
    norm = torch.linalg.vector_norm(torch.nan_to_num(reference))
    return bool(torch.linalg.vector_norm(torch.nan_to_num(reference) - value) > FAR * norm) and bool(norm > 0)


def _copyable(given: Tensor, output: Tensor) -> bool:
    return given.shape == output.shape and (output.is_complex() or not given.is_complex())
