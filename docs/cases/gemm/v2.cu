#include <cuda_bf16.h>

constexpr int TILE = 128;
constexpr int DEPTH = 16;
constexpr int SIDE = 16;
constexpr int PART = TILE / SIDE;

// A thread keeps a square of results in registers: each value that it loads from shared memory serves several of them.
__global__ void __launch_bounds__(SIDE* SIDE)
    gemm_registers(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  __shared__ float as[DEPTH][TILE + 1];
  __shared__ float bs[DEPTH][TILE];
  int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
  float sums[PART][PART] = {};
  for (int start = 0; start < k; start += DEPTH) {
    for (int e = threadIdx.x; e < TILE * DEPTH; e += SIDE * SIDE) {
      int row = top + e / DEPTH, depth = start + e % DEPTH;
      as[e % DEPTH][e / DEPTH] = row < m && depth < k ? __bfloat162float(a[(size_t)row * k + depth]) : 0.0f;
    }
    for (int e = threadIdx.x; e < TILE * DEPTH; e += SIDE * SIDE) {
      int depth = start + e / TILE, column = left + e % TILE;
      bs[e / TILE][e % TILE] = depth < k && column < n ? __bfloat162float(b[(size_t)depth * n + column]) : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < DEPTH; ++d) {
      float mine[PART], theirs[PART];
      for (int i = 0; i < PART; ++i) mine[i] = as[d][y * PART + i];
      for (int j = 0; j < PART; ++j) theirs[j] = bs[d][x + SIDE * j];
      for (int i = 0; i < PART; ++i)
        for (int j = 0; j < PART; ++j) sums[i][j] += mine[i] * theirs[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < PART; ++i)
    for (int j = 0; j < PART; ++j) {
      int row = top + y * PART + i, column = left + x + SIDE * j;
      if (row < m && column < n) c[(size_t)row * n + column] = __float2bfloat16(sums[i][j]);
    }
}

extern "C" void solve(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  gemm_registers<<<grid, SIDE * SIDE>>>(a, b, c, m, n, k);
}
