"""What an evaluation will do, written before any code of the candidate is imported, and the seeds that it will use."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kbs.common.canonical_json import Line, Sha256, UtcTime, digest
from kbs.common.json_model import Record

Dims = dict[str, int]
"""A workload: the name of each dimension and its size. Empty where the problem names none."""
SeedOrigin = Literal["secret", "given", "replayed"]
"""`secret`: drawn for this run, unknown to everybody before it. `given`: made from `--seed`, so that a candidate may
have been written for it. `replayed`: revealed by an earlier receipt, so that a candidate may have been written for it.
"""
_MASTER_BYTES = 32


class BaselineChoice(Record):
    """Something that a candidate is compared with."""

    name: Line = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")
    """What it is called."""
    how: Line = Field(pattern=r"^(eager|compile|incumbent|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)$")
    """`eager`: the reference as it is; `compile`: under torch.compile; `incumbent`: another kernel for the same
    problem; else a library's `module:callable`."""


class TimingPlan(Record):
    """How times will be taken."""

    restarts: int = Field(ge=1)
    """Process restarts per kernel."""
    seconds: float = Field(gt=0, allow_inf_nan=False)
    """Seconds of timed samples per workload."""
    baselines: tuple[BaselineChoice, ...]
    """What the candidate is compared with; the verdict on speed speaks of the first."""

    @model_validator(mode="after")
    def _each_name_once(self) -> Self:
        names = [baseline.name for baseline in self.baselines]
        if len(set(names)) != len(names) or "candidate" in names:
            raise ValueError("two kernels have the same name")
        return self


class Plan(Record):
    """What will be done. Its hash stands in the receipt, and its file is on disk before the candidate runs."""

    name: Literal["signal", "verdict"]
    """`signal`: quick, for use inside a loop; it never accepts a version there. `verdict`: everything."""
    candidate_hash: Sha256
    """Of the candidate's text."""
    reference_hash: Sha256 | None
    """Of the reference's text; None where the candidate is its own reference."""
    distributions: tuple[str, ...] = Field(min_length=1)
    """Names of the distributions that inputs are drawn from."""
    workloads: tuple[Dims, ...] = Field(min_length=1)
    """The dims that are tried; one empty object where the problem has none."""
    repeats: int = Field(ge=1)
    """Calls on one draw of the given inputs, before the last one that is watched."""
    strided: bool
    """Whether inputs that are not contiguous are tried."""
    sanitizers: tuple[str, ...]
    """Tools of compute-sanitizer that were asked for."""
    timing: TimingPlan | None = None
    """How times are taken; None where none are: on the CPU."""
    seed_commitment: Sha256
    """Of the 32 bytes that all seeds are derived from; the receipt reveals them."""
    seed_origin: SeedOrigin
    """Who could know the seeds before the run."""
    device: Line
    """`cpu` or `cuda:N`."""
    time_limit: float = Field(gt=0, allow_inf_nan=False)
    """Seconds that loading and all planned calls but the timed ones may take together: each has a limit of its own."""
    memory_limit: int = Field(gt=0)
    """Bytes of host memory that the candidate's processes may hold."""
    created: UtcTime
    """When the plan was made."""

    @model_validator(mode="after")
    def _each_thing_once(self) -> Self:
        for what, names in (("distribution", self.distributions), ("sanitizer", self.sanitizers)):
            if len(set(names)) != len(names):
                raise ValueError(f"a {what} is planned twice")
        if len({tuple(sorted(dims.items())) for dims in self.workloads}) != len(self.workloads):
            raise ValueError("a workload is planned twice")
        return self

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of the plan."""
        return digest(self.model_dump(mode="json"))


@dataclass(frozen=True)
class SeedSchedule:
    """All seeds of a run, derived from 32 bytes that stay in the parent until the receipt reveals them."""

    master: Annotated[bytes, "32 bytes"] = field(repr=False)
    """What the seeds are derived from."""
    origin: SeedOrigin
    """Who could know it before the run."""

    def __post_init__(self) -> None:
        if len(self.master) != _MASTER_BYTES:
            raise ValueError(f"a seed schedule needs {_MASTER_BYTES} bytes, not {len(self.master)}")

    @classmethod
    def secret(cls) -> SeedSchedule:
        """From the operating system's random numbers."""
        return cls(secrets.token_bytes(_MASTER_BYTES), "secret")

    @classmethod
    def given(cls, seed: str) -> SeedSchedule:
        """From the text of `--seed`: the same text makes the same inputs, and they are no secret."""
        return cls(hashlib.sha256(b"kopt seed given\0" + seed.encode("utf-8", "surrogatepass")).digest(), "given")

    @classmethod
    def replayed(cls, revealed: str) -> SeedSchedule:
        """From what a receipt revealed. Raises `ValueError` where that is not 32 bytes in hex."""
        return cls(bytes.fromhex(revealed), "replayed")

    def seed(self, purpose: str, index: int) -> int:
        """The `index`-th seed for a purpose, in [0, 2⁶³).

        HMAC-SHA256 of purpose and index under the master: one revealed seed says nothing of the others.
        """
        message = b"kopt seed\0" + purpose.encode("utf-8") + index.to_bytes(8, "big")
        return int.from_bytes(hmac.digest(self.master, message, "sha256")[:8], "big") >> 1

    @property
    def commitment(self) -> str:
        """SHA-256 of the master, which a plan may show before the run."""
        return hashlib.sha256(self.master).hexdigest()

    def reveal(self) -> str:
        """The master in hex, for the receipt."""
        return self.master.hex()

    def matches(self, commitment: str) -> bool:
        """Whether a plan committed to this schedule."""
        return hmac.compare_digest(self.commitment.encode(), commitment.encode("utf-8", "surrogatepass"))


def utc_now() -> str:
    """The time, to the second, as plans and receipts write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
