"""What the evaluator is asked for the kernels of a run."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.receipt.plan import BaselineChoice
from evaluator.request import InputsFile, Request
from evaluator.sandbox.fork_server import passed_environment
from evaluator.source.source_file import SourceFile, is_cuda
from loop.journal.record import BuildWords, ProblemWords


def make_request(
    candidate: SourceFile,
    reference: SourceFile,
    inputs: tuple[str, bytes] | None,
    problem: ProblemWords,
    device: str,
    *,
    parent: SourceFile | None = None,
    build: BuildWords,
) -> Request:
    """What the evaluator is asked; `parent` is the first baseline."""
    fields = dict(problem)
    if parent is not None:
        fields["baselines"] = (BaselineChoice(name="parent", how="incumbent"), *problem.baselines)
    return Request(
        candidate=candidate,
        incumbent=parent,
        reference=reference,
        inputs=None if inputs is None else InputsFile(name=inputs[0], content=inputs[1]),
        device=device,
        include=tuple(map(Path, build.include)),
        nvcc_flags=build.nvcc_flags,
        cuda_home=Path(build.cuda_home) if build.cuda_home else None,
        python=build.python or sys.executable,
        environment=passed_environment(build.variables),
        **fields,
    )


def parent_file(text: str) -> SourceFile:
    """The parent's file, whose language its text says."""
    ending = "cu" if is_cuda(SourceFile(name="parent", text=text)) else "py"
    return SourceFile(name=f"parent.{ending}", text=text)
