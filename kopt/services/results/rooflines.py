"""What `kopt roofline` prints under `data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field

from kbs.answers.kernel_roofline import Roof
from kbs.answers.model import Step
from kbs.common.json_model import JsonModel, json_value
from kopt.services.work_counts import Declared

if TYPE_CHECKING:
    from kopt.services.roofline import Roofline


_Row = Annotated[dict[str, Any], BeforeValidator(json_value)]


class WorkData(JsonModel):
    """What the reference must do at the least, as it was counted.

    The fields are those of the evaluator's `Work`, whose module imports torch; its rows are left as they are.
    """

    how: Literal["fake", "real", "none"]
    """It ran on `fake` tensors, which have no memory, on `real` ones on the CPU, or not at all."""
    why: str
    """Why fake tensors did not do."""
    read: list[_Row]
    """name, what, shape, dtype, bytes, factors, exact (false: values decide how much is read)."""
    written: list[_Row]
    operations: list[_Row]
    """name, pipe (tensor, vector or integer), dtype, factors, calls."""
    uncounted: list[str]
    """Operators that no rule is known for."""


class PointData(JsonModel):
    """A measured time of the kernel, with the arithmetic on it."""

    seconds: float
    device: str
    source: str
    bytes: int | None
    """Bytes that a profile counted; None where nothing counted them."""
    arithmetic: list[Step] = Field([])


class RooflineData(JsonModel):
    """`kopt roofline`. What is null could not be computed; `gaps` says for the want of what."""

    gpu: str = Field(validation_alias="product")
    """Product id."""
    name: str = Field(validation_alias="gpu")
    """Name of the product."""
    kernel: str = ""
    """Name of the file."""
    form: str = ""
    dims: dict[str, int] = Field({})
    work: WorkData | None
    """None where bytes and operations were declared."""
    declared_bytes: Declared | None = None
    declared_operations: Declared | None = None
    bytes: int = Field(validation_alias=AliasPath("placed", "demand", "bytes"))
    flop: dict[str, int] = Field(validation_alias=AliasPath("placed", "demand", "flop"))
    """By metric of the peak rate at which they run."""
    intensity: dict[str, float] = Field(validation_alias=AliasPath("placed", "intensity"))
    """FLOP/byte by metric."""
    ridge: dict[str, float] = Field(validation_alias=AliasPath("placed", "ridge"))
    """FLOP/byte by metric."""
    bound: Literal["memory-bound", "compute-bound", ""] = Field(validation_alias=AliasPath("placed", "bound"))
    """Empty where it is not known."""
    binding: str = Field(validation_alias=AliasPath("placed", "metric"))
    """The metric that binds."""
    floor_seconds: float | None = Field(validation_alias=AliasPath("placed", "floor"))
    """Least time of these bytes and operations at the cited peaks, from a cold cache."""
    target_seconds: float | None = Field(validation_alias=AliasPath("placed", "target"))
    """90 % of the nearest ceiling."""
    target_from: Literal["measured", "cited", ""] = Field(validation_alias=AliasPath("placed", "target_from"))
    roofs: list[Roof]
    arithmetic: list[Step] = Field(validation_alias=AliasPath("placed", "steps"))
    point: PointData | None
    gaps: list[str]
    notes: list[str]
    """What a reader must know of how it was counted."""
    plot: str = ""
    """The file that was drawn; empty for none."""

    @classmethod
    def of(cls, found: Roofline, kernel: str, form: str, dims: dict[str, int], plot: str) -> RooflineData:
        """From what was found, and what it was found for."""
        made = cls.from_domain(found)
        if made.point is not None:
            made.point.arithmetic = found.point_steps
        stated = {f"declared_{name}": declared for name, declared in found.declared.items()}
        return made.model_copy(update={"kernel": kernel, "form": form, "dims": dims, "plot": plot, **stated})
