"""The kernels that `kopt occupancy` is asked about: what is asked, what a file has, and how each fills an SM."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.sass.cubin import Cubin, KernelResources
    from evaluator.sass.tools import Target
    from kbs.answers.knowledge import Knowledge
    from kbs.evidence.vocabulary import Vocabulary
    from kbs.hardware.occupancy import SmLimits, Usage
    from kopt.cli.machine_code.compile_options import CompileWords
    from kopt.services.results.machine_code import KernelOccupancyData, RefusedKernelData

_SIZE = re.compile(r"\s*(\d{1,12})\s*(B|KB|KiB|K)?\s*", re.IGNORECASE)
_COMPILED_SUFFIXES = (".cu", ".py")


@dataclass(frozen=True)
class Asked:
    """The words of the command."""

    gpu: str
    regs: int | None
    smem: int | None
    threads: int | None
    barriers: int | None
    carveout: int | None
    kernel: Path | None
    function: str
    compiling: CompileWords

    @property
    def compiles(self) -> bool:
        """Whether the kernel's file is one that is compiled first."""
        return self.kernel is not None and self.kernel.suffix in _COMPILED_SUFFIXES

    def check(self) -> None:
        """Raises `UsageError` for words that do not fit together."""
        from kbs.common.errors import UsageError

        numbers = {"--regs": self.regs, "--threads": self.threads}
        if self.kernel is None:
            missing = [name for name, value in {"--gpu": self.gpu or None, **numbers}.items() if value is None]
            if missing:
                raise UsageError(
                    f"without --kernel, {' and '.join(missing)} must be given",
                    code="kernel_missing",
                    hint="Such as: kopt occupancy --gpu h100-sxm --regs 72 --smem 48KB --threads 256",
                )
            if self.function:
                raise UsageError("--function belongs to --kernel", code="function_alone", hint="Give a --kernel FILE.")
        elif self.regs is not None or self.barriers is not None:
            raise UsageError(
                "--kernel says how many registers and barriers the code takes",
                code="two_kernels",
                hint="Give either --kernel, or --regs and --barriers.",
            )
        words = self.compiling.given()
        if words and not self.compiles:
            say = "say" if len(words) > 1 else "says"
            raise UsageError(
                f"{' and '.join(words)} {say} how a kernel is compiled, and nothing is compiled here",
                code="compiled_alone",
                hint="Give a .cu or .py file with --kernel, or leave them out.",
            )
        least = {"--regs": (self.regs, 0), "--threads": (self.threads, 1), "--barriers": (self.barriers, 0)}
        for name, (value, lowest) in least.items():
            if value is not None and value < lowest:
                raise UsageError(
                    f"{name} {value} is less than {lowest}", code="value_invalid", hint=f"Give {lowest} or more."
                )
        if self.carveout is not None and not 0 <= self.carveout <= 100:
            raise UsageError(
                f"--carveout {self.carveout} is no percentage", code="value_invalid", hint="Give 0 to 100."
            )


def read_bytes(text: str) -> int | None:
    """Bytes that --smem says; None where it says nothing. Raises `UsageError`."""
    from kbs.common.errors import UsageError

    if not text:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--smem {text!r} is no size", code="value_invalid", hint="Give bytes, such as 49152, or KB, such as 48KB."
        )
    return int(found[1]) * (1 if (found[2] or "B").upper() == "B" else 1024)


def read_kernels(asked: Asked, target: Target | None, knowledge: Knowledge) -> Cubin | dict[str, str]:
    """The kernels of the file, which is compiled for `target` (None: for the GPU that is here) unless it is already.

    What the compiler says where it refuses the file. Raises `KoptError`.
    """
    from evaluator.sass.cubin import SUFFIX, compiled_kernels, read_cubin
    from kbs.common.errors import UsageError
    from kopt.cli.machine_code.compile_options import compile_error, present_target

    assert asked.kernel is not None
    if asked.kernel.suffix == SUFFIX or not asked.kernel.is_file():
        return read_cubin(asked.kernel)
    if not asked.compiles:
        raise UsageError(
            f"{asked.kernel.name} is neither a .cubin nor a .cu or .py file",
            code="kernel_form",
            hint="Give a compiled kernel, a CUDA file, or a Python file with Triton kernels.",
        )
    target = target or present_target("Name what to compile for, such as --gpu sm_90.")
    ((source, machine),) = asked.compiling.compiled([asked.kernel], target, _multiprocessors(asked.gpu, knowledge))
    if machine.compile_error:
        return compile_error(source, machine)
    return compiled_kernels(machine, target)


def _multiprocessors(gpu: str, knowledge: Knowledge) -> int | None:
    """What the wiki says of the GPU that was named, where its pages agree."""
    products = knowledge.vocabulary.resolve("product", gpu) if gpu else ()
    counts = {spec.value for product in products for spec in knowledge.of(product, "sm_count")[:1]}
    (count,) = counts if len(counts) == 1 else ("",)
    return int(count) if count.isdecimal() else None


def runs_on(compiled: Cubin, target: Target | None, asked: Asked) -> Target:
    """The target to compute for: the named one, if the code runs there, else the file's own."""
    from kbs.common.errors import UsageError

    own = compiled.target
    if target is None or target == own:
        return own
    later = target.number // 10 == own.number // 10 and target.number > own.number
    if compiled.exact or not later:
        raise UsageError(
            f"{asked.kernel} is code for {own.name}{'a' if compiled.exact else ''}, which does not run on {asked.gpu}",
            code="other_gpu",
            hint=f"Leave --gpu out, or compile the kernel for {target.name}.",
        )
    return target


@dataclass(frozen=True)
class AskedKernel:
    """A kernel whose occupancy is asked for."""

    name: str
    usage: Usage
    static: int | None
    notes: tuple[str, ...]


def chosen(compiled: Cubin | None, asked: Asked) -> list[AskedKernel]:
    """The kernels that are asked about."""
    from kbs.common.errors import UsageError
    from kbs.hardware.occupancy import Usage

    if compiled is None:
        assert asked.regs is not None
        assert asked.threads is not None
        usage = Usage(asked.threads, asked.regs, asked.smem or 0, 1 if asked.barriers is None else asked.barriers)
        return [AskedKernel("", usage, None, ())]
    chosen = [kernel for kernel in compiled.kernels if asked.function in kernel.name]
    if not chosen:
        names = ", ".join(kernel.name for kernel in compiled.kernels)
        raise UsageError(
            f"no kernel of {asked.kernel} has {asked.function!r} in its name",
            code="function_unknown",
            hint=f"It has {names}.",
        )
    return [_from_file(kernel, asked) for kernel in chosen]


def _from_file(kernel: KernelResources, asked: Asked) -> AskedKernel:
    """A kernel's usage from its code and the launch that the user describes."""
    from kbs.common.errors import UsageError
    from kbs.hardware.occupancy import Usage

    usage, notes = kernel.usage, []
    threads = asked.threads
    if threads is None:
        threads = usage.required_threads or usage.max_threads
        if threads is None:
            raise UsageError(
                f"the code of {kernel.name} does not say how many threads a block has",
                code="threads_missing",
                hint="Give --threads N.",
            )
        said = "the code demands" if usage.required_threads else "the launch bounds allow"
        notes.append(f"{threads} threads a block, as {said}")
    elif threads != (usage.required_threads or threads) or threads > (usage.max_threads or threads):
        raise UsageError(
            f"{kernel.name} cannot be launched with {threads} threads a block: its code is for "
            f"{usage.required_threads or f'at most {usage.max_threads}'}",
            code="threads_other",
            hint="Leave --threads out, or compile the kernel for that block size.",
        )
    dynamic = asked.smem
    if dynamic is None:
        dynamic = kernel.dynamic_shared
        notes.append(
            "no dynamic shared memory is counted; give what the launch adds with --smem"
            if dynamic is None
            else f"{dynamic:,} B of dynamic shared memory, as Triton says of its launch"
        )
    shared = usage.shared + (dynamic or 0)
    local = usage.stack + usage.local
    if local:
        notes.append(f"{local:,} B of local memory a thread: stack or spilled registers")
    return AskedKernel(
        kernel.name,
        Usage(threads, usage.registers, shared, usage.barriers),
        usage.shared,
        tuple(notes),
    )


def kernel_occupancy(
    kernel: AskedKernel, limits: SmLimits, asked: Asked, vocabulary: Vocabulary
) -> KernelOccupancyData | RefusedKernelData:
    """How the kernel fills an SM, or the limits of the hardware that it is beyond."""
    from kbs.hardware.occupancy import excesses
    from kbs.hardware.occupancy import occupancy as fill
    from kopt.services.results.machine_code import KernelOccupancyData, RefusedKernelData

    beyond = excesses(kernel.usage, limits)
    if beyond:
        return RefusedKernelData(
            kernel=kernel.name,
            why="; ".join(f"{each.value:,} {each.what} are more than {each.limit:,}" for each in beyond),
            citation_lines=[limits.specs[each.metric].citation_line(vocabulary) for each in beyond],
        )
    found = fill(kernel.usage, limits, asked.carveout)
    notes = list(kernel.notes)
    if kernel.usage.shared_memory > limits.shared_memory_per_block_default:
        line = limits.specs["shared_memory_per_block_default"].citation_line(vocabulary)
        notes.append(f"the launch must opt in to this much shared memory, and it must be dynamic: {line}")
    return KernelOccupancyData.of(kernel.name, kernel.static, found, notes)
