"""What a request comes to, before anything runs: the plan, its seeds, and what will be timed."""

from __future__ import annotations

from evaluator.correctness.distributions import DISTRIBUTIONS
from evaluator.receipt.plan import Dims, Plan, SeedSchedule, TimingPlan, utc_now
from evaluator.request import Request
from evaluator.source.forms import Recognised

_SIGNAL = ("given", "normal", "spikes", "large")


def schedule(request: Request) -> SeedSchedule:
    """Seeds that nobody knows, or those of `--seed`."""
    return SeedSchedule.secret() if request.seed is None else SeedSchedule.given(request.seed)


def make_plan(request: Request, recognised: Recognised, workloads: tuple[Dims, ...], seeds: SeedSchedule) -> Plan:
    """The plan of an evaluation."""
    verdict = request.plan == "verdict"
    names = tuple(d.name for d in DISTRIBUTIONS if verdict or d.name in _SIGNAL)
    repeats = 3 if verdict else 1
    calls = (len(names) + repeats + 3) * len(workloads)
    return Plan(
        name=request.plan,
        candidate_hash=request.candidate.hash,
        reference_hash=request.reference.hash if request.reference else None,
        distributions=names,
        workloads=workloads,
        repeats=repeats,
        strided=verdict,
        sanitizers=request.sanitizers,
        timing=timing_plan(request, recognised),
        seed_commitment=seeds.commitment,
        seed_origin=seeds.origin,
        device=request.device,
        time_limit=request.load_seconds + calls * request.call_seconds,
        memory_limit=request.memory_limit,
        created=utc_now(),
    )


def timing_plan(request: Request, recognised: Recognised) -> TimingPlan | None:
    """None on the CPU. A signal has one process and no baselines; nor has a candidate that is its own oracle, or one
    whose reference is a `.cu` file."""
    if request.device == "cpu":
        return None
    verdict = request.plan == "verdict"
    compiled = request.reference is not None and request.reference.name.endswith(".cu")
    compared = verdict and recognised.oracle == "reference" and not compiled
    return TimingPlan(
        restarts=request.restarts if verdict else 1,
        seconds=request.timing_seconds,
        baselines=request.baselines if compared else (),
    )


def compiles(request: Request, recognised: Recognised) -> bool:
    """Whether processes will be needed that have what torch.compile imports."""
    timing = timing_plan(request, recognised)
    return timing is not None and any(baseline.how == "compile" for baseline in timing.baselines)
