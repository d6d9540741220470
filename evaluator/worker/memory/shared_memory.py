"""Shared memory filled with NaN on every multiprocessor, so that a kernel that reads it too early is found out.

compute-sanitizer's initcheck looks at global memory alone. What lies in shared memory when a block starts is what the
last block on that multiprocessor left there: often the right answer, when the same kernel runs again and again.
Source: CUDA C++ Programming Guide, cudaDevAttrMaxSharedMemoryPerBlockOptin and cudaFuncSetAttribute.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

_SOURCE = r"""
#include <cuda_runtime.h>

__global__ void fill(int words) {
    extern __shared__ volatile unsigned memory[];
    for (int at = threadIdx.x; at < words; at += blockDim.x) memory[at] = 0x7FC0DEADu;
}

extern "C" int fill_shared_memory() {
    int device = 0, bytes = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    fill<<<4 * processors, 256, bytes>>>(bytes / 4);
    return (int)cudaDeviceSynchronize();
}
"""


def filler(nvcc: str, flags: list[str], folder: Path) -> Callable[[], None] | str:
    """A function that fills all of it; why there is none, where it does not compile.

    A block takes the most that one may have, so that no two share a multiprocessor; four for each reach them all.
    """
    source, library = folder / "shared_memory.cu", folder / "shared_memory.so"
    source.write_text(_SOURCE, "utf-8")
    architecture = [flag for flag in flags if flag.startswith("-gencode")]
    words = [nvcc, *architecture, "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr or done.stdout).strip()[-300:] or f"nvcc ended with {done.returncode}"
    function = ctypes.CDLL(str(library)).fill_shared_memory
    function.restype = ctypes.c_int

    def fill() -> None:
        code = function()
        if code:
            raise RuntimeError(f"shared memory could not be filled: CUDA error {code}")

    return fill
