"""The words with which a command says how a kernel is compiled, and compiling as they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kopt.cli.options import (
    CudaHomeOption,
    DimsOption,
    EntryOption,
    EnvOption,
    IncludeOption,
    InputsOption,
    NvccFlagsOption,
    PythonOption,
)

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile

CallReferenceOption = Annotated[
    Path | None, typer.Option("--ref", help="The reference, whose inputs the kernel is called with once.")
]
SignatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--signature",
        help="Compile this Triton kernel from types alone: 'KERNEL: *fp32:16, i32, 1024'. May be repeated.",
    ),
]
NumWarpsOption = Annotated[int, typer.Option("--num-warps", help="With --signature: warps a block.", min=0, max=64)]
NumStagesOption = Annotated[int, typer.Option("--num-stages", help="With --signature: stages.", min=0, max=32)]
CompileSecondsOption = Annotated[float, typer.Option("--timeout", help="Seconds to load and compile.", min=1, max=3600)]
CompileMemoryOption = Annotated[
    float | None, typer.Option("--memory", help="GB of host memory of the kernel's process.", min=0.1)
]


@dataclass(frozen=True)
class CompileWords:
    """How a kernel is compiled: options, each named as its field."""

    ref: CallReferenceOption = None
    inputs: InputsOption = None
    dims: DimsOption = None
    entry: EntryOption = None
    signature: SignatureOption = None
    num_warps: NumWarpsOption = 0
    num_stages: NumStagesOption = 0
    python: PythonOption = None
    env: EnvOption = None
    cuda_home: CudaHomeOption = None
    include: IncludeOption = None
    nvcc_flags: NvccFlagsOption = ""
    timeout: CompileSecondsOption = 300.0
    memory: CompileMemoryOption = None

    def given(self) -> list[str]:
        """The options that say something else than their defaults: --ref."""
        return [
            f"--{word.name.replace('_', '-')}"
            for word in fields(self)
            if (value := getattr(self, word.name)) and value != word.default
        ]

    def compiled(
        self, paths: Sequence[Path], target: Target, multiprocessors: int | None
    ) -> list[tuple[SourceFile, Machine]]:
        """Each file and its machine code for `target`, out of one sandbox. `multiprocessors` is what host code is told
        of the GPU; None: a stand-in. Raises `KoptError`."""
        from evaluator.sandbox.fork_server import ForkServer, passed_environment
        from evaluator.sass.compile import machine_code
        from evaluator.sass.triton_types import read_kernel_types
        from kopt.services.bench.request import make_request

        kernels = [read_kernel_types(text, self.num_warps, self.num_stages) for text in self.signature or ()]
        environment = passed_environment(self.env or ())
        with ForkServer("cuda", "" if self.python is None else str(self.python), environment) as server:
            words: dict[str, Any] = {
                "ref": self.ref,
                "inputs": self.inputs,
                "dims": self.dims,
                "workloads": None,
                "plan": "signal",
                "tolerance": None,
                "sanitizers": None,
                "entry": self.entry,
                "include": tuple(self.include or ()),
                "nvcc_flags": self.nvcc_flags,
                "cuda_home": self.cuda_home,
                "python": server.python,
                "environment": environment,
                "load_seconds": self.timeout,
                "memory": self.memory,
            }
            requests = [make_request(candidate=path, **words) for path in paths]
            made = [machine_code(server, request, target, kernels, multiprocessors) for request in requests]
        return [(request.candidate, machine) for request, machine in zip(requests, made, strict=True)]


def present_target(hint: str) -> Target:
    """The architecture of the GPU that is here. Raises `NoGpuError` (`no_gpu`) with `hint`."""
    from evaluator.receipt.environment import gpu_capability
    from evaluator.sass.tools import read_target
    from kbs.common.errors import NoGpuError

    capability = gpu_capability()
    found = read_target(capability) if capability else None
    if found is None:
        raise NoGpuError("there is no GPU whose architecture could be compiled for", code="no_gpu", hint=hint)
    return found


def compile_error(source: SourceFile, machine: Machine) -> dict[str, str]:
    """What is said of a file that the compiler refused."""
    return {
        "code": "compile_error",
        "message": f"{source.name} does not compile for {machine.target}: {machine.compile_error}",
        "hint": "Mend what the compiler names, or choose another --gpu.",
    }
