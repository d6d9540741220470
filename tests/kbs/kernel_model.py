"""A model of kernels that the records of `tests/kbs/experience_generator.py` are drawn from.

A kernel is a set of switches (vectorized, coalesced, one pass, ...); its time follows from them, from the sizes and
from the GPU: bytes over bandwidth, operations over a rate, chains of latency, launches. A method turns switches, and
helps where what it mends is what the time goes to. So the same method speeds up one shape of an operation and slows
down another. The numbers of `GPUS` are the model's own, chosen for their proportions; they are no specifications.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SUCCESS = math.log(1.03)
"""The log effect that counts as help."""


@dataclass(frozen=True)
class Gpu:
    """A GPU: GB/s, multiprocessors, MB of L2, TFLOPS of vector and tensor pipes, us a launch."""

    name: str
    capability: str
    generation: int
    """0 Volta and Turing, 1 Ampere and Ada, 2 Hopper, 3 Blackwell, -1 another vendor."""
    bandwidth: float
    sms: int
    l2: float
    vector: float
    tensor: float
    launch: float
    share: float
    """How common its records are."""


GPUS = (
    Gpu("h100-sxm", "9.0", 2, 3300, 132, 50, 60, 900, 4, 20),
    Gpu("a100-sxm-80gb", "8.0", 1, 2000, 108, 40, 19, 300, 5, 18),
    Gpu("h200-sxm", "9.0", 2, 4800, 132, 50, 60, 900, 4, 14),
    Gpu("rtx-4090", "8.9", 1, 1000, 128, 72, 80, 160, 5, 12),
    Gpu("a10", "8.6", 1, 600, 72, 6, 30, 70, 6, 6),
    Gpu("h100-pcie", "9.0", 2, 2000, 114, 50, 50, 700, 5, 6),
    Gpu("l4", "8.9", 1, 300, 58, 48, 30, 120, 6, 5),
    Gpu("rtx-3090", "8.6", 1, 930, 82, 6, 35, 70, 5, 5),
    Gpu("b200", "10.0", 3, 8000, 148, 120, 75, 2200, 4, 5),
    Gpu("t4", "7.5", 0, 320, 40, 4, 8, 60, 8, 3),
    Gpu("v100-sxm2", "7.0", 0, 900, 80, 6, 15, 110, 7, 3),
    Gpu("mi300x", "", -1, 5300, 304, 256, 160, 1300, 8, 5),
)

ROW_OPS = {"softmax": (2, 1.0), "layernorm": (1, 0.0), "rmsnorm": (1, 0.0), "cross-entropy": (1, 1.0)}
"""Operations of rows: passes over the input too many in a plain kernel, exponentials an element."""
MAP_OPS = {"gelu": (1, 3.0), "relu": (1, 0.0), "swiglu": (2, 2.0), "add": (2, 0.0)}
"""Operations of elements: inputs, exponentials an element."""
OPS = (*ROW_OPS, *MAP_OPS, "sum", "scan", "transpose", "matmul", "gemv", "attention")
LABELS = ("memory-bound", "compute-bound", "latency-bound", "occupancy-bound", "launch-bound", "mixed")
WRONG_LABEL = 0.1
"""How often a profile is read as something else."""

SWITCHES = ("vec", "coal", "once", "fused", "tensor", "pipe", "config", "spill", "tile", "fast", "shuffle", "swizzle")
"""What a kernel may have before anybody works on it; the rest starts as not there."""
EXTRAS = ("split", "coarse", "graph", "special", "persist", "hint", "narrow", "unroll", "lean", "burden")

FAILURE = {
    "vectorized_access": 0.05, "coalesced_access": 0.08, "online_recomputation": 0.12, "kernel_fusion": 0.15,
    "tensor_core": 0.12, "multi_stage_pipeline": 0.1, "async_copy": 0.1, "launch_config": 0.02,
    "register_pressure": 0.04, "tiling_smem": 0.12, "mufu_ex2_softmax": 0.05, "warp_shuffle": 0.06,
    "tile_scheduler_swizzle": 0.04, "split_k": 0.15, "thread_coarsening": 0.06, "cuda_graphs": 0.08,
    "warp_specialization": 0.3, "persistent_kernel": 0.1, "cache_modifier_hint": 0.02, "mixed_precision": 0.35,
    "loop_unroll": 0.03, "tma_descriptor": 0.2,
}  # fmt: skip
"""The methods, and how often an attempt of one does not run or is wrong."""
METHODS = tuple(FAILURE)


@dataclass(frozen=True)
class Setting:
    """What a record and a query show of a kernel besides the bottleneck."""

    op: str
    backend: str
    gpu: Gpu
    dims: Mapping[str, int]
    dtype: str

    @property
    def kind(self) -> str:
        """The shape of the computation, which habits go by."""
        if self.op in MAP_OPS:
            return "map"
        return {"transpose": "move", "matmul": "gemm", "gemv": "gemm", "attention": "attention"}.get(self.op, "row")

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}[self.dtype]


@dataclass(frozen=True)
class Work:
    """Bytes that must move, operations, exponentials, blocks of work, the length of one chain, passes too many."""

    bytes: float
    flops: float
    exponentials: float
    units: float
    depth: float
    rereads: float


def work_of(setting: Setting) -> Work:
    """Bytes, operations and parallelism of the operation at these sizes."""
    d, size = setting.dims, setting.size
    if setting.op == "matmul":
        m, n, k = d["M"], d["N"], d["K"]
        return Work((m * k + k * n + m * n) * size, 2 * m * n * k, 0, math.ceil(m / 128) * math.ceil(n / 128), k, 0)
    if setting.op == "gemv":
        return Work(d["M"] * d["K"] * size, 2 * d["M"] * d["K"], 0, max(1, d["M"] / 16), d["K"], 0)
    if setting.op == "attention":
        rows = d["B"] * d["H"] * d["S"]
        return Work(4 * rows * d["D"] * size, 4 * rows * d["S"] * d["D"], rows * d["S"], max(1, rows / 128), d["S"], 0)
    elements = d["M"] * d["N"]
    if setting.op in ROW_OPS:
        rereads, exponentials = ROW_OPS[setting.op]
        return Work(2 * elements * size, 8 * elements, exponentials * elements, d["M"], d["N"], rereads / 2)
    if setting.op in ("sum", "scan"):
        return Work(elements * size * (1 if setting.op == "sum" else 2), 2 * elements, 0, d["M"], d["N"], 0)
    inputs, exponentials = MAP_OPS.get(setting.op, (1, 0.0))
    return Work((inputs + 1) * elements * size, 4 * elements, exponentials * elements, max(1, elements / 2048), 256, 0)


def prior(setting: Setting) -> dict[str, float]:
    """How probable each switch is on, in a kernel that nobody has worked on."""
    triton, matrix = setting.backend == "triton", setting.op in ("matmul", "attention")
    reducing = setting.kind in ("row", "attention") or setting.op == "gemv"
    return {
        "vec": 0.6 if triton else 0.3,
        "coal": (0.4 if setting.op == "transpose" else 0.9) if triton else (0.3 if setting.op == "transpose" else 0.7),
        "once": 1.0 if work_of(setting).rereads == 0 else (0.45 if triton else 0.25),
        "fused": 0.6,
        "tensor": (0.8 if triton else 0.3) if matrix else 1.0,
        "pipe": 0.5 if triton else 0.3,
        "config": 0.45,
        "spill": 0.4 if setting.kind == "row" and setting.dims.get("N", 0) > 16384 else 0.12,
        "tile": (0.9 if triton else 0.45) if matrix or setting.op == "transpose" else 1.0,
        "fast": 0.3 if work_of(setting).exponentials else 1.0,
        "shuffle": 1.0 if triton or not reducing else 0.4,
        "swizzle": 0.25 if setting.op == "matmul" else 1.0,
    }


def parts(setting: Setting, s: Mapping[str, Any]) -> tuple[Any, Any, Any, Any, float]:
    """Seconds that memory, arithmetic, latency and launches take, and the share lost to needless work.

    The switches are 0 or 1, or arrays of them; the extras are numbers, the same for all.
    """
    w, gpu = work_of(setting), setting.gpu
    bandwidth, l2 = gpu.bandwidth * 1e9, gpu.l2 * 1e6
    hunger = min(1.0, gpu.bandwidth / gpu.sms / 40)
    narrow = 1 - 0.5 * s["narrow"] * (setting.dtype == "fp32")
    total = w.bytes * narrow
    cached = 1 / (1 + (total / (0.6 * l2)) ** 2)
    row_cached = 1 / (1 + (w.depth * setting.size * gpu.sms * 4 / l2) ** 2)
    grain = (8 if s["split"] else 1) / (4 if s["coarse"] else 1)
    units = max(1.0, w.units * grain)
    fill = min(1.0, units / (2 * gpu.sms))
    waves = units / gpu.sms
    full = waves / math.ceil(waves)
    full = full + 0.6 * (1 - full) * s["persist"] - 0.04 * s["persist"] * (waves < 2)

    scalar = 1 - 0.5 * hunger * (1 - setting.size * narrow / 16)
    efficiency = 0.92 * (s["vec"] + (1 - s["vec"]) * scalar) * (s["coal"] + (1 - s["coal"]) * (0.3 + 0.3 * cached))
    efficiency = efficiency * (s["pipe"] + (1 - s["pipe"]) * (1 - 0.35 * hunger))
    efficiency = efficiency * (1 + s["hint"] * (0.07 - 0.2 * cached))
    again = w.rereads * (1 - s["once"]) * (1 - 0.85 * row_cached)
    if setting.op in ("matmul", "attention"):
        again = again + 6 * (1 - s["tile"]) * (1 - 0.6 * cached) + 1.2 * (1 - s["swizzle"]) * (1 - cached)
    moved = total * (1 + again) * (1 + 0.7 * (1 - s["fused"]) * (1 - cached)) * (1 + 0.4 * s["spill"])
    moved = moved * (1 + 0.1 * s["split"])
    memory = moved / (bandwidth * (1 + 2 * cached) * efficiency * fill**0.7)

    modern = gpu.generation >= 2
    matrix = setting.op in ("matmul", "attention")
    rate = (
        (gpu.vector + s["tensor"] * (gpu.tensor * (0.5 if setting.size == 4 else 1) - gpu.vector))
        if matrix
        else gpu.vector
    )
    arithmetic = 0.8 * (s["config"] + (1 - s["config"]) * 0.7) * (1 - 0.25 * s["spill"]) * (1 + 0.04 * s["lean"])
    if matrix:
        arithmetic = arithmetic * (s["tile"] + (1 - s["tile"]) * 0.15)
        arithmetic = arithmetic * (1 - (0.4 if modern else 0.2) * (1 - s["pipe"]))
        arithmetic = arithmetic * (1 + s["special"] * (0.25 if modern and w.depth >= 1024 else -0.1))
    compute = w.flops / (rate * 1e12 * arithmetic * full * fill**0.7)
    compute = compute + w.exponentials * (1 + 1.5 * (1 - s["fast"])) / (gpu.sms * 16 * 1.5e9 * fill)

    resident = gpu.sms * (4 + 4 * s["config"]) * (1 - 0.35 * s["spill"])
    steps = w.depth / (8 if s["split"] else 1) / 1024
    chain = 1.0 * (1 + 0.8 * (1 - s["shuffle"])) + 0.5 * steps * (1 - 0.5 * s["pipe"]) * (1 - 0.2 * s["unroll"])
    chain = chain * (1.5 if s["coarse"] else 1) + 0.4 * s["split"]
    latency = (1 + units / resident) * chain * 1e-6
    launch = (2 - s["fused"]) * gpu.launch * 1e-6 * (1 - 0.75 * s["graph"])
    return memory, compute, latency, launch, 0.03 * s["burden"]


def duration(setting: Setting, s: Mapping[str, Any]) -> Any:
    """Seconds of the kernel; arrays for arrays."""
    memory, compute, latency, launch, waste = parts(setting, s)
    return (launch + (memory**3 + compute**3 + latency**3) ** (1 / 3)) * (1 + waste)


def label_of(setting: Setting, s: Mapping[str, Any]) -> Any:
    """The index in `LABELS` of what a faithful profile says; arrays for arrays."""
    memory, compute, latency, launch, _ = parts(setting, s)
    ordered = np.sort(np.stack(np.broadcast_arrays(memory, compute, latency)), axis=0)
    label = np.argmax(np.stack(np.broadcast_arrays(memory, compute, latency)), axis=0)
    label = np.where((label == 2) & ((np.asarray(s["config"]) == 0) | (np.asarray(s["spill"]) == 1)), 3, label)
    label = np.where(ordered[1] > 0.85 * ordered[2], 5, label)
    return np.where(launch > 0.8 * ordered[2], 4, label)


def supported(method: str, setting: Setting) -> bool:
    """Whether the GPU can do it at all."""
    generation = setting.gpu.generation
    if method in ("warp_specialization", "tma_descriptor"):
        return generation >= 2
    if method == "async_copy":
        return generation >= 1
    if method == "tensor_core":
        return setting.dtype == "fp16" or generation != 0
    return True


def applied(method: str, setting: Setting, s: Mapping[str, Any]) -> dict[str, Any]:
    """The switches after `method`; what is of no use to this operation only adds work."""
    one = s["vec"] * 0 + 1
    matrix, exponential = setting.op in ("matmul", "attention"), work_of(setting).exponentials > 0
    reducing = setting.kind in ("row", "attention") or setting.op == "gemv"
    width = setting.dims.get("N") or setting.dims.get("K") or setting.dims.get("D") or 1
    useful: dict[str, tuple[str, bool]] = {
        "vectorized_access": ("vec", width % (16 // setting.size) == 0),
        "coalesced_access": ("coal", True),
        "online_recomputation": ("once", work_of(setting).rereads > 0),
        "kernel_fusion": ("fused", True),
        "tensor_core": ("tensor", matrix),
        "multi_stage_pipeline": ("pipe", True),
        "async_copy": ("pipe", setting.backend == "cuda"),
        "launch_config": ("config", True),
        "tiling_smem": ("tile", matrix or setting.op == "transpose"),
        "mufu_ex2_softmax": ("fast", exponential),
        "warp_shuffle": ("shuffle", reducing),
        "tile_scheduler_swizzle": ("swizzle", setting.op == "matmul"),
        "split_k": ("split", reducing or setting.op == "matmul"),
        "thread_coarsening": ("coarse", True),
        "cuda_graphs": ("graph", True),
        "warp_specialization": ("special", matrix),
        "persistent_kernel": ("persist", True),
        "cache_modifier_hint": ("hint", True),
        "mixed_precision": ("narrow", setting.dtype == "fp32"),
        "loop_unroll": ("unroll", True),
    }
    if method == "register_pressure":
        return {**s, "spill": one - 1, "lean": 1}
    if method == "tma_descriptor":
        return {**s, "pipe": one, "vec": one, "burden": s["burden"] + (not matrix)}
    switch, fits = useful[method]
    if not fits:
        return {**s, "burden": s["burden"] + 1}
    return {**s, switch: one if switch in SWITCHES else 1}


def truth(setting: Setting, bottleneck: str, faded: Sequence[str]) -> tuple[str, ...]:
    """Methods that help a kernel of which only this is known, greatest mean log effect first.

    One helps when a third of the attempts would gain 3 %, and the mean of all attempts does, over every combination of
    switches by its probability given the bottleneck; attempts that fail gain nothing.
    """
    chances = prior(setting)
    free = [switch for switch in SWITCHES if chances[switch] < 1]
    grid = np.array(list(itertools.product((0, 1), repeat=len(free))), dtype=float)
    weight = np.prod([np.where(grid[:, i] == 1, chances[x], 1 - chances[x]) for i, x in enumerate(free)], axis=0)
    state: dict[str, Any] = {x: grid[:, free.index(x)] if x in free else np.ones(len(grid)) for x in SWITCHES}
    state |= dict.fromkeys(EXTRAS, 0)
    seen = label_of(setting, state) == LABELS.index(bottleneck)
    weight = weight * np.where(seen, 1 - WRONG_LABEL, WRONG_LABEL / (len(LABELS) - 1))
    weight = weight / weight.sum()
    before = duration(setting, state)
    gains: dict[str, float] = {}
    for method in METHODS:
        if not supported(method, setting):
            continue
        effect = np.log(before / duration(setting, applied(method, setting, state))) * (0.15 if method in faded else 1)
        chance = (1 - FAILURE[method]) * float((weight * (effect >= SUCCESS)).sum())
        mean = (1 - FAILURE[method]) * float((weight * effect).sum())
        if chance >= 1 / 3 and mean >= SUCCESS:
            gains[method] = mean
    return tuple(sorted(gains, key=lambda method: (-gains[method], method)))
