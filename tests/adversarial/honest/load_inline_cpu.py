"""C++ through `torch.utils.cpp_extension.load_inline`: it starts a compiler and writes a build folder."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>

torch::Tensor add(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  const float* a = x.data_ptr<float>();
  const float* b = y.data_ptr<float>();
  float* c = out.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) c[i] = a[i] + b[i];
  return out;
}
"""

extension = load_inline(name="kopt_honest_add", cpp_sources=SOURCE, functions=["add"], extra_cflags=["-O1"])


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return extension.add(x, y)
