"""Elements of a table by number, in the form of a `.cu` file's `solve(table, number, output, n, m)`."""

import torch


def setup(n=4194304, m=1048576):
    """One fresh draw."""
    numbers = torch.randint(n, (m,))
    inputs = {"table": torch.rand(n), "number": numbers, "output": torch.empty(m), "n": n, "m": m}
    return {"inputs": inputs, "outputs": ["output"]}


def reference(table, number, output, n, m):
    """Compute."""
    torch.take(table, number, out=output)
