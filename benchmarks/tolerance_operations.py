"""The operations of `tolerance.py`, each with its PyTorch reference and its emulated kernels."""

from __future__ import annotations

import tolerance_kernels as k
import torch
from tolerance_kernels import Inputs, Kernel, Operation, each_sum, like, wide
from torch import Tensor
from torch.nn import functional

ROWS = 16


def rows(n: int) -> dict[str, tuple[int, ...]]:
    """One input of 16 rows."""
    return {"x": (ROWS, n)}


def with_weights(n: int) -> dict[str, tuple[int, ...]]:
    """Rows, and a weight and a bias for each column."""
    return {"x": (ROWS, n), "weight": (n,), "bias": (n,)}


def unary(name: str, reference: Kernel, honest: dict[str, Kernel], approximations: dict[str, Kernel]) -> Operation:
    """An operation on each element."""
    return Operation(name, rows, reference, honest, approximations=approximations, longest=4096)


def short(kernel: Kernel) -> Kernel:
    """The operation with the last 1 % of each row of x left out of it."""
    return lambda inputs: kernel({**inputs, "x": k.most(inputs["x"])})


def total(inputs: Inputs) -> Tensor:
    """The sum of everything."""
    return inputs["x"].sum()


def reference_attention(inputs: Inputs) -> Tensor:
    """softmax(q kᵀ / 8) v."""
    return torch.softmax(inputs["q"] @ inputs["k"].T / 8, -1) @ inputs["v"]


def blocked_scan(x: Tensor) -> Tensor:
    """Running sum of each row: inside blocks of 256, then the blocks' totals."""
    n = x.shape[-1]
    inner = k.running(k.folded(functional.pad(wide(x), (0, -n % 256)), 256))
    before = functional.pad(k.running(inner[..., -1].contiguous())[..., :-1], (1, 0))
    return (inner + before.unsqueeze(-1)).flatten(-2)[..., :n]


OPERATIONS = [
    Operation(
        "sum",
        rows,
        lambda i: i["x"].sum(-1),
        each_sum(lambda i, add: add(i["x"])),
        {"1 % of the row left out": lambda i: k.most(i["x"]).sum(-1)},
        narrow={"accumulator of 16 bits": lambda i: k.short_sum(i["x"])},
    ),
    Operation(
        "mean",
        rows,
        lambda i: i["x"].mean(-1),
        each_sum(lambda i, add: add(i["x"]) * (1 / i["x"].shape[-1])),
        {"1 % of the row left out": lambda i: k.most(i["x"]).sum(-1) / i["x"].shape[-1]},
    ),
    Operation(
        "sum to a scalar",
        lambda n: {"x": (n,)},
        total,
        each_sum(lambda i, add: add(i["x"])),
        {"1 % of the row left out": lambda i: k.most(i["x"]).sum()},
    ),
    Operation(
        "variance",
        rows,
        lambda i: i["x"].var(-1),
        k.variances(),
        {"1 % of the row left out": lambda i: k.most(i["x"]).var(-1)},
    ),
    Operation(
        "softmax",
        rows,
        lambda i: torch.softmax(i["x"], -1),
        {
            **each_sum(lambda i, add: k.softmax(i["x"], add)),
            "exp2, scaled after the maximum": like(lambda i: k.softmax_exp2_after(i["x"])),
            "exp2, scaled before the maximum": like(lambda i: k.softmax_exp2_before(i["x"])),
            "online": like(lambda i: k.softmax_online(i["x"])),
        },
        {
            "maximum dropped": like(lambda i: k.softmax_no_maximum(i["x"])),
            "1 % of the row left out": like(lambda i: k.softmax_short(i["x"])),
        },
        longest=65536,
    ),
    Operation(
        "logsumexp",
        rows,
        lambda i: torch.logsumexp(i["x"], -1),
        each_sum(lambda i, add: k.logsumexp(i["x"], add)),
        {
            "maximum dropped": like(lambda i: torch.log(torch.exp(wide(i["x"])).sum(-1))),
            "1 % of the row left out": short(lambda i: torch.logsumexp(i["x"], -1)),
        },
        longest=65536,
    ),
    Operation(
        "cross entropy",
        lambda n: {"x": (64, n), "target": (64,)},
        lambda i: functional.cross_entropy(i["x"], i["target"]),
        each_sum(k.cross_entropy),
        {"1 % of the row left out": like(lambda i: k.cross_entropy(i, lambda x: k.tree(k.most(x))))},
        longest=65536,
    ),
    Operation(
        "LayerNorm",
        with_weights,
        lambda i: functional.layer_norm(i["x"], i["weight"].shape, i["weight"], i["bias"]),
        {
            "two passes, sequential": like(lambda i: k.layer_norm(i, lambda x: k.two_pass(x, k.sequential))),
            "one pass, sequential": like(lambda i: k.layer_norm(i, lambda x: k.one_pass(x, k.sequential))),
            "one pass, block of 256": like(lambda i: k.layer_norm(i, k.one_pass)),
            "Welford": like(lambda i: k.layer_norm(i, k.welford)),
            "folded to x·a + b": like(k.layer_norm_folded),
        },
        {
            "1 % of the row left out": like(lambda i: k.layer_norm(i, lambda x: k.two_pass(k.most(x)))),
            "no bias": like(lambda i: k.layer_norm({**i, "bias": torch.zeros_like(i["bias"])}, k.two_pass)),
        },
        longest=65536,
    ),
    Operation(
        "RMSNorm",
        with_weights,
        lambda i: functional.rms_norm(i["x"], i["weight"].shape, i["weight"], 1e-5),
        {**each_sum(k.rms_norm), "rounded before the weight": k.rms_norm_rounded},
        {"1 % of the row left out": like(lambda i: k.rms_norm(i, lambda x: k.tree(k.most(x))))},
        longest=65536,
    ),
    Operation(
        "cumsum",
        rows,
        lambda i: i["x"].cumsum(-1),
        {
            "sequential": like(lambda i: k.running(i["x"])),
            "blocks of 256": like(lambda i: blocked_scan(i["x"])),
        },
    ),
    Operation(
        "matmul",
        lambda n: {"a": (4, n), "b": (n, 64)},
        lambda i: i["a"] @ i["b"],
        {
            "sequential": like(lambda i: k.dot_sequential(i["a"], i["b"]), "a"),
            "tiles of 32": like(lambda i: k.dot_tiled(i["a"], i["b"]), "a"),
            "k split in eight": like(lambda i: k.dot_split(i["a"], i["b"]), "a"),
        },
        {"1 % of k left out": lambda i: k.most(i["a"]) @ i["b"][: k.most(i["a"]).shape[-1]]},
        narrow={"accumulator of 16 bits": lambda i: k.dot_short(i["a"], i["b"])},
        dot=True,
    ),
    Operation(
        "batched matmul",
        lambda n: {"a": (2, 8, n), "b": (2, n, 64)},
        lambda i: torch.bmm(i["a"], i["b"]),
        {
            "tiles of 32": like(
                lambda i: torch.stack([k.dot_tiled(a, b) for a, b in zip(i["a"], i["b"], strict=True)]), "a"
            )
        },
        {"second batch left out": lambda i: torch.bmm(i["a"], i["b"]) * torch.tensor([1, 0])[:, None, None]},
        dot=True,
        longest=4096,
    ),
    Operation(
        "convolution",
        lambda n: {"x": (1, -(-n // 9), 10, 10), "weight": (8, -(-n // 9), 3, 3)},
        lambda i: functional.conv2d(i["x"], i["weight"]),
        {
            "sequential": like(lambda i: k.convolution(i, k.dot_sequential)),
            "tiles of 32": like(lambda i: k.convolution(i, k.dot_tiled)),
        },
        {"last channel left out": lambda i: functional.conv2d(i["x"][:, :-1], i["weight"][:, :-1])},
        dot=True,
        longest=16384,
    ),
    Operation(
        "attention",
        lambda n: {"q": (16, 64), "k": (n, 64), "v": (n, 64)},
        reference_attention,
        {
            "online, exp2": like(lambda i: k.attention(i, rounded=False), "q"),
            "online, weights rounded": like(lambda i: k.attention(i, rounded=True), "q"),
        },
        {
            "1 % of the keys left out": lambda i: reference_attention(
                {"q": i["q"], "k": k.most(i["k"].T).T, "v": k.most(i["v"].T).T}
            )
        },
        dot=True,
        longest=16384,
    ),
    unary(
        "GELU",
        lambda i: functional.gelu(i["x"]),
        {
            "erf": like(lambda i: wide(i["x"]) * 0.5 * (1 + torch.erf(wide(i["x"]) * 0.5**0.5))),
            "erfc": like(lambda i: wide(i["x"]) * 0.5 * torch.erfc(-wide(i["x"]) * 0.5**0.5)),
        },
        {
            "tanh formula": lambda i: functional.gelu(i["x"], approximate="tanh"),
            "sigmoid formula": like(lambda i: wide(i["x"]) * torch.sigmoid(1.702 * wide(i["x"]))),
        },
    ),
    unary(
        "GELU, tanh formula",
        lambda i: functional.gelu(i["x"], approximate="tanh"),
        {"as a sigmoid": like(lambda i: gelu_by_sigmoid(wide(i["x"])))},
        {"erf formula": lambda i: functional.gelu(i["x"])},
    ),
    unary(
        "SiLU",
        lambda i: functional.silu(i["x"]),
        {"x / (1 + exp2(−x·log2 e))": like(lambda i: wide(i["x"]) / (1 + k.fast_exp2(-wide(i["x"]) * k.LOG2E)))},
        {"hard": lambda i: functional.hardswish(i["x"])},
    ),
    unary(
        "ELU",
        lambda i: functional.elu(i["x"]),
        {"exp(x) − 1": like(lambda i: elu(wide(i["x"])))},
        {"slope at 0 only": lambda i: functional.leaky_relu(i["x"], 1 - 2**-6)},
    ),
    unary(
        "tanh",
        lambda i: torch.tanh(i["x"]),
        {
            "2·sigmoid(2x) − 1": like(lambda i: 2 * torch.sigmoid(2 * wide(i["x"])) - 1),
            "1 − 2 / (exp(2x) + 1)": like(lambda i: 1 - 2 / (k.fast_exp2(2 * k.LOG2E * wide(i["x"])) + 1)),
        },
        {"hard": lambda i: functional.hardtanh(i["x"])},
    ),
]


def gelu_by_sigmoid(x: Tensor) -> Tensor:
    """0.5·x·(1 + tanh z) = x·sigmoid(2z), with an approximate exp2."""
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x / (1 + k.fast_exp2(-2 * k.LOG2E * z))


def elu(x: Tensor) -> Tensor:
    """max(x, 0) + min(exp(x) − 1, 0): exact exp, but one cancellation that expm1 avoids."""
    return torch.where(x > 0, x, k.fast_exp2(x * k.LOG2E) - 1)
