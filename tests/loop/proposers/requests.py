"""A request for a proposal, for tests of those who answer it."""

from __future__ import annotations

from typing import Any

from loop.proposals.request import (
    BrokenRule,
    DirectivesNote,
    Fact,
    Left,
    MethodOffer,
    NextRequest,
    ParentKernel,
    ParentMeasured,
    PastVersion,
    ProblemNote,
    RefusedSubmission,
)
from loop.tools import FoundPassage, Search

HASH = "0" * 64


def request(**more: Any) -> NextRequest:
    """Version 2 is wanted, out of version 0."""
    passage = FoundPassage(
        reference="gpu-wiki/technique/tiling.md:L29-L30@abc", title="Tiling", text="Larger tiles reuse more.", score=0.5
    )
    refused = RefusedSubmission(
        submission=1,
        single_change="",
        broken=(BrokenRule(rule="schema", message="kernel: Field required", file="proposal.json", line=None, fix="?"),),
    )
    fields: dict[str, Any] = {
        "run": "add-20261121-140000-abcd",
        "folder": "/home/somebody/runs/add-001",
        "version": 2,
        "attempt": 1,
        "parent": ParentKernel(version=0, path="v0/kernel.py", language="python", hash=HASH, text="x = 1\n"),
        "best": 0,
        "target": "2.0x",
        "profile": "none",
        "problem": ProblemNote(
            reference="ref.py", reference_text="y = 2\n", inputs="", dims={"M": 8}, workloads=(), vary=("M",),
            allow_library=False, device="cpu", gpu="h200",
        ),
        "measured": ParentMeasured(
            receipt=HASH, verdict="accepted", improvement="not_timed", median_us=None, to_parent=None
        ),
        "diagnosis": None,
        "external": (Fact(metric="latency", value="12.5 us", reference="receipt/0123456789abcdef#figures[0].value"),),
        "facts": (Fact(metric="dram_throughput", value="62 %", reference="profile/0123456789abcdef#dram_throughput"),),
        "targets": None,
        "searches": (Search(about="kernel", text="how is it made faster", hits=(passage,), degraded=""),),
        "directives": DirectivesNote(
            enforced=("forbid: split_k",), preferred=("vectorized_access",), passed_on=("keep it short",)
        ),
        "methods": (
            MethodOffer(id="launch_config", title="Launch configuration", axis="latency",
                        page="gpu-wiki/method/launch_config.md", applies=True, why="nothing is known against it",
                        priority=3, tried=(1,)),
        ),
        "history": (past(1),),
        "attempts": (),
        "refused": (refused,),
        "left": Left(iterations=2, attempts=3, refusals=2, seconds=None),
        "research_wanted": (),
        "rules": ("Change one thing.",),
    }  # fmt: skip
    return NextRequest(**{**fields, **more})


def past(number: int) -> PastVersion:
    """A version that failed."""
    return PastVersion(
        version=number, parent=0, methods=("launch_config",), single_change=f"change {number}", expected=(),
        outcome="failed", kept=False, why="incorrect", bottleneck="", median_us=None, ratio=None, attempts=(),
    )  # fmt: skip


def proposal(**more: Any) -> dict[str, Any]:
    """An answer that can be read."""
    return {
        "version": 2,
        "parent": 0,
        "kernel": "x = 2\n",
        "methods": ["launch_config"],
        "hypothesis": {
            "current_evidence": "one warp a row",
            "decision_link": "more warps load more at a time",
            "single_change": "four warps in place of one",
            "rationale": "loads in flight",
            "expected": [{"metric": "time", "direction": "down", "size": "by a fifth"}],
            "risk": "none known",
            "decision_rule": "kept if faster than its parent",
        },
        "evidence": {"selected": [{"reference": "gpu-wiki/technique/tiling.md:L29", "quote": "", "why": "says so"}]},
        **more,
    }
