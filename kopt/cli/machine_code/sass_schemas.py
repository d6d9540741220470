"""What `kopt sass --json` prints under `data`."""

from __future__ import annotations

from typing import Literal

from evaluator.sass.diff import Difference
from evaluator.sass.sass import Function, MethodVerdict, Resources
from kopt.cli.data import Data


class FunctionData(Data):
    """One function of the candidate's machine code."""

    name: str
    """As it stands in the binary."""
    short_name: str
    """Without the types of its parameters."""
    version: str
    """Constants and options that tell it from other compilations of the same kernel; empty for CUDA."""
    kernel: bool
    """Whether it can be launched; other functions are called by kernels."""
    instructions: int
    """Instructions in its text, padding too."""
    opcodes: dict[str, int]
    """Opcode → how often it stands in the text, most frequent first."""
    resources: Resources
    """Registers, local and shared memory, spills."""
    code: str
    """SHA-256 of its instructions in their order."""
    methods: list[MethodVerdict]
    """What the code shows of each method that was asked about."""

    @classmethod
    def of(cls, function: Function, methods: list[MethodVerdict]) -> FunctionData:
        """Of a function and the verdicts on it."""
        fields = {name: getattr(function, name) for name in Function.model_fields}
        return cls(**fields, short_name=function.short_name, methods=methods)


class SassData(Data):
    """Machine code of a candidate for one target."""

    candidate: str
    """Name of the file."""
    candidate_hash: str
    """SHA-256 of its text."""
    target: str
    """What it was compiled for: sm_90a."""
    how: str
    """How kernels, types and constants were found."""
    compiled: bool
    """Whether the compiler took it."""
    functions: list[FunctionData]
    """Its functions."""
    notes: list[str]
    """What a reader should know of how the code came about."""
    other: str
    """Name of the file that it is compared with; empty without --diff."""
    difference: Difference | None
    """What changed between the two; None without --diff."""
    untrusted: Literal[True] = True
    """The binary was made in a process that executed the candidate; the disassembly was not."""
