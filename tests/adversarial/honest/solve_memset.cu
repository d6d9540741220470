// Clears its output by a memset, to which the kernel adds by atomics.
#include <cuda_runtime.h>

#define THREADS 256

__global__ void add_squares(const float* x, float* mean, int n) {
  __shared__ float partial[THREADS];
  float total = 0.0f;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) total += x[i] * x[i];
  partial[threadIdx.x] = total;
  __syncthreads();
  for (int width = THREADS / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(mean, partial[0] / n);
}

extern "C" void solve(const float* x, float* mean, int n) {
  cudaMemsetAsync(mean, 0, sizeof(float), 0);
  add_squares<<<256, THREADS>>>(x, mean, n);
}
