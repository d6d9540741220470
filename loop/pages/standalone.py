"""test_kernel.py: compares the best kernel with the reference in plain PyTorch, without kopt."""

from __future__ import annotations

import pprint
from importlib import resources
from typing import Any

from evaluator.source.cuda_signature import solve_parameters
from evaluator.source.forms import Form, recognise
from evaluator.source.source_file import SourceFile, is_cuda
from loop.pages.artifacts import VersionFiles

NAME = "test_kernel.py"
_TEMPLATE = "test_kernel.py.txt"


def standalone(best: VersionFiles) -> bytes | None:
    """The script for a version; None if it has no kernel. Raises `UsageError` if its form is unknown."""
    if best.kernel is None:
        return None
    record, (name, code) = best.record, best.kernel
    kernel = SourceFile(name=name, text=code.decode("utf-8-sig", "replace"))
    reference = SourceFile(
        name=record.reference.name,
        text=(best.folder.root / record.reference.name).read_bytes().decode("utf-8-sig", "replace"),
    )
    known = recognise(
        kernel,
        reference,
        inputs=record.inputs.name if record.inputs else None,
        entry=record.problem.entry,
        backend=record.problem.backend if best.number == 0 else None,
    )
    solve = known.form is Form.SOLVE and is_cuda(kernel)
    parameters = [(one.name, one.type, one.pointer) for one in solve_parameters(kernel, known.entry)] if solve else []
    tolerance = record.problem.tolerance
    problem: dict[str, Any] = {
        "form": known.form.value,
        "entry": known.entry,
        "reference": record.reference.name,
        "reference_entry": known.reference_entry,
        "inputs": record.inputs.name if record.inputs else "",
        "dims": record.problem.dims,
        "outputs": list(record.problem.outputs),
        "parameters": parameters,
        "tolerance": None if tolerance is None else [tolerance[1], tolerance[0]],
    }
    text = pprint.pformat(problem, width=100)
    template = resources.files("loop.pages").joinpath(_TEMPLATE).read_text("utf-8")
    # Characters that are not ASCII are all in string literals, where escapes mean the same.
    return template.replace("PROBLEM = {}", f"PROBLEM = {text}", 1).encode("ascii", "backslashreplace")
