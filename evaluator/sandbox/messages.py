"""What the workers of reference and candidate load: files and entry points, for each form."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from evaluator.request import Request
from evaluator.source.c_types import ELEMENT_TYPES
from evaluator.source.cuda_signature import Parameter, evaluate_size, solve_parameters
from evaluator.source.forms import Backend, Form, Recognised
from kbs.common.errors import ConfigurationError, UsageError

_WORDS = (
    ("fast", "my", "custom", "fused", "opt", "gpu", "triton", "fwd", "new", "small", "lowmem", "tuned", "inner"),
    ("kernel", "kernels", "ops", "model", "layer", "layers", "block", "module", "impl", "forward", "lib", "net"),
)
"""What `module_name` draws from."""
DRAWN = "drawn.json"
"""Shapes of buffers that no setup makes."""


def reference_files(request: Request, recognised: Recognised, dims: dict[str, int]) -> dict[str, bytes]:
    """The files in the folder of the reference's worker."""
    source = request.reference or request.candidate
    files: dict[str, bytes] = {}
    if request.inputs is not None:
        files |= {Path(name).name: content for name, content in request.inputs.beside.items()}
        files[_inputs(request.inputs.name)] = request.inputs.content
    files[_file("reference", source.name)] = source.text.encode()
    if recognised.form is Form.SOLVE and request.inputs is None and recognised.setup_from == "none":
        files[DRAWN] = json.dumps(_drawn(request, dims)).encode()
    return files


def reference_message(request: Request, recognised: Recognised, dims: dict[str, int]) -> dict[str, Any]:
    """What the worker of the reference loads."""
    source = request.reference or request.candidate
    python = source.name.endswith(".py")
    form = Form.SETUP if recognised.form is Form.SOLVE and python else recognised.form
    file = _file("reference", source.name)
    inputs = file if recognised.setup_from == "reference" else ""
    if request.inputs is not None:
        inputs = _inputs(request.inputs.name)
    elif recognised.setup_from == "none" and form in (Form.SETUP, Form.SOLVE):
        inputs = DRAWN
    return {
        **_common(request, recognised, dims),
        "form": form.value,
        "role": "reference",
        "file": file,
        "entry": recognised.reference_entry,
        "inputs": inputs,
    }


def own_setup(request: Request, recognised: Recognised) -> dict[str, Any]:
    """For processes whose results judge nobody: the candidate's `setup` beside the reference, where it makes the
    inputs; its file is `candidate_files`'s."""
    file = _file("candidate", request.candidate.name)
    return {"inputs": file} if recognised.setup_from == "candidate" and request.inputs is None else {}


def inputs_message(request: Request, recognised: Recognised, dims: dict[str, int]) -> dict[str, Any]:
    """What a worker loads that runs the candidate's own `setup` and nothing else; its file is `candidate_files`'s."""
    file = _file("candidate", request.candidate.name)
    return {**_common(request, recognised, dims), "form": "inputs", "role": "inputs", "file": "", "inputs": file}


def candidate_message(
    request: Request, recognised: Recognised, dims: dict[str, int], name: str = "candidate"
) -> dict[str, Any]:
    """What the candidate's worker loads; `name` is that of its file and module."""
    return {
        **_common(request, recognised, dims),
        "form": recognised.form.value,
        "role": "candidate",
        "file": _file(name, request.candidate.name),
        "entry": recognised.entry,
    }


def _common(request: Request, recognised: Recognised, dims: dict[str, int]) -> dict[str, Any]:
    """What the messages of reference and candidate share."""
    solve = _solve(request) if recognised.form is Form.SOLVE else {}
    return {"dims": dims, "device": request.device, "maps_cuda": maps_cuda(request), **solve}


def baseline_message(request: Request, recognised: Recognised, dims: dict[str, int], how: str) -> dict[str, Any]:
    """What a baseline's worker loads: the reference, `eager` or `compile`d, or the library's `module:callable`."""
    message = {**reference_message(request, recognised, dims), "role": "baseline", "inputs": "", "how": how}
    if ":" in how:
        return {**message, "form": "library", "entry": how}
    return message


def counting_message(request: Request, recognised: Recognised, dims: dict[str, int], *, runs: bool) -> dict[str, Any]:
    """What the worker loads to count the reference's work, without a compiler or a GPU.

    `runs`: whether the reference is called, or only its inputs are made.
    """
    parameters: list[dict[str, Any]] = []
    if recognised.form is Form.SOLVE:
        parameters = [_parameter(p) for p in solve_parameters(request.candidate)]
        recognised = recognised.model_copy(update={"form": Form.SETUP})
    own = own_setup(request, recognised)
    message = {**reference_message(request, recognised, dims), **own, "parameters": parameters}
    if not message["inputs"] and parameters:
        message["inputs"] = DRAWN
    return message if runs else {**message, "form": "inputs"}


def candidate_files(request: Request, name: str = "candidate") -> dict[str, bytes]:
    """The files in the candidate's folder: itself alone, under a name."""
    return {_file(name, request.candidate.name): request.candidate.text.encode()}


def module_name(rng: random.Random) -> str:
    """A name as people give their files. No two processes need have the same, so that none says who imports it."""
    words = [rng.choice(choices) for choices in _WORDS]
    return "_".join(words) + rng.choice(["", "", f"{rng.randrange(2, 30)}", f"_v{rng.randrange(1, 10)}"])


def maps_cuda(request: Request) -> bool:
    """Whether any of the sources names CUDA while the CPU is asked for."""
    texts = [request.candidate.text, request.reference.text if request.reference else ""]
    if request.inputs is not None:
        texts.append(request.inputs.content.decode("utf-8", "replace") if request.inputs.name.endswith(".py") else "")
    return request.device == "cpu" and any("cuda" in text for text in texts)


def _file(role: str, name: str) -> str:
    return role + Path(name).suffix


def _inputs(name: str) -> str:
    """Where a file of inputs lies: in its worker's folder, whatever a stranger's receipt calls it, over no other."""
    return "inputs_" + Path(name).name.replace("\0", "")[-60:]


def _drawn(request: Request, dims: dict[str, int]) -> dict[str, Any]:
    pointers = [p for p in solve_parameters(request.candidate) if p.pointer]
    unsized = [p.name for p in pointers if p.name not in request.ptr_sizes]
    if unsized:
        raise UsageError(
            f"nothing says how long the buffers {', '.join(unsized)} are",
            code="ptr_size_missing",
            hint=f"Give the reference a setup(**dims), or say --ptr-size {unsized[0]}=M*N.",
        )
    return {
        p.name: {"shape": [evaluate_size(request.ptr_sizes[p.name], dims)], "dtype": _buffer_dtype(p)} for p in pointers
    }


def _buffer_dtype(parameter: Parameter) -> str:
    known = ELEMENT_TYPES.get(parameter.type)
    if known is None or not known.torch:
        raise UsageError(
            f"nothing says what the elements of {parameter.name}, a pointer to {parameter.type}, are",
            code="ptr_type_unknown",
            hint="Give the reference a setup(**dims) that makes it, or declare it with the type of its elements.",
        )
    return known.torch


def _solve(request: Request) -> dict[str, Any]:
    parameters = [_parameter(p) for p in solve_parameters(request.candidate)]
    return {"parameters": parameters, "nvcc": str(nvcc_path(request)), "flags": list(nvcc_flags(request))}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    known = ELEMENT_TYPES.get(parameter.type)
    ctype = known.ctypes if known else ""
    return {"name": parameter.name, "pointer": parameter.pointer, "ctype": ctype}


def nvcc_path(request: Request) -> Path:
    """The CUDA compiler. Raises `ConfigurationError` where there is none."""
    home = request.cuda_home or request.environment.get("CUDA_HOME") or request.environment.get("CUDA_PATH")
    inside = Path(home) / "bin" / "nvcc" if home else None
    if inside is not None and inside.exists():
        return inside
    found = shutil.which("nvcc", path=request.environment.get("PATH"))
    if found is None:
        raise ConfigurationError(
            "there is no nvcc",
            code="no_nvcc",
            hint="Put nvcc on the PATH, or name the CUDA toolkit with --cuda-home. Triton kernels need none.",
        )
    return Path(found)


def nvcc_flags(request: Request) -> tuple[str, ...]:
    """Flags for the device that is present."""
    import torch

    major, minor = torch.cuda.get_device_capability(request.device)
    feature = "a" if major >= 9 else ""  # wgmma, TMA and their successors exist for the exact architecture alone
    headers = (f"-I{folder}" for folder in header_folders(request))
    exact = f"{major}{minor}{feature}"
    # `-arch=sm_90a` alone: nvcc 13.0 compiles for plain sm_90 as well, which has no wgmma.
    target = f"-gencode=arch=compute_{exact},code=sm_{exact}"
    return (target, "-O3", "-std=c++17", *headers, *request.nvcc_flags)


def header_folders(request: Request) -> list[Path]:
    """Folders of headers that nvcc is given: the user's, and CUTLASS's where the environment names it."""
    cutlass = request.environment.get("CUTLASS_PATH")
    own = [Path(cutlass) / "include", Path(cutlass) / "tools" / "util" / "include"] if cutlass else []
    return [*request.include, *own]


def readable(request: Request, recognised: Recognised) -> tuple[str, ...]:
    """Folders that the workers may read besides the system's: headers and the CUDA toolkit."""
    if recognised.backend is Backend.TRITON:
        return ()
    named = [request.environment.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUTLASS_PATH")]
    compiler = nvcc_path(request).resolve().parent.parent if recognised.form is Form.SOLVE else None
    return tuple(str(path) for path in (*request.include, request.cuda_home, *named, compiler) if path)
