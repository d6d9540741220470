"""Receipts that tests change, save and compare."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from evaluator.receipt.environment import Environment, Layer, WorkerEnvironment
from evaluator.receipt.findings import CandidateOutput, NotTried, TaskCheck, Trial
from evaluator.receipt.plan import Plan, SeedSchedule
from evaluator.receipt.problem import CandidateRecord, ProblemRecord, SourceRecord
from evaluator.receipt.receipt import Receipt, ReceiptContent
from evaluator.receipt.timing import (
    AuditWitness,
    BackToBack,
    Baseline,
    Ceiling,
    CitedPeak,
    Clocks,
    Physics,
    Ratio,
    Row,
    Series,
    SpanWitness,
    Summary,
    Timed,
    Timing,
    WorkloadTiming,
)
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.scan.hazards import Hazard, Severity
from evaluator.source.forms import Backend, Form

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


# --- times ------------------------------------------------------------------------------------------------------------

PEAK = CitedPeak(
    product="NVIDIA H200 SXM",
    gb_per_s=4800.0,
    citation="h200-sxm hbm_bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-sxm.md:L33",
)


def series(us: float = 136.0, turns: int = 4, restarts: int = 5, **changes: Any) -> Series:
    """Turns around a time; the last one of the last restart came late."""
    count = turns * restarts
    fields: dict[str, Any] = {
        "restart": tuple(n // turns for n in range(count)),
        "pair": tuple(n % turns for n in range(count)),
        "us": tuple(us * (1 + 0.001 * (n % 7)) for n in range(count)),
        "enqueue_us": (12.5,) * count,
        "clock_mhz": (1980,) * count,
        "dropped": ("",) * (count - 1) + ("late",),
    }
    return Series(**{**fields, **changes})


def summary(us: float = 136.0, **changes: Any) -> Summary:
    """Times around a median."""
    fields: dict[str, Any] = {
        "n": 19,
        "median_us": us,
        "p20_us": us * 0.998,
        "p80_us": us * 1.003,
        "min_us": us * 0.995,
        "max_us": us * 1.02,
        "std_us": us * 0.004,
        "ci_low_us": us * 0.999,
        "ci_high_us": us * 1.001,
    }
    return Summary(**{**fields, **changes})


def timed(name: str = "candidate", us: float = 136.0, **changes: Any) -> Timed:
    """A kernel with times; one of its turns was late."""
    fields: dict[str, Any] = {
        "name": name,
        "status": "timed",
        "flags": () if name == "candidate" else ("TF32 off",),
        "summary": summary(us),
        "late": 1,
        "series": series(us),
    }
    return Timed(**{**fields, **changes})


def ratio(median: float = 1.3125, **changes: Any) -> Ratio:
    """A ratio that is known to half a per cent."""
    fields: dict[str, Any] = {
        "median": median,
        "ci_low": median * 0.996,
        "ci_high": median * 1.004,
        "pairs": 19,
        "restarts": tuple(median * (1 + 0.001 * n) for n in range(-2, 3)),
        "noise": 0.004,
        "converged": True,
    }
    return Ratio(**{**fields, **changes})


def baseline(name: str = "eager", median: float = 1.3125, us: float = 136.0, **changes: Any) -> Baseline:
    """A baseline that takes `median` times the candidate's `us`."""
    found = Improvement.FASTER if median > 1.01 else Improvement.SLOWER if median < 0.99 else Improvement.SAME
    fields: dict[str, Any] = {"timed": timed(name, us * median), "ratio": ratio(median), "improvement": found}
    return Baseline(**{**fields, **changes})


def failed_baseline(name: str = "flashinfer", detail: str = "it is not installed") -> Baseline:
    """A baseline that has no times."""
    lost = Timed(name=name, status="failed", detail=detail)
    return Baseline(timed=lost, ratio=None, improvement=Improvement.NOT_COMPARED)


def spans(**changes: Any) -> SpanWitness:
    """Spans that confirm the time."""
    fields: dict[str, Any] = {
        "status": "confirmed",
        "turns": 8,
        "kernels": 8,
        "outside": 0,
        "busy_us": 134.4,
        "claim_us": 136.0,
    }
    return SpanWitness(**{**fields, **changes})


def audit(**changes: Any) -> AuditWitness:
    """Calls by the own clock that confirm the time."""
    fields: dict[str, Any] = {
        "status": "confirmed",
        "calls": 30,
        "turns": 5,
        "per_call_us": 131.0,
        "empty_us": 420.0,
        "claim_us": 136.0,
        "allowed_us": 175.4,
    }
    return AuditWitness(**{**fields, **changes})


def row(name: str = "candidate", **changes: Any) -> Row:
    """Calls without a pause, at the power cap."""
    fields: dict[str, Any] = {
        "name": name,
        "calls": 32,
        "per_call_us": 1988.0,
        "alone_us": 1797.0,
        "min_mhz": 1395,
        "throttled": ("power cap",),
    }
    return Row(**{**fields, **changes})


def back_to_back(**changes: Any) -> BackToBack:
    """Both sides' calls without a pause."""
    eager = row("eager", per_call_us=1620.0, alone_us=1397.0)
    return BackToBack(**{"candidate": row(), "baseline": eager, "ratio": 1620.0 / 1988.0, **changes})


def back_to_back_of(ratio: float | None, baseline: str = "eager") -> BackToBack:
    """Calls without a pause that came to this ratio; None: there is no baseline's row."""
    if ratio is None:
        return back_to_back(baseline=None, ratio=None)
    one = row(baseline, per_call_us=ratio * 2000.0)
    return back_to_back(candidate=row(per_call_us=2000.0), baseline=one, ratio=one.per_call_us / 2000.0)


def clocks(**changes: Any) -> Clocks:
    """Clocks that were held by the power cap."""
    fields: dict[str, Any] = {
        "status": "sampled",
        "max_mhz": 1980,
        "median_mhz": 1965,
        "min_mhz": 1755,
        "locked": "no",
        "throttled": ("power cap",),
        "temperature_c": 61,
    }
    return Clocks(**{**fields, **changes})


def physics(**changes: Any) -> Physics:
    """A time that is possible."""
    fields: dict[str, Any] = {
        "status": "possible",
        "bytes": 536870912,
        "l2_bytes": 62914560,
        "least_us": 98.74,
        "fastest_us": 135.73,
        "peak": PEAK,
    }
    return Physics(**{**fields, **changes})


def workload_timing(**changes: Any) -> WorkloadTiming:
    """Times of one workload against three baselines, of which one failed."""
    fields: dict[str, Any] = {
        "dims": {"n": 64},
        "candidate": timed(),
        "baselines": {"eager": baseline(), "compile": baseline("compile", 1.005), "flashinfer": failed_baseline()},
        "improvement": Improvement.FASTER,
        "against": "eager",
        "audit": audit(),
        "confirmed": True,
        "empty_us": 1.312,
        "flush_bytes": 125829120,
        "spin_us": 60.0,
        "read_bytes": 268435456,
        "written_bytes": 268435456,
        "bytes": 536870912,
        "gb_per_s": 3947.6,
        "ceiling": Ceiling(floor_us=130.9, made_of="copy", read_bytes=268435456, written_bytes=268435456, n=50),
        "of_ceiling": 0.9625,
        "of_peak": 0.8224,
        "physics": physics(),
        "notes": ("5 restarts took 21 s, torch.compile's first compilation not counted",),
        "seconds": 21.5,
    }
    return WorkloadTiming(**{**fields, **changes})


def timing(*workloads: WorkloadTiming, **changes: Any) -> Timing:
    """All times of an evaluation; of one workload unless others are given."""
    every = workloads or (workload_timing(),)
    against = changes.get("against", every[0].against)
    found = [w.baselines[against].ratio for w in every if against in w.baselines]
    ratios = [r for r in found if r is not None]
    mean = ratio(math.exp(math.fsum(math.log(r.median) for r in ratios) / len(ratios))) if ratios else None
    fields: dict[str, Any] = {
        "plan": "verdict",
        "workloads": every,
        "against": against,
        "ratio": mean,
        "clocks": clocks(),
        "seconds": 21.5 * len(every),
    }
    return Timing(**{**fields, **changes})


def gpu() -> Environment:
    """A machine with a GPU."""
    return environment(
        device="cuda:0",
        device_name="NVIDIA H200",
        device_memory=150 * 10**9,
        compute_capability="9.0",
        driver="580.95.05",
    )


def timed_receipt(times: Timing | None = None, **changes: Any) -> Receipt:
    """The receipt of a candidate that is faster; its plan has the workloads that were timed."""
    found = timing() if times is None else times
    workloads = tuple(w.dims for w in found.workloads)
    fields: dict[str, Any] = {
        "plan": plan(name=found.plan, device="cuda:0", workloads=workloads),
        "problem": problem(workloads=workloads),
        "environment": gpu(),
        "correctness": tuple(trial(index=n, dims=dims) for n, dims in enumerate(workloads)),
        "timing": found,
        "ceiling": found.workloads[0].ceiling,
        "physics": found.workloads[0].physics,
        "not_checked": (),
        "improvement": Improvement.FASTER,
    }
    return receipt(**{**fields, **changes})
