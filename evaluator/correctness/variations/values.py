"""Arguments with one thing changed: pure functions of tensors and trees."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from evaluator.worker.memory.values import Tree

_NEXT = 0.1, 1.37
"""A float x becomes 1.37·x + 0.1, which differs from x wherever x is not −0.27."""
_ROWS = 4
"""One row in so many becomes zero."""
_SAMPLE = 1 << 20
"""Elements by which a tensor's magnitude is told: a large one has no room for a copy beside it."""
DRAWABLE = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
"""Types of integers that random numbers are drawn of."""
_LARGE = {torch.int16: 1 << 14, torch.int32: 1 << 29, torch.int64: 1 << 40}
"""Integers up to which plain numbers are drawn: a few of them pass what the next smaller type holds."""
_CODES = 1 << 16
"""Numbers up to 2ⁿ − 1 below this may be n bits that are packed with others."""
_PLACES = 3
"""Elements that become NaN, or infinite."""
_BLOCKS = 128, 64
"""Elements that a kernel reads of a row at once."""
_MANY = 1000
"""Rows that are changed one by one."""
MARKERS = -100, -1
"""Numbers that stand for no label and no index."""


def scalars(tree: Tree, where: str = "") -> dict[str, Any]:
    """Name → number or text, of all among the arguments; names as tensors have them."""
    if "scalar" in tree:
        return {where: tree["scalar"]} if tree["scalar"] is not None else {}
    found: dict[str, Any] = {}
    for name, part in _parts(tree, where):
        found |= scalars(part, name)
    return found


def with_scalar(tree: Tree, name: str, value: Any, where: str = "") -> Tree:
    """The same tree with another value under a name of `scalars`."""
    if "scalar" in tree:
        return {"scalar": value} if where == name else tree
    changed = [with_scalar(part, name, value, inner) for inner, part in _parts(tree, where)]
    if "dict" in tree:
        return {"dict": [[key, part] for (key, _), part in zip(tree["dict"], changed, strict=True)]}
    return {kind: changed for kind in ("list", "tuple") if kind in tree} or tree


def _parts(tree: Tree, where: str) -> Iterator[tuple[str, Tree]]:
    for kind in ("list", "tuple"):
        for n, part in enumerate(tree.get(kind, ())):
            yield (f"{where}[{n}]" if where else str(n)), part
    for key, part in tree.get("dict", ()):
        yield (f"{where}.{key}" if where else key), part


def other_numbers(value: float, elements: Sequence[int], sizes: Sequence[int], *, near: bool) -> list[Any]:
    """Numbers to take the place of a scalar, the best first; empty where it is a size, and any other would not fit.

    `elements` are some that integer inputs hold, which a marker such as `ignore_index` should be one of. `sizes` are
    shapes, dims and numbers of elements: what divides one of these may be a size, a stride or a part of one. `near`
    says whether a positive number may change by one, as an index must not where a wrong one ends the process.
    """
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        shift, factor = _NEXT
        return [x for x in (factor * value + shift, value / factor) if x != value] if math.isfinite(value) else []
    if value in sizes or (value > 1 and any(size % value == 0 for size in sizes if size)):
        return []
    found = [n for n in dict.fromkeys(elements) if n != value] if near or value < 0 else []
    return [*found, *([value + 1] if near or value < 0 else [])]


def moved_element(tensor: Tensor, at: int, part: float = 1.0) -> Tensor:
    """One element moved by `part` of the tensor's largest magnitude; upward in tensors without a negative number."""
    flat = tensor.flatten()
    sample = flat[:: max(1, tensor.numel() // _SAMPLE)].double()
    finite = sample[sample.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 1.0
    step = part if not finite.numel() or float(finite.min()) < 0 else abs(part)
    moved = float(flat[at]) + step * (largest or 1.0)
    top = float(torch.finfo(tensor.dtype).max)
    return _with(tensor, {at: min(max(moved, -top), top)})


def with_specials(tensor: Tensor, values: Sequence[float], draw: random.Random) -> Tensor:
    """NaN or infinities in a few places."""
    places = draw.sample(range(tensor.numel()), min(_PLACES, tensor.numel()))
    return _with(tensor, {at: values[n % len(values)] for n, at in enumerate(places)})


def with_blocks(tensor: Tensor, value: float, draw: random.Random) -> Tensor | None:
    """Half of the rows, one at least, with a part that is `value` throughout: their beginning, as long as a block, or a
    quarter to half of them anywhere. None where rows have one element."""
    if tensor.dim() == 0 or not tensor.numel() or tensor.shape[-1] < 2:
        return None
    changed = tensor.clone(memory_format=torch.contiguous_format)
    width = tensor.shape[-1]
    rows = changed.view(-1, width)
    for n, row in enumerate(draw.sample(range(len(rows)), max(1, min(len(rows) // 2, _MANY)))):
        count = draw.randint(max(1, width // 4), width // 2)
        begin = draw.randrange(width - count + 1) if n % 2 else 0
        count = count if n % 2 else max(count, *(size for size in (*_BLOCKS, 1) if size < width))
        rows[row, begin : begin + count] = value
    return changed


def with_marker(tensor: Tensor, marker: int, draw: random.Random) -> Tensor:
    """Integers of which a quarter, one at least, is `marker`."""
    changed = tensor.clone(memory_format=torch.contiguous_format)
    places = draw.sample(range(tensor.numel()), max(1, min(tensor.numel() // _ROWS, _MANY)))
    changed.view(-1)[torch.tensor(places, device=tensor.device)] = marker
    return changed


def _with(tensor: Tensor, elements: dict[int, float]) -> Tensor:
    changed = tensor.clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    for at, value in elements.items():
        flat[at : at + 1] = torch.tensor([value], dtype=torch.float64).to(tensor.dtype).to(tensor.device)
    return changed


def zero_rows(tensors: Sequence[Tensor], draw: random.Random) -> list[Tensor]:
    """Some rows of the last dimension zero, the same ones in tensors of as many rows. One dimension has no rows."""
    chosen: dict[int, Tensor] = {}
    changed = []
    for tensor in tensors:
        if tensor.dim() < 2 or not tensor.numel() or not (tensor.is_floating_point() or tensor.is_complex()):
            changed.append(tensor)
            continue
        count = tensor.numel() // tensor.shape[-1]
        if count not in chosen:
            chosen[count] = torch.tensor(draw.sample(range(count), max(1, min(count // _ROWS, 1000))))
        own = tensor.clone(memory_format=torch.contiguous_format)
        own.view(count, -1)[chosen[count].to(own.device)] = 0
        changed.append(own)
    return changed


def backwards(tensor: Tensor) -> Tensor:
    """The same elements in the reverse order, which no checksum that forgets their order tells apart."""
    return tensor.flatten().flip(0).reshape(tensor.shape)


def in_other_order(tensor: Tensor, generator: torch.Generator, *, rows: bool) -> Tensor | None:
    """The rows of the last dimension, all others flattened, or else its columns, in another order; None where there are
    no two."""
    if tensor.dim() < 2 or not tensor.numel():
        return None
    flat = tensor.reshape(-1, tensor.shape[-1])
    order = other_order(flat.shape[0 if rows else 1], generator)
    return None if order is None else reordered(flat, 0 if rows else 1, order).reshape(tensor.shape)


def other_order(size: int, generator: torch.Generator) -> Tensor | None:
    """Numbers up to `size` in an order that is not their own; None where there is none."""
    if size < 2:
        return None
    order = torch.randperm(size, generator=generator, device=generator.device)
    return order.flip(0) if bool((order.diff() == 1).all()) else order


def between(tensor: Tensor, generator: torch.Generator) -> Tensor | None:
    """Other sorted numbers between the ends of sorted ones, such as offsets of segments; None for others."""
    if tensor.dim() != 1 or len(tensor) < 3 or not is_sorted(tensor):
        return None
    low, high = int(tensor[0]), int(tensor[-1])
    drawn = torch.randint(low, high + 1, (len(tensor) - 2,), generator=generator, device=generator.device)
    inner = drawn.sort().values.to(tensor.device, tensor.dtype)
    return torch.cat([tensor[:1], inner, tensor[-1:]])


def permuted(tensor: Tensor, generator: torch.Generator) -> Tensor | None:
    """An integer tensor with its rows, else its columns, in another order; None where no order differs.

    What stands within a row stays together, since it may have to be different there. Sorted numbers stay, since they
    may be offsets, unless they follow one another, as positions do.
    """
    for dimension in (0, -1):
        if tensor.dim() == 0 or tensor.shape[dimension] < 2 or is_sorted(tensor):
            continue
        order = torch.randperm(tensor.shape[dimension], generator=generator, device=generator.device).to(tensor.device)
        changed = tensor.index_select(dimension, order)
        if not torch.equal(changed, tensor):
            return changed
    return None


def redrawn(tensor: Tensor, generator: torch.Generator) -> Tensor | None:
    """Integers drawn anew between the smallest and the largest, with repetition; equal ones, such as full lengths, from
    1 on. None for sorted numbers, since they may be offsets, and where no other can be drawn."""
    if not tensor.numel() or tensor.dtype not in DRAWABLE or (tensor.dim() and is_sorted(tensor)):
        return None
    low, high = int(tensor.min()), int(tensor.max())
    if low == high and tensor.numel() == 1 and high in (0, 1):  # a count of steps, more often than a length
        return tensor + 1
    low = min(1, high) if low == high else low
    return _integers(tensor, low, high, generator) if low < high else None


def large_numbers(
    tensor: Tensor, generator: torch.Generator, factor: int | None, *, signed: bool = False
) -> Tensor | None:
    """Integers up to `factor` times the largest, else up to a good part of the type's range; negative ones as well
    where there are some, or with `signed`. None where the given ones reach as far, for sorted ones, and for codes:
    numbers of one byte, or up to 2ⁿ − 1."""
    if not tensor.numel() or tensor.dtype not in _LARGE or (tensor.dim() and is_sorted(tensor)):
        return None
    low, high = int(tensor.min()), int(tensor.max())
    largest = max(-low, high)
    most = _LARGE[tensor.dtype] if factor is None else min(_LARGE[tensor.dtype], factor * largest)
    if most <= largest or (largest & (largest + 1) == 0 and largest < _CODES):
        return None
    return _integers(tensor, -most if low < 0 or signed else 0, most, generator)


def reaching(tensor: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Numbers below `size`, the last of them among these; each once and in their order, where the given ones are so."""
    count = tensor.numel()
    if count <= size and len(torch.unique(tensor)) == count:
        drawn = torch.randperm(size, generator=generator, device=generator.device)[:count]
    else:
        drawn = torch.randint(0, size, (count,), generator=generator, device=generator.device)
    if count and not bool((drawn == size - 1).any()):
        drawn[0] = size - 1
    if tensor.dim() == 1 and is_sorted(tensor):
        drawn = drawn.sort().values
    return drawn.reshape(tensor.shape).to(tensor.device, tensor.dtype)


def with_zeros(tensor: Tensor, draw: random.Random) -> Tensor:
    """A quarter of the elements, two at least, are 0 and -0 in turn."""
    count = min(tensor.numel(), max(2, min(tensor.numel() // _ROWS, _MANY)))
    places = draw.sample(range(tensor.numel()), count)
    return _with(tensor, {at: -0.0 if n % 2 else 0.0 for n, at in enumerate(places)})


def _integers(tensor: Tensor, low: int, high: int, generator: torch.Generator) -> Tensor:
    end = min(high + 1, 2**63 - 1)
    return torch.randint(low, end, tensor.shape, generator=generator, device=generator.device).to(
        tensor.device, tensor.dtype
    )


def reordered(tensor: Tensor, dimension: int, order: Tensor) -> Tensor:
    """The parts of a tensor along a dimension in another order."""
    return tensor.index_select(dimension, order.to(tensor.device))


def is_sorted(tensor: Tensor) -> bool:
    """Whether rows of integers grow, with repetition or with gaps, as offsets of segments do."""
    steps = tensor.to(torch.int64).diff(dim=-1)
    return bool((steps >= 0).all()) and bool((steps > 0).any()) and not bool((steps == 1).all())


def masks(tensor: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Bools drawn anew: as many true as false, else three of four true, for where a row must have one."""
    for part in (0.5, 0.75):
        yield (torch.rand(tensor.shape, generator=generator, device=generator.device) < part).to(tensor.device)


def with_empty_rows(mask: Tensor, draw: random.Random) -> Tensor | None:
    """Bools of which a quarter of the rows, one at least, have no true element; None where there are no rows."""
    if mask.dim() == 0 or not mask.numel():
        return None
    changed = mask.clone(memory_format=torch.contiguous_format)
    rows = changed.view(-1, mask.shape[-1]) if mask.dim() > 1 else changed.view(-1, 1)
    chosen = draw.sample(range(len(rows)), max(1, len(rows) // _ROWS))
    rows[torch.tensor(chosen, device=mask.device)] = False
    return changed


def scaled(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """A weight times 1 + U[−½, ½], which keeps its sign; integers as they are."""
    if not tensor.is_floating_point():
        return tensor
    factor = torch.rand(tensor.shape, generator=generator, device=generator.device).add_(0.5).to(tensor.device)
    return (tensor.to(torch.promote_types(tensor.dtype, torch.float32)) * factor).to(tensor.dtype)
