"""One call of a candidate in a process of its own, for tools that must start the program themselves (compute-sanitizer).

Everything it needs stands in its folder: `job.json`, and each tensor's bytes in a file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from evaluator.worker import memory
from evaluator.worker.subjects import make_subject
from evaluator.worker.values import rebuild

CALLS = 2
"""Twice: what a first call leaves behind, the second reads."""


def save(folder: Path, purpose: str, tensors: list[torch.Tensor]) -> list[dict[str, Any]]:
    """Write tensors as bytes; what to write of them into the job."""
    saved = []
    for n, tensor in enumerate(tensors):
        name = f"{purpose}-{n}.bin"
        plain = tensor.detach().cpu().contiguous()
        (folder / name).write_bytes(plain.flatten().view(torch.uint8).numpy().tobytes())
        saved.append({"file": name, "shape": list(plain.shape), "dtype": memory.NAMES[plain.dtype]})
    return saved


def _read(folder: Path, saved: list[dict[str, Any]], device: torch.device) -> list[torch.Tensor]:
    found = []
    for spec in saved:
        data = bytearray((folder / spec["file"]).read_bytes())
        flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        found.append(flat.view(memory.DTYPES[spec["dtype"]]).view(spec["shape"]).to(device))
    return found


def run(folder: Path) -> None:
    """Load the candidate of a folder and call it."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    device = torch.device(job["load"]["device"])
    torch.cuda.set_device(device)
    subject: Any = make_subject(job["load"], folder, device)
    if job["build"] is not None:
        subject.build(rebuild(job["build"]["tree"], _read(folder, job["init"], device)), job["build"]["seed"])
        if job["names"]:
            subject.load(dict(zip(job["names"], _read(folder, job["weights"], device), strict=True)))
    values = rebuild(job["tree"], _read(folder, job["inputs"], device))
    for _ in range(CALLS):
        subject.call(values)
        torch.cuda.synchronize()


def under(tool: str, folder: Path, program: str, package: str, seconds: float) -> dict[str, Any]:
    """Run a folder's job under one tool of compute-sanitizer: exit code and the end of what it printed."""
    words = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86", "--print-limit", "5"]
    command = [*words, sys.executable, "-P", "-c", program, package, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=folder)
    except FileNotFoundError:
        return {"code": None, "text": "compute-sanitizer is not on the PATH"}
    except subprocess.TimeoutExpired:
        return {"code": None, "text": f"it did not end within {seconds:g} s"}
    return {"code": done.returncode, "text": (done.stdout + done.stderr)[-6000:]}
