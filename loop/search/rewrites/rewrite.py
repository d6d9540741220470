"""What a rewrite is: where it applies, what it changes, and whether that changes the order of arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loop.search.rewrites.source import Source
from loop.search.variant import Config, Value

Space = Callable[[Source], Mapping[str, tuple[Value, ...]]]
Apply = Callable[[Source, Config], str]


@dataclass(frozen=True)
class Rewrite:
    """A change of a user's Triton kernel that leaves what it computes as it is."""

    name: str
    method: str
    """Id of the method registry."""
    space: Space
    """What can be chosen in this file; empty where the rewrite does not apply to it."""
    apply: Apply
    """The whole text with the change; asked only with values of the space."""
    why: str
    """One plain sentence on why it may be faster, without a number."""
    reorders: bool = False
    """Whether order or formula of floating-point arithmetic changes, so that last bits of results may differ."""
