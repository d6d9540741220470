// Every eighth number of a vector: each of them brings a sector of eight along.
#include <cuda_runtime.h>

__global__ void copy_strided(const float* __restrict__ x, float* __restrict__ y, int n, int stride) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i * stride];
}

extern "C" void solve(const float* x, float* y, int n, int stride) {
  copy_strided<<<(n + 255) / 256, 256>>>(x, y, n, stride);
}
