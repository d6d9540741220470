// Rows divided by their sum of magnitudes. One warp adds the row up, one number after the other; 31 warps wait for it.
#include <cuda_runtime.h>

#define COLS 1024

__global__ void barrier_wait(const float* __restrict__ x, float* __restrict__ y, int rows) {
  __shared__ float row[COLS];
  __shared__ float sum;
  size_t at = (size_t)blockIdx.x * COLS + threadIdx.x;
  float value = x[at];
  row[threadIdx.x] = fabsf(value);
  __syncthreads();
  if (threadIdx.x < 32) {
    float total = 0.0f;
    for (int i = 0; i < COLS; i++) total += row[i];
    if (threadIdx.x == 0) sum = total;
  }
  __syncthreads();
  y[at] = value / sum;
}

extern "C" void solve(const float* x, float* y, int rows) { barrier_wait<<<rows, COLS>>>(x, y, rows); }
