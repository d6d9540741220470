"""Rewrites of the user's own Triton kernel: changes that keep what it computes, each with its discrete space."""

from __future__ import annotations

from loop.search.rewrites.arithmetic import ARITHMETIC
from loop.search.rewrites.launch import LAUNCH
from loop.search.rewrites.loops import LOOPS
from loop.search.rewrites.memory import MEMORY
from loop.search.rewrites.programs import PROGRAMS
from loop.search.rewrites.rewrite import Rewrite
from loop.search.rewrites.source import Source, reader
from loop.search.variant import Config, Variant

REWRITES: tuple[Rewrite, ...] = (*LAUNCH, *MEMORY, *LOOPS, *ARITHMETIC, *PROGRAMS)
"""Every rewrite, in the order in which they are tried where nothing speaks for another one."""
_STEP = 0.001
"""How much less a rewrite promises than the one before it, as a part of the parent's time: an order, and no model."""


def rewrites(text: str, parent_us: float = 1.0) -> tuple[Variant, ...]:
    """The rewrites that apply to a kernel file, as variants; none where it is no Triton kernel that can be read.

    `parent_us`: the file's own time in microseconds. A rewrite promises a little less than that, so that it stands
    between generated kernels that promise to be faster and those that promise to be slower.
    """
    source = reader(text)
    if source is None:
        return ()
    found = []
    for place, one in enumerate(REWRITES):
        space = one.space(source)
        if space and all(space.values()):
            found.append(_variant(one, source, dict(space), parent_us * (0.95 + place * _STEP)))
    return tuple(found)


def _variant(one: Rewrite, source: Source, space: dict[str, tuple[int | str | bool, ...]], base: float) -> Variant:
    def cost(config: Config) -> float:
        """Values that stand first in the space come first."""
        return base * (1 + _STEP / 10 * sum(space[name].index(value) for name, value in config.items()))

    def render(config: Config) -> str:
        """Raises ValueError for values that the file has already."""
        changed = one.apply(source, config)
        if changed == source.text:
            raise ValueError("it is the kernel as it is")
        return changed

    return Variant(
        name=f"rewrite-{one.name}",
        methods=(one.method,),
        space=space,
        render=render,
        cost=cost,
        why=one.why,
    )


__all__ = ["REWRITES", "Rewrite", "rewrites"]
