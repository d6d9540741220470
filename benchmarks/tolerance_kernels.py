"""Emulated kernels for `tolerance.py`: honest ones in other orders, and dishonest ones that save work or bits.

A kernel takes its inputs at the working dtype and returns the output at that dtype. Honest ones compute in fp32 (fp64
for fp64 inputs) and round once, or round an intermediate where common models do so too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Inputs = Mapping[str, Tensor]
Kernel = Callable[[Inputs], Tensor]
Sum = Callable[[Tensor], Tensor]
"""A way to add each row."""
LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class Operation:
    """A task: its inputs' shapes at a row length, its PyTorch reference, and kernels that claim to compute it."""

    name: str
    shapes: Callable[[int], Mapping[str, tuple[int, ...]]]
    """Shapes of the inputs for a row (or sum) of n elements. An input named `target` holds class numbers."""
    reference: Kernel
    """PyTorch's own: at float64 the oracle, at the working dtype the native result."""
    honest: Mapping[str, Kernel]
    dishonest: Mapping[str, Kernel] = field(default_factory=dict)
    """Those that belong to the operation; downgrades and rows left out are made by `tolerance.py` for all."""
    approximations: Mapping[str, Kernel] = field(default_factory=dict)
    """Formulas that are wrong in fp32, and as good as the right one in 16 bits."""
    narrow: Mapping[str, Kernel] = field(default_factory=dict)
    """Kernels that keep a 16-bit accumulator: dishonest where the output has 16 bits."""
    dot: bool = False
    """Whether tensor cores could compute it, so that TF32 is a downgrade that happens."""
    longest: int = 1 << 20
    """The longest row that is tried."""


def wide(x: Tensor) -> Tensor:
    """The values at the precision that a kernel computes in."""
    return x if x.dtype == torch.float64 else x.float()


def folded(x: Tensor, width: int) -> Tensor:
    """Each row as rows of a width that divides it."""
    return x.reshape(*x.shape[:-1], -1, width)


def sequential(x: Tensor) -> Tensor:
    """Sum of each row, one element after the other."""
    return running(x)[..., -1]


def running(x: Tensor) -> Tensor:
    """Running sum of each row, one element after the other (PyTorch's own keeps a double)."""
    return torch.from_numpy(np.add.accumulate(wide(x).numpy(), axis=-1))


def tree(x: Tensor) -> Tensor:
    """Sum of each row by halves."""
    x = wide(x)
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = functional.pad(x, (0, 1))
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


def block(x: Tensor, threads: int = 256) -> Tensor:
    """Sum of each row as a thread block does it: a thread adds every 256th element, then a tree."""
    x = wide(x)
    x = functional.pad(x, (0, -x.shape[-1] % threads))
    return tree(sequential(folded(x, threads).transpose(-1, -2).contiguous()))


def short_sum(x: Tensor) -> Tensor:
    """Sum of each row one element after the other, each partial sum rounded to the dtype of the input."""
    total = torch.zeros_like(x[..., 0])
    for column in x.movedim(-1, 0).contiguous():
        total = total + column
    return total


SUMS: dict[str, Sum] = {"sequential": sequential, "tree": tree, "block of 256": block}


def fast_exp2(x: Tensor) -> Tensor:
    """2^x with the error that `ex2.approx` may have: two units in the last place."""
    noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    return torch.exp2(x) * (1 + noise * 2 * torch.finfo(x.dtype).eps)


def like(kernel: Callable[[Inputs], Tensor], name: str = "x") -> Kernel:
    """The kernel with its result rounded to the dtype of the input."""
    return lambda inputs: kernel(inputs).to(inputs[name].dtype)


def each_sum(kernel: Callable[[Inputs, Sum], Tensor]) -> dict[str, Kernel]:
    """The kernel with each way to add a row."""

    def with_sum(add: Sum) -> Kernel:
        return like(lambda inputs: kernel(inputs, add))

    return {name: with_sum(add) for name, add in SUMS.items()}


def most(x: Tensor) -> Tensor:
    """The row without its last 1 %."""
    return x[..., : x.shape[-1] - max(1, x.shape[-1] // 100)]


# Softmax and its kin


def softmax(x: Tensor, add: Sum = block) -> Tensor:
    """exp(x − max) / sum."""
    p = torch.exp(wide(x) - wide(x).amax(-1, keepdim=True))
    return p / add(p).unsqueeze(-1)


def softmax_exp2_after(x: Tensor) -> Tensor:
    """2^((x − max)·log2 e), approximate exp2."""
    p = fast_exp2((wide(x) - wide(x).amax(-1, keepdim=True)) * LOG2E)
    return p / block(p).unsqueeze(-1)


def softmax_exp2_before(x: Tensor) -> Tensor:
    """2^(x·log2 e − max): the product is rounded before the maximum is taken off."""
    scaled = wide(x) * LOG2E
    p = fast_exp2(scaled - scaled.amax(-1, keepdim=True))
    return p / block(p).unsqueeze(-1)


def softmax_online(x: Tensor, step: int = 128) -> Tensor:
    """Maximum and sum in one pass over blocks of 128, rescaled when the maximum grows."""
    x = wide(x)
    high = torch.full_like(x[..., :1], -torch.inf)
    total = torch.zeros_like(high)
    for part in torch.split(x, step, -1):
        new = torch.maximum(high, part.amax(-1, keepdim=True))
        total = total * torch.exp(high - new) + torch.exp(part - new).sum(-1, keepdim=True)
        high = new
    return torch.exp(x - high) / total


def softmax_no_maximum(x: Tensor) -> Tensor:
    """exp(x) / sum: overflows from 88 on."""
    p = torch.exp(wide(x))
    return p / p.sum(-1, keepdim=True)


def softmax_short(x: Tensor) -> Tensor:
    """Softmax whose sum leaves out the last 1 % of the row."""
    p = torch.exp(wide(x) - wide(x).amax(-1, keepdim=True))
    return p / most(p).sum(-1, keepdim=True)


def logsumexp(x: Tensor, add: Sum) -> Tensor:
    """max + log(sum(exp(x − max)))."""
    high = wide(x).amax(-1, keepdim=True)
    return torch.log(add(torch.exp(wide(x) - high))) + high[..., 0]


def cross_entropy(inputs: Inputs, add: Sum) -> Tensor:
    """Mean over rows of logsumexp(x) − x[target]."""
    picked = wide(inputs["x"]).gather(-1, inputs["target"][:, None])[:, 0]
    return tree(logsumexp(inputs["x"], add) - picked) / len(picked)


# Moments


def one_pass(x: Tensor, add: Sum = block) -> tuple[Tensor, Tensor]:
    """Mean and variance (of the population) from Σx and Σx²."""
    x, n = wide(x), x.shape[-1]
    mean = add(x) / n
    return mean, (add(x * x) / n - mean * mean).clamp(min=0)


def two_pass(x: Tensor, add: Sum = block) -> tuple[Tensor, Tensor]:
    """Mean, then the mean squared distance from it."""
    x, n = wide(x), x.shape[-1]
    mean = add(x) / n
    away = x - mean.unsqueeze(-1)
    return mean, add(away * away) / n


def welford(x: Tensor, lanes: int = 32) -> tuple[Tensor, Tensor]:
    """Welford's running mean and variance in 32 lanes, joined by Chan's formula (sequential where a row is short)."""
    x, n = wide(x), x.shape[-1]
    if n % lanes:
        lanes = 1
    columns = folded(x, lanes).movedim(-2, 0).contiguous()
    mean, spread = torch.zeros_like(columns[0]), torch.zeros_like(columns[0])
    for k, column in enumerate(columns, 1):
        away = column - mean
        mean = mean + away / k
        spread = spread + away * (column - mean)
    count = n // lanes
    while mean.shape[-1] > 1:
        half = mean.shape[-1] // 2
        away = mean[..., half:] - mean[..., :half]
        spread = spread[..., :half] + spread[..., half:] + away * away * (count / 2)
        mean = (mean[..., :half] + mean[..., half:]) / 2
        count *= 2
    return mean[..., 0], spread[..., 0] / n


def variances() -> dict[str, Kernel]:
    """Every way to the unbiased variance."""
    ways: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
        "two passes, sequential": lambda x: two_pass(x, sequential),
        "two passes, block of 256": two_pass,
        "one pass, sequential": lambda x: one_pass(x, sequential),
        "one pass, block of 256": one_pass,
        "Welford": welford,
    }

    def unbiased(way: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Kernel:
        return like(lambda inputs: way(inputs["x"])[1] * (inputs["x"].shape[-1] / (inputs["x"].shape[-1] - 1)))

    return {name: unbiased(way) for name, way in ways.items()}


def layer_norm(inputs: Inputs, moments: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """(x − mean)·rsqrt(var + 1e-5)·weight + bias, all in fp32."""
    mean, variance = moments(inputs["x"])
    scale = torch.rsqrt(variance + 1e-5).unsqueeze(-1)
    normal = (wide(inputs["x"]) - mean.unsqueeze(-1)) * scale
    return normal * wide(inputs["weight"]) + wide(inputs["bias"])


def layer_norm_folded(inputs: Inputs) -> Tensor:
    """x·a + b, with a = weight·rsqrt(var) and b = bias − mean·a: one multiply-add an element."""
    mean, variance = two_pass(inputs["x"])
    a = torch.rsqrt(variance + 1e-5).unsqueeze(-1) * wide(inputs["weight"])
    return wide(inputs["x"]) * a + (wide(inputs["bias"]) - mean.unsqueeze(-1) * a)


def rms_norm(inputs: Inputs, add: Sum) -> Tensor:
    """x·rsqrt(mean(x²) + 1e-5)·weight."""
    x = wide(inputs["x"])
    scale = torch.rsqrt(add(x * x) / x.shape[-1] + 1e-5).unsqueeze(-1)
    return x * scale * wide(inputs["weight"])


def rms_norm_rounded(inputs: Inputs) -> Tensor:
    """As common models write it: the normalized row is rounded to the input's dtype before the weight."""
    x = wide(inputs["x"])
    normal = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    return normal.to(inputs["x"].dtype) * inputs["weight"]


# Products


def dot_sequential(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, each output one product after the other, as a thread for each output does it."""
    a, b = wide(a), wide(b)
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], 4096):
        products = a[:, None, k : k + 4096] * b.T[None, :, k : k + 4096]
        total = sequential(torch.cat([total[..., None], products], -1))
    return total


def dot_tiled(a: Tensor, b: Tensor, tile: int = 32) -> Tensor:
    """a @ b by tiles of k; the accumulator takes one tile after the other."""
    a, b = wide(a), wide(b)
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], tile):
        total = total + a[:, k : k + tile] @ b[k : k + tile]
    return total


def dot_split(a: Tensor, b: Tensor, parts: int = 8) -> Tensor:
    """a @ b with k split in eight, the parts added backwards, as atomics may."""
    step = -(-a.shape[1] // parts)
    tiles = [dot_tiled(a[:, k : k + step], b[k : k + step], 64) for k in range(0, a.shape[1], step)]
    total = tiles.pop()
    while tiles:
        total = total + tiles.pop()
    return total


def dot_short(a: Tensor, b: Tensor) -> Tensor:
    """a @ b with the accumulator rounded to the 16-bit dtype at every 16th product."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], 16):
        total = (wide(total) + wide(a[:, k : k + 16]) @ wide(b[k : k + 16])).to(a.dtype)
    return total


def attention(inputs: Inputs, *, rounded: bool, tile: int = 64) -> Tensor:
    """softmax(q kᵀ / 8) v in one pass over tiles of keys; `rounded` puts the weights into the input's dtype first."""
    q, keys, values = (wide(inputs[name]) for name in ("q", "k", "v"))
    high = torch.full((len(q), 1), -torch.inf, dtype=q.dtype)
    total, out = torch.zeros_like(high), torch.zeros(len(q), values.shape[1], dtype=q.dtype)
    for k in range(0, len(keys), tile):
        score = q @ keys[k : k + tile].T * (LOG2E / 8)
        new = torch.maximum(high, score.amax(-1, keepdim=True))
        shrink, p = fast_exp2(high - new), fast_exp2(score - new)
        total = total * shrink + p.sum(-1, keepdim=True)
        if rounded:
            p = p.to(inputs["q"].dtype).to(q.dtype)
        out, high = out * shrink + p @ values[k : k + tile], new
    return out / total


def columns(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """A 3 × 3 convolution as a product: the patches, and the weights of each filter."""
    return functional.unfold(inputs["x"], 3)[0].T.contiguous(), inputs["weight"].flatten(1).T.contiguous()


def convolution(inputs: Inputs, dot: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The convolution through a product."""
    side = inputs["x"].shape[-1] - 2
    return dot(*columns(inputs)).T.reshape(1, -1, side, side)
