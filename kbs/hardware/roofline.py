"""Roofline arithmetic with units: the cost of an operation, ridge points, bounds and floor times.

The model is that of Williams, Waterman and Patterson (CACM 52(4), 2009): a kernel whose intensity (FLOP/byte) lies
below the ridge point, peak rate / memory bandwidth, cannot reach the peak rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import CostRow
from kbs.evidence.vocabulary import Vocabulary

PIPES = ("vector", "tensor")
MEMORY_BOUND = "memory-bound"
COMPUTE_BOUND = "compute-bound"


@dataclass(frozen=True)
class OperationCost:
    """What one call of an operation must do, at given sizes."""

    operation: str
    dims: Mapping[str, int]
    dtype: str
    bytes: Decimal
    """Compulsory traffic, in bytes."""
    flop: Mapping[str, Decimal]
    """Operations by pipe, in FLOP; pipes that it does not use are left out."""
    rows: tuple[CostRow, ...]
    scale_free: bool
    """Whether the intensity is the same for all sizes."""

    def intensity(self, pipe: str) -> Decimal:
        """FLOP of a pipe per compulsory byte."""
        return self.flop[pipe] / self.bytes


def operation_cost(
    rows: Sequence[CostRow], operation: str, dims: Mapping[str, int], dtype: str, vocabulary: Vocabulary
) -> OperationCost:
    """Cost of `operation` from the rows of its cost table; `dims` has a size for each dimension that they name."""
    moved, flop = _cost(rows, dims, dtype, vocabulary)
    twice = {name: size * 2 for name, size in dims.items()}
    moved_twice, flop_twice = _cost(rows, twice, dtype, vocabulary)
    same = all(flop[pipe] * moved_twice == flop_twice[pipe] * moved for pipe in flop)
    return OperationCost(operation, dims, dtype, moved, flop, tuple(rows), same)


def _cost(
    rows: Iterable[CostRow], dims: Mapping[str, int], dtype: str, vocabulary: Vocabulary
) -> tuple[Decimal, dict[str, Decimal]]:
    moved, flop = Decimal(0), dict[str, Decimal]()
    for row in rows:
        amount = Decimal(row.count)
        for dim in row.dims:
            amount *= dims[dim]
        if row.cost in ("read", "write"):
            moved += amount * vocabulary.dtypes[row.dtype or dtype].bytes
        else:
            pipe = row.cost.removesuffix(" FLOP")
            flop[pipe] = flop.get(pipe, Decimal(0)) + amount
    return moved, {pipe: amount for pipe, amount in flop.items() if amount}


def peak_metric(pipe: str, dtype: str, vocabulary: Vocabulary) -> str:
    """The metric that states the peak rate of a pipe for an element type; "" where there is none, as for INT32."""
    found = vocabulary.dtypes[dtype]
    return found.tensor if pipe == "tensor" else found.vector


def usable(specs: Iterable[Spec], product: str, metric: str, vocabulary: Vocabulary) -> Spec | None:
    """The spec to calculate with: recommended, published, dense where that must be said, the best confidence first.
    None for no metric, too."""
    if not metric:
        return None
    wanted = "dense" if vocabulary.metrics[metric].sparsity else ""
    found = [
        spec
        for spec in specs
        if spec.product == product
        and spec.metric == metric
        and spec.recommended
        and spec.qualifier == wanted
        and spec.confidence != "experimental"
        and spec.base(vocabulary) is not None
    ]
    return found[0] if found else None


@dataclass(frozen=True)
class Bound:
    """An operation against one product's roofline."""

    product: str
    cost: OperationCost
    bandwidth: Spec
    peaks: Mapping[str, Spec]
    """By pipe that the operation uses."""
    ridge: Mapping[str, Decimal]
    """FLOP/byte by pipe."""
    memory_time: Decimal
    """Seconds that the compulsory bytes take at the cited bandwidth."""
    compute_time: Mapping[str, Decimal]
    """Seconds by pipe at the cited peak."""

    @property
    def pipe(self) -> str | None:
        """The pipe that the operation keeps busy longest; None if it computes nothing."""
        return max(self.compute_time, key=lambda pipe: self.compute_time[pipe], default=None)

    @property
    def bound(self) -> str:
        """`memory-bound` or `compute-bound`."""
        longest = max(self.compute_time.values(), default=Decimal(0))
        return COMPUTE_BOUND if longest > self.memory_time else MEMORY_BOUND

    @property
    def floor(self) -> Decimal:
        """No kernel on this product can be faster, in seconds."""
        return max([self.memory_time, *self.compute_time.values()])


def bound_on(cost: OperationCost, product: str, specs: Sequence[Spec], vocabulary: Vocabulary) -> Bound | list[str]:
    """The operation against a product's roofline, or the metrics that it would need and that are not known."""
    bandwidth = usable(specs, product, "hbm_bandwidth", vocabulary)
    peaks = {pipe: usable(specs, product, peak_metric(pipe, cost.dtype, vocabulary), vocabulary) for pipe in cost.flop}
    missing = [peak_metric(pipe, cost.dtype, vocabulary) for pipe, spec in peaks.items() if spec is None]
    if bandwidth is None:
        missing.insert(0, "hbm_bandwidth")
    if missing or bandwidth is None:
        return missing
    rates = {pipe: _rate(spec, vocabulary) for pipe, spec in peaks.items() if spec is not None}
    speed = _rate(bandwidth, vocabulary)
    return Bound(
        product=product,
        cost=cost,
        bandwidth=bandwidth,
        peaks={pipe: spec for pipe, spec in peaks.items() if spec is not None},
        ridge={pipe: rate / speed for pipe, rate in rates.items()},
        memory_time=cost.bytes / speed,
        compute_time={pipe: cost.flop[pipe] / rate for pipe, rate in rates.items()},
    )


def _rate(spec: Spec, vocabulary: Vocabulary) -> Decimal:
    quantity = spec.quantity(vocabulary)
    assert quantity is not None, spec
    assert quantity.unit.dimension.endswith("per second"), spec
    return quantity.base
