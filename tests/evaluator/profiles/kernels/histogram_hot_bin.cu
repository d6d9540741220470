// A histogram by one atomic a number, of which nine in ten go to one bin.
#include <cuda_runtime.h>

__global__ void clear(int* counts, int bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bins) counts[i] = 0;
}

__global__ void histogram_hot_bin(const int* __restrict__ keys, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[keys[i]], 1);
}

extern "C" void solve(const int* keys, int* counts, int n, int bins) {
  clear<<<(bins + 255) / 256, 256>>>(counts, bins);
  histogram_hot_bin<<<(n + 255) / 256, 256>>>(keys, counts, n);
}
