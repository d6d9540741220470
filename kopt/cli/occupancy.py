"""`kopt occupancy`: how many blocks of a kernel an SM holds, and what limits them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from evaluator.cubin import Cubin, KernelResources
    from evaluator.disassembler import Target
    from kbs.answers.knowledge import Knowledge
    from kbs.occupancy import SmLimits, Usage
    from kbs.spec import Spec
    from kbs.store import Store
    from kopt.cli.occupancy_schemas import KernelOccupancyData
    from kopt.engine import Engine

_SIZE = re.compile(r"\s*(\d{1,12})\s*(B|KB|KiB|K)?\s*", re.IGNORECASE)


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
        Path | None, typer.Option("--kernel", help="A compiled kernel (.cubin), or a .cu file, in place of numbers.")
    ] = None,
    function: Annotated[
        str, typer.Option("--function", help="With --kernel: only functions whose name has this.")
    ] = "",
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Blocks and warps on an SM, the resource that limits them, and what one more block would need.

    kopt occupancy --gpu h100-sxm --regs 72 --smem 48KB --threads 256 · kopt occupancy --kernel softmax.cubin
    """

    def work() -> Reply:
        from kopt.cli.support import engine

        asked = _Asked(gpu, regs, _bytes(smem), threads, barriers, carveout, kernel, function)
        asked.check()
        with engine() as eng:
            reply = eng.with_store(lambda store: _reply(eng, store, asked), vectors=False)
            reply.warnings = [*eng.warnings, *reply.warnings]
            return reply

    deliver("occupancy", json, debug, work)


@dataclass(frozen=True)
class _Asked:
    """The words of the command."""

    gpu: str
    regs: int | None
    smem: int | None
    threads: int | None
    barriers: int | None
    carveout: int | None
    kernel: Path | None
    function: str

    def check(self) -> None:
        """Raises `UsageError` for words that do not fit together."""
        from kbs.errors import UsageError

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


def _bytes(text: str) -> int | None:
    from kbs.errors import UsageError

    if not text:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--smem {text!r} is no size", code="value_invalid", hint="Give bytes, such as 49152, or KB, such as 48KB."
        )
    return int(found[1]) * (1 if (found[2] or "B").upper() == "B" else 1024)


def _reply(eng: Engine, store: Store, asked: _Asked) -> Reply:
    from kbs.answers.knowledge import Knowledge
    from kbs.errors import ExitCode
    from kopt.cli.occupancy_schemas import LimitData, OccupancyData
    from kopt.cli.occupancy_words import show, show_gaps

    knowledge = Knowledge(store, eng.terms, lambda question: eng.search(store, question.text, {}, 1))
    target: Target | None = None
    gaps: list[str] = []
    stated: list[Spec] = []
    if asked.gpu:
        target, stated, gaps = _target(asked.gpu, knowledge)
    compiled: Cubin | None = None
    if asked.kernel is not None and not gaps:
        from evaluator.cubin import kernel_resources

        compiled = kernel_resources(asked.kernel, target, lambda own: _reserved(own, knowledge))
        target = _runs_on(compiled, target, asked)
    name = asked.gpu or (target.name if target else "")
    found = _limits(target, knowledge) if target and not gaps else gaps
    if isinstance(found, list):
        eng.log_gap(f"occupancy --gpu {name}", "not_in_wiki", found)
        data = OccupancyData(
            gpu=name,
            compute_capability=_capability(target) if target else None,
            kernels=[],
            limits=[LimitData.of(spec, eng.terms) for spec in stated],
            gaps=found,
        )
        return Reply(data, lambda console: show_gaps(console, found), ExitCode.ABSTAINED)
    assert target is not None
    kernels = [_kernel(each, found, asked, knowledge) for each in _chosen(compiled, asked)]
    data = OccupancyData(
        gpu=name,
        compute_capability=_capability(target),
        kernels=kernels,
        limits=[LimitData.of(spec, eng.terms) for spec in (*stated, *found.specs.values())],
        gaps=[],
    )
    return Reply(data, lambda console: show(console, data))


def _capability(target: Target) -> str:
    return f"{target.number // 10}.{target.number % 10}"


def _page(target: Target) -> str:
    """The product id under which the wiki states the limits of a target."""
    return f"cc-{target.number // 10}-{target.number % 10}"


def _target(name: str, knowledge: Knowledge) -> tuple[Target | None, list[Spec], list[str]]:
    """The target of a GPU, the row that states it, and what is not known. A family's members must share one."""
    from evaluator.disassembler import read_target
    from kbs.errors import UsageError

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
    from kbs.occupancy import sm_limits

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


def _reserved(target: Target, knowledge: Knowledge) -> int:
    """Bytes of shared memory that the system takes of a block; 0 where the wiki does not say, and nothing follows."""
    found = _limits(target, knowledge)
    return 0 if isinstance(found, list) else found.reserved_shared_memory


def _runs_on(compiled: Cubin, target: Target | None, asked: _Asked) -> Target:
    """The target to compute for: the named one, if the code runs there, else the file's own."""
    from kbs.errors import UsageError

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
class _Kernel:
    """A kernel whose occupancy is asked for."""

    name: str
    usage: Usage
    static: int | None
    notes: tuple[str, ...]


def _chosen(compiled: Cubin | None, asked: _Asked) -> list[_Kernel]:
    """The kernels that are asked about."""
    from kbs.errors import UsageError
    from kbs.occupancy import Usage

    if compiled is None:
        assert asked.regs is not None
        assert asked.threads is not None
        usage = Usage(asked.threads, asked.regs, asked.smem or 0, 1 if asked.barriers is None else asked.barriers)
        return [_Kernel("", usage, None, ())]
    chosen = [kernel for kernel in compiled.kernels if asked.function in kernel.name]
    if not chosen:
        names = ", ".join(kernel.name for kernel in compiled.kernels)
        raise UsageError(
            f"no kernel of {asked.kernel} has {asked.function!r} in its name",
            code="function_unknown",
            hint=f"It has {names}.",
        )
    return [_from_file(kernel, asked) for kernel in chosen]


def _from_file(kernel: KernelResources, asked: _Asked) -> _Kernel:
    """A kernel's usage from its code and the launch that the user describes."""
    from kbs.errors import UsageError
    from kbs.occupancy import Usage

    notes = []
    threads = asked.threads
    if threads is None:
        threads = kernel.required_threads or kernel.max_threads
        if threads is None:
            raise UsageError(
                f"the code of {kernel.name} does not say how many threads a block has",
                code="threads_missing",
                hint="Give --threads N.",
            )
        said = "the code demands" if kernel.required_threads else "the launch bounds allow"
        notes.append(f"{threads} threads a block, as {said}")
    elif threads != (kernel.required_threads or threads) or threads > (kernel.max_threads or threads):
        raise UsageError(
            f"{kernel.name} cannot be launched with {threads} threads a block: its code is for "
            f"{kernel.required_threads or f'at most {kernel.max_threads}'}",
            code="threads_other",
            hint="Leave --threads out, or compile the kernel for that block size.",
        )
    dynamic = asked.smem
    if dynamic is None:
        dynamic = kernel.dynamic_shared_memory
        notes.append(
            "no dynamic shared memory is counted; give what the launch adds with --smem"
            if dynamic is None
            else f"{dynamic:,} B of dynamic shared memory, as Triton's description beside the file says"
        )
    shared = kernel.static_shared_memory + (dynamic or 0)
    if kernel.local_memory:
        notes.append(f"{kernel.local_memory:,} B of local memory a thread: stack or spilled registers")
    return _Kernel(
        kernel.name,
        Usage(threads, kernel.registers, shared, kernel.barriers),
        kernel.static_shared_memory,
        tuple(notes),
    )


def _kernel(kernel: _Kernel, limits: SmLimits, asked: _Asked, knowledge: Knowledge) -> KernelOccupancyData:
    from kbs.errors import UsageError
    from kbs.occupancy import excesses
    from kbs.occupancy import occupancy as fill
    from kopt.cli.occupancy_schemas import KernelOccupancyData

    beyond = excesses(kernel.usage, limits)
    if beyond:
        lines = [limits.specs[each.metric].citation_line(knowledge.vocabulary) for each in beyond]
        subject = f"{kernel.name}: " if kernel.name else ""
        raise UsageError(
            subject + "; ".join(f"{each.value:,} {each.what} are more than {each.limit:,}" for each in beyond),
            code="beyond_hardware",
            hint="\n".join(lines),
        )
    found = fill(kernel.usage, limits, asked.carveout)
    notes = list(kernel.notes)
    if kernel.usage.shared_memory > limits.shared_memory_per_block_default:
        line = limits.specs["shared_memory_per_block_default"].citation_line(knowledge.vocabulary)
        notes.append(f"the launch must opt in to this much shared memory, and it must be dynamic: {line}")
    return KernelOccupancyData.of(kernel.name, kernel.static, found, notes)
