#include <cuda_bf16.h>

// A thread computes one element of C.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    sum += __bfloat162float(a[(size_t)row * k + i]) * __bfloat162float(b[(size_t)i * n + column]);
  }
  c[(size_t)row * n + column] = __float2bfloat16(sum);
}

extern "C" void solve(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  dim3 block(16, 16);
  dim3 grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);
  gemm<<<grid, block>>>(a, b, c, m, n, k);
}
