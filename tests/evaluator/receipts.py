"""Receipts that tests change, save and compare."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from evaluator.environment import Environment, Layer, WorkerEnvironment
from evaluator.findings import CandidateOutput, NotTried, TaskCheck, Trial
from evaluator.hazards import Hazard, Severity
from evaluator.plan import Plan, SeedSchedule
from evaluator.receipt import Receipt, ReceiptContent
from evaluator.records import CandidateRecord, ProblemRecord, SourceRecord
from evaluator.source import Backend, Form
from evaluator.verdict import Improvement, Verdict

SCHEDULE = SeedSchedule.given("17")
KERNEL = "def run(x):\n    return x.softmax(-1)  # π\n"
REFERENCE = "def reference(x):\n    return x.softmax(-1)\n"


def source_record(name: str, text: str) -> SourceRecord:
    """A source file as receipts keep it."""
    return SourceRecord(name=name, text=text, hash=hashlib.sha256(text.encode()).hexdigest())


def trial(**changes: Any) -> Trial:
    """A row that passed."""
    fields: dict[str, Any] = {
        "index": 0,
        "dims": {"n": 64},
        "distribution": "normal",
        "repeat": 0,
        "memory": "new",
        "output": "result",
        "passed": True,
        "rule": "RMS within 32 times PyTorch's own error",
        "kappa": 32.0,
        "rms_ratio": 0.3,
        "max_ratio": 1.5,
        "worst": 7,
        "expected": 0.25,
        "got": 0.2500001,
        "bitwise": None,
        "seconds": 0.001,
    }
    return Trial(**{**fields, **changes})


def plan(**changes: Any) -> Plan:
    """A plan for one workload and two distributions."""
    fields: dict[str, Any] = {
        "name": "verdict",
        "candidate_hash": hashlib.sha256(KERNEL.encode()).hexdigest(),
        "reference_hash": hashlib.sha256(REFERENCE.encode()).hexdigest(),
        "distributions": ("normal", "small"),
        "workloads": ({"n": 64},),
        "repeats": 3,
        "strided": True,
        "sanitizers": (),
        "seed_commitment": SCHEDULE.commitment,
        "seed_origin": SCHEDULE.origin,
        "device": "cpu",
        "time_limit": 60.0,
        "memory_limit": 1 << 30,
        "created": "2026-11-21T07:14:00Z",
    }
    return Plan(**{**fields, **changes})


def environment(**changes: Any) -> Environment:
    """A machine without a GPU."""
    fields: dict[str, Any] = {
        "kopt": "0.1.0",
        "platform": "Linux-6.1-x86_64",
        "kernel": "6.1",
        "cpu": "A processor",
        "cpu_count": 2,
        "memory": 8 << 30,
        "device": "cpu",
        "device_name": "A processor",
        "device_memory": None,
        "compute_capability": None,
        "driver": None,
        "python": "3.11.9",
        "torch": "2.13.0",
        "triton": "3.7.1",
        "worker": WorkerEnvironment(executable="/usr/bin/python3", python="3.11.9", torch="2.13.0", triton="3.7.1"),
        "nvcc": None,
        "variables": {"PATH": "/usr/bin"},
        "isolation": (Layer(name="landlock", applied=False, detail="the kernel has none"),),
    }
    return Environment(**{**fields, **changes})


def problem(**changes: Any) -> ProblemRecord:
    """A function with its reference."""
    fields: dict[str, Any] = {
        "form": Form.FUNCTION,
        "oracle": "reference",
        "reference": source_record("reference.py", REFERENCE),
        "entry": "reference",
        "dims": {"n": 64},
        "workloads": ({"n": 64},),
        "vary": (),
        "inputs": None,
        "setup_from": "none",
        "setup_hash": None,
        "outputs": (),
        "ptr_sizes": {},
        "tolerance": None,
        "allow_library": True,
    }
    return ProblemRecord.of(**{**fields, **changes})


def content(**changes: Any) -> ReceiptContent:
    """What an accepted candidate's receipt says, with changes."""
    fields: dict[str, Any] = {
        "created": "2026-11-21T07:15:00Z",
        "problem": problem(),
        "candidate": CandidateRecord(
            **source_record("kernel.py", KERNEL).model_dump(), backend=Backend.TORCH, entry="run", flags=()
        ),
        "plan": plan(),
        "seed": SCHEDULE.reveal(),
        "environment": environment(),
        "correctness": (trial(), trial(index=1, kappa=math.nan, max_ratio=math.inf, expected=-math.inf)),
        "task_check": TaskCheck(refused=False, told_apart={"last rows left out": True}),
        "not_tried": (NotTried(what="small", why="the reference divides by its inputs"),),
        "kernels": (),
        "library_operations": (),
        "hazards": (Hazard(id="fixed_inputs", severity=Severity.NOTE, evidence="the inputs file has one set"),),
        "sanitizers": (),
        "not_checked": ("speed: nothing is timed on the CPU",),
        "verdict": Verdict.ACCEPTED,
        "improvement": Improvement.NOT_TIMED,
        "reason": "right in all 2 calls",
        "output_tail": CandidateOutput.tail("done\n"),
        "seconds": 1.25,
    }
    return ReceiptContent(**{**fields, **changes})


def receipt(**changes: Any) -> Receipt:
    """That content with its id; not sealed."""
    return Receipt.of(content(**changes))
