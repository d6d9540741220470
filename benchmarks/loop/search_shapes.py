"""Twenty other shapes of the operations that the search generates kernels for: odd, tall, wide, huge; three types.

Also two products of matrices that are held against cuBLAS.
"""


def reference(call: str, inputs: str, layers: str = "pass", arguments: str = "x") -> str:
    """A file with `Model`."""
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {layers}\n\n"
        f"    def forward(self, {arguments}):\n        return {call}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def _randn(*sizes: int, dtype: str = "float32") -> str:
    return f"torch.randn({', '.join(map(str, sizes))}, dtype=torch.{dtype})"


_RMS = "x * torch.rsqrt((x.float() ** 2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.w"

SHAPES = {
    "softmax_8192x1000": reference("torch.softmax(x, -1)", _randn(8192, 1000)),
    "softmax_200000x127_fp16": reference("torch.softmax(x, -1)", _randn(200000, 127, dtype="float16")),
    "softmax_128x131072_bf16": reference("torch.softmax(x, -1)", _randn(128, 131072, dtype="bfloat16")),
    "softmax_48x1048577": reference("torch.softmax(x, -1)", _randn(48, 1048577)),
    "softmax_64x300x3001_inner": reference("torch.softmax(x, 1)", _randn(64, 300, 3001)),
    "logsumexp_4096x50257_bf16": reference("torch.logsumexp(x, 1)", _randn(4096, 50257, dtype="bfloat16")),
    "crossentropy_8192x50257": reference(
        "F.cross_entropy(x, t)", f"{_randn(8192, 50257)}, torch.randint(0, 50257, (8192,))", arguments="x, t"
    ),
    "rmsnorm_16384x3000_bf16": reference(
        _RMS, _randn(16384, 3000, dtype="bfloat16"), "self.w = nn.Parameter(torch.ones(3000, dtype=torch.bfloat16))"
    ),
    "rmsnorm_300000x65": reference(_RMS, _randn(300000, 65), "self.w = nn.Parameter(torch.ones(65))"),
    "layernorm_residual_8192x5120_fp16": reference(
        "self.n(x + r)", f"{_randn(8192, 5120, dtype='float16')}, {_randn(8192, 5120, dtype='float16')}",
        "self.n = nn.LayerNorm(5120, dtype=torch.float16)", "x, r",
    ),
    "layernorm_100000x257": reference("self.n(x)", _randn(100000, 257), "self.n = nn.LayerNorm(257)"),
    "l2norm_30000x1027": reference("x / torch.norm(x, p=2, dim=1, keepdim=True)", _randn(30000, 1027)),
    "sum_50000x3001_dim0": reference("x.sum(0)", _randn(50000, 3001)),
    "sum_5x30000001": reference("x.sum(1)", _randn(5, 30000001)),
    "mean_64x3000x301_dims02_bf16": reference("x.mean((0, 2))", _randn(64, 3000, 301, dtype="bfloat16")),
    "max_100x3000x333_fp16": reference("x.max(1)[0]", _randn(100, 3000, 333, dtype="float16")),
    "argmax_4096x32001": reference("x.argmax(-1)", _randn(4096, 32001)),
    "cumsum_8192x16385": reference("torch.cumsum(x, 1)", _randn(8192, 16385)),
    "swiglu_8192x11008_fp16": reference(
        "F.silu(x) * y", f"{_randn(8192, 11008, dtype='float16')}, {_randn(8192, 11008, dtype='float16')}",
        arguments="x, y",
    ),
    "transpose_add_6001x5003": reference("x.t() + y", f"{_randn(6001, 5003)}, {_randn(5003, 6001)}", arguments="x, y"),
}  # fmt: skip
"""Name → reference."""
PRODUCTS = {
    f"matmul_4096_{short}": reference(
        "x @ y", f"{_randn(4096, 4096, dtype=dtype)}, {_randn(4096, 4096, dtype=dtype)}", arguments="x, y"
    )
    for short, dtype in (("bf16", "bfloat16"), ("fp16", "float16"))
}
"""Name → reference."""
