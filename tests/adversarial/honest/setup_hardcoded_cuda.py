"""setup / run_kernel form; `setup` names the device itself."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu(x, bias, out, rows, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside) + tl.load(bias + column, mask=inside)
    tl.store(out + row * cols + column, tl.maximum(value, 0.0), mask=inside)


def setup(rows: int = 12, cols: int = 200) -> dict[str, object]:
    x = torch.randn(rows, cols, device="cuda", dtype=torch.float32)
    bias = torch.randn(cols, device="cuda")
    return {
        "inputs": {"x": x, "bias": bias, "out": torch.zeros_like(x), "rows": rows, "cols": cols},
        "outputs": ["out"],
    }


def run_kernel(**kwargs: object) -> None:
    rows, cols = kwargs["rows"], kwargs["cols"]
    block = triton.next_power_of_2(cols)
    bias_relu[(rows,)](kwargs["x"], kwargs["bias"], kwargs["out"], rows, cols, block=block)
