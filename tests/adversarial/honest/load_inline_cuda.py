"""CUDA through `torch.utils.cpp_extension.load_inline`, launched on PyTorch's current stream."""

import os

os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"

import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_kernel(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

torch::Tensor add(torch::Tensor x, torch::Tensor y) {
  TORCH_CHECK(x.is_cuda() && y.is_cuda(), "inputs must be on the GPU");
  auto out = torch::empty_like(x);
  long n = x.numel();
  add_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

extension = load_inline(
    name="kopt_honest_add_cuda",
    cpp_sources="torch::Tensor add(torch::Tensor x, torch::Tensor y);",
    cuda_sources=CUDA,
    functions=["add"],
    extra_cuda_cflags=["-O2"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return extension.add(x, y)
