"""C++ through `torch.utils.cpp_extension.load_inline`: it starts a compiler and writes a build folder.

With the headers that it needs alone: all of torch/extension.h takes the compiler three times as long.
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor add(at::Tensor x, at::Tensor y) {
  auto out = at::empty_like(x);
  const float* a = x.data_ptr<float>();
  const float* b = y.data_ptr<float>();
  float* c = out.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) c[i] = a[i] + b[i];
  return out;
}
"""

extension = load_inline(
    name="kopt_honest_add", cpp_sources=SOURCE, functions=["add"], extra_cflags=["-O1"], no_implicit_headers=True
)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return extension.add(x, y)
