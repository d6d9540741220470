"""The kernels of `h200_run.py`: a row softmax, written slowly, and what is proposed for it, one step after another.

As a program it is a proposer: a request on standard input, the proposal for its version on standard output.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

REFERENCE = """import torch

M = {M}
N = {N}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(M, N)]


def get_init_inputs():
    return []
"""
HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, B)
"""
THREE_PASSES = """    top = tl.full([B], float("-inf"), tl.float32)
    for start in range(0, n, B):
        top = tl.maximum(top, tl.load(x + row + start + i, mask=start + i < n, other=float("-inf")))
    largest = tl.max(top, axis=0)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        v = tl.load(x + row + start + i, mask=start + i < n, other=float("-inf"))
        total += tl.exp(v - largest)
    whole = tl.sum(total, axis=0)
    for start in range(0, n, B):
        v = tl.load(x + row + start + i, mask=start + i < n, other=float("-inf"))
        tl.store(y + row + start + i, tl.exp(v - largest) / whole, mask=start + i < n)
"""
ONE_PASS = """    v = tl.load(x + row + i, mask=i < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + i, e / tl.sum(e, axis=0), mask=i < n)
"""
ONLINE = """    top = tl.full([B], float("-inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        v = tl.load(x + row + start + i, mask=start + i < n, other=float("-inf"))
        larger = tl.maximum(top, v)
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(top - base) + tl.exp(v - base)
        top = larger
    largest = tl.max(top, axis=0)
    whole = tl.sum(total * tl.exp(top - largest), axis=0)
    for start in range(0, n, B):
        v = tl.load(x + row + start + i, mask=start + i < n, other=float("-inf"))
        tl.store(y + row + start + i, tl.exp(v - largest) / whole, mask=start + i < n)
"""
NOT_RESCALED = ONLINE.replace("total * tl.exp(top - base)", "total")
TAIL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_rows[(x.shape[0],)](x, y, x.shape[1], B={block}, num_warps={warps})
        return y
"""
WHOLE_ROW = "triton.next_power_of_2(x.shape[1])"


def kernel(body: str, block: str, warps: int) -> str:
    """A whole file."""
    return HEAD + body + TAIL.format(block=block, warps=warps)


BASELINE = kernel(THREE_PASSES, "256", 1)


@dataclass(frozen=True)
class Step:
    """A change, and what is said of it; no figure is in it, so that nothing needs a source."""

    method: str
    text: str
    change: str
    why: str
    expected: tuple[str, str, str]


WARPS = Step(
    "launch_config",
    kernel(THREE_PASSES, "256", 2),
    "two warps a program in place of one",
    "More warps on an SM wait for memory at a time.",
    ("time", "down", "some: more loads are under way at a time"),
)
TWO_PASSES = Step(
    "online_recomputation",
    kernel(ONLINE, "256", 2),
    "maximum and sum in one loop, the sum rescaled whenever the maximum grows",
    "A loop over the row that is not there reads nothing.",
    ("dram_bytes_read", "down", "clearly: one of three reads goes"),
)
WRONG = Step(
    "online_recomputation",
    kernel(NOT_RESCALED, "256", 2),
    "maximum and sum in one loop",
    "Wrong on purpose: the sum is not rescaled when the maximum grows, and the run must see it.",
    ("dram_bytes_read", "down", "clearly: one of three reads goes"),
)
ONE_PASS_ONLY = Step(
    "ilp_unroll_register_tile",
    kernel(ONE_PASS, WHOLE_ROW, 2),
    "the whole row is held in registers and read once, in place of loops over it",
    "A row that stays on the chip is read from memory once.",
    ("time", "down", "clearly: the row is read once"),
)
STEPS = {
    "command": ([WARPS], [TWO_PASSES], [ONE_PASS_ONLY]),
    "agent": ([WARPS], [WRONG, TWO_PASSES], [ONE_PASS_ONLY]),
    "llm": ([WARPS], [TWO_PASSES], [ONE_PASS_ONLY]),
}
"""For each proposer: the attempts at each version."""


def proposal(request: dict[str, Any], which: str) -> dict[str, Any]:
    """What is proposed for a request."""
    attempts = STEPS[which][request["version"] - 1]
    step = attempts[min(request["attempt"], len(attempts)) - 1]
    hits = [hit for search in request["searches"] for hit in search["hits"]]
    diagnosis = request["diagnosis"]["bottleneck"] if request["diagnosis"] else "unknown"
    metric, direction, size = step.expected
    return {
        "version": request["version"],
        "parent": request["parent"]["version"],
        "kernel": step.text,
        "methods": [step.method],
        "skipped": [
            {"method": method["id"], "reason": "the steps of this benchmark are fixed beforehand"}
            for method in request["methods"]
            if method["applies"] and method["id"] != step.method
        ],
        "hypothesis": {
            "current_evidence": f"The parent is diagnosed as {diagnosis}.",
            "decision_link": step.why,
            "single_change": step.change,
            "rationale": step.why,
            "expected": [{"metric": metric, "direction": direction, "size": size}],
            "risk": "Registers may spill, or warps may wait for each other.",
            "decision_rule": "Kept if the lower bound of its ratio to the parent says that it is faster.",
        },
        "evidence": {"selected": [{"reference": hits[0]["reference"], "quote": "", "why": hits[0]["title"]}]},
        "circumstances": "A later step of the same plan, on another parent.",
    }


if __name__ == "__main__":
    json.dump(proposal(json.load(sys.stdin), "command"), sys.stdout)
