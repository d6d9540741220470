"""What `kopt roofline` prints under `data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kbs.answers.kernel_roofline import Roof
from kbs.answers.model import Step
from kbs.common.json_model import JsonModel
from kopt.services.work_counts import Declared

if TYPE_CHECKING:
    from evaluator.work import Work
    from kopt.services.roofline import Roofline


class WorkData(JsonModel):
    """What the reference must do at the least, as it was counted.

    The fields are those of the evaluator's `Work`, whose module imports torch; its rows are left as they are.
    """

    how: Literal["fake", "real", "none"]
    """It ran on `fake` tensors, which have no memory, on `real` ones on the CPU, or not at all."""
    why: str
    """Why fake tensors did not do."""
    read: list[dict[str, Any]]
    """name, what, shape, dtype, bytes, factors, exact (false: values decide how much is read)."""
    written: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    """name, pipe (tensor, vector or integer), dtype, factors, calls."""
    uncounted: list[str]
    """Operators that no rule is known for."""

    @classmethod
    def of(cls, work: Work | None) -> WorkData | None:
        """From the evaluator's."""
        return None if work is None else cls(**work.model_dump(mode="json"))


class PointData(JsonModel):
    """A measured time of the kernel, with the arithmetic on it."""

    seconds: float
    device: str
    source: str
    bytes: int | None
    """Bytes that a profile counted; None where nothing counted them."""
    arithmetic: list[Step]


class RooflineData(JsonModel):
    """`kopt roofline`. What is null could not be computed; `gaps` says for the want of what."""

    gpu: str
    """Product id."""
    name: str
    """Name of the product."""
    kernel: str
    """Name of the file."""
    form: str
    dims: dict[str, int]
    work: WorkData | None
    """None where bytes and operations were declared."""
    declared_bytes: Declared | None
    declared_operations: Declared | None
    bytes: int
    flop: dict[str, int]
    """By metric of the peak rate at which they run."""
    intensity: dict[str, float]
    """FLOP/byte by metric."""
    ridge: dict[str, float]
    """FLOP/byte by metric."""
    bound: Literal["memory-bound", "compute-bound", ""]
    """Empty where it is not known."""
    binding: str
    """The metric that binds."""
    floor_seconds: float | None
    """Least time of these bytes and operations at the cited peaks, from a cold cache."""
    target_seconds: float | None
    """90 % of the nearest ceiling."""
    target_from: Literal["measured", "cited", ""]
    roofs: list[Roof]
    arithmetic: list[Step]
    point: PointData | None
    gaps: list[str]
    notes: list[str]
    """What a reader must know of how it was counted."""
    plot: str
    """The file that was drawn; empty for none."""

    @classmethod
    def of(cls, found: Roofline, kernel: str, form: str, dims: dict[str, int], plot: str) -> RooflineData:
        """From the internal form."""
        placed, point = found.placed, found.point
        return cls(
            gpu=found.product,
            name=found.gpu,
            kernel=kernel,
            form=form,
            dims=dims,
            work=WorkData.of(found.work),
            declared_bytes=found.declared.get("bytes"),
            declared_operations=found.declared.get("operations"),
            bytes=placed.demand.bytes,
            flop=placed.demand.flop,
            intensity={metric: float(value) for metric, value in placed.intensity.items()},
            ridge={metric: float(value) for metric, value in placed.ridge.items()},
            bound=placed.bound,
            binding=placed.metric,
            floor_seconds=None if placed.floor is None else float(placed.floor),
            target_seconds=None if placed.target is None else float(placed.target),
            target_from=placed.target_from,
            roofs=found.roofs,
            arithmetic=list(placed.steps),
            point=None
            if point is None
            else PointData(
                seconds=float(point.seconds),
                device=point.device,
                source=point.source,
                bytes=point.bytes,
                arithmetic=found.point_steps,
            ),
            gaps=found.gaps,
            notes=found.notes,
            plot=plot,
        )
