"""Every code block of the bundled wiki compiles and computes the right thing: Triton as PyTorch, CUDA as a loop."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bundled_pages import bundled_pages
from wiki.lint.view import CodeBlock, code_blocks
from wiki.page import Page

HERE = Path(__file__).parent
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")

Blocks = dict[str, dict[str, tuple[Page, CodeBlock]]]


@pytest.fixture(scope="module")
def blocks() -> Blocks:
    """By language and name: the first block of its language in `kernel/scan.md` is `kernel_scan_1`."""
    found: Blocks = {}
    for page in bundled_pages():
        counts: dict[str, int] = {}
        for block in code_blocks(page):
            counts[block.info] = counts.get(block.info, 0) + 1
            name = f"{page.path.removesuffix('.md').replace('/', '_')}_{counts[block.info]}"
            found.setdefault(block.info, {})[name] = (page, block)
    return found


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=os.environ | environment)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _triton(blocks: Blocks, folder: Path, *mode: str, **environment: str) -> set[str]:
    for name, (_, block) in blocks["python"].items():
        (folder / f"{name}.py").write_text(IMPORTS + "\n".join(block.code) + "\n", "utf-8")
    environment["TRITON_CACHE_DIR"] = str(folder / "cache")
    return set(_run(sys.executable, str(HERE / "triton_blocks.py"), str(folder), *mode, **environment).split())


def _cuda(blocks: Blocks, folder: Path) -> Path:
    """The program of all CUDA blocks: includes first, each block in a namespace, errors at the lines of the pages."""
    includes: set[str] = set()
    code: list[str] = []
    for name, (page, block) in blocks["cuda"].items():
        includes |= {line for line in block.code if line.startswith("#include")}
        body = ["" if line.startswith("#include") else line for line in block.code]
        code += [f"namespace {name.replace('-', '_')} {{", f'#line {block.line_start} "{page.path}"', *body, "}"]
    (folder / "blocks.cuh").write_text("\n".join([*sorted(includes), *code, ""]), "utf-8")
    program = folder / "cuda_blocks"
    source = str(HERE / "cuda_blocks.cu")
    target = ("-gencode", "arch=compute_90a,code=sm_90a")  # `-arch=sm_90a` may ask for plain compute_90 too
    _run("nvcc", *target, "-std=c++17", "-Werror", "all-warnings", "-I", str(folder), "-o", str(program), source)
    return program


def test_every_block_has_a_language_that_is_checked(blocks: Blocks) -> None:
    assert set(blocks) == {"python", "cuda", "bash"}, "a block of another language needs a check in this file"
    assert len(blocks["python"]) >= 24
    assert len(blocks["cuda"]) >= 24


@pytest.mark.processes
def test_shell_blocks_parse(blocks: Blocks) -> None:
    for _, block in blocks["bash"].values():
        _run("bash", "-n", "-c", "\n".join(block.code))


@needs_triton
@pytest.mark.processes
@pytest.mark.slow
def test_triton_blocks_compute_what_pytorch_does(blocks: Blocks, tmp_path: Path) -> None:
    checked = _triton(blocks, tmp_path, "run", "cpu", TRITON_INTERPRET="1")
    assert set(blocks["python"]) - checked == {"profiling_ncu-running_1"}  # it profiles, and needs a GPU


@needs_triton
@pytest.mark.processes
@pytest.mark.slow
def test_triton_blocks_compile_for_hopper(blocks: Blocks, tmp_path: Path) -> None:
    assert set(blocks["python"]) - _triton(blocks, tmp_path, "compile") == {"profiling_ncu-running_1"}


@needs_nvcc
@pytest.mark.processes
@pytest.mark.slow
def test_cuda_blocks_compile_without_a_warning(blocks: Blocks, tmp_path: Path) -> None:
    assert _cuda(blocks, tmp_path).is_file()


def test_every_cuda_block_is_called_by_a_check(blocks: Blocks) -> None:
    checks = set(re.findall(r'check\("(\w+)"', (HERE / "cuda_blocks.cu").read_text("utf-8")))
    assert checks == {name.replace("-", "_") for name in blocks["cuda"]}


@pytest.mark.gpu
def test_blocks_on_a_gpu(blocks: Blocks, tmp_path: Path) -> None:
    assert set(blocks["python"]) == _triton(blocks, tmp_path, "run", "cuda")
    checked = set(_run(str(_cuda(blocks, tmp_path))).split())
    assert checked == {name.replace("-", "_") for name in blocks["cuda"]}
