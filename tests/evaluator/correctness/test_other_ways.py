"""Calls in other ways: outputs in one memory, layouts, modes, results still held, and kernels that take no part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.support import bench, rejecting

HEAD = "import ctypes, os, sys\nimport numpy as np\nimport torch, triton\nimport triton.language as tl\nkept = {}\n"
KERNEL = """
@triton.jit
def scale(x, y, n, by, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * by, mask=at < n)
@triton.jit
def rows(x, y, step, n, B: tl.constexpr):
    at, row = tl.arange(0, B), tl.program_id(0)
    v = tl.load(x + row * step + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, v / tl.sum(tl.abs(v), 0), mask=at < n)
def scaled(x, by=2.0, y=None):
    x = x.contiguous()
    y = torch.empty_like(x) if y is None else y
    scale[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), by, B=256)
    return y
def norm(x, step):
    y = torch.empty(x.shape, dtype=x.dtype)
    rows[(x.shape[0],)](x, y, step, x.shape[1], B=64)
    return y
"""
REFERENCES = {
    "twice": "y = x * 2\nreturn y, y.clone()",
    "parts": "return x * 2, x * 3",
    "same": "y = x * 2\nreturn y, y",
    "scaled": "return x * 2",
    "across": "return x.t().contiguous()",
    "half": "return x[:, ::2].contiguous()",
    "norm": "return x / x.abs().sum(-1, keepdim=True)",
    "product": "return x @ x.t()",
}
STALE = "\nif {when} and kept.get('y') is not None and kept['y'].shape == x.shape:\n    return scaled(kept['x'])\n"
STALE += "kept['x'], kept['y'] = x.detach().clone(), scaled(x)\nreturn kept['y'].clone()"
AGAIN = "\nif 'y' not in kept or kept['y'].shape != x.shape or {held}:\n    kept['y'] = torch.empty(x.shape)\n"
AGAIN += "return scaled(x, 2.0, kept['y'])"
DECOY = "scaled(torch.ones(1))\n"
WRONG = {
    "one tensor twice": ("twice", "y = scaled(x)\nreturn y, y"),
    "parts of one memory that overlap": (
        "twice",
        "m = torch.empty(x.numel() + 8)\ny = m[: x.numel()].view_as(x).copy_(scaled(x))\n"
        "return y, torch.from_numpy(y.numpy())",
    ),
    "a transposed view of a copy": ("across", "return scaled(x, 1.0).t()"),
    "every second column of a copy": ("half", "return scaled(x, 1.0)[:, ::2]"),
    "rows that lie apart": ("norm", "x = x if x.stride(1) == 1 else x.contiguous()\nreturn norm(x, x.shape[1])"),
    "rows that lie apart, refused by half": ("norm", "assert x.stride(1) == 1\nreturn norm(x, x.shape[1])"),
    "stale in inference mode": ("scaled", STALE.format(when="torch.is_inference_mode_enabled()")),
    "stale in another thread": (
        "scaled",
        "import threading" + STALE.format(when="threading.current_thread() is not threading.main_thread()"),
    ),
    "memory again unless its tensor is held": ("scaled", AGAIN.format(held="sys.getrefcount(kept['y']) > 2")),
    "memory again once its tensor is gone": (
        "scaled",
        "import weakref\ny = kept.get('of')\nif y is None or y() is not None or kept['m'].nbytes() != x.nbytes:\n"
        "    kept['m'] = torch.empty_like(x).untyped_storage()\n"
        "y = torch.empty(0).set_(kept['m'], 0, x.shape)\nkept['of'] = weakref.ref(y)\nreturn scaled(x, 2.0, y)",
    ),
    "a product by NumPy": (
        "product",
        DECOY + "a = np.from_dlpack(x.detach().contiguous())\nreturn torch.from_dlpack(a @ a.T)",
    ),
    "a product below the dispatcher": (
        "product",
        DECOY + "cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)\n"
        "return torch.ops.aten.mm.default.redispatch(cpu, x.detach(), x.detach().t())",
    ),
    "moves of the library": ("across", DECOY + "return x.t().contiguous()"),
    "a tracer of calls": ("scaled", "sys.settrace(lambda *_: None)\nsys.settrace(None)\nreturn scaled(x)"),
}
RIGHT = {
    "two halves of one memory": (
        "parts",
        "m = torch.empty(2, *x.shape)\nscaled(x, 2.0, m[0])\nscaled(x, 3.0, m[1])\nreturn m[0], m[1]",
    ),
    "columns of one memory": (
        "parts",
        "m = torch.empty(x.shape[0], 2 * x.shape[1])\nn = x.shape[1]\nm[:, :n], m[:, n:] = scaled(x), scaled(x, 3.0)\n"
        "return m[:, :n], m[:, n:]",
    ),
    "one tensor twice, as the reference": ("same", "y = scaled(x)\nreturn y, y"),
    "a view of what was computed": ("scaled", "return scaled(x.t()).t()"),
    "made for contiguous rows": ("norm", "return norm(x, x.shape[1])"),
    "strides that are passed on": (
        "norm",
        "x = x if x.stride(1) == 1 else x.contiguous()\nreturn norm(x, x.stride(0))",
    ),
    "memory again when nothing holds it": (
        "scaled",
        AGAIN.format(held="torch._C._storage_Use_Count(kept['y'].untyped_storage()._cdata) > 2"),
    ),
    "a workspace of its own": ("scaled", AGAIN.format(held="False") + ".clone()"),
}


def examined(folder: Path, reference: str, body: str) -> dict[str, Any]:
    lines = {name: "".join(f"    {line}\n" for line in text.splitlines()) for name, text in REFERENCES.items()}
    own = "".join(f"    {line}\n" for line in body.strip().splitlines())
    (folder / "ref.py").write_text(f"import torch\ndef run(x):\n{lines[reference]}", "utf-8")
    (folder / "in.py").write_text("import torch\ndef get_inputs():\n    return [torch.randn(24, 36)]\n", "utf-8")
    (folder / "kernel.py").write_text(f"{HEAD}{KERNEL}def run(x):\n{own}", "utf-8")
    return bench(folder / "kernel.py", folder / "ref.py", "--inputs", str(folder / "in.py"))


@pytest.mark.processes
@pytest.mark.parametrize("name", WRONG)
def test_caught(tmp_path: Path, name: str) -> None:
    found = examined(tmp_path, *WRONG[name])
    assert found["verdict"] in ("incorrect", "cheating"), found["reason"]


@pytest.mark.processes
@pytest.mark.parametrize("name", RIGHT)
def test_neighbours_are_accepted(tmp_path: Path, name: str) -> None:
    found = examined(tmp_path, *RIGHT[name])
    assert (found["verdict"], rejecting(found)) == ("accepted", []), found["reason"]


HELPER = """
asked, ask = os.pipe()
told, tell = os.pipe()
{imports}
if os.fork() == 0:
    while os.read(asked, 1):
        {work}
        os.write(tell, b".")
    os._exit(0)
def run(x):
    shared[:x.numel()] = x.flatten()
    os.write(ask, b".")
    os.read(told, 1)
    return scaled(shared[: x.numel()].view_as(x), 1.0)
"""
MADE = "import mmap\nshared = torch.frombuffer(mmap.mmap(-1, 1 << 18), dtype=torch.float32)"


@pytest.mark.processes
@pytest.mark.parametrize("work", ["shared.mul_(2)", "shared[:] = torch.from_numpy(shared.numpy() * 2)"])
def test_work_of_another_process_is_caught(tmp_path: Path, work: str) -> None:
    found = examined(tmp_path, "scaled", "return x")
    text = HELPER.format(imports=MADE, work=work)
    (tmp_path / "kernel.py").write_text(HEAD + KERNEL + text, "utf-8")
    found = bench(tmp_path / "kernel.py", tmp_path / "ref.py", "--inputs", str(tmp_path / "in.py"))
    assert [hazard["id"] for hazard in rejecting(found)] == ["library_call"], found["reason"]


@pytest.mark.processes
def test_a_process_that_has_no_part_in_it_is_a_note(tmp_path: Path) -> None:
    examined(tmp_path, "scaled", "return x")
    text = (
        "if os.fork() == 0:\n    import time\n    time.sleep(60)\n    os._exit(0)\ndef run(x):\n    return scaled(x)\n"
    )
    (tmp_path / "kernel.py").write_text(HEAD + KERNEL + text, "utf-8")
    found = bench(tmp_path / "kernel.py", tmp_path / "ref.py", "--inputs", str(tmp_path / "in.py"))
    assert found["verdict"] == "accepted", found["reason"]
