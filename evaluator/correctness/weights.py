"""Weights that nobody could have assumed, and under which names a candidate keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evaluator.correctness.reference import Values


def randomized(weights: Values, generator: torch.Generator) -> Values:
    """The same weights with those that a constructor sets to a constant drawn anew.

    A scale of ones becomes 1 + U[−½, ½], so that it stays positive, as a running variance must; a shift of zeros
    becomes U[−½, ½]. What was drawn at random stays: its seed is secret.
    """
    return weights.with_tensors([_drawn(t, generator) if _constant(t) else t for t in weights.tensors])


def signed(constructed: Values, weights: Values, generator: torch.Generator) -> Iterator[dict[int, torch.Tensor]]:
    """Number → weight with half of its signs changed, for what a constructor sets to a constant other than zero.

    Those of one kind together, by the last part of their names: all of `weight`, and all of `running_var`, which has
    to be positive as few others have.
    """
    kinds: dict[str, dict[int, torch.Tensor]] = {}
    for n, (before, spec, now) in enumerate(zip(constructed.tensors, weights.specs, weights.tensors, strict=True)):
        if _constant(before) and float(before.flatten()[0]):
            signs = torch.randint(2, now.shape, generator=generator).mul_(2).sub_(1).to(now.device)
            kinds.setdefault(spec["name"].rpartition(".")[2], {})[n] = (_wide(now) * signs).to(now.dtype)
    yield from kinds.values()


def _constant(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return False
    value = float(tensor.flatten()[0])
    return math.isfinite(value) and bool((_wide(tensor) == value).all())


def _drawn(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64).sub_(0.5).to(tensor.device)
    value = float(tensor.flatten()[0])
    fresh = (noise * abs(value) + value if value else noise).to(tensor.dtype)
    return fresh if bool(_wide(fresh).isfinite().all()) else tensor


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """8-bit floats as float32, since PyTorch does not compare them."""
    return tensor.float() if tensor.element_size() == 1 else tensor


def matched(reference: Sequence[dict[str, Any]], candidate: Sequence[dict[str, Any]]) -> list[str] | str:
    """For each weight of the reference, the candidate's name for it; or what is missing.

    By name and shape; else by order, where the same shapes follow one another. What the candidate has besides, such as
    a table of its own, is passed over, but only if one choice of what to pass over fits: a wrong one would be a guess.
    """
    own = {spec["name"]: (spec["shape"], spec["dtype"]) for spec in candidate}
    missing = [spec for spec in reference if own.get(spec["name"]) != (spec["shape"], spec["dtype"])]
    if not missing:
        return [spec["name"] for spec in reference]
    earliest, latest = _in_order(reference, candidate), _in_order(reference[::-1], candidate[::-1])[::-1]
    if len(earliest) == len(reference) and earliest == latest:
        return earliest
    listed = ", ".join(f"{spec['name']} {tuple(spec['shape'])}" for spec in missing[:5])
    return f"the candidate has no place for the weights {listed}"


def _in_order(reference: Sequence[dict[str, Any]], candidate: Sequence[dict[str, Any]]) -> list[str]:
    """For each weight of the reference the next one of the candidate that has its shape; fewer where they run out."""
    found = []
    wanted = iter((spec["shape"], spec["dtype"]) for spec in reference)
    next_one = next(wanted, None)
    for spec in candidate:
        if (spec["shape"], spec["dtype"]) == next_one:
            found.append(spec["name"])
            next_one = next(wanted, None)
    return found
