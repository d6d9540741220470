"""Run by test_code_blocks.py in a process of its own: every Triton block of the wiki against PyTorch, or its compiler.

`python triton_blocks.py FOLDER run DEVICE` runs the kernels (on `cpu` with TRITON_INTERPRET=1), `... FOLDER compile`
makes code for compute capability 9.0 without a GPU. Each prints the names of the blocks that it checked. FOLDER holds
one block a file: block 1 of `kernel/scan.md` is `kernel_scan_1.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

# What a kernel is given, by position and name; `Const` is a compile-time value.
Arguments = dict[str, Any]
Case = tuple[str, tuple[int, ...], Arguments, Callable[[], torch.Tensor], torch.Tensor]

# A block that defines a helper for other kernels is called through one of these.
USES = {
    "kernel_attention_1": """
@triton.jit
def use(out, row_max, row_sum, q, k, v, N: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    d, n = tl.arange(0, D), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, D), tl.float32)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    l = tl.zeros((BLOCK,), tl.float32)
    rows = tl.load(q + n[:, None] * D + d[None, :])
    for start in range(0, N, BLOCK):
        cols = start + n
        k_t = tl.load(k + cols[None, :] * D + d[:, None])
        values = tl.load(v + cols[:, None] * D + d[None, :])
        acc, m, l = fold_tile(acc, m, l, rows, k_t, values, 0.25 * 1.4426950408889634)
    tl.store(out + n[:, None] * D + d[None, :], acc / l[:, None])
    tl.store(row_max + n, m)
    tl.store(row_sum + n, l)
""",
    "kernel_matmul_1": """
@triton.jit
def use(out, tiles_m, tiles_n, GROUP: tl.constexpr):
    m, n = tile_order(tl.program_id(0), tiles_m, tiles_n, GROUP)
    tl.store(out + tl.program_id(0), m * tiles_n + n)
""",
    "technique_l2-swizzle_1": """
@triton.jit
def use(out, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    m, n = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    tl.store(out + tl.program_id(0), m * tl.cdiv(N, BN) + n)
""",
}
# Blocks that are no kernels are only loaded; one of them runs as it is loaded, on a GPU.
LOADED = {"technique_cuda-graphs_1", "technique_register-pressure_1"}
GPU_ONLY = {"profiling_ncu-running_1"}


class Const:
    def __init__(self, value: int) -> None:
        self.value = value


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def cases(device: str) -> dict[str, Case]:
    """Kernel, grid, arguments, what they should give, and the tensor that they write, by block."""

    def on(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device)

    x, w, rows, cols = on(_random(8, 100)), on(_random(100)), 8, 100
    same, per_row, stats = torch.empty_like(x), on(torch.empty(rows)), on(torch.empty(2, rows))
    row: Arguments = {"x": x, "stride": cols, "n": cols}
    flat: Arguments = {"x": x, "n": x.numel(), "BLOCK": Const(64)}
    target = on(torch.arange(rows) * 11)
    parts, order = on(torch.empty(rows, 2)), on(torch.full((15,), -1, dtype=torch.int32))
    q, k, v = (on(_random(3, n, 16)[i]) for i, n in enumerate((16, 64, 64)))
    attended, a, b = on(torch.empty(16, 16)), on(_random(16, 64)), on(_random(2, 64, 16)[1])
    product, sums = on(torch.empty(16, 16)), on(torch.empty(16))
    even = x[:, :64].contiguous()
    scaled = torch.empty_like(even)
    norm = lambda: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w  # noqa: E731
    block, grid = {"BLOCK": Const(128)}, (rows,)
    normed: Arguments = {"y": same, "w": w, "eps": 1e-6}
    chunks = {"BLOCK": Const(32)}
    tiles = lambda: torch.arange(15, dtype=torch.int32, device=device)  # noqa: E731
    return {
        "kernel_attention_1": (
            "use",
            (1,),
            {"out": attended, "row_max": sums, "row_sum": sums, "q": q, "k": k, "v": v}
            | {"N": Const(64), "D": Const(16), "BLOCK": Const(16)},
            lambda: torch.softmax(q @ k.T * 0.25, 1) @ v,
            attended,
        ),
        "kernel_cross-entropy_1": (
            "cross_entropy_row",
            grid,
            {"loss": per_row, "target": target, **row, **chunks},
            lambda: torch.nn.functional.cross_entropy(x, target, reduction="none"),
            per_row,
        ),
        "kernel_elementwise_1": (
            "swiglu",
            (13,),
            {"y": same, "gate": x, "value": x, "n": x.numel(), "BLOCK": Const(64)},
            lambda: torch.nn.functional.silu(x) * x,
            same,
        ),
        "kernel_layernorm-rmsnorm_1": ("rmsnorm_row", grid, {**row, **block, **normed}, norm, same),
        "kernel_matmul_1": ("use", (15,), {"out": order, "tiles_m": 5, "tiles_n": 3, "GROUP": Const(2)}, tiles, order),
        "kernel_reduction_1": ("row_sum", grid, {"out": per_row, **row, **chunks}, lambda: x.sum(1), per_row),
        "kernel_scan_1": ("scan_row", grid, {"y": same, **row, **chunks}, lambda: x.cumsum(1), same),
        "kernel_softmax_1": ("softmax_row", grid, {"y": same, **row, **block}, lambda: torch.softmax(x, 1), same),
        "kernel_transpose_1": (
            "transpose_tile",
            (1, 7),
            {"y": same, "x": x, "m": rows, "n": cols, "BM": Const(16), "BN": Const(16)},
            lambda: x.T.reshape(x.shape),
            same,
        ),
        "language_triton_1": ("rms_norm", grid, {"x": x, "n_cols": cols, **block, **normed}, norm, same),
        "technique_cache-hints_1": (
            "scale_rows",
            grid,
            {"x": even, "w": w, "y": scaled, "N": Const(64)},
            lambda: even * w[:64],
            scaled,
        ),
        "technique_fast-exponential_1": (
            "softmax_row",
            grid,
            {"x": x, "y": same, "n_cols": cols, "scale": 0.5, **block},
            lambda: torch.softmax(x * 0.5, 1),
            same,
        ),
        "technique_kernel-fusion_1": (
            "bias_gelu_residual",
            (13,),
            {**flat, "b": w, "r": x, "y": same, "cols": cols},
            lambda: torch.nn.functional.gelu(x + w) + x,
            same,
        ),
        "technique_l2-swizzle_1": (
            "use",
            (15,),
            {"out": order, "M": 70, "N": 40, "BM": Const(16), "BN": Const(16), "GROUP": Const(2)},
            tiles,
            order,
        ),
        "technique_launch-configuration_1": ("scale.fn", (13,), {**flat, "y": same}, lambda: x * 2, same),
        "technique_online-softmax_1": (
            "row_softmax_stats",
            grid,
            {"m_out": stats[0], "d_out": stats[1], **row, **chunks},
            lambda: torch.stack([x.max(1).values, (x - x.max(1, keepdim=True).values).exp().sum(1)]),
            stats,
        ),
        "technique_persistent-kernel_1": ("persistent_scale", (3,), {**flat, "y": same, "a": 3.0}, lambda: x * 3, same),
        "technique_split-reduction_1": (
            "split_row_sum",
            (rows, 2),
            {"part": parts, **row, "SPLITS": Const(2), **chunks},
            lambda: torch.stack([x[:, :64].sum(1), x[:, 64:].sum(1)], 1),
            parts,
        ),
        "technique_tensor-cores_1": (
            "tile",
            (1,),
            {"a": a, "b": b, "c": product, "K": 64, "BM": Const(16), "BN": Const(16), "BK": Const(32)},
            lambda: a @ b,
            product,
        ),
        "technique_tma_1": (
            "scale",
            (1, 4),
            {"x": TensorDescriptor.from_tensor(even, [8, 16]), "y": TensorDescriptor.from_tensor(scaled, [8, 16])}
            | {"a": 3.0, "BM": Const(8), "BN": Const(16)},
            lambda: even * 3,
            scaled,
        ),
        "technique_warp-shuffle-reduction_1": (
            "row_sum",
            grid,
            {"x": x, "y": per_row, "n_cols": cols, **block},
            lambda: x.sum(1),
            per_row,
        ),
    }


def _load(folder: Path, name: str) -> Any:
    file = folder / f"{name}.py"
    file.write_text(file.read_text("utf-8") + USES.get(name, ""), "utf-8")
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _kernel(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _run(kernel: Any, case: Case) -> None:
    _, grid, arguments, wanted, written = case
    written.zero_()
    kernel[grid](**{n: a.value if isinstance(a, Const) else a for n, a in arguments.items()})
    found, right = written, wanted()
    if right.dtype == torch.int32:
        found = found.sort().values  # the order of tiles: each of them once
    torch.testing.assert_close(found, right, rtol=1e-2, atol=1e-2 if written.ndim == 2 else 1e-4)


def _compile(kernel: Any, case: Case) -> None:
    types = {torch.float32: "*fp32", torch.int32: "*i32", torch.int64: "*i64"}
    signature, constants = {}, {}
    for name in kernel.arg_names:
        argument = case[2][name]
        if isinstance(argument, Const):
            signature[name], constants[name] = "constexpr", argument.value
        elif isinstance(argument, TensorDescriptor):
            signature[name] = f"tensordesc<fp32{argument.block_shape}>"
        elif isinstance(argument, torch.Tensor):
            signature[name] = types[argument.dtype]
        else:
            signature[name] = "i32" if isinstance(argument, int) else "fp32"
    source = triton.compiler.ASTSource(kernel, signature, constants)
    made = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
    assert "ret;" in made.asm["ptx"]


def main(folder: Path, mode: str, device: str = "cpu") -> None:
    known = cases(device)
    for file in sorted(folder.glob("*.py")):
        name = file.stem
        if name in GPU_ONLY and device == "cpu":
            continue
        module = _load(folder, name)
        if name not in LOADED | GPU_ONLY:
            kernel = _kernel(module, known[name][0])
            _run(kernel, known[name]) if mode == "run" else _compile(kernel, known[name])
        print(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
