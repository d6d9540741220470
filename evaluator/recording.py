"""What a request becomes in documents: the plan and its seeds before the run, problem and sources in the receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from evaluator.correctness.distributions import DISTRIBUTIONS
from evaluator.correctness.variations.cases import MOST
from evaluator.receipt.plan import Dims, Plan, SeedSchedule, TimingPlan, utc_now
from evaluator.receipt.problem import CandidateRecord, DeclaredTolerance, InputsRecord, ProblemRecord, SourceRecord
from evaluator.request import Request
from evaluator.source.forms import Form, Recognised, declared_tolerance

_SIGNAL = ("given", "normal", "spikes", "large")


def schedule(request: Request) -> SeedSchedule:
    """Seeds that nobody knows, or those of `--seed`."""
    return SeedSchedule.secret() if request.seed is None else SeedSchedule.given(request.seed)


def make_plan(request: Request, recognised: Recognised, workloads: tuple[Dims, ...], seeds: SeedSchedule) -> Plan:
    """The plan of an evaluation."""
    verdict = request.plan == "verdict"
    names = tuple(d.name for d in DISTRIBUTIONS if verdict or d.name in _SIGNAL)
    repeats = 3 if verdict else 1
    calls = (len(names) + repeats + 3 + (MOST + 2 if verdict else 0)) * len(workloads)
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
    """None on the CPU. A signal has one process and no baselines; nor has a candidate that is its own reference, or one
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


def tolerance(request: Request) -> tuple[float, float] | None:
    """(atol, rtol) of the command line, else of the reference; None where the evaluator's own bound holds."""
    if request.tolerance is not None or request.reference is None:
        return request.tolerance
    return declared_tolerance(request.reference)


def problem(
    request: Request,
    recognised: Recognised,
    workloads: tuple[Dims, ...],
    outputs: tuple[str, ...],
    looser: bool | None,
) -> ProblemRecord:
    """The problem as a receipt keeps it. `looser`: whether a declared tolerance lets pass what ours would not."""
    reference = request.reference
    declared = tolerance(request)
    by: Literal["reference", "command line"] = "command line" if request.tolerance else "reference"
    inputs = _inputs_record(request)
    makers = {"reference": reference, "candidate": request.candidate, "inputs": inputs}
    setup = makers.get(recognised.setup_from)
    return ProblemRecord.of(
        form=recognised.form,
        oracle=recognised.oracle,
        reference=SourceRecord.of(reference) if reference else None,
        entry=recognised.reference_entry,
        dims=request.dims,
        workloads=workloads,
        vary=request.vary,
        inputs=inputs,
        setup_from=recognised.setup_from,
        setup_hash=setup.hash if setup else None,
        outputs=outputs,
        ptr_sizes=request.ptr_sizes,
        tolerance=declared and DeclaredTolerance(atol=declared[0], rtol=declared[1], declared_by=by, looser=looser),
        allow_library=request.allow_library,
        bytes=request.bytes,
        operations=request.operations,
    )


def candidate(request: Request, recognised: Recognised) -> CandidateRecord:
    """The candidate as a receipt keeps it."""
    folders = [f"-I{folder}" for folder in request.include]
    flags = (*folders, *request.nvcc_flags) if recognised.form is Form.SOLVE else ()
    source = SourceRecord.of(request.candidate)
    return CandidateRecord(**dict(source), backend=recognised.backend, entry=recognised.entry, flags=flags)


def _inputs_record(request: Request) -> InputsRecord | None:
    if request.inputs is None:
        return None
    suffix = Path(request.inputs.name).suffix
    kinds = {".py": "python", ".json": "raw" if request.inputs.beside else "shapes", ".pth": "pt"}
    content = request.inputs.content
    return InputsRecord(
        name=request.inputs.name,
        kind=kinds.get(suffix, suffix.removeprefix(".")),
        hash=request.inputs.hash,
        text=content.decode("utf-8") if suffix in (".py", ".json") and not request.inputs.beside else None,
    )
