"""Options that several commands have, each with one name, one meaning and one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DimsOption = Annotated[str | None, typer.Option("--dims", help="Sizes: '{\"M\": 4096}' or M=4096,N=8192.")]
InputsOption = Annotated[
    Path | None,
    typer.Option("--inputs", help="Where inputs come from: .py, .npz, .safetensors, .pt, or .json (shapes, or raw)."),
]
EntryOption = Annotated[str | None, typer.Option("--entry", help="The class or function to run, where several fit.")]
OutputsOption = Annotated[str, typer.Option("--outputs", help="Pointers that a .cu kernel writes: a,b.")]
PtrSizeOption = Annotated[
    list[str] | None, typer.Option("--ptr-size", help="Elements of a pointer's buffer: NAME=M*N. May be repeated.")
]
GpuDeviceOption = Annotated[str, typer.Option("--device", help="cuda:N.")]
PythonOption = Annotated[Path | None, typer.Option("--python", help="Interpreter with the kernels' packages.")]
EnvOption = Annotated[
    list[str] | None, typer.Option("--env", help="Environment variable that the kernels get. May be repeated.")
]
CudaHomeOption = Annotated[Path | None, typer.Option("--cuda-home", help="The CUDA toolkit.")]
IncludeOption = Annotated[list[Path] | None, typer.Option("--include", "-I", help="Folder of headers for nvcc.")]
NvccFlagsOption = Annotated[str, typer.Option("--nvcc-flags", help="Further words for nvcc.")]
CallSecondsOption = Annotated[float, typer.Option("--timeout", help="Seconds for one call.", min=0.1, max=3600)]
NeededBytesOption = Annotated[
    str, typer.Option("--bytes", help="Bytes that must move, in place of those that are counted: 2*M*N*4.")
]
NeededOperationsOption = Annotated[
    str, typer.Option("--operations", help="Floating-point operations, in place of those counted: 2*M*N*K.")
]
PeakOption = Annotated[
    str, typer.Option("--peak", help="Peak rate of matrix products or of --operations: tf32_tensor_throughput …")
]
