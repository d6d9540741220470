"""Arguments that several tools have: the files of a problem, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from kopt.mcp.tool import Call
from kopt.services.arguments import read_dims
from kopt.services.work_counts import ProblemFiles

File = Annotated[str, Field(max_length=4096)]
"""A path below the folder of the server, or a full path into it, a wiki or a run."""
Dims = Annotated[
    dict[Annotated[str, Field(max_length=100)], Annotated[int, Field(gt=0, lt=2**40)]],
    Field(description='Sizes: {"M": 4096, "N": 8192}.', max_length=50),
    BeforeValidator(lambda given: read_dims(given) if isinstance(given, str) else given),
]
NO_DIMS: dict[str, int] = {}
Entry = Annotated[str, Field(description="Class or function to run, if there are several.", max_length=200)]
Launch = Annotated[
    str, Field(description="Kernel name, or number of the launch in the report, from 1.", max_length=500)
]
Bytes = Annotated[str, Field(description="Bytes that must move: 2*M*N*4 (default: counted).", max_length=500)]
Operations = Annotated[str, Field(description="Floating-point operations: 2*M*N*K (default: counted).", max_length=500)]
Peak = Annotated[str, Field(description="Peak rate of matrix products: tf32_tensor_throughput.", max_length=200)]
Inputs = Annotated[File, Field(description="File that makes the inputs: .py, .npz, .safetensors, .pt or .json.")]


def problem_files(
    call: Call,
    kernel: str,
    ref: str,
    dims: Mapping[str, int],
    entry: str,
    bytes: str,
    operations: str,
    inputs: str = "",
) -> ProblemFiles:
    """The files that a client named, checked. UsageError."""
    from kopt.services.bench.request import read_inputs

    return ProblemFiles(
        kernel=call.roots.file(kernel) if kernel else None,
        reference=call.roots.file(ref) if ref else None,
        inputs=read_inputs(call.roots.file(inputs)) if inputs else None,
        dims=dict(dims),
        entry=entry or None,
        bytes=bytes,
        operations=operations,
    )
