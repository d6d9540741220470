"""How many blocks of a kernel an SM holds, by the limits that the wikis state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.answers.knowledge import Knowledge
from kbs.common.errors import UsageError
from kbs.common.json_model import JsonDataclass
from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import Vocabulary
from kbs.hardware.occupancy import Occupancy, SmLimits, Usage, excesses, sm_limits
from kbs.hardware.occupancy import occupancy as fill
from kbs.index.overrides import named_unknown
from kopt.services.engine import Engine
from kopt.services.gpus import present_target
from kopt.services.knowledge.specs import unknown_gpu

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.cubin import Cubin, KernelResources
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile

    Compile = Callable[[Path, Target, int | None], tuple[SourceFile, Machine]]

COMPILED_SUFFIXES = (".cu", ".py")


@dataclass(frozen=True)
class OccupancyQuery:
    """What is known of a kernel and its launch."""

    gpu: str = ""
    regs: int | None = None
    smem: int | None = None
    """Bytes of shared memory; of a file, those that the launch adds."""
    threads: int | None = None
    barriers: int | None = None
    carveout: int | None = None
    kernel: Path | None = None
    function: str = ""

    @property
    def compiles(self) -> bool:
        """Whether the kernel's file is compiled first."""
        return self.kernel is not None and self.kernel.suffix in COMPILED_SUFFIXES

    def check(self) -> None:
        """Raises `UsageError` for options that contradict each other, or are out of range."""
        if self.kernel is None:
            needed = {"--gpu": self.gpu or None, "--regs": self.regs, "--threads": self.threads}
            missing = [name for name, value in needed.items() if value is None]
            if missing:
                named = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
                raise UsageError(
                    f"{named} must be given where there is no --kernel",
                    code="kernel_missing",
                    hint="Example: kopt occupancy --gpu h100-sxm --regs 72 --smem 48KB --threads 256",
                )
            if self.function:
                raise UsageError("--function needs --kernel", code="function_alone", hint="Give --kernel FILE.")
        elif self.regs is not None or self.barriers is not None:
            raise UsageError(
                "--kernel already determines registers and barriers",
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
                f"--carveout {self.carveout} is not a percentage", code="value_invalid", hint="Give 0 to 100."
            )


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel with the launch that is asked about."""

    name: str
    """In the compiled file; empty where numbers were given."""
    usage: Usage
    static: int | None
    """Bytes of shared memory that the code declares; None where numbers were given."""
    notes: tuple[str, ...]
    """What was assumed."""


@dataclass(frozen=True)
class FilledKernel:
    """A kernel and how it fills an SM."""

    kernel: LaunchedKernel
    occupancy: Occupancy
    notes: list[str]


@dataclass(frozen=True)
class RefusedKernel(JsonDataclass):
    """A kernel of the file that the hardware cannot have."""

    kernel: str
    why: str
    """What it has more of than there is."""
    citation_lines: list[str]
    """The limits."""


@dataclass
class OccupancyResult:
    """The answer: kernels, or gaps, or the file that does not compile."""

    target: Target | None = None
    """What it was computed for; None where no page states it."""
    specs: list[Spec] = field(default_factory=list)
    """The limits that the answer uses."""
    compiled: Cubin | None = None
    rejected: tuple[SourceFile, Machine] | None = None
    """The file that the compiler rejected, with what it says."""
    kernels: list[FilledKernel] = field(default_factory=list)
    refused: list[RefusedKernel] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    """What the wikis do not state."""


def occupancy(engine: Engine, query: OccupancyQuery, compile: Compile) -> OccupancyResult:
    """Fill an SM with each kernel of the query. `compile` compiles a .cu or .py file.

    What the wikis do not state is logged. Raises `UsageError` (`beyond_hardware` if no kernel can be launched) and what
    `compile` raises.
    """
    query.check()
    found = engine.with_store(lambda store: _result(engine.knowledge(store), query, compile), vectors=False)
    products = engine.terms.resolve("product", query.gpu) if query.gpu else []
    if found.target is not None:
        products.append(page_of(found.target))
    engine.tell_overrides([spec.citation for spec in found.specs], named_unknown(found.gaps, products, engine.terms))
    if found.gaps:
        gpu = query.gpu or (found.target.name if found.target else "")
        engine.log_gap(f"occupancy --gpu {gpu}", "not_in_wiki", found.gaps)
    return found


def _result(knowledge: Knowledge, query: OccupancyQuery, compile: Compile) -> OccupancyResult:
    found = OccupancyResult()
    if query.gpu:
        found.target, found.specs, found.gaps = _target(query.gpu, knowledge)
        if found.gaps:
            return found
    if query.kernel is not None:
        read = _read_kernels(query, query.kernel, found.target, knowledge, compile)
        if isinstance(read, tuple):
            found.rejected = read
            return found
        found.compiled = read
        found.target = _runs_on(read, found.target, query)
    assert found.target is not None
    limits = _limits(found.target, knowledge)
    if isinstance(limits, list):
        found.gaps = limits
        return found
    found.specs = [*found.specs, *limits.specs.values()]
    for kernel in _launched(found.compiled, query):
        filled = _fill(kernel, limits, query.carveout, knowledge.vocabulary)
        if isinstance(filled, FilledKernel):
            found.kernels.append(filled)
        else:
            found.refused.append(filled)
    if not found.kernels:
        raise UsageError(
            "\n".join(f"{one.kernel}: {one.why}" if one.kernel else one.why for one in found.refused),
            code="beyond_hardware",
            hint="\n".join(dict.fromkeys(line for one in found.refused for line in one.citation_lines)),
        )
    return found


# --- kernels ----------------------------------------------------------------------------------------------------------


def _read_kernels(
    query: OccupancyQuery, path: Path, target: Target | None, knowledge: Knowledge, compile: Compile
) -> Cubin | tuple[SourceFile, Machine]:
    """The kernels of the file, compiled for `target` or the GPU that is present; what the compiler rejected."""
    from evaluator.sass.cubin import SUFFIX, compiled_kernels, read_cubin

    if path.suffix == SUFFIX or not path.is_file():
        return read_cubin(path)
    if not query.compiles:
        raise UsageError(
            f"{path.name} is not a .cubin, .cu or .py file",
            code="kernel_form",
            hint="Give a compiled kernel, a CUDA file, or a Python file with Triton kernels.",
        )
    target = target or present_target("Name what to compile for, such as --gpu sm_90.")
    source, machine = compile(path, target, _multiprocessors(query.gpu, knowledge))
    return (source, machine) if machine.compile_error else compiled_kernels(machine, target)


def _multiprocessors(gpu: str, knowledge: Knowledge) -> int | None:
    """What the wikis state for the GPU that was named, where its pages agree."""
    products = knowledge.vocabulary.resolve("product", gpu) if gpu else ()
    counts = {spec.value for product in products for spec in knowledge.of(product, "sm_count")[:1]}
    (count,) = counts if len(counts) == 1 else ("",)
    return int(count) if count.isdecimal() else None


def _runs_on(compiled: Cubin, target: Target | None, query: OccupancyQuery) -> Target:
    """The target to compute for: the named one if the code runs there, else the file's own."""
    own = compiled.target
    if target is None or target == own:
        return own
    later = target.number // 10 == own.number // 10 and target.number > own.number
    if compiled.exact or not later:
        raise UsageError(
            f"{query.kernel} is code for {own.name}{'a' if compiled.exact else ''}, which does not run on {query.gpu}",
            code="other_gpu",
            hint=f"Leave --gpu out, or compile the kernel for {target.name}.",
        )
    return target


def _launched(compiled: Cubin | None, query: OccupancyQuery) -> list[LaunchedKernel]:
    if compiled is None:
        assert query.regs is not None
        assert query.threads is not None
        usage = Usage(query.threads, query.regs, query.smem or 0, 1 if query.barriers is None else query.barriers)
        return [LaunchedKernel("", usage, None, ())]
    chosen = [kernel for kernel in compiled.kernels if query.function in kernel.name]
    if not chosen:
        raise UsageError(
            f"no kernel of {query.kernel} has {query.function!r} in its name",
            code="function_unknown",
            hint=f"Its kernels are {', '.join(kernel.name for kernel in compiled.kernels)}.",
        )
    return [_launch(kernel, query) for kernel in chosen]


def _launch(kernel: KernelResources, query: OccupancyQuery) -> LaunchedKernel:
    """A kernel of a file, with the launch that the user describes."""
    code, notes = kernel.usage, []
    threads = query.threads
    if threads is None:
        threads = code.required_threads or code.max_threads
        if threads is None:
            raise UsageError(
                f"the code of {kernel.name} does not state the threads per block",
                code="threads_missing",
                hint="Give --threads N.",
            )
        said = "the code demands" if code.required_threads else "the launch bounds allow"
        notes.append(f"{threads} threads a block, as {said}")
    elif threads != (code.required_threads or threads) or threads > (code.max_threads or threads):
        raise UsageError(
            f"{kernel.name} cannot be launched with {threads} threads per block: its code is for "
            f"{code.required_threads or f'at most {code.max_threads}'}",
            code="threads_other",
            hint="Leave --threads out, or compile the kernel for that block size.",
        )
    dynamic = query.smem
    if dynamic is None:
        dynamic = kernel.dynamic_shared
        notes.append(
            "no dynamic shared memory is counted; give what the launch adds with --smem"
            if dynamic is None
            else f"{dynamic:,} B of dynamic shared memory, as Triton says of its launch"
        )
    local = code.stack + code.local
    if local:
        notes.append(f"{local:,} B of local memory a thread: stack or spilled registers")
    usage = Usage(threads, code.registers, code.shared + (dynamic or 0), code.barriers)
    return LaunchedKernel(kernel.name, usage, code.shared, tuple(notes))


def _fill(
    kernel: LaunchedKernel, limits: SmLimits, carveout: int | None, vocabulary: Vocabulary
) -> FilledKernel | RefusedKernel:
    beyond = excesses(kernel.usage, limits)
    if beyond:
        return RefusedKernel(
            kernel.name,
            "; ".join(f"{each.value:,} {each.what} are more than {each.limit:,}" for each in beyond),
            [limits.specs[each.metric].citation_line(vocabulary) for each in beyond],
        )
    notes = list(kernel.notes)
    if kernel.usage.shared_memory > limits.shared_memory_per_block_default:
        line = limits.specs["shared_memory_per_block_default"].citation_line(vocabulary)
        notes.append(f"the launch must opt in to this much shared memory, and it must be dynamic: {line}")
    return FilledKernel(kernel, fill(kernel.usage, limits, carveout), notes)


# --- limits -----------------------------------------------------------------------------------------------------------


def _target(name: str, knowledge: Knowledge) -> tuple[Target | None, list[Spec], list[str]]:
    """(the target of a GPU, the row that states it, what is not known). Members of a family must share one."""
    from evaluator.sass.tools import read_target

    terms = knowledge.vocabulary
    direct = read_target(name)
    if direct is not None:
        return direct, [], []
    products = terms.resolve("product", name)
    if not products:
        return None, [], [unknown_gpu(name, knowledge)]
    stated = [spec for product in products for spec in knowledge.of(product, "compute_capability")[:1]]
    targets = {spec.value: read_target(spec.value) for spec in stated}
    if len(targets) > 1:
        raise UsageError(
            f"products named {name} have different compute capabilities: {', '.join(sorted(targets))}",
            code="gpu_ambiguous",
            hint=f"Name one of {', '.join(products)}.",
        )
    if not any(targets.values()):
        gap = f"{terms.products[products[0]].name} Compute capability: UNKNOWN (gpu-wiki not found)"
        return None, [], [f"{gap}; if you know it, give it in place of the name: --gpu MAJOR.MINOR"]
    return next(iter(targets.values())), stated[:1], []


def _limits(target: Target, knowledge: Knowledge) -> SmLimits | list[str]:
    """The limits of a target's SM, or what the wikis do not state about them."""
    terms, page = knowledge.vocabulary, page_of(target)
    if page not in knowledge.documented:
        have = [product for product in knowledge.documented if product.startswith("cc-")]
        known = ", ".join(product.removeprefix("cc-").replace("-", ".") for product in have)
        return [
            f"compute capability {capability(target)}: UNKNOWN (gpu-wiki not found); there is no page "
            f"hardware/{page}, the wiki has {known}"
        ]
    rows = [spec for metric in terms.metrics for spec in knowledge.of(page, metric)]
    found = sm_limits(rows, page, terms)
    if isinstance(found, list):
        name = terms.products[page].name
        return [f"{name} {terms.metrics[metric].name}: UNKNOWN (gpu-wiki not found)" for metric in found]
    return found


def page_of(target: Target) -> str:
    """The product whose page states the limits of a target: `cc-9-0`."""
    return f"cc-{target.number // 10}-{target.number % 10}"


def capability(target: Target) -> str:
    """`9.0`"""
    return f"{target.number // 10}.{target.number % 10}"
