#include <cuda_bf16.h>

constexpr int TILE = 32;

// A block computes a tile of C, and shares tiles of A and B in shared memory.
__global__ void gemm_tiled(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  __shared__ float as[TILE][TILE];
  __shared__ float bs[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    as[y][x] = row < m && start + x < k ? __bfloat162float(a[(size_t)row * k + start + x]) : 0.0f;
    bs[y][x] = start + y < k && column < n ? __bfloat162float(b[(size_t)(start + y) * n + column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = __float2bfloat16(sum);
}

extern "C" void solve(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  gemm_tiled<<<grid, dim3(TILE, TILE)>>>(a, b, c, m, n, k);
}
