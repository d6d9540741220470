"""A proposal for the next version: the file, and why, as one JSON document of a published schema. Untrusted text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kbs.common.json_model import FrozenModel
from loop.journal.folder import MAIN

MAX_KERNEL = 2_000_000
"""Characters of a kernel's file."""
NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"
"""What a branch may be called: a folder is named after it."""
METHOD = r"^[a-z0-9][a-z0-9_]{0,79}$"
"""How a method is spelled: a folder is named after it."""
_Short = Field(min_length=1, max_length=4000)


class Expected(FrozenModel):
    """One movement that the change should cause: a prediction, recorded and later compared, not checked."""

    metric: str = Field(min_length=1, max_length=120)
    """A metric of the profile by its id, such as dram_throughput, or `time`."""
    direction: Literal["up", "down"]
    size: str = Field(min_length=1, max_length=200)
    """How far, in words or figures: `from 62 % to 80 %`."""


class Hypothesis(FrozenModel):
    """What is changed, why, and how one will know. Written before the change is measured."""

    current_evidence: str = _Short
    """What the parent's profile and receipt show."""
    decision_link: str = _Short
    """How the evidence leads to this change."""
    single_change: str = _Short
    """The one change, in a sentence."""
    rationale: str = _Short
    expected: tuple[Expected, ...] = Field(min_length=1, max_length=12)
    """The expected metric movement."""
    risk: str = _Short
    decision_rule: str = _Short
    """What will be kept, and what will be undone, on which figures."""


class Query(FrozenModel):
    """A question that was put to the knowledge base for this version."""

    about: Literal["kernel", "bottleneck", "experience", "other"]
    text: str = Field(min_length=3, max_length=400)


class Selected(FrozenModel):
    """Evidence that the change rests on."""

    reference: str = Field(min_length=3, max_length=300)
    """The cited lines: gpu-wiki/technique/tiling.md:L29, receipt/ID#FIELD, profile/ID#METRIC."""
    quote: str = Field(max_length=2000)
    """Words that stand in the lines, or a spec as they state it; empty to cite the lines as they are."""
    why: str = _Short


class Evidence(FrozenModel):
    """What was looked at, and what it says."""

    ncu_facts: tuple[str, ...] = Field(default=(), max_length=40)
    """Sentences on the parent's profile; every number in them must stand in it."""
    queries: tuple[Query, ...] = Field(default=(), max_length=20)
    """Further questions that kopt asks when the proposal is handed in; those of the request are there already."""
    selected: tuple[Selected, ...] = Field(min_length=1, max_length=20)
    rejected: tuple[str, ...] = Field(default=(), max_length=20)
    """Evidence that was left aside, and limits of what was found, each with its reason."""


class Skipped(FrozenModel):
    """A method of higher priority that was not taken, and why."""

    method: str = Field(min_length=1, max_length=80)
    reason: str = _Short


class Branch(FrozenModel):
    """Another candidate for the version: the same methods with other tiles, stages, warps or variants."""

    name: str = Field(pattern=NAME)
    """What it is called; `main` is the proposal's own kernel."""
    kernel: str = Field(min_length=1, max_length=MAX_KERNEL)
    """The whole text of its file, in the proposal's language."""


class Ablation(FrozenModel):
    """The kernel without one of its methods, and with all the others."""

    method: str = Field(pattern=METHOD)
    """The method that is left out."""
    kernel: str = Field(min_length=1, max_length=MAX_KERNEL)
    """The whole text of its file, in the proposal's language."""


class Proposal(FrozenModel):
    """What a proposer hands in for a version."""

    schema_version: Literal[1] = 1
    version: int = Field(ge=1)
    """The version that it is for."""
    parent: int = Field(ge=0)
    """The version that was changed; the request names the best one."""
    kernel: str = Field(min_length=1, max_length=MAX_KERNEL)
    """The whole text of the new kernel file."""
    language: Literal["python", "cuda"] = "python"
    """Of the file: `kernel.py` or `kernel.cu`."""
    methods: tuple[str, ...] = Field(min_length=1, max_length=3)
    """Ids of the registry; `rewrite` for a change of language."""
    skipped: tuple[Skipped, ...] = Field(default=(), max_length=80)
    hypothesis: Hypothesis
    evidence: Evidence
    circumstances: str = Field(default="", max_length=4000)
    """For a method that failed before: what is different now."""
    branches: tuple[Branch, ...] = Field(default=(), max_length=15)
    """Further candidates with the same methods. All are ranked by a quick measurement, and the best becomes the
    version. With the kernel itself, which is the branch `main`, at most as many as the run allows."""
    ablations: tuple[Ablation, ...] = Field(default=(), max_length=3)
    """Under the discipline `budget`, for a proposal of several methods: the kernel without each of them. It is measured
    against the accepted kernel, which says what that method brought."""

    @property
    def candidates(self) -> dict[str, str]:
        """Name → text of the kernel and of each branch, in the order in which they were handed in."""
        return {MAIN: self.kernel, **{branch.name: branch.kernel for branch in self.branches}}

    @property
    def others(self) -> tuple[tuple[str, Proposal], ...]:
        """(its place, the proposal for it) of each branch and each ablation."""
        return (
            *((f"branches[{n}].kernel", self.with_kernel(one.kernel)) for n, one in enumerate(self.branches)),
            *((f"ablations[{n}].kernel", self.without(one)) for n, one in enumerate(self.ablations)),
        )

    def without(self, left_out: Ablation) -> Proposal:
        """The same proposal without a method."""
        rest = tuple(method for method in self.methods if method != left_out.method)
        return self.model_copy(update={"kernel": left_out.kernel, "methods": rest})

    def with_kernel(self, text: str) -> Proposal:
        """The same proposal for another of its texts."""
        return self.model_copy(update={"kernel": text})
