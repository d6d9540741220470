"""A kernel is made of a reference alone, or of a page's code, and the evaluator's forms recognise it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.source.forms import Backend, Form, recognise
from evaluator.source.source_file import SourceFile
from kbs.common.errors import UsageError
from loop.workspace.first_kernel import of_code, of_reference
from loop.workspace.inventory import take
from tests.loop.workspace.test_inventory import INPUTS, MODEL, PLAIN, write

SETUP = "def setup(N=4):\n    return {}\n\n\ndef reference(x, y):\n    y.copy_(x)\n"
NAMED = "def reference(x):\n    return x\n"
CODE = (
    "import triton",
    "import triton.language as tl",
    "",
    "",
    "@triton.jit",
    "def rows(out, x, stride, n, BLOCK: tl.constexpr):",
    "    pass",
)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("text", "form", "entry", "inputs"),
    [
        (MODEL, Form.KERNELBENCH, "ModelNew", None),
        (SETUP, Form.SETUP, "run_kernel", None),
        (PLAIN, Form.FUNCTION, "scale", "inputs.json"),
        (NAMED, Form.FUNCTION, "kernel", "inputs.json"),
    ],
)
def test_a_reference_is_made_a_kernel_of_its_form(
    text: str, form: Form, entry: str, inputs: str | None, compiled: bool
) -> None:
    reference = SourceFile(name="ref.py", text=text)
    first = of_reference(reference, "ref_kernel.py", compiled=compiled)
    assert first is not None
    found = recognise(first.file, reference, inputs=inputs, entry=None, backend=None)
    assert (found.form, found.entry, found.oracle, found.backend) == (form, entry, "reference", Backend.TORCH)
    assert ("_torch.compile" in first.file.text) == compiled
    assert first.library
    assert "a baseline and no improvement" in first.why


@pytest.mark.parametrize(("text", "entry", "inputs"), [(MODEL, "ModelNew", None), (PLAIN, "scale", "inputs.json")])
def test_the_code_of_a_page_is_put_into_the_references_form(text: str, entry: str, inputs: str | None) -> None:
    reference = SourceFile(name="ref.py", text=text)
    made = list(of_code(reference, "ref_kernel.py", CODE, "gpu-wiki/kernel/x.md:L3-L9"))
    assert ["new_empty(x.shape[:-1])" in made[0].file.text, "x.shape[:-1], 1" in made[1].file.text] == [True, True]
    found = recognise(made[0].file, reference, inputs=inputs, entry=None, backend=None)
    assert (found.entry, found.backend) == (entry, Backend.TRITON)
    assert not made[0].library
    assert "gpu-wiki/kernel/x.md:L3-L9" in made[0].why
    assert not list(of_code(reference, "k.py", (*CODE[:5], "def tiles(a, b, BM):", "    pass"), "p"))


def test_a_workspace_with_a_reference_alone_has_a_made_kernel(tmp_path: Path) -> None:
    found = take(write(tmp_path, ref_dot_py=MODEL))
    assert found.made is not None
    assert found.kernel == tmp_path / "ref_kernel.py"
    assert not found.kernel.exists()
    assert found.kernel_source.text.startswith(MODEL.rstrip())
    assert take(write(tmp_path / "f", a_dot_py=PLAIN, data_dot_py=INPUTS)).made is not None


def test_what_was_meant_as_a_kernel_is_not_passed_over(tmp_path: Path) -> None:
    for name, text in (("a_dot_cu", "__global__ void k() {}"), ("b_dot_py", "import triton\n"), ("c_dot_py", "def (")):
        with pytest.raises(UsageError) as caught:
            take(write(tmp_path / name, ref_dot_py=MODEL, **{name: text}))
        assert caught.value.code == "kernel_not_found"


def test_two_references_alone_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, a_dot_py=MODEL, b_dot_py=MODEL))
    assert caught.value.code == "reference_ambiguous"
    found = take(tmp_path, reference=tmp_path / "b.py")
    assert found.kernel.name == "b_kernel.py"
