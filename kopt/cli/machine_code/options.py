"""Options that say how a kernel is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from kopt.cli import options

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile


@dataclass(frozen=True)
class CompileOptions:
    """How a kernel is called and compiled."""

    panel: ClassVar[str] = "Compilation"

    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, whose inputs the kernel is called with once.")
    ] = None
    inputs: options.InputsOption = None
    dims: options.DimsOption = None
    entry: options.EntryOption = None
    signature: Annotated[
        list[str] | None,
        typer.Option(
            "--signature",
            help="Compile this Triton kernel from types alone: 'KERNEL: *fp32:16, i32, 1024'. Repeatable.",
        ),
    ] = None
    num_warps: Annotated[int, typer.Option("--num-warps", help="With --signature: warps per block.", min=0, max=64)] = 0
    num_stages: Annotated[int, typer.Option("--num-stages", help="With --signature: stages.", min=0, max=32)] = 0
    python: options.PythonOption = None
    env: options.EnvOption = None
    cuda_home: options.CudaHomeOption = None
    include: options.IncludeOption = None
    nvcc_flags: options.NvccFlagsOption = ""
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to load and compile.", min=1, max=3600)] = 300.0
    memory: Annotated[
        float | None, typer.Option("--memory", help="GB of host memory for the kernel's process.", min=0.1)
    ] = None

    def given(self) -> list[str]:
        """The options that differ from their defaults, such as --ref."""
        return [
            f"--{option.name.replace('_', '-')}"
            for option in fields(self)
            if (value := getattr(self, option.name)) and value != option.default
        ]

    def compile(
        self, paths: Sequence[Path], target: Target, multiprocessors: int | None
    ) -> list[tuple[SourceFile, Machine]]:
        """Each file and its machine code, see `compile_files`."""
        from evaluator.sass.triton_types import read_kernel_types
        from kopt.services.machine_code.compiling import compile_files

        return compile_files(
            paths,
            target,
            multiprocessors,
            kernels=[read_kernel_types(text, self.num_warps, self.num_stages) for text in self.signature or ()],
            python=self.python,
            variables=self.env or (),
            ref=self.ref,
            inputs=self.inputs,
            dims=self.dims,
            entry=self.entry,
            include=tuple(self.include or ()),
            nvcc_flags=self.nvcc_flags,
            cuda_home=self.cuda_home,
            load_seconds=self.timeout,
            memory=self.memory,
        )
