"""The file of a generated kernel: jitted functions, and a module that makes buffers and launches them."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.graph import Origin
from loop.search.generators.kernels import Kernel
from loop.search.generators.reading import Output, Problem

_HEAD = '''"""Generated for the sizes of one problem: {what}."""

import torch
import triton
import triton.language as tl
'''
_MULTIPLY = """

@triton.jit
def _multiply(a, b):
    return a * b
"""
_DESCRIPTOR = """from triton.tools.tensor_descriptor import TensorDescriptor


def aligned(x):
    return x if x.data_ptr() % 16 == 0 else x.clone()
"""
_PROCESSORS = """

def processors(device):
    if device.type != "cuda":
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count
"""
_FITTED = '''

def fitted(x, shape, stride):
    """The tensor as the kernels expect it; other sizes are not what they were made for."""
    if tuple(x.shape) != shape:
        raise ValueError(f"made for {shape}, not for {tuple(x.shape)}")
    if x.stride() == stride or all(a == b or n == 1 for a, b, n in zip(x.stride(), stride, shape)):
        return x
    return torch.empty_strided(shape, stride, device=x.device, dtype=x.dtype).copy_(x)
'''


def file_text(problem: Problem, kernels: Sequence[Kernel], what: str) -> str:
    """A whole file with `ModelNew`."""
    body = "".join("\n\n" + kernel.text for kernel in kernels)
    parts = [_HEAD.format(what=what)]
    launches = [line for kernel in kernels for line in kernel.launch()]
    if any("TensorDescriptor(" in line for line in launches):
        parts.append(_DESCRIPTOR)
    if "_multiply" in body:
        parts.append(_MULTIPLY)
    if any("processors(device)" in line for line in launches):
        parts.append(_PROCESSORS)
    if any("LOOKS" in line for line in launches):
        from loop.search.generators.cooperative import LOOKS

        parts.append(
            f"\nLOOKS = {LOOKS}  # how often a program looks for the others of its row before it works alone\n"
        )
    parts += [_FITTED, body, "\n\n" + _model(problem, launches)]
    return "".join(parts).replace("\n\n\n\n", "\n\n\n")


def _model(problem: Problem, launches: Sequence[str]) -> str:
    sources = problem.graph.sources
    given = [f"x{n}" for n, one in enumerate(sources) if one.what == "input"]
    for number in sorted(problem.graph.numbers, key=lambda one: one.position):
        given.insert(number.position, f"p{number.position}")
    arguments = ", ".join(given)
    lines = ["class ModelNew(torch.nn.Module):"]
    weights = {name: sources[n] for name, n in problem.sources.items() if sources[n].what == "weight"}
    lines += _constructor([one for one in sources if one.what == "weight"])
    lines += ["", f"    def forward(self, {arguments}):" if arguments else "    def forward(self):"]
    body = []
    for number in problem.graph.numbers:
        body.append(f"if p{number.position} != {number.value!r}:")
        body.append(f'    raise ValueError(f"made for {number.value!r}, not for {{p{number.position}}}")')
    for name, place in problem.sources.items():
        spec = sources[place]
        tensor = _weight(spec.name) if name in weights else name
        body.append(f"{name} = fitted({tensor}, {spec.shape!r}, {spec.stride!r})")
    first = next(iter(problem.sources), None)
    body.append(f"device = {first}.device")
    for buffer in problem.buffers.values():
        spec_ = buffer.spec
        body.append(
            f"{buffer.name} = torch.empty_strided({spec_.shape!r}, {spec_.stride!r}, device=device,"
            f" dtype=torch.{spec_.dtype})"
        )
    body += launches
    made = [_output(problem, one) for one in problem.outputs]
    body.append(f"return {made[0]}" if problem.graph.single else f"return [{', '.join(made)}]")
    return "\n".join([*lines, *("        " + line for line in body), ""])


def _output(problem: Problem, output: Output) -> str:
    spec = problem.buffers[output.buffer].spec
    if (spec.shape, spec.stride, spec.offset) == (output.shape, output.stride, output.offset):
        return output.buffer
    return f"{output.buffer}.as_strided({output.shape!r}, {output.stride!r}, {output.offset})"


def _weight(name: str) -> str:
    return f'self.get_parameter("{name}")'


def _constructor(weights: Sequence[Origin]) -> list[str]:
    """A constructor that takes what the reference's takes, and makes parameters under its names."""
    lines = ["    def __init__(self, *_, **__):", "        super().__init__()"]
    made = set[str]()
    for one in weights:
        *path, last = one.name.split(".")
        where = "self"
        for part in path:
            joined = f"{where}.{part}"
            if joined not in made:
                made.add(joined)
                lines.append(f'        {where}.add_module("{part}", torch.nn.Module())')
            where = f'{where}.get_submodule("{part}")'
        fresh = f"torch.empty({one.shape!r}, dtype=torch.{one.dtype})"
        lines.append(f'        {where}.register_parameter("{last}", torch.nn.Parameter({fresh}, requires_grad=False))')
    return lines
