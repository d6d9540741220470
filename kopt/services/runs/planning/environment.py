"""The environment of a run: device, GPU, profile grade, wikis, and the problem as receipts will have it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from evaluator.request import Request, check_device
from evaluator.sandbox.fork_server import ForkServer
from evaluator.source.forms import Form
from evaluator.workloads import check_declared, check_dims, workloads
from kbs.common.errors import KoptError, NoGpuError, UsageError
from kbs.evidence.vocabulary import PEAK_RATES
from kbs.index.overrides import override_notes
from kopt.services.engine import Engine
from kopt.services.gpus import BANDWIDTH, product_named, product_of_device
from kopt.services.runs.request import request_of
from kopt.version import VERSION
from loop.journal.record import Grade, PinnedWiki
from loop.planning.hints import Hints
from loop.planning.methods import REWRITE, read_methods
from loop.planning.step0 import SPECS, trusted
from loop.planning.wanted import RunEnvironment, Wanted
from loop.workspace.inventory import Inventory


def methods_of(engine: Engine) -> tuple[str, ...]:
    """Ids that directives may name."""
    return (*read_methods(engine.library).ids, REWRITE)


def device_of(asked: str | None) -> str:
    """`cuda:0` where there is a GPU and nothing else is asked for. Raises `UsageError`, `NoGpuError`."""
    there = Path("/dev/nvidiactl").exists()
    device = asked or ("cuda:0" if there else "cpu")
    check_device(device)
    if device != "cpu" and not there:
        raise NoGpuError(
            f"--device {device} needs a GPU, and none is present",
            code="no_gpu",
            hint="Leave --device out, or give --device cpu.",
        )
    return device


def survey(
    engine: Engine, inventory: Inventory, wanted: Wanted, hints: Hints, *, device: str, gpu: str | None
) -> RunEnvironment:
    """Look around. `gpu`: a product's name, None for the GPU that is present. Runs the reference once where its outputs
    are named by its setup, and the kernel once under ncu where there is a GPU; writes nothing.

    Raises `UsageError`: `gpu_unknown`, `gpu_ambiguous`, what the evaluator raises of kernel and reference.
    """
    from evaluator.sandbox.devices import device_name

    name = device_name(device) if device != "cpu" else ""
    product, said = _product(engine, gpu, name)
    request = request_of(inventory, wanted, device)
    grade, why = probe(engine, request, hints)
    problem, outputs = _problem(engine, request)
    library = None
    if inventory.made is not None and inventory.made.library:
        library, problem = problem, _without_library(request, outputs)
    return RunEnvironment(
        device=device,
        device_name=name or "",
        gpu=product,
        gpu_from=said,
        grade=grade,
        grade_why=why,
        wikis=pinned(engine),
        knowledge=tuple(wiki.name for wiki in engine.run_notes),
        methods=methods_of(engine),
        problem_hash=problem,
        library_hash=library,
        outputs=outputs,
        kopt=VERSION,
    )


def plan_overrides(engine: Engine, gpu: str, least: str) -> list[str]:
    """What the values that a run on a GPU works with take the place of in earlier wikis."""
    if not gpu or len(engine.wikis) < 2:
        return []
    groups, metrics = engine.terms.metric_groups, [BANDWIDTH]
    metrics += [metric for group in (SPECS, PEAK_RATES) for metric in groups[group].metrics]
    specs = trusted([spec for spec in engine.specs() if spec.product == gpu and spec.metric in metrics], least)
    used = {spec.key: spec for spec in reversed(specs) if spec.recommended}
    stated = {spec.metric for spec in used.values()}
    missing = [(gpu, metric) for metric in metrics if metric not in stated]
    cited = [spec.citation for metric in dict.fromkeys(metrics) for spec in used.values() if spec.metric == metric]
    return engine.with_store(
        lambda store: override_notes(store, engine.terms, cited, missing),
        vectors=False,
    )


def pinned(engine: Engine) -> dict[str, PinnedWiki]:
    """Every wiki in use, as it is now."""
    found = {}
    for name, wiki in engine.library.all.items():
        pages = {file.path: hashlib.sha256(wiki.read(file.path) or b"").hexdigest() for file in wiki.files()}
        found[name] = PinnedWiki(root=str(wiki.root), revision=wiki.revision, pages=pages)
    return found


def probe(engine: Engine, request: Request, hints: Hints) -> tuple[Grade, str]:
    """(profile grade, why it is not full): ncu is tried once, on the kernel as it came."""
    if request.device == "cpu":
        return "none", "there is no GPU: nothing can be profiled on the CPU"
    if hints.no_ncu:
        source = next(one.source for one in hints.directives if one.kind == "no ncu")
        return "degraded", f"ncu is not to run ({source})"
    from evaluator.profiling.collect import take_profile

    try:
        with ForkServer("cuda", request.python, request.environment) as server:
            take_profile(request, server=server, metrics="basic", progress=engine.progress)
    except KoptError as error:
        return "degraded", error.message
    return "full", ""


def _product(engine: Engine, gpu: str | None, device_name: str) -> tuple[str, str]:
    """(product id, who says so). A GPU that is present is never taken for a similar one."""
    if gpu is not None:
        return product_named(engine, gpu), f"--gpu {gpu}"
    if not device_name:
        return "", "no --gpu, and no GPU is present"
    found = product_of_device(engine, device_name)
    return found, "the GPU that is present" if found else f"no page is about {device_name}, or its name is several's"


def _problem(engine: Engine, request: Request) -> tuple[str, tuple[str, ...]]:
    """(hash of the problem, names of its outputs), as every receipt of the run will have them."""
    from evaluator.recording import problem

    recognised = request.recognised()
    check_dims(request, recognised)
    check_declared(request)
    if recognised.form in (Form.KERNELBENCH, Form.FUNCTION):
        found = problem(request, recognised, workloads(request), request.outputs, None)
        return found.hash, found.outputs
    kind = "cpu" if request.device == "cpu" else "cuda"
    with ForkServer(kind, request.python, request.environment) as server:
        return _named_by_setup(engine, request, server)


def _without_library(request: Request, outputs: tuple[str, ...]) -> str:
    """The hash of the problem for kernels that may not call the library."""
    from evaluator.recording import problem

    asked = request.model_copy(update={"allow_library": False})
    return problem(asked, asked.recognised(), workloads(asked), outputs, None).hash


def _named_by_setup(engine: Engine, request: Request, server: ForkServer) -> tuple[str, tuple[str, ...]]:
    """From a quick evaluation of the kernel: its outputs are known only when the setup has run."""
    from evaluator.evaluate import evaluate

    quick = request.model_copy(update={"plan": "signal"})
    found = evaluate(quick, kopt=VERSION, server=server, progress=engine.progress)
    outputs = found.problem.outputs
    if not outputs:
        raise UsageError(
            f"the problem could not be looked at: {found.reason}",
            code="problem_unknown",
            hint="Run `kopt bench` on the kernel, or name what it writes with --outputs.",
        )
    return found.problem.hash, outputs
