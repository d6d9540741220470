"""What the evaluator is asked for the kernels of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop.journal.record import ProblemWords

if TYPE_CHECKING:
    from evaluator.request import Request
    from evaluator.source.source_file import SourceFile


def make_request(
    candidate: SourceFile,
    reference: SourceFile,
    inputs: tuple[str, bytes] | None,
    problem: ProblemWords,
    device: str,
    *,
    parent: SourceFile | None = None,
) -> Request:
    """What the evaluator is asked; `parent` is the first baseline."""
    from evaluator.receipt.plan import BaselineChoice
    from evaluator.request import InputsFile, Request
    from evaluator.sandbox.fork_server import passed_environment

    first = () if parent is None else (BaselineChoice(name="parent", how="incumbent"),)
    return Request(
        candidate=candidate,
        incumbent=parent,
        reference=reference,
        inputs=None if inputs is None else InputsFile(name=inputs[0], content=inputs[1]),
        dims=problem.dims,
        workloads=problem.workloads,
        vary=problem.vary,
        plan="verdict",
        device=device,
        allow_library=problem.allow_library,
        backend=problem.backend,
        entry=problem.entry,
        outputs=problem.outputs,
        ptr_sizes=problem.ptr_sizes,
        tolerance=problem.tolerance,
        baselines=(*first, *problem.baselines),
        restarts=problem.restarts,
        timing_seconds=problem.timing_seconds,
        bytes=problem.bytes,
        operations=problem.operations,
        environment=passed_environment(()),
        call_seconds=problem.call_seconds,
        load_seconds=problem.load_seconds,
    )


def parent_file(text: str) -> SourceFile:
    """The parent's file, whose language its text says."""
    from evaluator.source.source_file import SourceFile, is_cuda

    ending = "cu" if is_cuda(SourceFile(name="parent", text=text)) else "py"
    return SourceFile(name=f"parent.{ending}", text=text)
