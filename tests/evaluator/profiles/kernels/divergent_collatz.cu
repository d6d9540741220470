// Steps of the Collatz sequence down to 1: one thread of each warp takes hundreds, while the others have ended.
#include <cuda_runtime.h>

__global__ void divergent_collatz(const int* __restrict__ starts, int* __restrict__ steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long value = starts[i];
  int count = 0;
  while (value != 1) {
    value = value % 2 ? 3 * value + 1 : value / 2;
    count++;
  }
  steps[i] = count;
}

extern "C" void solve(const int* starts, int* steps, int n) {
  divergent_collatz<<<(n + 255) / 256, 256>>>(starts, steps, n);
}
