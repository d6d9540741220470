// Sums of rows: a block a row, partial sums in shared memory, warp shuffles at the end.
#include <cuda_runtime.h>

template <int THREADS>
__global__ void row_sum(const float* __restrict__ x, float* __restrict__ sums, int cols) {
  __shared__ float partial[THREADS];
  const float* row = x + (size_t)blockIdx.x * cols;
  float total = 0.0f;
  for (int i = threadIdx.x; i < cols; i += THREADS) total += row[i];
  partial[threadIdx.x] = total;
  __syncthreads();
  for (int width = THREADS / 2; width >= 32; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    total = partial[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffu, total, offset);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
  }
}

extern "C" void solve(const float* x,  // rows x cols
                      float* sums,     // rows
                      int rows, int cols) {
  row_sum<256><<<rows, 256>>>(x, sums, cols);
}
