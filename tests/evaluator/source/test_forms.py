"""Reading source files, and telling the forms of candidates and references by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.source.forms import Backend, Form, Recognised, defines, dims_of, recognise
from evaluator.source.source_file import MAX_BYTES, SourceFile, is_cuda, read_source
from kbs.common.errors import UsageError

KB_REFERENCE = """
import torch
N = 1024
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(N)]
def get_init_inputs():
    return []
"""
KB_CANDIDATE = (
    "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.clamp(min=0)\n"
)
SETUP = 'def setup(n=4):\n    return {"inputs": {"x": 1, "y": 2}, "outputs": ["y"]}\n'
RUN_KERNEL = "def run_kernel(x, y):\n    y.copy_(x)\n"
REFERENCE = "def reference(x, y):\n    y.copy_(x)\n"
SOLVE = 'extern "C" void solve(const float* x, float* y, int n) { k<<<1, 1>>>(x, y, n); }\n'
TRITON = "import triton\nimport triton.language as tl\n@triton.jit\ndef kernel(x, n: tl.constexpr):\n    pass\n"


def python(text: str, name: str = "k.py") -> SourceFile:
    return SourceFile(name=name, text=text)


def cuda(text: str, name: str = "k.cu") -> SourceFile:
    return SourceFile(name=name, text=text)


def found(
    candidate: SourceFile,
    reference: SourceFile | None = None,
    inputs: str | None = None,
    entry: str | None = None,
    backend: str | None = None,
) -> Recognised:
    return recognise(candidate, reference, inputs=inputs, entry=entry, backend=backend)


def refused(
    candidate: SourceFile,
    reference: SourceFile | None = None,
    inputs: str | None = None,
    entry: str | None = None,
    backend: str | None = None,
) -> UsageError:
    with pytest.raises(UsageError) as raised:
        found(candidate, reference, inputs, entry, backend)
    assert raised.value.hint
    return raised.value


# ── reading ──


def test_read(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    source = read_source(file, "candidate")
    assert source == SourceFile(name="k.py", text="x = 1\r\n")
    assert source.hash == hashlib.sha256(b"x = 1\r\n").hexdigest()


def test_read_what_is_no_source(tmp_path: Path) -> None:
    binary = tmp_path / "a.bin"
    binary.write_bytes(b"line\n\xff\xfe")
    large = tmp_path / "large.py"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    whole = tmp_path / "whole.py"
    whole.write_bytes(b"#" * MAX_BYTES)
    for path, code in (
        (tmp_path / "none.py", "file_not_found"),
        (tmp_path, "file_unreadable"),
        (tmp_path / "a\0b", "file_unreadable"),
        (binary, "file_not_text"),
        (large, "file_too_large"),
    ):
        with pytest.raises(UsageError) as raised:
            read_source(path, "candidate")
        assert raised.value.code == code
        assert "candidate" in raised.value.message
    with pytest.raises(UsageError, match="0xff in line 2"):
        read_source(binary, "reference")
    assert len(read_source(whole, "candidate").text) == MAX_BYTES


def test_hash_of_a_lone_surrogate_is_no_error() -> None:
    assert len(SourceFile.model_construct(name="k.py", text="\ud800").hash) == 64


# ── the four forms ──


@pytest.mark.parametrize(
    ("candidate", "reference", "inputs", "form", "entry", "oracle", "reference_entry", "setup_from"),
    [
        (KB_CANDIDATE, KB_REFERENCE, None, "kernelbench", "ModelNew", "reference", "Model", "none"),
        (KB_REFERENCE, KB_REFERENCE, None, "kernelbench", "Model", "reference", "Model", "none"),
        (KB_REFERENCE, None, None, "kernelbench", "Model", "original kernel", "Model", "none"),
        (KB_REFERENCE + KB_CANDIDATE, None, None, "kernelbench", "ModelNew", "original kernel", "Model", "none"),
        ("from kernels import ModelNew\n", KB_REFERENCE, None, "kernelbench", "ModelNew", "reference", "Model", "none"),
        (
            KB_CANDIDATE,
            KB_REFERENCE.replace("class Model(", "class ModelNew("),
            None,
            *("kernelbench", "ModelNew", "original kernel", "ModelNew", "none"),
        ),
        (RUN_KERNEL + SETUP, None, None, "setup", "run_kernel", "original kernel", "run_kernel", "candidate"),
        (RUN_KERNEL, REFERENCE + SETUP, None, "setup", "run_kernel", "reference", "reference", "reference"),
        (RUN_KERNEL + SETUP, REFERENCE, None, "setup", "run_kernel", "reference", "reference", "candidate"),
        (RUN_KERNEL + SETUP, REFERENCE, "make.py", "setup", "run_kernel", "reference", "reference", "inputs"),
        (
            RUN_KERNEL + SETUP,
            REFERENCE + SETUP,
            "make.py",
            *("setup", "run_kernel", "reference", "reference", "reference"),
        ),
        (RUN_KERNEL, RUN_KERNEL + SETUP, None, "setup", "run_kernel", "original kernel", "run_kernel", "reference"),
        ("def softmax(x): ...", "def softmax(x): ...", "x.npz", "function", "softmax", "reference", "softmax", "none"),
        ("def fast(x): ...", REFERENCE, "x.npz", "function", "fast", "reference", "reference", "none"),
        ("def fast(x): ...", None, "x.json", "function", "fast", "original kernel", "fast", "none"),
        (
            "def cdiv(a, b): ...\ndef softmax(x): ...",
            "def softmax(x): ...",
            "x.npz",
            *("function", "softmax", "reference", "softmax", "none"),
        ),
        ("if True:\n    def fast(x): ...", None, "x.npz", "function", "fast", "original kernel", "fast", "none"),
    ],
)
def test_form_of_python(
    candidate: str,
    reference: str | None,
    inputs: str | None,
    form: str,
    entry: str,
    oracle: str,
    reference_entry: str,
    setup_from: str,
) -> None:
    got = found(python(candidate), None if reference is None else python(reference, "r.py"), inputs)
    assert (got.form, got.entry, got.oracle) == (form, entry, oracle)
    assert (got.reference_entry, got.setup_from) == (reference_entry, setup_from)


@pytest.mark.parametrize(
    ("reference", "inputs", "oracle", "reference_entry", "setup_from"),
    [
        (None, None, "original kernel", "solve", "none"),
        (None, "make.py", "original kernel", "solve", "inputs"),
        (python(REFERENCE, "r.py"), None, "reference", "reference", "none"),
        (python(REFERENCE + SETUP, "r.py"), None, "reference", "reference", "reference"),
        (cuda(SOLVE, "first.cu"), None, "original kernel", "solve", "none"),
    ],
)
def test_solve_form(
    reference: SourceFile | None, inputs: str | None, oracle: str, reference_entry: str, setup_from: str
) -> None:
    got = found(cuda(SOLVE), reference, inputs)
    assert (got.form, got.backend, got.entry) == (Form.SOLVE, Backend.CUDA, "solve")
    assert (got.oracle, got.reference_entry, got.setup_from) == (oracle, reference_entry, setup_from)


def test_an_entry_is_what_the_user_names() -> None:
    two = python("def a(x): ...\ndef b(x): ...\nclass Fast: ...\n")
    assert found(two, None, "x.npz", entry="b").entry == "b"
    assert found(two, python(KB_REFERENCE), entry="Fast").form is Form.KERNELBENCH
    assert found(cuda(SOLVE.replace("solve", "launch")), entry="launch").entry == "launch"
    error = refused(two, None, "x.npz", entry="c")
    assert error.code == "no_kernel"
    assert "Fast, a, b" in error.message


def test_the_reference_says_which_of_two_forms_is_meant() -> None:
    both = python(KB_CANDIDATE + RUN_KERNEL + SETUP)
    assert found(both, python(KB_REFERENCE)).form is Form.KERNELBENCH
    assert found(both, python(REFERENCE)).form is Form.SETUP
    error = refused(both)
    assert error.code == "two_kernels"
    assert "ModelNew (kernelbench form), run_kernel (setup form)" in error.message


def test_what_stands_under_the_main_guard_is_no_kernel() -> None:
    guarded = 'def fast(x): ...\nif __name__ == "__main__":\n    class ModelNew: ...\n    def run_kernel(): ...\n'
    assert found(python(guarded), None, "x.npz").entry == "fast"


# ── errors ──


def test_no_kernel_says_what_each_form_lacks() -> None:
    error = refused(python("x = 1\n"))
    assert error.code == "no_kernel"
    for form in Form:
        assert f"{form}: " in error.message
    for word in ("ModelNew", "run_kernel", "setup", 'extern "C" void solve', "public function"):
        assert word in error.message
    launched = refused(python(TRITON)).message
    assert "kernel is a kernel, which a Python function must launch" in launched
    assert refused(python("def _helper(x): ...\ndef main(): ...\ndef test_it(): ...\n")).code == "no_kernel"


def test_a_reference_alone_is_its_own_kernel() -> None:
    """A reference is compared with itself, or with another."""
    alone = found(python("def reference(x): ...\ndef _helper(x): ...\ndef get_inputs(): ...\n"), inputs="in.json")
    assert (alone.form, alone.entry) == (Form.FUNCTION, "reference")
    beside = found(python("def reference(x): ...\ndef mine(x): ...\n"), inputs="in.json")
    assert beside.entry == "mine"
    assert refused(python("from somewhere import reference\n")).code == "no_kernel"


def test_what_a_file_defines() -> None:
    text = "from m import other\nclass ModelNew: ...\ndef solve(x): ...\nif True:\n    def inner(x): ...\n"
    defined = [name for name in ("other", "ModelNew", "solve", "inner", "x", "m") if defines(python(text), name)]
    assert defined == ["ModelNew", "solve", "inner"]
    exported = cuda('extern "C" void mine(float* x, int n) {}\nvoid hidden() {}\n')
    assert (defines(exported, "mine"), defines(exported, "hidden")) == (True, False)


def test_a_function_that_another_calls_is_a_helper() -> None:
    text = "def rows(x):\n    return x\n\n\ndef run(x):\n    return rows(x).softmax(-1)\n"
    reference = python("def reference(x):\n    return x.softmax(-1)\n", "r.py")
    assert found(python(text), reference, "x.npz").entry == "run"


def test_two_kernels_are_listed() -> None:
    error = refused(python("def a(x): ...\ndef b(x): ...\n"), None, "x.npz")
    assert error.code == "two_kernels"
    assert "a, b" in error.message
    assert "--entry" in error.hint


@pytest.mark.parametrize(
    ("candidate", "reference", "inputs", "missing"),
    [
        (KB_CANDIDATE, "x = 1", None, "a class Model, a function get_inputs, a function get_init_inputs"),
        (KB_CANDIDATE, KB_REFERENCE.replace("get_inputs", "inputs"), None, "a function get_inputs"),
        (
            KB_CANDIDATE,
            KB_REFERENCE.replace("get_init_inputs", "init").replace(
                "    def forward", "    def __init__(self, n): ...\n    def forward"
            ),
            None,
            "a function get_init_inputs",
        ),
        (RUN_KERNEL + SETUP, KB_REFERENCE, None, "a function reference(**kwargs)"),
        ("def fast(x): ...", KB_REFERENCE, "x.npz", "a function fast, or reference"),
    ],
)
def test_a_reference_of_another_form(candidate: str, reference: str, inputs: str | None, missing: str) -> None:
    error = refused(python(candidate), python(reference, "r.py"), inputs)
    assert error.code == "reference_form"
    assert "r.py" in error.message
    assert missing in error.message


def test_a_model_without_arguments_needs_no_get_init_inputs() -> None:
    assert found(python(KB_CANDIDATE), python(KB_REFERENCE.replace("get_init_inputs", "init"))).entry == "ModelNew"


@pytest.mark.parametrize(
    ("candidate", "reference", "hint"),
    [
        ("def fast(x): ...", None, "--inputs FILE"),
        ("def fast(x): ...", REFERENCE + "def get_inputs(): ...\n", "--inputs r.py"),
        (RUN_KERNEL, REFERENCE, "setup(**dims)"),
        (RUN_KERNEL, None, "setup(**dims)"),
        (KB_CANDIDATE, None, "--ref"),
    ],
)
def test_inputs_are_missing(candidate: str, reference: str | None, hint: str) -> None:
    error = refused(python(candidate), None if reference is None else python(reference, "r.py"))
    assert error.code == "inputs_missing"
    assert hint in error.hint


def test_a_reference_without_inputs_is_told_what_it_lacks() -> None:
    error = refused(python(KB_CANDIDATE), None)
    assert "lacks" in error.message
    assert "no other file was given as the reference" in error.message


def test_cuda_without_solve() -> None:
    error = refused(cuda("__global__ void k() {}\n"))
    assert error.code == "no_kernel"
    assert "solve:" in error.message
    renamed = refused(cuda(SOLVE.replace("solve", "launch")))
    assert renamed.code == "no_kernel"
    assert "launch" in renamed.message
    assert refused(cuda(SOLVE), python("x = 1", "r.py")).code == "reference_form"
    assert refused(cuda("\0" + SOLVE)).code == "syntax_error"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x = 1\ny = (\n", "k.py:2:5: "),
        ("def f(:\n  pass\n", "k.py:1:"),
        ("if x:\npass\n", "k.py:2:"),
        ("x = 1\ny = '\0'\n", "k.py:2:6: "),
        ("x = " + "9" * 5000, "k.py:1:"),
        ("(" * 5000, "k.py:1:"),
        ("-" * 100_000 + "1", "k.py:1:"),
        ("x" + ".a" * 100_000, "k.py:1:"),
        ("[" * 150 + "]" * 150 + "\n" + "if a:\n" * 5, "k.py:"),
        ("x = 1\r\ny = ?\r\n", "k.py:2:5: "),
    ],
)
def test_what_cannot_be_parsed_is_a_syntax_error(text: str, where: str) -> None:
    error = refused(python(text), python(KB_REFERENCE))
    assert error.code == "syntax_error"
    assert error.message.startswith(where)
    assert len(error.message) < 500


def test_a_syntax_error_quotes_its_line() -> None:
    assert "y = (" in refused(python("x = 1\ny = (\n")).message
    error = refused(python(KB_CANDIDATE), python("def f(:\n", "r.py"))
    assert error.message.startswith("r.py:1:")
    assert "def f(:" in error.message


# ── backends ──


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        (TRITON, Backend.TRITON),
        (TRITON.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit"), Backend.TRITON),
        ("from triton import jit as compiled\n@compiled\ndef kernel(x): ...\n", Backend.TRITON),
        ("import triton as t\nkernel = t.jit(lambda x: x)\n", Backend.TRITON),
        ("from triton.experimental import gluon\n@gluon.jit\ndef kernel(x): ...\n", Backend.TRITON),
        ("import triton\n", Backend.TORCH),
        ("import torch\n@torch.jit.script\ndef kernel(x): ...\n", Backend.TORCH),
        ("from numba import jit\n@jit\ndef kernel(x): ...\n", Backend.TORCH),
        ('from torch.utils.cpp_extension import load_inline\nload_inline("k", cuda_sources="")\n', Backend.TORCH),
    ],
)
def test_backend_is_seen_in_the_source(text: str, backend: Backend) -> None:
    assert found(python(text + KB_CANDIDATE), python(KB_REFERENCE)).backend is backend


def test_backend_that_the_user_names() -> None:
    assert found(python(KB_CANDIDATE), python(KB_REFERENCE), backend="triton").backend is Backend.TRITON
    for source, name in ((python(KB_CANDIDATE), "cuda"), (cuda(SOLVE), "triton"), (python(KB_CANDIDATE), "cutedsl")):
        assert refused(source, backend=name).code == "backend_unknown"


def test_cuda_is_told_by_ending_else_by_content() -> None:
    assert is_cuda(SourceFile(name="a.CU", text=""))
    assert not is_cuda(SourceFile(name="a.py", text='"""extern "C" __global__"""'))
    assert is_cuda(SourceFile(name="kernel", text='#include <x>\nextern "C" void solve() {}'))
    assert not is_cuda(SourceFile(name="kernel", text="import torch"))


# ── constants ──


def test_constants_of_a_reference() -> None:
    text = """
M = 4096
N: int = 1 << 12
K = 2 * (M_OTHER := 3)
HEADS = -(-17 // 4) * 2 ** 3 % 7
M = 8192
RATE = 0.5
FLAG = True
DERIVED = M * 2
BIG = 9 ** 9 ** 9
HUGE = 2 ** 63
BAD = 1 // 0
a, b = 1, 2
c = d = 3
if True:
    INSIDE = 1
def f():
    LOCAL = 2
"""
    assert dims_of(python(text)) == {"M": 8192, "N": 4096, "HEADS": -(-17 // 4) * 2**3 % 7}


def test_constants_of_a_file_that_cannot_be_parsed() -> None:
    with pytest.raises(UsageError) as raised:
        dims_of(python("N = ("))
    assert raised.value.code == "syntax_error"


# ── any text ──

_PIECES = st.sampled_from(
    [
        *(
            "class ModelNew:",
            "def run_kernel(",
            "x):\n",
            "    pass\n",
            "def setup():\n",
            "\n",
            "(",
            ")",
            "\0",
            "@triton.jit\n",
        ),
        *('extern "C" void solve(', "float* x", ", ", ") {", "}", "#define A B\n", "/*", "*/", '"', "'", 'R"(', "\\\n"),
        *(
            "if __name__ == '__main__':\n",
            "import torch\n",
            "N = 4\n",
            "lambda",
            "\r",
            "\ufeff",
            "async def f",
            "9" * 20,
        ),
    ]
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=25).map("".join))


def outcome(work: Callable[[], object]) -> UsageError | None:
    """The UsageError that `work` ends with, None where it succeeds."""
    try:
        work()
    except UsageError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(["k.py", "k.cu", "k"]), st.sampled_from([None, "x.npz"]), st.booleans())
def test_any_text_is_recognised_or_refused_by_name(
    text: str, other: str, name: str, inputs: str | None, with_reference: bool
) -> None:
    reference = SourceFile(name="r.py", text=other) if with_reference else None
    source = SourceFile(name=name, text=text)
    error = outcome(lambda: found(source, reference, inputs))
    if error is None:
        assert found(source, reference, inputs).entry
    else:
        assert error.code
        assert error.hint


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_constants_of_any_text(text: str) -> None:
    error = outcome(lambda: dims_of(python(text)))
    if error is None:
        assert all(type(value) is int for value in dims_of(python(text)).values())
    else:
        assert error.code == "syntax_error"
