"""How similar the circumstances of a past experiment are to those asked about: one factor from 0 to 1 each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import backend_name, bottleneck_name, dtype_name, gpu_name, op_name
from kbs.experience.ranking.trials import short, sizes_of

CIRCUMSTANCES = ("dtype", "gpu", "backend", "bottleneck", "recency")
FACTORS = ("op", "shape", *CIRCUMSTANCES)
UNSAID = 0.5
"""Of a record that does not say what is asked about."""
KIN_OP, OTHER_OP = 0.5, 0.1
"""Operations that share a page of the wiki; any other."""
SAME_WIDTH, OTHER_DTYPE = 0.9, 0.3
"""Element types of as many bytes; any other."""
FAMILY, ARCHITECTURE, VENDOR, OTHER_GPU = 0.9, 0.7, 0.35, 0.1
OTHER_BACKEND = 0.4
PART_MIXED, OTHER_BOTTLENECK = 0.4, 0.12
"""One of the two classes is `mixed`; neither is."""
OCTAVES = 4.0
"""Doublings of one size after which the similarity is 0.61."""
ELSEWHERE = 0.3
"""Shapes whose sizes have other names."""
HALF_LIFE = 730.0
"""Days after which a record counts half."""


@dataclass(frozen=True)
class Situation:
    """A kernel to advise on, in names of the vocabulary; what is empty was not said."""

    op: str = ""
    backend: str = ""
    gpu: str = ""
    bottleneck: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    dtype: str = ""

    @classmethod
    def of(
        cls,
        op: str = "",
        backend: str = "",
        gpu: str = "",
        bottleneck: str = "",
        dims: Mapping[str, int] | None = None,
        dtype: str = "",
    ) -> Self:
        """From words as a user writes them. Raises ValueError for a bottleneck that is not a class."""
        return cls(
            op_name(op) or op.strip().lower(),
            backend_name(backend),
            gpu_name(gpu),
            bottleneck_name(bottleneck),
            dict(dims or {}),
            dtype_name(dtype),
        )


def similarities(rows: NDArray[Any], asked: Situation, today: float) -> dict[str, NDArray[np.float64]]:
    """Factor → its similarity for each row. `today` is in days since 1970; what is asked twice in a day has one answer.
    What was not asked about is 1 everywhere."""
    return {
        "op": _named(rows["op"], like_ops(asked.op), OTHER_OP, OTHER_OP),
        "shape": _shape(rows, asked.dims),
        "dtype": _named(rows["dtype"], _dtypes(asked.dtype), OTHER_DTYPE),
        "gpu": _named(rows["gpu"], _gpus(asked.gpu), OTHER_GPU),
        "backend": _named(rows["backend"], {asked.backend: 1.0} if asked.backend else {}, OTHER_BACKEND),
        "bottleneck": _named(rows["bottleneck"], _bottlenecks(asked.bottleneck), OTHER_BOTTLENECK),
        "recency": 0.5 ** (np.maximum(0.0, np.floor(today) - rows["day"]) / HALF_LIFE),
    }


def _named(
    column: NDArray[np.uint32], alike: Mapping[str, float], other: float, unsaid: float = UNSAID
) -> NDArray[np.float64]:
    if not alike:
        return np.ones(len(column))
    column = np.ascontiguousarray(column)
    found = np.full(len(column), other)
    found[column == 0] = unsaid
    for name, value in alike.items():
        found[column == short(name)] = value
    return found


def like_ops(op: str) -> dict[str, float]:
    """The operation and those that share a page of the wiki with it, and how similar they are."""
    known = vocabulary().operations
    if op not in known:
        return {op: 1.0} if op else {}
    kin = {name: KIN_OP for name, other in known.items() if other.page == known[op].page}
    return kin | {op: 1.0}


def _dtypes(dtype: str) -> dict[str, float]:
    known = vocabulary().dtypes
    width = known[dtype].bytes if dtype in known else 0
    alike = {name: SAME_WIDTH for name, other in known.items() if other.bytes == width}
    return alike | {dtype: 1.0} if dtype else {}


def _gpus(gpu: str) -> dict[str, float]:
    if not gpu:
        return {}
    names = vocabulary()
    members = names.family_members(gpu) or [gpu]
    mine = names.products.get(members[0])
    if mine is None:
        return {gpu: 1.0}
    alike = {}
    for name, other in names.products.items():
        if set(other.families) & set(mine.families):
            alike[name] = FAMILY
        elif other.architecture == mine.architecture:
            alike[name] = ARCHITECTURE
        elif other.vendor == mine.vendor:
            alike[name] = VENDOR
    families = dict.fromkeys(mine.families, FAMILY)
    alike |= dict.fromkeys((mine.architecture, *names.architectures[mine.architecture].aliases), ARCHITECTURE)
    return alike | families | dict.fromkeys(members, 1.0) | {gpu: 1.0}


def _bottlenecks(bottleneck: str) -> dict[str, float]:
    if not bottleneck:
        return {}
    mixed = dict.fromkeys(vocabulary().bottlenecks, PART_MIXED) if bottleneck == "mixed" else {"mixed": PART_MIXED}
    return mixed | {bottleneck: 1.0}


def _shape(rows: NDArray[Any], dims: Mapping[str, int]) -> NDArray[np.float64]:
    if not dims:
        return np.ones(len(rows))
    wanted = sizes_of(dims)
    names, sizes = np.ascontiguousarray(rows["names"]), np.ascontiguousarray(rows["sizes"])
    said = np.count_nonzero(names, axis=1)
    distance, shared = np.zeros(len(rows), np.float32), np.zeros(len(rows), int)
    for name, size in wanted:
        same = names == short(name)
        distance += np.einsum("ij,ij->i", np.square(sizes - np.float32(size)), same)
        shared += np.count_nonzero(same, axis=1)
    alike = np.exp(-distance.astype(float) / (2 * OCTAVES**2))
    alike[shared < np.maximum(said, len(wanted))] *= ELSEWHERE
    return np.where(said == 0, UNSAID, alike)
