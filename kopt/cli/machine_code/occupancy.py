"""`kopt occupancy`: how many blocks of a kernel an SM holds, and what limits them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import grouped
from kopt.cli.machine_code.compile_options import CompileWords
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.sass.cubin import Cubin
    from evaluator.sass.tools import Target
    from kbs.answers.knowledge import Knowledge
    from kbs.evidence.spec import Spec
    from kbs.evidence.vocabulary import Vocabulary
    from kbs.hardware.occupancy import SmLimits
    from kbs.index.store import Store
    from kopt.cli.machine_code.occupancy_kernels import Asked
    from kopt.services.engine import Engine
    from kopt.services.results.machine_code import KernelOccupancyData, OccupancyData, RefusedKernelData


@grouped
def occupancy(
    gpu: Annotated[
        str, typer.Option("--gpu", help="A product such as h100-sxm, or a compute capability: sm_90, 9.0.")
    ] = "",
    regs: Annotated[int | None, typer.Option("--regs", help="Registers a thread.")] = None,
    smem: Annotated[
        str,
        typer.Option(
            "--smem",
            metavar="BYTES",
            help="Shared memory a block, such as 49152 or 48KB; with --kernel, what the launch adds to it.",
        ),
    ] = "",
    threads: Annotated[int | None, typer.Option("--threads", help="Threads a block.")] = None,
    barriers: Annotated[int | None, typer.Option("--barriers", help="Barriers a block; 1 without the option.")] = None,
    carveout: Annotated[
        int | None,
        typer.Option("--carveout", help="Preferred share of shared memory, in percent of the largest one."),
    ] = None,
    kernel: Annotated[
        Path | None,
        typer.Option("--kernel", help="A compiled kernel (.cubin), or a .cu or .py file, in place of numbers."),
    ] = None,
    function: Annotated[
        str, typer.Option("--function", help="With --kernel: only functions whose name has this.")
    ] = "",
    *,
    words: CompileWords,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Blocks and warps on an SM, the resource that limits them, and what one more block would need.

    A .cu or .py file is compiled as by `kopt sass`, and each of its kernels is listed: give what the call of a Triton
    kernel needs (--ref, --dims, --inputs), or its types with --signature. Exit code 4 if the file does not compile.

    kopt occupancy --gpu h100-sxm --regs 72 --smem 48KB --threads 256 · kopt occupancy --kernel softmax.cubin
    """

    def work() -> Reply:
        from kopt.cli.machine_code.occupancy_kernels import Asked, read_bytes
        from kopt.cli.support import engine

        asked = Asked(gpu, regs, read_bytes(smem), threads, barriers, carveout, kernel, function, words)
        asked.check()
        with engine() as eng:
            reply = eng.with_store(lambda store: _reply(eng, store, asked), vectors=False)
            reply.warnings = [*eng.warnings, *reply.warnings]
            return reply

    deliver("occupancy", json, debug, work)


def _reply(eng: Engine, store: Store, asked: Asked) -> Reply:
    from kbs.answers.knowledge import Knowledge
    from kbs.common.errors import ExitCode
    from kopt.cli.machine_code.occupancy_kernels import read_kernels, runs_on
    from kopt.cli.machine_code.occupancy_text import show, show_gaps

    knowledge = Knowledge(store, eng.terms, lambda question: eng.search(store, question.text, {}, 1))
    target: Target | None = None
    gaps: list[str] = []
    stated: list[Spec] = []
    if asked.gpu:
        target, stated, gaps = _target(asked.gpu, knowledge)
    compiled: Cubin | dict[str, str] | None = None
    if asked.kernel is not None and not gaps:
        compiled = read_kernels(asked, target, knowledge)
    if isinstance(compiled, dict):
        said = compiled["message"]
        data = _data(eng, asked, target, stated)
        return Reply(data, lambda console: _say(console, said), ExitCode.REJECTED, errors=[compiled])
    if compiled is not None:
        target = runs_on(compiled, target, asked)
    found = _limits(target, knowledge) if target and not gaps else gaps
    if isinstance(found, list):
        data = _data(eng, asked, target, stated, gaps=found)
        eng.log_gap(f"occupancy --gpu {data.gpu}", "not_in_wiki", found)
        return Reply(data, lambda console: show_gaps(console, found), ExitCode.ABSTAINED)
    kernels, refused = _filled(compiled, found, asked, knowledge.vocabulary)
    data = _data(eng, asked, target, [*stated, *found.specs.values()], compiled, kernels, refused)
    return Reply(data, lambda console: show(console, data))


def _filled(
    compiled: Cubin | None, limits: SmLimits, asked: Asked, vocabulary: Vocabulary
) -> tuple[list[KernelOccupancyData], list[RefusedKernelData]]:
    """(how each kernel fills an SM, those that it cannot have). UsageError `beyond_hardware` where it can have none."""
    from kbs.common.errors import UsageError
    from kopt.cli.machine_code.occupancy_kernels import chosen, kernel_occupancy
    from kopt.services.results.machine_code import KernelOccupancyData

    kernels: list[KernelOccupancyData] = []
    refused: list[RefusedKernelData] = []
    for each in chosen(compiled, asked):
        found = kernel_occupancy(each, limits, asked, vocabulary)
        if isinstance(found, KernelOccupancyData):
            kernels.append(found)
        else:
            refused.append(found)
    if not kernels:
        raise UsageError(
            "\n".join(f"{each.kernel}: {each.why}" if each.kernel else each.why for each in refused),
            code="beyond_hardware",
            hint="\n".join(dict.fromkeys(line for each in refused for line in each.citation_lines)),
        )
    return kernels, refused


def _data(
    eng: Engine,
    asked: Asked,
    target: Target | None,
    stated: Sequence[Spec],
    compiled: Cubin | None = None,
    kernels: Sequence[KernelOccupancyData] = (),
    refused: Sequence[RefusedKernelData] = (),
    gaps: Sequence[str] = (),
) -> OccupancyData:
    from kopt.services.results.machine_code import LimitData, OccupancyData

    return OccupancyData(
        gpu=asked.gpu or (target.name if target else ""),
        compute_capability=_capability(target) if target else None,
        how=compiled.how if compiled else "",
        kernels=list(kernels),
        refused=list(refused),
        limits=[LimitData.of(spec, eng.terms) for spec in stated],
        gaps=list(gaps),
        notes=list(compiled.notes) if compiled else [],
    )


def _say(console: Console, text: str) -> None:
    from kbs.common.visible_text import visible

    console.print("\n".join(visible(line) for line in text.split("\n")), markup=False)


def _capability(target: Target) -> str:
    return f"{target.number // 10}.{target.number % 10}"


def _page(target: Target) -> str:
    """The product id under which the wiki states the limits of a target."""
    return f"cc-{target.number // 10}-{target.number % 10}"


def _target(name: str, knowledge: Knowledge) -> tuple[Target | None, list[Spec], list[str]]:
    """The target of a GPU, the row that states it, and what is not known. A family's members must share one."""
    from evaluator.sass.tools import read_target
    from kbs.common.errors import UsageError

    terms = knowledge.vocabulary
    direct = read_target(name)
    if direct is not None:
        return direct, [], []
    products = terms.resolve("product", name)
    if not products:
        near = terms.nearest_products(name, knowledge.documented)
        hint = f"; the nearest known ones are {', '.join(near)}" if near else "; see kopt spec --list"
        return None, [], [f"{name}: no GPU of this name is known{hint}"]
    stated = [spec for product in products for spec in knowledge.of(product, "compute_capability")[:1]]
    targets = {spec.value: read_target(spec.value) for spec in stated}
    if len(targets) > 1:
        raise UsageError(
            f"{name} has members of different compute capabilities: {', '.join(sorted(targets))}",
            code="gpu_ambiguous",
            hint=f"Name one of {', '.join(products)}.",
        )
    if not any(targets.values()):
        gap = f"{terms.products[products[0]].name} Compute capability: UNKNOWN (gpu-wiki not found)"
        return None, [], [f"{gap}; if you know it, give it in place of the name: --gpu MAJOR.MINOR"]
    return next(iter(targets.values())), stated[:1], []


def _limits(target: Target, knowledge: Knowledge) -> SmLimits | list[str]:
    """The limits of a target's SM, or what the wiki does not say of them."""
    from kbs.hardware.occupancy import sm_limits

    terms, page = knowledge.vocabulary, _page(target)
    if page not in knowledge.documented:
        have = [product for product in knowledge.documented if product.startswith("cc-")]
        known = ", ".join(product.removeprefix("cc-").replace("-", ".") for product in have)
        return [
            f"compute capability {_capability(target)}: UNKNOWN (gpu-wiki not found); there is no page "
            f"hardware/{page}, the wiki has {known}"
        ]
    rows = [spec for metric in terms.metrics for spec in knowledge.of(page, metric)]
    found = sm_limits(rows, page, terms)
    if isinstance(found, list):
        name = terms.products[page].name
        return [f"{name} {terms.metrics[metric].name}: UNKNOWN (gpu-wiki not found)" for metric in found]
    return found
