"""Times that no device of a kind can reach: fewer microseconds than the problem's bytes need at the cited peak."""

from __future__ import annotations

import math
import random

import torch

from evaluator.correctness.candidate import same_bits
from evaluator.correctness.cases import Case, Cases
from evaluator.receipt.timing import CitedPeak, Physics
from kbs.common.errors import UsageError

PLACES = 64
"""Places of each input at which it is tried whether the results depend on them."""
_PLACE_BYTES = 32
"""The least that is read of device memory at once: who needs one byte of a place reads all of it."""
_MAY_BE_WRONG = 1e-4
"""With which chance the part that counts may be larger than it is."""
_SLACK = 0.98
"""A time is called impossible only below this part of the least."""


def traffic(cases: Cases, case: Case) -> tuple[int, int]:
    """(bytes of the inputs and weights, bytes of the results)."""
    read = sum(t.nbytes for n, t in enumerate(case.values.tensors) if n not in cases.shape.filled)
    return read + sum(t.nbytes for t in cases.weights.tensors), sum(t.nbytes for t in case.native)


def check(
    cases: Cases, case: Case, peak: CitedPeak | None, l2_bytes: int, fastest_us: float, draw: random.Random
) -> Physics:
    """Hold the candidate's fast samples (their 20th percentile, in microseconds) against the peak.

    What counts is the results and the distinct inputs that they depend on: an embedding reads few rows of its table.
    Dependence is only tried where the time would be impossible if all inputs counted.
    """
    if peak is None:
        return Physics(status="not checked", detail="no cited peak bandwidth is known for this device")
    read, written = traffic(cases, case)
    if fastest_us < _SLACK * _least(read + written, l2_bytes, peak):
        read = _needed(cases, case, draw)
    least = _least(read + written, l2_bytes, peak)
    impossible = fastest_us < _SLACK * least
    said = f"{fastest_us:.2f} us are fewer than {read + written} bytes need at {peak.gb_per_s:g} GB/s: {least:.2f} us"
    return Physics(
        status="impossible" if impossible else "possible",
        bytes=read + written,
        l2_bytes=l2_bytes,
        least_us=least,
        fastest_us=fastest_us,
        peak=peak,
        detail=said if impossible else "",
    )


def _least(size: int, l2_bytes: int, peak: CitedPeak) -> float:
    """Microseconds for the bytes that the cache cannot have held."""
    return max(0, size - l2_bytes) / peak.gb_per_s / 1e3


def _needed(cases: Cases, case: Case, draw: random.Random) -> int:
    """Bytes of inputs that the results depend on, from below: each float input is changed in a few places, one at a
    time, and what changed a result counts. Whole numbers, such as indices, count nothing."""
    found = 0.0
    for n, tensor in enumerate(case.values.tensors):
        if n in cases.shape.filled or not tensor.is_floating_point() or not tensor.numel():
            continue
        changed = sum(_depends(cases, case, n, draw) for _ in range(PLACES))
        found += tensor.nbytes * least_part(changed, PLACES)
    return int(found)


def least_part(changed: int, tried: int) -> float:
    """The smallest part of all places that makes `changed` of `tried` likely enough.

    The lower end of the exact binomial interval. Source: C. J. Clopper and E. S. Pearson, Biometrika 26, 1934.
    """
    low, high = 0.0, changed / tried
    for _ in range(40):
        middle = (low + high) / 2
        at_least = math.fsum(
            math.comb(tried, k) * middle**k * (1 - middle) ** (tried - k) for k in range(changed, tried + 1)
        )
        low, high = (low, middle) if at_least > _MAY_BE_WRONG else (middle, high)
    return low


def _depends(cases: Cases, case: Case, n: int, draw: random.Random) -> bool:
    tensors = list(case.values.tensors)
    moved = tensors[n].clone(memory_format=torch.contiguous_format)
    length = max(1, min(moved.numel(), _PLACE_BYTES // moved.element_size()))
    first = draw.randrange(-(-moved.numel() // length)) * length
    moved.view(-1)[first : first + length].mul_(-1.5).add_(1.0)
    tensors[n] = moved
    try:
        results = cases.reference.run(case.values.with_tensors(tensors), "native", cases.shape.written).tensors
    except UsageError:  # the reference does not take it: nothing is known of this place
        return False
    return any(_differ(a, b) for a, b in zip(results, case.native, strict=True))


def _differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether some number is another. Zero times a changed input may be -0, which a kernel need not tell from 0."""
    return not same_bits(a, b) and (a.shape != b.shape or bool(((a != b) & ~(a.isnan() & b.isnan())).any()))
