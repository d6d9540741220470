"""An experience log drawn from a model of kernels, to judge the ranking of `kopt log recommend` by.

The model (`tests/kbs/kernel_model.py`) is hidden from the ranking: it shares no code with kbs, and a record shows only
what a real one would. What people try follows their habits, which know the operation and half of the time the
bottleneck. Attempts fail, some are made badly, times are noisy, and a compiler upgrade takes two methods their effect.

`generate(seed)` gives the records, and queries with the methods that would really help, by the model: the expectation
over all kernels that would show the same bottleneck there. Everything follows from the seed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.kbs.kernel_model import (
    EXTRAS,
    FAILURE,
    GPUS,
    LABELS,
    METHODS,
    OPS,
    SWITCHES,
    WRONG_LABEL,
    Setting,
    applied,
    duration,
    label_of,
    prior,
    supported,
    truth,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
"""The moment at which the queries are asked; all records are older."""
HABITS = {
    "row": ("online_recomputation", "vectorized_access", "warp_shuffle", "launch_config", "kernel_fusion"),
    "map": ("vectorized_access", "kernel_fusion", "launch_config", "thread_coarsening", "loop_unroll"),
    "move": ("coalesced_access", "tiling_smem", "vectorized_access", "launch_config"),
    "gemm": ("tensor_core", "tiling_smem", "multi_stage_pipeline", "tile_scheduler_swizzle", "split_k", "async_copy"),
    "attention": ("tensor_core", "warp_specialization", "multi_stage_pipeline", "mufu_ex2_softmax", "tiling_smem"),
}
LORE = {
    "memory-bound": (
        "vectorized_access",
        "coalesced_access",
        "kernel_fusion",
        "cache_modifier_hint",
        "mixed_precision",
    ),
    "compute-bound": ("tensor_core", "mufu_ex2_softmax", "mixed_precision", "warp_specialization", "loop_unroll"),
    "latency-bound": ("multi_stage_pipeline", "async_copy", "split_k", "thread_coarsening", "warp_shuffle"),
    "occupancy-bound": ("launch_config", "register_pressure", "thread_coarsening"),
    "launch-bound": ("cuda_graphs", "kernel_fusion", "persistent_kernel"),
    "mixed": ("launch_config", "multi_stage_pipeline"),
}
DRIFTING = (
    "multi_stage_pipeline",
    "loop_unroll",
    "mufu_ex2_softmax",
    "cache_modifier_hint",
    "launch_config",
    "async_copy",
)
"""Some of these lose most of their effect when a newer compiler does the same unasked."""


@dataclass(frozen=True)
class Query:
    """A kernel to advise on: what a user would give, and what the model knows would help, best first."""

    setting: Setting
    bottleneck: str
    helpful: tuple[str, ...]


@dataclass(frozen=True)
class GeneratedLog:
    """Records as `kbs.experience.experiment` wants them (plain dictionaries), queries, queries of operations without
    records."""

    records: list[dict[str, Any]]
    queries: list[Query]
    strangers: list[Query]


def top3_hits(recommended: Sequence[str], helpful: Sequence[str]) -> float:
    """The share of what the first three could have hit that they hit: 1 when each place holds a method that helps."""
    return len(set(recommended[:3]) & set(helpful)) / min(3, len(helpful))


def most_frequent_success(records: Sequence[Mapping[str, Any]], op: str) -> list[str]:
    """The rule to beat: methods by how many successes this operation has of them."""
    counts: dict[str, int] = {}
    for record in records:
        if record["op"] == op and record["outcome"] == "success":
            for method in record["methods"]:
                counts[method] = counts.get(method, 0) + 1
    return sorted(counts, key=lambda method: (-counts[method], method))


class _Draw:
    """One log in the making: the habits and shares of its people, drawn once, then runs."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"experience {seed}")
        self.faded = tuple(self.rng.sample(DRIFTING, 2))
        self.upgrade = NOW - timedelta(days=200)
        ops = list(OPS)
        self.rng.shuffle(ops)
        self.absent, self.ops = ops[:2], ops[2:]
        self.op_shares = [self.rng.lognormvariate(0, 0.7) for _ in self.ops]
        self.gpu_shares = [gpu.share * self.rng.lognormvariate(0, 0.4) for gpu in GPUS]
        self.likings = {(op, method): self.rng.lognormvariate(0, 1) for op in OPS for method in METHODS}

    def setting(self, op: str = "") -> Setting:
        """A kernel's setting: common sizes, one of five not a power of two."""
        rng = self.rng
        op = op or rng.choices(self.ops, self.op_shares)[0]
        gpu = rng.choices(GPUS, self.gpu_shares)[0]
        backend = "triton" if gpu.generation < 0 or rng.random() < 0.65 else "cuda"
        dtype = rng.choices(
            ("bf16", "fp16", "fp32", "fp8"), (40, 20, 35, 5 if op == "matmul" and gpu.generation > 1 else 0)
        )[0]
        dtype = "fp16" if dtype == "bf16" and gpu.generation == 0 else dtype
        if op == "attention":
            dims = {"B": 2 ** rng.randint(0, 4), "H": rng.choice((8, 16, 32)), "S": 2 ** rng.randint(9, 14)}
            return Setting(op, backend, gpu, {**dims, "D": rng.choice((64, 128))}, dtype)
        odd = rng.random() < 0.2
        elements = rng.randint(20, 29) if rng.random() < 0.85 else rng.randint(14, 19)
        width = rng.randint(6, 16)
        m, n = 2 ** max(2, elements - width), 2**width + (rng.choice((1, 24, 100)) if odd else 0)
        if op == "matmul":
            n, k = 2 ** rng.randint(9, 14), 2 ** rng.randint(8, 14) + (8 if odd else 0)
            return Setting(
                op, backend, gpu, {"M": 2 ** rng.choice((4, 6, 9, 10, 11, 12, 13, 13)), "N": n, "K": k}, dtype
            )
        return Setting(op, backend, gpu, {"M": m, "K": n} if op == "gemv" else {"M": m, "N": n}, dtype)

    def kernel(self, setting: Setting) -> dict[str, Any]:
        """A kernel that nobody has worked on."""
        chances = prior(setting)
        return {x: int(self.rng.random() < chances[x]) for x in SWITCHES} | dict.fromkeys(EXTRAS, 0)

    def label(self, setting: Setting, state: Mapping[str, Any]) -> str:
        """What the profile of this kernel is read as."""
        label = LABELS[int(label_of(setting, state))]
        others = [other for other in LABELS if other != label]
        return self.rng.choice(others) if self.rng.random() < WRONG_LABEL else label

    def method(self, setting: Setting, label: str, tried: Sequence[str]) -> str:
        """What somebody tries next: by habit, and half of the time with the bottleneck in mind."""
        minded = self.rng.random() < 0.5
        weights = []
        for method in METHODS:
            weight = self.likings[setting.op, method] * (5 if method in HABITS[setting.kind] else 1)
            weight *= 5 if minded and method in LORE[label] else 1
            weight *= 1 if supported(method, setting) else 0.1
            weights.append(weight * (0.05 if method in tried else 1))
        return self.rng.choices(METHODS, weights)[0]

    def effect(self, method: str, setting: Setting, state: Mapping[str, Any], when: datetime) -> float:
        """The log effect of one attempt: the model's, as well as this attempt was made."""
        gain = math.log(duration(setting, state) / duration(setting, applied(method, setting, state)))
        gain *= 0.15 if method in self.faded and when >= self.upgrade else 1
        if self.rng.random() < 0.1:
            gain = -0.3 * abs(gain) - abs(self.rng.gauss(0, 0.05))
        return gain * self.rng.gauss(1, 0.2) + self.rng.gauss(0, 0.015)

    def run(self, number: int) -> list[dict[str, Any]]:
        """The records of one to six iterations over one kernel; what succeeded stays in it."""
        rng = self.rng
        setting = self.setting()
        state, start = self.kernel(setting), NOW - timedelta(seconds=rng.randint(3600, 500 * 86400))
        measured = rng.random() < 0.8
        tried: list[str] = []
        records: list[dict[str, Any]] = []
        for iteration in range(1, rng.randint(1, 6) + 1):
            when = start + timedelta(minutes=20 * iteration)
            label = self.label(setting, state)
            methods = [self.method(setting, label, tried)]
            if rng.random() < 0.08:
                second = self.method(setting, label, [*tried, *methods])
                methods += [second] if second not in methods else []
            tried += methods
            outcome, speedup, after = "success", None, state
            for method in methods:
                broken = not supported(method, setting) or rng.random() < FAILURE[method]
                if broken:
                    outcome = rng.choice(("incorrect", "failed")) if supported(method, setting) else "failed"
            if outcome == "success":
                gain = 0.0
                for method in methods:
                    gain += self.effect(method, setting, after, when)
                    after = applied(method, setting, after)
                width = rng.lognormvariate(math.log(0.012 if measured else 0.03), 0.6)
                seen = gain + rng.gauss(0, width / 2) + (0 if measured else abs(rng.gauss(0, 0.04)))
                low, high = seen - width, seen + width
                outcome = "success" if low > math.log(1.01) else "regression" if high < math.log(0.99) else "neutral"
                speedup = {"median": math.exp(seen)}
                if measured or rng.random() < 0.5:
                    speedup |= {"low": math.exp(low), "high": math.exp(high)}
            if not measured and outcome in ("neutral", "failed") and rng.random() < 0.5:
                continue  # nobody writes about it
            records.append(self.record(setting, label, methods, outcome, speedup, (number, iteration, when, measured)))
            if outcome == "success":
                state = after
            records[-1]["bottleneck_after"] = self.label(setting, state) if speedup else ""
        return records

    def record(
        self,
        setting: Setting,
        label: str,
        methods: Sequence[str],
        outcome: str,
        speedup: dict[str, float] | None,
        place: tuple[int, int, datetime, bool],
    ) -> dict[str, Any]:
        """One record, with what it does not say left out."""
        number, iteration, when, measured = place
        forgetful = 0.02 if measured else 0.15
        return {
            "id": ulid(when, self.rng),
            "time": when.isoformat().replace("+00:00", "Z"),
            "run": f"run-{number:06d}",
            "iteration": iteration,
            "kernel": f"{setting.op}_{number}",
            "op": setting.op,
            "backend": setting.backend,
            "gpu": setting.gpu.name,
            "capability": setting.gpu.capability,
            "dims": {} if self.rng.random() < forgetful else dict(setting.dims),
            "dtype": "" if self.rng.random() < forgetful else setting.dtype,
            "bottleneck_before": "" if self.rng.random() < forgetful else label,
            "methods": list(methods),
            "optimization": " and ".join(methods).replace("_", " "),
            "outcome": outcome,
            "speedup": speedup,
            "receipt": f"{self.rng.getrandbits(256):064x}" if measured else "",
            "provenance": "measured" if measured else "reported",
        }


def ulid(when: datetime, rng: random.Random) -> str:
    """A ULID of this moment."""
    value = (int(when.timestamp() * 1000) << 80) | rng.getrandbits(80)
    return "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(value >> (5 * place)) & 31] for place in range(25, -1, -1))


def generate(seed: int, records: int = 3000, queries: int = 150) -> GeneratedLog:
    """A log of about `records` records in the order of their ids, and `queries` queries that have an answer."""
    draw = _Draw(seed)
    log: list[dict[str, Any]] = []
    for number in itertools.count():
        if len(log) >= records:
            break
        log += draw.run(number)
    log.sort(key=lambda record: record["id"])
    asked: list[Query] = []
    while len(asked) < queries:
        query = draw_query(draw)
        asked += [query] if query.helpful else []
    return GeneratedLog(log, asked, [draw_query(draw, op) for op in draw.absent])


def draw_query(draw: _Draw, op: str = "") -> Query:
    """A kernel that nobody has worked on, and what would help it now."""
    setting = draw.setting(op)
    label = draw.label(setting, draw.kernel(setting))
    return Query(setting, label, truth(setting, label, draw.faded))
