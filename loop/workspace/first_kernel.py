"""A first kernel for a run that has a reference alone: the reference itself, or a wiki page's code in its form.

Nothing is executed. Whether a page's code computes what the reference does is for the evaluator to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.source.forms import Form
from evaluator.source.python_source import definitions, parse
from evaluator.source.source_file import SourceFile

How = Literal["reference", "torch.compile", "page"]
_ROW = ("x", "stride", "n", "BLOCK")
"""Parameters, after what it writes, of a page's kernel that takes one row a program."""
_RESULTS = {
    "y": ("torch.empty_like(x)",),
    "out": ("x.new_empty(x.shape[:-1])", "x.new_empty((*x.shape[:-1], 1))"),
}
"""What a row kernel writes → how its result can be made: as large as the input, or one value a row."""
_LARGEST = 1024
"""Columns that a program takes at once where its kernel loops over the row."""


@dataclass(frozen=True)
class FirstKernel:
    """Version 0 of a run that has a reference alone."""

    file: SourceFile
    how: How
    citation: str = ""
    """The lines of the page that its code is from: wiki/path:L3-L9."""

    @property
    def library(self) -> bool:
        """Whether it is the library itself: a baseline, and no improvement on anything."""
        return self.how != "page"

    @property
    def why(self) -> str:
        """What it is, in words."""
        if self.how == "page":
            return f"no kernel is there: version 0 is the code of {self.citation}, which the evaluator found right"
        through = " through torch.compile" if self.how == "torch.compile" else ""
        return f"no kernel is there: version 0 is the reference itself{through}, a baseline and no improvement"


def file_name(reference: Path) -> str:
    """The name that a made kernel has beside its reference: `softmax.py` → `softmax_kernel.py`."""
    return f"{reference.stem}_kernel.py"


def form_of(reference: SourceFile) -> tuple[Form, str] | None:
    """(form of a kernel for a reference, the name that it is called by); None where none can be made of it."""
    own = definitions(parse(reference.name, reference.text))
    if own.has_class("Model") and own.callable("get_inputs"):
        return Form.KERNELBENCH, "ModelNew"
    if "reference" in own.functions and own.callable("setup"):
        return Form.SETUP, "run_kernel"
    public = [name for name in own.functions if not name.startswith(("_", "test_", "get_")) and name != "setup"]
    if len(public) != 1:
        return None  # a helper's name would be taken for the kernel's
    return Form.FUNCTION, "kernel" if public == ["reference"] else public[0]


def of_reference(reference: SourceFile, name: str, *, compiled: bool) -> FirstKernel | None:
    """The reference as a kernel, called `name`; `compiled`: through torch.compile. None where none can be made."""
    found = form_of(reference)
    if found is None:
        return None
    form, entry = found
    if form is Form.KERNELBENCH:
        added = _COMPILED_MODEL if compiled else "class ModelNew(Model):\n    pass\n"
    elif form is Form.SETUP or entry == "kernel":
        called = "_compiled" if compiled else "reference"
        made = "_compiled = _torch.compile(reference)\n\n\n" if compiled else ""
        added = f"{made}def {entry}(*args, **kwargs):\n    return {called}(*args, **kwargs)\n"
    else:
        added = f"{entry} = _torch.compile({entry})\n" if compiled else ""
    imported = "import torch as _torch\n\n\n" if compiled else ""
    text = reference.text.rstrip("\n") + "\n" + (f"\n\n{imported}{added}" if added else "")
    return FirstKernel(SourceFile(name=name, text=text), "torch.compile" if compiled else "reference")


_COMPILED_MODEL = """class ModelNew(Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._compiled = _torch.compile(super().forward)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)
"""


def of_code(reference: SourceFile, name: str, code: Sequence[str], citation: str) -> Iterator[FirstKernel]:
    """The code of a page as kernels for a reference, called `name`: one for each shape that its result may have.

    Only code with one Triton kernel that takes a row a program is used: `(y, x, stride, n, BLOCK)`.
    """
    found, kernel = form_of(reference), _row_kernel("\n".join(code))
    if found is None or kernel is None or found[0] is Form.SETUP:
        return
    form, entry = found
    block = f"min({_LARGEST}, triton.next_power_of_2(n))" if kernel.loops else "triton.next_power_of_2(n)"
    for result in _RESULTS[kernel.written]:
        body = (
            "x = x.contiguous()",
            "n = x.shape[-1]",
            f"result = {result}",
            f"{kernel.name}[(x.numel() // n,)](result, x, n, n, BLOCK={block})",
            "return result",
        )
        head = [f"def {entry}(x):"]
        if form is Form.KERNELBENCH:
            head = ["class ModelNew(torch.nn.Module):", "    def forward(self, x):"]
        indent = "    " * len(head)
        lines = ["import torch", *code, "", "", *head, *(indent + line for line in body), ""]
        yield FirstKernel(SourceFile(name=name, text="\n".join(lines)), "page", citation)


@dataclass(frozen=True)
class _RowKernel:
    name: str
    written: str
    """The name of its first parameter: what it writes."""
    loops: bool
    """Whether it loops over its row, so that a block may be shorter."""


def _row_kernel(text: str) -> _RowKernel | None:
    """The only function of a text, if it takes what a row kernel takes."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1 or not functions[0].decorator_list:
        return None
    names = [argument.arg for argument in functions[0].args.args]
    if tuple(names[1:]) != _ROW or names[0] not in _RESULTS:
        return None
    loops = any(isinstance(node, ast.For) for node in ast.walk(functions[0]))
    return _RowKernel(functions[0].name, names[0], loops)
