"""`kopt sass`: what a kernel compiles to, with no GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import grouped
from kopt.cli.machine_code.compile_options import CompileWords, present_target
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from evaluator.sass.tools import Target
    from kopt.services.engine import Engine


@grouped
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
    *,
    words: CompileWords,
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
        from kopt.cli.machine_code.sass_text import reply_of
        from kopt.cli.support import engine
        from kopt.services.arguments import read_names
        from loop.planning.methods import read_methods

        with engine() as eng:
            methods = read_methods(eng.library)
            chosen = methods.chosen([name for word in method or () for name in read_names(word)])
            target, multiprocessors = _target(eng, gpu)
            made = words.compiled([candidate] if diff is None else [candidate, diff], target, multiprocessors)
            return reply_of(made, chosen, methods.signatures, target, eng.warnings)

    deliver("sass", json, debug, work)


def _target(eng: Engine, gpu: str | None) -> tuple[Target, int | None]:
    """(what to compile for, multiprocessors where a page states them). UsageError `gpu_unknown`; NoGpuError."""
    from evaluator.sass.tools import Target, read_target
    from kbs.common.errors import UsageError

    hint = "Name a target, such as --gpu sm_90, or a GPU of `kopt spec --list`."
    if gpu is None or gpu == "auto":
        return present_target(hint), None
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
