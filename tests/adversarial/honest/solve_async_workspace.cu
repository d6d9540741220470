// A mean of squares through a workspace that each call takes from the stream's memory pool and gives back.
#include <cuda_runtime.h>

#define BLOCKS 512
#define THREADS 256

__device__ float block_sum(float value) {
  __shared__ float partial[THREADS];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int width = THREADS / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  return partial[0];
}

__global__ void partial_sums(const float* x, float* workspace, int n) {
  float total = 0.0f;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) total += x[i] * x[i];
  total = block_sum(total);
  if (threadIdx.x == 0) workspace[blockIdx.x] = total;
}

__global__ void finish(const float* workspace, float* mean, int n) {
  float total = 0.0f;
  for (int i = threadIdx.x; i < BLOCKS; i += THREADS) total += workspace[i];
  total = block_sum(total);
  if (threadIdx.x == 0) *mean = total / n;
}

extern "C" void solve(const float* x, float* mean, int n) {
  float* workspace = nullptr;
  cudaMallocAsync(&workspace, BLOCKS * sizeof(float), 0);
  partial_sums<<<BLOCKS, THREADS>>>(x, workspace, n);
  finish<<<1, THREADS>>>(workspace, mean, n);
  cudaFreeAsync(workspace, 0);
}
