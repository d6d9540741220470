"""`kopt sass`: what a kernel compiles to, with no GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from evaluator.disassembler import Target
    from kopt.engine import Engine


def sass(
    candidate: Annotated[Path, typer.Argument(help="The kernel: a .py file with Triton kernels, or a .cu file.")],
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="What to compile for: sm_90, 9.0, or a GPU of the wiki. Default: the GPU present."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only these methods: ID, or ID,ID; may be repeated.")
    ] = None,
    diff: Annotated[Path | None, typer.Option("--diff", help="Another version, to compare with.")] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, whose inputs the kernel is called with once.")
    ] = None,
    inputs: Annotated[Path | None, typer.Option("--inputs", help="A file that inputs come from.")] = None,
    dims: Annotated[str | None, typer.Option("--dims", help="Sizes: '{\"M\": 4096}' or M=4096,N=8192.")] = None,
    entry: Annotated[str | None, typer.Option("--entry", help="Class or function to call.")] = None,
    signature: Annotated[
        list[str] | None,
        typer.Option(
            "--signature",
            help="Compile this Triton kernel from types alone: 'KERNEL: *fp32:16, i32, 1024'. May be repeated.",
        ),
    ] = None,
    num_warps: Annotated[int, typer.Option("--num-warps", help="With --signature: warps a block.", min=0, max=64)] = 0,
    num_stages: Annotated[int, typer.Option("--num-stages", help="With --signature: stages.", min=0, max=32)] = 0,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the kernels' packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable that the kernel's process gets.")
    ] = None,
    cuda_home: Annotated[Path | None, typer.Option("--cuda-home", help="The CUDA toolkit.")] = None,
    include: Annotated[list[Path] | None, typer.Option("--include", "-I", help="Folder of headers for nvcc.")] = None,
    nvcc_flags: Annotated[str, typer.Option("--nvcc-flags", help="Further words for nvcc.")] = "",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to load and compile.", min=1, max=3600)] = 300.0,
    memory: Annotated[
        float | None, typer.Option("--memory", help="GB of host memory of the kernel's process.", min=0.1)
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Compile a kernel for a GPU that need not be there, and read its machine code, function by function.

    Printed are opcodes, registers, spills and shared memory, and for each method whether the code shows it: present
    with a count, absent, or unverifiable with the reason. Signatures are tables on the wiki's method pages.
    Triton kernels get types and constants from one call of the candidate, in the sandbox, with nothing launched: give
    what `kopt bench` needs for that call (--ref, --dims, --inputs), or name the types with --signature.
    Exit code 0 whatever the verdicts, 4 if the kernel does not compile.
    """

    def work() -> Reply:
        from evaluator.sandbox import ForkServer, passed_environment
        from evaluator.sass_compile import machine_code
        from evaluator.triton_types import read_kernel_types
        from kopt.cli.bench_words import make_request, names
        from kopt.cli.sass_words import reply_of
        from kopt.cli.support import engine
        from kopt.methods import read_methods

        kernels = [read_kernel_types(text, num_warps, num_stages) for text in signature or ()]
        with engine() as eng:
            methods = read_methods(eng.library)
            chosen = methods.chosen([name for word in method or () for name in names(word)])
            target, multiprocessors = _target(eng, gpu)
            environment = passed_environment(env or ())
            with ForkServer("cuda", "" if python is None else str(python), environment) as server:
                words = {
                    "ref": ref,
                    "inputs": inputs,
                    "dims": dims,
                    "workloads": None,
                    "plan": "signal",
                    "tolerance": None,
                    "sanitizers": None,
                    "entry": entry,
                    "include": tuple(include or ()),
                    "nvcc_flags": nvcc_flags,
                    "cuda_home": cuda_home,
                    "python": server.python,
                    "environment": environment,
                    "load_seconds": timeout,
                    "memory": memory,
                }
                requests = [
                    make_request(candidate=path, **words)
                    for path in ([candidate] if diff is None else [candidate, diff])
                ]
                made = [machine_code(server, request, target, kernels, multiprocessors) for request in requests]
            sources = [request.candidate for request in requests]
            return reply_of(sources, made, chosen, methods.signatures, target, eng.warnings)

    deliver("sass", json, debug, work)


def _target(eng: Engine, gpu: str | None) -> tuple[Target, int | None]:
    """(what to compile for, multiprocessors where a page states them). UsageError `gpu_unknown`; NoGpuError."""
    from evaluator.disassembler import Target, read_target
    from evaluator.environment import gpu_capability
    from kbs.errors import NoGpuError, UsageError

    hint = "Name a target, such as --gpu sm_90, or a GPU of `kopt spec --list`."
    if gpu is None or gpu == "auto":
        capability = gpu_capability()
        found = read_target(capability) if capability else None
        if found is None:
            raise NoGpuError("there is no GPU whose architecture could be compiled for", code="no_gpu", hint=hint)
        return found, None
    found = read_target(gpu)
    if found is not None:
        return found, None
    products = eng.terms.resolve("product", gpu)
    if not products:
        near = ", ".join(eng.terms.nearest_products(gpu, tuple(eng.terms.products))[:3])
        raise UsageError(
            f"{gpu!r} is no GPU and no target", code="gpu_unknown", hint=f"{f'Near: {near}. ' if near else ''}{hint}"
        )
    specs = eng.with_store(
        lambda store: [s for s in store.specs() if s.product in products and s.recommended and s.published],
        vectors=False,
    )
    stated = {number for s in specs if s.metric == "compute_capability" and (number := read_target(s.value))}
    if any(eng.terms.products[product].vendor != "nvidia" for product in products):
        raise UsageError(
            f"{gpu} is no NVIDIA GPU, and machine code is read for those alone", code="gpu_unknown", hint=hint
        )
    if len(stated) != 1:
        raise UsageError(
            f"no page states one compute capability of {gpu}",
            code="gpu_unknown",
            hint="Name the target itself, such as --gpu sm_90.",
        )
    counts = {s.value for s in specs if s.metric == "sm_count" and re.fullmatch(r"\d{1,4}", s.value)}
    return Target(stated.pop().number), int(counts.pop()) if len(counts) == 1 else None
