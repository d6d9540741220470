"""What the evaluator is asked for the kernels of a run."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.receipt.plan import BaselineChoice
from evaluator.request import InputsFile, Request
from evaluator.sandbox.fork_server import passed_environment
from evaluator.source.source_file import SourceFile, is_cuda, read_source
from loop.journal.record import BuildWords, ProblemWords
from loop.planning.wanted import Wanted, kept_names, problem_words
from loop.workspace.inventory import Inventory


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


def request_of(inventory: Inventory, wanted: Wanted, device: str) -> Request:
    """The request of the kernel as it came, with the names that its files will have in the run's folder."""
    names = kept_names(inventory)
    kernel, reference = inventory.kernel_source, read_source(inventory.reference, "reference")
    inputs = None
    if inventory.inputs is not None:
        inputs = (names["inputs"], inventory.inputs.read_bytes())
    words = problem_words(wanted, wanted.outputs)
    if inventory.made is not None and inventory.made.library:
        words = words.model_copy(update={"allow_library": True, "baselines": ()})
    return make_request(
        SourceFile(name=names["kernel"], text=kernel.text),
        SourceFile(name=names["reference"], text=reference.text),
        inputs,
        words,
        device,
        build=wanted.build,
    )
