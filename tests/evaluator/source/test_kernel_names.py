"""Which GPU kernels a file defines, and whether a launched one is among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.source.kernel_names import defined_kernels, is_of
from evaluator.source.source_file import SourceFile, read_source

CORPUS = Path(__file__).parents[1] / "profiles" / "kernels"


def source(name: str, text: str) -> SourceFile:
    """A file."""
    return SourceFile(name=name, text=text)


def test_every_kernel_of_the_corpus_is_found_by_the_name_that_its_profile_has() -> None:
    import tomllib

    profiles = tomllib.loads((CORPUS.parent / "expected.toml").read_text("utf-8"))["profile"]
    assert len(profiles) >= 12
    for profile in profiles:
        file = read_source(CORPUS / profile["file"], "kernel")
        kernels = defined_kernels(file)
        assert is_of(profile["kernel"], file, kernels), profile["id"]
        assert profile["kernel"] in file.text.splitlines()[kernels[profile["kernel"]] - 1]
        assert is_of("vectorized_elementwise_kernel", file, kernels) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__global__ void k(float* x) {}", {"k": 1}),
        ("template <int N>\n__global__ void\n__launch_bounds__(256, (2))\nk(float* x) {}", {"k": 4}),
        ("__global__ __attribute__((used)) static void k(int) ;", {"k": 1}),
        ("// __global__ void k(float*)\n", {}),
        ("__global__", {}),
        ("__global__ void __launch_bounds__(", {}),
    ],
)
def test_cuda(text: str, expected: dict[str, int]) -> None:
    assert defined_kernels(source("k.cu", text)) == expected


def test_triton_and_cuda_in_a_string() -> None:
    text = (
        "import triton\nfrom other import imported\n\n@triton.autotune([], [])\n@triton.jit\ndef a(x):\n    pass\n"
        'def b(x):\n    pass\nc = triton.jit(b)\nCODE = """\n__global__ void d(int* x) {}\n"""\n'
        "def plain():\n    pass\n"
    )
    file = source("k.py", text)
    kernels = defined_kernels(file)
    assert kernels == {"a": 6, "b": 8, "d": 12}
    assert is_of("a_0d1d2de", file, kernels)  # older versions of Triton add what arguments are
    assert is_of("imported", file, kernels)
    assert is_of("plain", file, kernels) is False


def test_what_a_text_cannot_tell() -> None:
    torch_only = source("k.py", "import torch\ndef f(x):\n    return x + 1\n")
    assert is_of("elementwise", torch_only, defined_kernels(torch_only)) is None
    includes = source("k.cu", '#include "kernels.cuh"\nextern "C" void solve() {}\n')
    assert is_of("elsewhere", includes, {}) is None
    macro = source("k.cu", "#define KERNEL(n) __global__ void n(int* x) {}\nKERNEL(made)\n// mentioned\n")
    assert is_of("made", macro, {"n": 1})
    assert is_of("mentioned", macro, {"n": 1}) is False
