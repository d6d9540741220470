"""Plain Triton kernels for seven problems of KernelBench: what somebody writes first, and where the search begins."""

_HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

SOFTMAX = (
    _HEAD
    + """@triton.jit
def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")))
    peak = tl.max(top, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) - peak)
    scale = tl.sum(total, axis=0)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        e = tl.exp(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0) - peak)
        tl.store(y_ptr + row * n + i, e / scale, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
"""
)

RMSNORM = (
    _HEAD
    + """@triton.jit
def rms_norm(x_ptr, y_ptr, features, inner, eps, BLOCK: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = sample * features * inner
    total = tl.zeros((BLOCK,), tl.float32)
    for f in range(0, features):
        v = tl.load(x_ptr + base + f * inner + i, mask=i < inner, other=0.0)
        total += v * v
    scale = 1.0 / tl.sqrt(total / features + eps)
    for f in range(0, features):
        v = tl.load(x_ptr + base + f * inner + i, mask=i < inner, other=0.0)
        tl.store(y_ptr + base + f * inner + i, v * scale, mask=i < inner)


class ModelNew(torch.nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        inner = x[0, 0].numel()
        BLOCK = 256
        rms_norm[(triton.cdiv(inner, BLOCK), x.shape[0])](x, y, x.shape[1], inner, self.eps, BLOCK=BLOCK)
        return y
"""
)

LAYERNORM = (
    _HEAD
    + """@triton.jit
def partial(x_ptr, sums_ptr, n, parts, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * BLOCK, n, parts * BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        total += v
        square += v * v
    tl.store(sums_ptr + (row * parts + part) * 2, tl.sum(total, axis=0))
    tl.store(sums_ptr + (row * parts + part) * 2 + 1, tl.sum(square, axis=0))


@triton.jit
def normalize(x_ptr, sums_ptr, w_ptr, b_ptr, y_ptr, n, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    p = tl.arange(0, PARTS)
    mean = tl.sum(tl.load(sums_ptr + (row * PARTS + p) * 2), axis=0) / n
    square = tl.sum(tl.load(sums_ptr + (row * PARTS + p) * 2 + 1), axis=0) / n
    scale = 1.0 / tl.sqrt(square - mean * mean + eps)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    b = tl.load(b_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + row * n + i, (v - mean) * scale * w + b, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = torch.nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = self.ln.weight.numel()
        rows = x.numel() // n
        sums = torch.empty((rows, 64, 2), device=x.device, dtype=torch.float32)
        partial[(64, rows)](x, sums, n, 64, BLOCK=1024)
        WIDTH = 1024
        normalize[(triton.cdiv(n, WIDTH), rows)](
            x, sums, self.ln.weight, self.ln.bias, y, n, self.ln.eps, PARTS=64, BLOCK=WIDTH
        )
        return y
"""
)

SUM = (
    _HEAD
    + """@triton.jit
def sum_rows(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for r in range(0, rows):
        total += tl.load(x_ptr + (sample * rows + r) * columns + i, mask=i < columns, other=0.0)
    tl.store(y_ptr + sample * columns + i, total, mask=i < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        samples, rows, columns = x.shape
        y = torch.empty((samples, 1, columns), device=x.device, dtype=x.dtype)
        BLOCK = 128
        sum_rows[(triton.cdiv(columns, BLOCK), samples)](x, y, rows, columns, BLOCK=BLOCK)
        return y
"""
)
MEAN = (
    SUM.replace("sum_rows", "mean_rows")
    .replace("columns + i, total, mask", "columns + i, total / rows, mask")
    .replace("(samples, 1, columns)", "(samples, columns)")
)

GELU = (
    _HEAD
    + """@triton.jit
def gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tanh = 1.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0)
    tl.store(y_ptr + i, 0.5 * x * (1.0 + tanh), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        BLOCK = 256
        gelu[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        return y
"""
)

CROSS_ENTROPY = (
    _HEAD
    + """@triton.jit
def row_loss(x_ptr, target_ptr, loss_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")))
    peak = tl.max(top, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) - peak)
    target = tl.load(target_ptr + row)
    loss = tl.log(tl.sum(total, axis=0)) + peak - tl.load(x_ptr + row * n + target)
    tl.store(loss_ptr + row, loss)


@triton.jit
def mean_loss(loss_ptr, out_ptr, rows, SPAN: tl.constexpr):
    total = tl.zeros((SPAN,), tl.float32)
    for start in range(0, rows, SPAN):
        i = start + tl.arange(0, SPAN)
        total += tl.load(loss_ptr + i, mask=i < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / rows)


class ModelNew(torch.nn.Module):
    def forward(self, predictions, targets):
        x = predictions.contiguous()
        losses = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=torch.float32)
        row_loss[(x.shape[0],)](x, targets, losses, x.shape[1], BLOCK=1024)
        mean_loss[(1,)](losses, out, x.shape[0], SPAN=4096)
        return out
"""
)

STARTS = {
    "95_CrossEntropyLoss": CROSS_ENTROPY, "88_MinGPTNewGelu": GELU, "40_LayerNorm": LAYERNORM,
    "48_Mean_reduction_over_a_dimension": MEAN, "47_Sum_reduction_over_a_dimension": SUM, "36_RMSNorm_": RMSNORM,
    "23_Softmax": SOFTMAX,
}  # fmt: skip
"""Problem → the kernel; the quick ones first."""
