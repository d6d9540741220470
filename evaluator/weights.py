"""Weights that nobody could have assumed, and under which names a candidate keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator.oracle import Values


def randomized(weights: Values, generator: torch.Generator) -> Values:
    """The same weights with those that a constructor sets to a constant drawn anew.

    A scale of ones becomes 1 + U[−½, ½], so that it stays positive, as a running variance must; a shift of zeros becomes
    U[−½, ½]. What was drawn at random stays: its seed is secret.
    """
    fresh = []
    for tensor in weights.tensors:
        if not tensor.is_floating_point() or tensor.numel() == 0 or bool((tensor != tensor.flatten()[0]).any()):
            fresh.append(tensor)
            continue
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64).sub_(0.5).to(tensor)
        value = float(tensor.flatten()[0])
        fresh.append(tensor + noise * abs(value) if value else noise)
    return weights.with_tensors(fresh)


def matched(reference: Sequence[dict[str, Any]], candidate: Sequence[dict[str, Any]]) -> list[str] | str:
    """For each weight of the reference, the candidate's name for it; or what is missing.

    By name and shape; else by order, where the shapes are the same one after the other.
    """
    own = {spec["name"]: (spec["shape"], spec["dtype"]) for spec in candidate}
    if all(own.get(spec["name"]) == (spec["shape"], spec["dtype"]) for spec in reference):
        return [spec["name"] for spec in reference]
    in_order = [(spec["shape"], spec["dtype"]) for spec in reference]
    if [(spec["shape"], spec["dtype"]) for spec in candidate] == in_order:
        return [spec["name"] for spec in candidate]
    missing = [
        f"{spec['name']} {tuple(spec['shape'])}"
        for spec in reference
        if own.get(spec["name"]) != (spec["shape"], spec["dtype"])
    ]
    return "the candidate has no place for the weights " + ", ".join(missing[:5])
