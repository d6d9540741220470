"""compute-sanitizer over the candidate of an evaluation, on one draw of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import Values
from evaluator.correctness.sanitizer import sanitize
from evaluator.receipt.findings import SanitizerRun
from evaluator.sandbox import messages
from evaluator.timing.processes import Starter
from evaluator.timing.standalone_job import job_of


def sanitize_candidate(
    tools: Sequence[str], starter: Starter, cases: Cases, inputs: Values, dims: dict[str, int]
) -> list[SanitizerRun]:
    """Run the tools over a few calls of the candidate on these inputs."""
    files = messages.candidate_files(starter.request)
    with job_of(starter, cases, inputs, dims) as (job, lent):
        return sanitize(tools, starter.server, starter.limits, files, starter.reading, job, lent)
