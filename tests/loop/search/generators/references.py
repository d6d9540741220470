"""Small references of every kind that generators read, at sizes that are no powers of two."""

_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"


def reference(call: str, inputs: str, layers: str = "pass", arguments: str = "x") -> str:
    """A file with `Model`."""
    return (
        f"{_HEAD}    def __init__(self):\n        super().__init__()\n        {layers}\n\n"
        f"    def forward(self, {arguments}):\n        return {call}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n"
    )


REFERENCES = {
    "chain": reference(
        "F.gelu(x) * torch.sigmoid(x) + 2.5 * y", "torch.randn(7, 33), torch.randn(33)", arguments="x, y"
    ),
    "transposed": reference("x.t() + y", "torch.randn(9, 40), torch.randn(40, 9)", arguments="x, y"),
    "softmax": reference("torch.softmax(x, -1)", "torch.randn(5, 70) * 4"),
    "softmax-half": reference("torch.softmax(x, -1)", "torch.randn(5, 70).half()"),
    "softmax-masked": reference(
        "torch.softmax(torch.where(m, x, -1e9), -1)", "torch.randn(5, 70), torch.rand(5, 70) < 0.5", arguments="x, m"
    ),
    "softmax-inner": reference("torch.softmax(x, 1)", "torch.randn(3, 20, 21)"),
    "log-softmax": reference("F.log_softmax(x, -1)", "torch.randn(4, 50).bfloat16()"),
    "logsumexp": reference("torch.logsumexp(x, 1)", "torch.randn(6, 45)"),
    "layernorm": reference(
        "self.n(x + r)", "torch.randn(4, 60), torch.randn(4, 60)", "self.n = nn.LayerNorm(60)", "x, r"
    ),
    "layernorm-far": reference("self.n(x)", "torch.randn(4, 300) + 1000", "self.n = nn.LayerNorm(300)"),
    "rms-inner": reference("x / torch.sqrt((x ** 2).mean(1, keepdim=True) + 1e-5)", "torch.randn(3, 12, 35)"),
    "l2-norm": reference("x / torch.norm(x, p=2, dim=1, keepdim=True)", "torch.randn(5, 37)"),
    "variance": reference("x.var(-1)", "torch.randn(5, 37)"),
    "sum-inner": reference("x.sum(1, keepdim=True)", "torch.randn(3, 80, 33)"),
    "sum-outer": reference("x.sum((0, 2))", "torch.randn(6, 5, 33)"),
    "mean-all": reference("((x - y) ** 2).mean()", "torch.randn(40, 70), torch.randn(40, 70)", arguments="x, y"),
    "max": reference("x.max(1)[0]", "torch.randn(4, 50, 9)"),
    "argmax": reference("x.argmax(-1)", "torch.randn(5, 70)"),
    "cumsum": reference("torch.cumsum(x * m, 1)", "torch.randn(4, 90), torch.rand(4, 90) < 0.5", arguments="x, m"),
    "cross-entropy": reference(
        "F.cross_entropy(x, t)", "torch.randn(9, 50), torch.randint(0, 50, (9,))", arguments="x, t"
    ),
    "triangle": reference("torch.triu(x * 2)", "torch.randn(20, 23)"),
    "linear": reference("F.gelu(self.l(x))", "torch.randn(40, 50)", "self.l = nn.Linear(50, 36)"),
    "products": reference(
        "torch.softmax(x @ y, -1)", "torch.randn(2, 20, 40), torch.randn(2, 40, 33)", arguments="x, y"
    ),
    "product-triangle": reference("torch.tril(x @ y)", "torch.randn(40, 50), torch.randn(50, 36)", arguments="x, y"),
    "number": reference("s * x + y * n", "torch.randn(9, 40), 2.5, torch.randn(40), 3", arguments="x, s, y, n"),
    "long-softmax": reference("torch.softmax(x, -1)", "torch.randn(2, 9001)"),
    "long-layernorm": reference("self.n(x)", "torch.randn(3, 8200)", "self.n = nn.LayerNorm(8200)"),
}
"""Name → text of the file."""
LARGE = {
    "columns": reference("torch.softmax(x, 1)", "torch.empty(48, 100, 3000)"),
    "planes": reference("x / torch.sqrt((x ** 2).mean(1, keepdim=True) + 1e-5)", "torch.empty(24, 50, 112, 96)"),
    "chain": reference("torch.relu(x) * 2", "torch.empty(96, 100, 3000)"),
    "products": reference(
        "torch.softmax(x @ y, -1)", "torch.empty(12, 1000, 40), torch.empty(12, 40, 3000)", arguments="x, y"
    ),
    "long": reference("torch.softmax(x, -1)", "torch.empty(1000, 300000)"),
}
"""Sizes whose grids are no powers of two and no product of two of them."""
UNREADABLE = {
    "convolution": reference("self.c(x)", "torch.randn(2, 3, 8, 8)", "self.c = nn.Conv2d(3, 4, 3)"),
    "reshaped": reference("(x + 1).reshape(6, 20).sum(1)", "torch.randn(3, 40)"),
    "argument": reference("x", "torch.randn(3, 40)"),
}
"""Name → a file that no generator reads."""
