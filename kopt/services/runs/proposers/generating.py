"""Whole kernels for a run's reference, which is traced in the sandbox; the GPU's cited figures rank them."""

from __future__ import annotations

import re

from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer
from evaluator.source.source_file import is_cuda
from kbs.common.errors import KoptError
from kopt.services.engine import Engine
from loop.search.generators import UnreadableError, generated
from loop.search.variant import Target, Variant

_CAPABILITY, _BANDWIDTH, _CACHE, _COUNT = "compute_capability", "hbm_bandwidth", "l2_capacity", "sm_count"


def families(engine: Engine, request: Request, gpu: str) -> tuple[tuple[Variant, ...], str]:
    """(families of kernels for the request's reference, why there are none)."""
    if is_cuda(request.candidate):
        return (), "a .cu kernel's arguments are its own"
    target, why = target_of(engine, gpu)
    if target is None:
        return (), why
    from evaluator.work import COUNTING_MODULES, trace_graph

    recognised = request.recognised()
    if recognised.form != "kernelbench":
        return (), "kernels are generated for a reference with a class `Model`"
    try:
        with ForkServer("cpu", request.python, request.environment, COUNTING_MODULES) as server:
            graph = trace_graph(request, recognised, server)
        name = request.reference.name.rpartition(".")[0] if request.reference else "kernel"
        return generated(graph, name, target), ""
    except KoptError as error:
        return (), error.message
    except UnreadableError as error:
        return (), f"the reference has something that no generator reads: {error}"


def target_of(engine: Engine, gpu: str) -> tuple[Target | None, str]:
    """(what the models of cost need to know of a GPU, why that is not known). All of it stands in the wikis."""
    if not gpu:
        return None, "no GPU is named, and none is present whose specs a page states"
    found: dict[str, float] = {}
    for spec in engine.specs():
        if spec.product == gpu and spec.recommended and spec.published and spec.metric not in found:
            base = spec.base(engine.terms)
            number = re.match(r"\d+(\.\d+)?", spec.value)
            if base is not None or number:
                found[spec.metric] = float(base) if base is not None else float(number[0]) if number else 0.0
    missing = [one for one in (_CAPABILITY, _BANDWIDTH, _CACHE, _COUNT) if one not in found]
    if missing:
        return None, f"no page states {', '.join(missing)} of {gpu}"
    return Target(
        capability=round(found[_CAPABILITY] * 10),
        multiprocessors=int(found[_COUNT]),
        bandwidth=found[_BANDWIDTH],
        l2_bytes=int(found[_CACHE]),
        threads=int(found.get("max_threads_per_sm", 2048)),
        registers=int(found.get("register_file_per_sm", 262144)) // 4,
    ), ""
